//! The bag of a tenant, its plan, and the nodes on which it runs.

use crate::error::BatchError;
use crate::settings::{BatchPolicy, ServerType};
use crate::work::{MemberId, Work};
use ebbtide_bag::read::{FileOverrides, Format, bag};
use ebbtide_bag::{
    Backup, Bag, BagError, Effort, Market, Method, Plan, PlannedVm, Task, VmId, plan,
};
use ebbtide_model::{Money, toml_text};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The search for a plan begins with this number: a bag has one plan.
const SEED: u64 = 1;

/// What a tenant writes, and what became of it: the plan, and all that it depends on.
#[derive(Debug, Serialize, Deserialize)]
struct SettledWork {
    #[serde(flatten)]
    part: DocumentPart,
    types: Vec<Value>,
    length_reserve: f64,
    lag_seconds: u64,
    /// Both maps.
    plan: Vec<PlannedVm>,
    /// The node of each server: of those of the primary map first, then of the backups.
    nodes: Vec<String>,
}

/// What a tenant writes.
#[derive(Debug, Serialize, Deserialize)]
struct DocumentPart {
    name: String,
    dir: String,
    command: String,
    #[serde(default)]
    retries: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    budget: Option<Value>,
    rules: Map<String, Value>,
    tasks: Vec<Map<String, Value>>,
}

/// The keys of a document.
const KEYS: [&str; 7] = [
    "name", "dir", "command", "retries", "budget", "rules", "tasks",
];
/// Keys of other works that mean nothing here, and why.
const REFUSED: [(&str, &str); 3] = [
    (
        "max_price",
        "a bag with rules waits out high prices by its plan: the operator's `types.max_price` lets its servers hibernate above a price; leave the key out",
    ),
    (
        "checkpoint",
        "a live bag begins a task anew on its backup, since both may run at once and would write the same checkpoints; leave the key out",
    ),
    ("deadline", "a bag with rules has it as `rules.deadline`"),
];

/// Whether a document is a bag that is run by maps.
#[must_use]
pub fn is_bag(document: &Value) -> bool {
    document.get("rules").is_some()
}

/// A bag with its plan.
#[derive(Debug, Clone, PartialEq)]
pub struct BagWork {
    /// The bag as it is planned: each task with the reserve and the lag.
    pub bag: Bag,
    /// Both maps.
    pub plan: Plan,
    /// The same tasks as the members of a work: what a script needs to know.
    pub work: Work,
    /// How long each task takes, as the tenant said, seconds.
    pub lengths: Vec<u64>,
    /// The node of each server of the plan, and the place of its type.
    nodes: BTreeMap<VmId, (String, usize)>,
}

impl BagWork {
    /// Plans what a tenant handed in; also the document that stands in the book. It has the plan
    /// and all that the plan depends on, so that neither other settings nor other prices change a
    /// bag that runs. The types are those for bags by maps, with the nodes that are free.
    ///
    /// # Errors
    /// [`BatchError::Work`] for a document that cannot be used, a deadline that cannot be met, or a
    /// plan with more servers than there are free nodes.
    pub fn settle(
        document: &Value,
        policy: &BatchPolicy,
        types: &[ServerType],
        prices: &BTreeMap<String, u64>,
    ) -> Result<(Self, Value), BatchError> {
        let told = |(key, _): &&(&str, &str)| document.get(key).is_some();
        if let Some((key, problem)) = REFUSED.iter().find(told) {
            return Err(BatchError::work(*key, *problem));
        }
        let unknown = document.as_object().and_then(|keys| {
            let mut keys = keys.keys();
            keys.find(|key| !KEYS.contains(&key.as_str()))
        });
        if let Some(key) = unknown {
            let problem = format!("it is unknown; a bag with rules has {}", KEYS.join(", "));
            return Err(BatchError::work(key, problem));
        }
        let mut part = DocumentPart::deserialize(document).map_err(about)?;
        let mut tasks = part.tasks.iter();
        if tasks.any(|task| task.contains_key("checkpoints")) {
            let problem = format!(
                "tasks with checkpoints are simulated only: {}",
                REFUSED[1].1
            );
            return Err(BatchError::work("tasks.checkpoints", problem));
        }
        if types.is_empty() {
            let problem =
                "no type of servers is for bags with rules: the operator sets `maps` of types";
            return Err(BatchError::work("rules", problem));
        }
        let seconds = |given: f64| given.ceil() as u64;
        for (key, default) in [
            ("boot", policy.boot_seconds),
            ("margin", policy.margin_seconds),
        ] {
            let rule = part.rules.entry(key);
            rule.or_insert_with(|| Value::from(seconds(default)));
        }
        let mut settled = SettledWork {
            part,
            types: types.iter().map(|ty| type_of(ty, prices)).collect(),
            length_reserve: policy.length_reserve,
            lag_seconds: seconds(policy.lag_seconds),
            plan: Vec::new(),
            nodes: Vec::new(),
        };
        let (bag, work, lengths) = settled.bag()?;
        let plan = plan(&bag, Effort::usual(SEED));
        if let Some(budget) = work.budget {
            check_budget(&plan, budget)?;
        }
        settled.nodes = assign(&plan, types)?;
        settled.plan.clone_from(&plan.vms);
        let nodes = named(&plan, &settled.nodes);
        let document = serde_json::to_value(settled).map_err(about)?;
        let made = Self {
            bag,
            plan,
            work,
            lengths,
            nodes,
        };
        Ok((made, document))
    }

    /// Reads a document of the book.
    ///
    /// # Errors
    /// [`BatchError::Work`] for a document that [`Self::settle`] did not make.
    pub fn read(document: &Value) -> Result<Self, BatchError> {
        let settled = SettledWork::deserialize(document).map_err(about)?;
        let (bag, work, lengths) = settled.bag()?;
        let servers = settled.plan.iter().map(|one| 1 + one.backups.len());
        if !is_whole(&settled.plan, &bag) || servers.sum::<usize>() != settled.nodes.len() {
            return Err(BatchError::work("plan", "it is not one of this bag"));
        }
        let plan = Plan::new(&bag, settled.plan, Method::Given);
        Ok(Self {
            nodes: named(&plan, &settled.nodes),
            bag,
            plan,
            work,
            lengths,
        })
    }

    /// The node of a server of the plan.
    #[must_use]
    pub fn node(&self, vm: VmId) -> &str {
        self.nodes.get(&vm).map_or("", |(node, _)| node)
    }

    /// The server of the plan that has a node.
    #[must_use]
    pub fn vm(&self, node: &str) -> Option<VmId> {
        self.nodes().find(|(_, own)| *own == node).map(|(vm, _)| vm)
    }

    /// The name of the type of a server of the plan.
    #[must_use]
    pub fn server_type(&self, vm: VmId) -> &str {
        let ty = self.nodes.get(&vm).map(|(_, ty)| &self.bag.types()[*ty]);
        ty.map_or("", |ty| &ty.name)
    }

    /// The nodes of the plan with their servers.
    pub fn nodes(&self) -> impl Iterator<Item = (VmId, &str)> {
        self.nodes
            .iter()
            .map(|(vm, (node, _))| (*vm, node.as_str()))
    }

    /// How long a task takes, as the tenant said, milliseconds.
    #[must_use]
    pub fn length_ms(&self, task: usize) -> i64 {
        let seconds = self.lengths.get(task).copied().unwrap_or(0);
        i64::try_from(seconds).unwrap_or(i64::MAX / 4_000) * 1_000
    }

    #[must_use]
    pub fn member(task: usize) -> MemberId {
        MemberId {
            stage: 0,
            index: task,
        }
    }
}

impl SettledWork {
    /// The bag as it is planned, its tasks as members, and how long they take as the tenant said.
    fn bag(&self) -> Result<(Bag, Work, Vec<u64>), BatchError> {
        let text = json!({
            "rules": self.part.rules, "tasks": self.part.tasks, "types": self.types,
        });
        let told = bag(&text.to_string(), Format::Json, FileOverrides::default());
        let told = told.map_err(refused)?;
        let longer = |task: &Task| Task {
            seconds: ((task.seconds as f64 * (1.0 + self.length_reserve)).ceil() as u64)
                .saturating_add(self.lag_seconds),
            ..task.clone()
        };
        let tasks: Vec<Task> = told.tasks().iter().map(longer).collect();
        let work = work(&self.part, &told)?;
        let lengths = told.tasks().iter().map(|task| task.seconds).collect();
        let bag = Bag::new(tasks, told.types().to_vec(), *told.rules()).map_err(refused)?;
        Ok((bag, work, lengths))
    }
}

/// Whether each task of a bag is in a plan once, and its copy at most once, beside it.
fn is_whole(plan: &[PlannedVm], bag: &Bag) -> bool {
    let mut first = BTreeSet::new();
    let mut copies = BTreeSet::new();
    let tasks = 0..bag.tasks().len();
    let whole = plan.iter().all(|one| {
        let own: BTreeSet<usize> = one.vm.tasks().collect();
        let backed = |task: usize| own.contains(&task) && copies.insert(task);
        let types = one.backups.iter().map(|backup| backup.ty);
        types.chain([one.vm.ty]).all(|ty| ty < bag.types().len())
            && one.vm.tasks().all(|task| first.insert(task))
            && one.backups.iter().flat_map(Backup::tasks).all(backed)
    });
    whole && first.into_iter().eq(tasks)
}

fn about(error: serde_json::Error) -> BatchError {
    let words = toml_text::without_values(&error.to_string());
    BatchError::work("the document", words)
}

fn refused(error: BagError) -> BatchError {
    BatchError::work(error.code(), error.to_string())
}

/// A type as a bag's file has it, at the price of now.
fn type_of(ty: &ServerType, prices: &BTreeMap<String, u64>) -> Value {
    let told = prices.get(&ty.flavor).copied().filter(|price| *price > 0);
    let price = Money::from_micros(told.filter(|_| ty.preemptible).unwrap_or(ty.price));
    let market = if ty.preemptible {
        "preemptible"
    } else {
        "on_demand"
    };
    json!({
        "name": ty.name, "vcpus": ty.vcpus, "memory_mb": ty.memory_mb,
        market: price.to_string(),
    })
}

/// The tasks as members of one stage.
fn work(part: &DocumentPart, bag: &Bag) -> Result<Work, BatchError> {
    let memory = bag.tasks().iter().map(|task| task.memory_mb).max();
    let document = json!({
        "name": part.name, "dir": part.dir, "command": part.command,
        "count": bag.tasks().len(), "memory_mb": memory, "retries": part.retries,
        "budget": part.budget,
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

/// The servers of a plan with the places of their types: those of the primary map, then backups.
fn servers(plan: &Plan) -> impl Iterator<Item = (VmId, usize)> {
    let primaries = plan.vms.iter().enumerate();
    let primaries = primaries.map(|(at, planned)| (VmId::Primary(at), planned.vm.ty));
    let backups = plan.vms.iter().flat_map(|planned| &planned.backups);
    let backups = backups.enumerate();
    primaries.chain(backups.map(|(at, backup)| (VmId::Backup(at), backup.ty)))
}

fn named(plan: &Plan, nodes: &[String]) -> BTreeMap<VmId, (String, usize)> {
    let each = servers(plan).zip(nodes);
    each.map(|((vm, ty), node)| (vm, (node.clone(), ty)))
        .collect()
}

/// Refuses a plan that costs more than the budget although nothing hibernates.
fn check_budget(plan: &Plan, budget: Money) -> Result<(), BatchError> {
    let quiet = plan.price.quiet();
    if quiet <= budget.micros() {
        return Ok(());
    }
    let most = quiet.saturating_add(plan.price.backups);
    let problem = format!(
        "the plan costs {} if nothing hibernates, and {} at most: raise the budget, or give the bag more time",
        Money::from_micros(quiet),
        Money::from_micros(most)
    );
    Err(BatchError::work("budget", problem))
}

/// Gives each server of the plan a node of its own: a backup has to get one whatever else runs.
fn assign(plan: &Plan, types: &[ServerType]) -> Result<Vec<String>, BatchError> {
    let mut needed = vec![0; types.len()];
    let mut nodes = Vec::new();
    for (_, ty) in servers(plan) {
        nodes.extend(types[ty].nodes.get(needed[ty]).cloned());
        needed[ty] += 1;
    }
    for (ty, needed) in types.iter().zip(&needed) {
        if *needed > ty.nodes.len() {
            let problem = format!(
                "the plan needs {needed} servers of type {} and {} of its nodes are free: give the bag more time, wait until other bags are done, or give the type more nodes",
                ty.name,
                ty.nodes.len()
            );
            return Err(BatchError::work("tasks", problem));
        }
    }
    Ok(nodes)
}

/// A server of the plan, as it is shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MapServer {
    pub node: String,
    pub server_type: String,
    /// `preemptible` or `on-demand`.
    pub market: Market,
    /// For a backup the node whose tasks it takes over.
    pub backup_of: Option<String>,
    /// The tasks of each core, in the order in which they run.
    pub cores: Vec<Vec<String>>,
    /// When it starts at the latest if none of its tasks is done by then, seconds since the begin;
    /// for backups.
    pub latest_start_s: Option<u64>,
    /// `planned`, `coming`, `up`, `hibernated` or `gone`.
    pub state: String,
    /// How often it hibernated.
    pub hibernations: usize,
}

impl BagWork {
    /// Both maps as they were planned.
    #[must_use]
    pub fn maps(&self) -> Vec<MapServer> {
        let names = |cores: &[Vec<usize>]| {
            let name = |task: &usize| self.bag.tasks()[*task].name.clone();
            let cores = cores.iter().map(|core| core.iter().map(name).collect());
            cores.collect()
        };
        let server = |vm: VmId, market: Market, cores: &[Vec<usize>]| MapServer {
            node: self.node(vm).to_owned(),
            server_type: self.server_type(vm).to_owned(),
            market,
            backup_of: None,
            cores: names(cores),
            latest_start_s: None,
            state: "planned".to_owned(),
            hibernations: 0,
        };
        let mut maps = Vec::new();
        let mut next = 0;
        for (at, planned) in self.plan.vms.iter().enumerate() {
            let vm = VmId::Primary(at);
            maps.push(server(vm, planned.vm.market, &planned.vm.cores));
            for backup in &planned.backups {
                maps.push(MapServer {
                    backup_of: Some(self.node(vm).to_owned()),
                    latest_start_s: Some(backup.latest_start(&self.bag)),
                    ..server(VmId::Backup(next), Market::OnDemand, &backup.cores)
                });
                next += 1;
            }
        }
        maps
    }
}
