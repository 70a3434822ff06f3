//! The bag of a tenant, its plan, and the nodes on which it runs.

use crate::error::BatchError;
use crate::settings::{BatchSettings, ServerType};
use crate::work::{MemberId, Work};
use ebbtide_bag::read::{FileOverrides, Format, bag};
use ebbtide_bag::{Bag, BagError, Effort, Market, Plan, Task, VmId, plan};
use ebbtide_model::{Money, toml_text};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The search for a plan begins with this number: a bag has one plan.
const SEED: u64 = 1;

/// The document, and what of the service's settings the plan depends on.
#[derive(Debug, Serialize, Deserialize)]
struct Settled {
    #[serde(flatten)]
    part: DocumentPart,
    types: Vec<Value>,
    length_reserve: f64,
    lag_seconds: u64,
}

/// What a tenant writes.
#[derive(Debug, Serialize, Deserialize)]
struct DocumentPart {
    name: String,
    dir: String,
    command: String,
    #[serde(default)]
    retries: u32,
    rules: Map<String, Value>,
    tasks: Vec<Map<String, Value>>,
}

/// The keys of a document.
const KEYS: [&str; 6] = ["name", "dir", "command", "retries", "rules", "tasks"];

/// Reads a document: JSON, or else TOML with the same keys.
///
/// # Errors
/// [`BatchError::Work`] for what is neither.
pub fn read(text: &str) -> Result<Value, BatchError> {
    if text.trim_start().starts_with('{') {
        let made = serde_json::from_str(text);
        return made.map_err(|error| BatchError::work("the document", error.to_string()));
    }
    let table: toml::Table = toml::from_str(text).map_err(|error: toml::de::Error| {
        let problem = toml_text::problem(text, error.span(), error.message());
        BatchError::work("the document", problem)
    })?;
    serde_json::to_value(table).map_err(|e| BatchError::work("the document", e.to_string()))
}

/// Completes a document with the types of servers and what else its plan depends on, so that a
/// program that is started again makes the same plan whatever its settings and the prices are then.
///
/// # Errors
/// [`BatchError::Work`] for a document that cannot be used, [`BatchError::Setting`] for settings.
pub fn settle(
    document: &Value,
    settings: &BatchSettings,
    prices: &BTreeMap<String, u64>,
) -> Result<Value, BatchError> {
    let about = |error: serde_json::Error| {
        let words = toml_text::without_values(&error.to_string());
        BatchError::work("the document", words)
    };
    let unknown = document.as_object().and_then(|keys| {
        let mut keys = keys.keys();
        keys.find(|key| !KEYS.contains(&key.as_str()))
    });
    if let Some(key) = unknown {
        let problem = format!("it is unknown; there are {}", KEYS.join(", "));
        return Err(BatchError::work(key, problem));
    }
    let mut part = DocumentPart::deserialize(document).map_err(about)?;
    if part
        .tasks
        .iter()
        .any(|task| task.contains_key("checkpoints"))
    {
        let problem = "tasks with checkpoints are simulated only: a live bag begins a task anew on its backup; leave the key out";
        return Err(BatchError::work("tasks.checkpoints", problem));
    }
    let policy = &settings.policy;
    if policy.budget.is_some() {
        let problem = "no budget is kept for a bag that is run by maps: leave the key out";
        return Err(BatchError::setting("policy.budget", problem));
    }
    let seconds = |given: f64| given.ceil() as u64;
    for (key, default) in [
        ("boot", policy.boot_seconds),
        ("margin", policy.margin_seconds),
    ] {
        let rule = part.rules.entry(key);
        rule.or_insert_with(|| Value::from(seconds(default)));
    }
    let mut types = Vec::new();
    for ty in settings.server_types()? {
        let told = prices.get(&ty.flavor).copied().filter(|price| *price > 0);
        let price = Money::from_micros(told.filter(|_| ty.preemptible).unwrap_or(ty.price));
        let market = if ty.preemptible {
            "preemptible"
        } else {
            "on_demand"
        };
        types.push(json!({
            "name": ty.name, "vcpus": ty.vcpus, "memory_mb": ty.memory_mb,
            market: price.to_string(),
        }));
    }
    let settled = Settled {
        part,
        types,
        length_reserve: policy.length_reserve,
        lag_seconds: seconds(policy.lag_seconds),
    };
    serde_json::to_value(settled).map_err(about)
}

/// A bag with its plan.
#[derive(Debug, Clone)]
pub struct BagWork {
    /// The bag as it is planned: each task with the reserve and the lag.
    pub bag: Bag,
    /// Both maps.
    pub plan: Plan,
    /// The same tasks as the members of a work: what a script needs to know.
    pub work: Work,
    /// How often a task is tried again after it failed by itself.
    pub retries: u32,
    /// How long each task takes, as the tenant said, seconds.
    pub lengths: Vec<u64>,
    /// As [`settle`] made it.
    pub document: Value,
    types: Vec<ServerType>,
    /// The node and the type of each server of the plan.
    nodes: BTreeMap<VmId, (String, usize)>,
}

impl BagWork {
    /// Plans a settled document.
    ///
    /// # Errors
    /// [`BatchError::Work`] for a document that cannot be used, a deadline that cannot be met, or a
    /// plan with more servers than there are nodes; [`BatchError::Setting`].
    pub fn new(document: &Value, settings: &BatchSettings) -> Result<Self, BatchError> {
        let about = |error: serde_json::Error| BatchError::work("the document", error.to_string());
        let settled = Settled::deserialize(document).map_err(about)?;
        let refused = |error: BagError| BatchError::work(error.code(), error.to_string());
        let Settled { part, types, .. } = &settled;
        let text = json!({ "rules": part.rules, "tasks": part.tasks, "types": types });
        let told = bag(&text.to_string(), Format::Json, FileOverrides::default());
        let told = told.map_err(refused)?;
        let longer = |task: &Task| Task {
            seconds: (task.seconds as f64 * (1.0 + settled.length_reserve)).ceil() as u64
                + settled.lag_seconds,
            ..task.clone()
        };
        let tasks: Vec<Task> = told.tasks().iter().map(longer).collect();
        let work = work(part, &told)?;
        let own = settings.server_types()?;
        let known = |at: usize, ty: &ebbtide_bag::InstanceType| {
            let own = own.get(at);
            own.is_some_and(|own| {
                own.name == ty.name && own.preemptible == ty.preemptible.is_some()
            })
        };
        let mut types = told.types().iter().enumerate();
        if !types.all(|(at, ty)| known(at, ty)) || told.types().len() != own.len() {
            let problem = "they are not those with which the bag began";
            return Err(BatchError::setting("types", problem));
        }
        let bag = Bag::new(tasks, told.types().to_vec(), *told.rules()).map_err(refused)?;
        let plan = plan(&bag, Effort::usual(SEED));
        let nodes = assign(&plan, &own)?;
        Ok(Self {
            lengths: told.tasks().iter().map(|task| task.seconds).collect(),
            retries: part.retries,
            document: document.clone(),
            types: own,
            bag,
            plan,
            work,
            nodes,
        })
    }

    /// Whether a document that is handed in again is the one that was settled.
    #[must_use]
    pub fn is_of(&self, document: &Value) -> bool {
        let same = |key: &str| match (document.get(key), self.document.get(key)) {
            // Rules that the tenant left out come from the settings.
            (Some(Value::Object(given)), Some(kept)) => {
                let mut given = given.iter();
                given.all(|(rule, value)| kept.get(rule) == Some(value))
            }
            (None, _) => key == "retries",
            (given, kept) => given == kept,
        };
        KEYS.iter().all(|key| same(key))
    }

    /// The node of a server of the plan.
    #[must_use]
    pub fn node(&self, vm: VmId) -> &str {
        self.nodes.get(&vm).map_or("", |(node, _)| node)
    }

    /// The type of a server of the plan.
    #[must_use]
    pub fn server_type(&self, vm: VmId) -> Option<&ServerType> {
        let (_, ty) = self.nodes.get(&vm)?;
        self.types.get(*ty)
    }

    /// The nodes of the plan with their servers.
    pub fn nodes(&self) -> impl Iterator<Item = (VmId, &str)> {
        self.nodes
            .iter()
            .map(|(vm, (node, _))| (*vm, node.as_str()))
    }

    /// A task as a member.
    #[must_use]
    pub fn member(task: usize) -> MemberId {
        MemberId {
            stage: 0,
            index: task,
        }
    }

    /// The maps in words: the servers with their nodes and tasks, core by core.
    #[must_use]
    pub fn maps(&self) -> Value {
        let names = |cores: &[Vec<usize>]| -> Vec<Vec<&str>> {
            let name = |task: &usize| self.bag.tasks()[*task].name.as_str();
            let core = |core: &Vec<usize>| core.iter().map(name).collect();
            cores.iter().map(core).collect()
        };
        let mut next = 0;
        let mut maps = Vec::new();
        for (at, planned) in self.plan.vms.iter().enumerate() {
            let mut backups = Vec::new();
            for backup in &planned.backups {
                backups.push(json!({
                    "node": self.node(VmId::Backup(next)),
                    "latest_start": backup.latest_start(&self.bag),
                    "cores": names(&backup.cores),
                }));
                next += 1;
            }
            maps.push(json!({
                "node": self.node(VmId::Primary(at)),
                "preemptible": planned.vm.market == Market::Preemptible,
                "cores": names(&planned.vm.cores),
                "backups": backups,
            }));
        }
        Value::Array(maps)
    }
}

/// The tasks as members of one stage.
fn work(part: &DocumentPart, bag: &Bag) -> Result<Work, BatchError> {
    let memory = bag.tasks().iter().map(|task| task.memory_mb).max();
    let document = json!({
        "name": part.name, "dir": part.dir, "command": part.command,
        "count": bag.tasks().len(), "memory_mb": memory, "retries": part.retries,
    });
    let mut work = Work::read(&document)?;
    work.deadline = Some(bag.rules().deadline);
    for stage in &mut work.stages {
        for (member, task) in stage.members.iter_mut().zip(bag.tasks()) {
            if task.name.contains(['\n', '\0']) {
                return Err(BatchError::work("tasks.name", "a name is one line"));
            }
            member.insert("EBBTIDE_TASK".to_owned(), task.name.clone());
        }
    }
    Ok(work)
}

/// Gives each server of the plan a node of its own: a backup has to get one whatever else runs.
fn assign(
    plan: &Plan,
    types: &[ServerType],
) -> Result<BTreeMap<VmId, (String, usize)>, BatchError> {
    let mut needed = vec![0; types.len()];
    let mut nodes = BTreeMap::new();
    let mut give = |vm: VmId, ty: usize| {
        if let Some(node) = types[ty].nodes.get(needed[ty]) {
            nodes.insert(vm, (node.clone(), ty));
        }
        needed[ty] += 1;
    };
    let mut next = 0;
    for (at, planned) in plan.vms.iter().enumerate() {
        give(VmId::Primary(at), planned.vm.ty);
        for backup in &planned.backups {
            give(VmId::Backup(next), backup.ty);
            next += 1;
        }
    }
    for (ty, needed) in types.iter().zip(&needed) {
        if *needed > ty.nodes.len() {
            let problem = format!(
                "the plan needs {needed} servers of type {} and there are {} nodes for them: give the bag more time, or the type more nodes",
                ty.name,
                ty.nodes.len()
            );
            return Err(BatchError::work("tasks", problem));
        }
    }
    Ok(nodes)
}
