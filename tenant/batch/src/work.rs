//! Work that a tenant hands in: one job, an array, a bag, or a workflow of stages.
//!
//! The document is JSON (or TOML with the same keys). It is kept as it was handed in.

use crate::error::BatchError;
use ebbtide_bag::read::{PriceField, Seconds};
use ebbtide_model::Money;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// The most members of one work: beyond it the state of a look no longer fits a poll.
pub const MOST_MEMBERS: usize = 10_000;
/// The most stages of one work.
pub const MOST_STAGES: usize = 100;

/// A work: stages of members, with what holds for all of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    /// Its name; works may share one.
    pub name: String,
    /// A directory that all nodes see: marks, output and state of the members.
    pub dir: PathBuf,
    /// All of it is to be done this long after it was handed in, seconds.
    pub deadline: Option<u64>,
    /// The most that may be spent on it.
    pub budget: Option<Money>,
    /// The most that is paid for an hour of a preemptible server.
    pub max_price: Option<Money>,
    /// A member that waited so long for a preemptible server gets an on-demand one, seconds.
    pub max_wait: Option<u64>,
    /// The stages; those that others wait for stand before them.
    pub stages: Vec<Stage>,
}

/// Members that do the same with other parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Stage {
    pub name: String,
    /// Places of the stages that have to be done before.
    pub after: Vec<usize>,
    /// What is run, by `sh -c`.
    pub command: String,
    /// The parameters of each member, as environment variables.
    pub members: Vec<BTreeMap<String, String>>,
    /// Processors of one member.
    pub cpus: u32,
    /// Memory of one member, MB.
    pub memory_mb: u64,
    /// How long one member works, seconds, as far as the tenant knows.
    pub length: Option<u64>,
    /// How a member is saved.
    pub checkpoint: Option<Checkpoint>,
    /// Files that are copied into the member's directory before it begins.
    pub inputs: Vec<String>,
    /// Files of the member's directory that are copied to the results when it is done.
    pub outputs: Vec<String>,
    /// How often a member is tried again after it failed by itself.
    pub retries: u32,
}

/// How a member is saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checkpoint {
    /// By the tenant's commands, as `ebbtide run` takes them.
    Commands {
        /// Saves.
        save: String,
        /// Goes on from what was saved; without it the command itself is started again.
        restore: Option<String>,
        /// How long it takes to save, seconds, until it was measured.
        cost: u64,
    },
    Criu {
        /// How long it takes to save, seconds, until it was measured.
        cost: u64,
    },
}

impl Checkpoint {
    /// How long it takes to save, milliseconds.
    #[must_use]
    pub fn cost_ms(&self) -> i64 {
        let (Self::Commands { cost, .. } | Self::Criu { cost }) = self;
        i64::try_from(*cost).unwrap_or(i64::MAX / 2_000) * 1_000
    }
}

/// One member of a work: its stage and its place there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId {
    pub stage: usize,
    /// The place in the stage.
    pub index: usize,
}

/// What is not named here is a key of the only stage.
#[derive(Debug, Deserialize)]
struct WorkPart {
    name: String,
    dir: PathBuf,
    deadline: Option<Seconds>,
    budget: Option<PriceField>,
    max_price: Option<PriceField>,
    max_wait: Option<Seconds>,
    #[serde(default)]
    stages: Vec<StagePart>,
    #[serde(flatten)]
    only: BTreeMap<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StagePart {
    #[serde(default = "main")]
    name: String,
    #[serde(default)]
    after: Vec<String>,
    command: String,
    count: Option<usize>,
    #[serde(default)]
    parameters: BTreeMap<String, Vec<Value>>,
    #[serde(default = "one")]
    cpus: u32,
    #[serde(default)]
    memory_mb: u64,
    length: Option<Seconds>,
    checkpoint: Option<CheckpointPart>,
    #[serde(default)]
    inputs: Vec<String>,
    #[serde(default)]
    outputs: Vec<String>,
    #[serde(default)]
    retries: u32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckpointPart {
    command: Option<String>,
    restore: Option<String>,
    #[serde(default)]
    criu: bool,
    #[serde(default = "ten")]
    cost: Seconds,
}

fn main() -> String {
    "main".to_owned()
}

fn one() -> u32 {
    1
}

/// What `ebbtide run` assumes, too.
fn ten() -> Seconds {
    Seconds(10)
}

impl Work {
    /// Reads a document.
    ///
    /// # Errors
    /// [`BatchError::Work`] with the key that cannot be used.
    pub fn read(document: &Value) -> Result<Self, BatchError> {
        let about = |error: serde_json::Error| {
            let words = ebbtide_model::toml_text::without_values(&error.to_string());
            BatchError::work("the document", words)
        };
        let part = WorkPart::deserialize(document).map_err(about)?;
        let mut stages = part.stages;
        if !part.only.is_empty() {
            // The short form: a work of one stage has the stage's keys itself.
            if !stages.is_empty() {
                let keys: Vec<&str> = part.only.keys().map(String::as_str).collect();
                let problem = "it stands beside stages: write it into a stage";
                return Err(BatchError::work(keys.join(", "), problem));
            }
            let stage = Value::Object(part.only.into_iter().collect());
            stages.push(StagePart::deserialize(&stage).map_err(about)?);
        }
        let work = Self {
            name: part.name,
            dir: part.dir,
            deadline: part.deadline.map(|one| one.0),
            budget: part.budget.map(|one| one.0),
            max_price: part.max_price.map(|one| one.0),
            max_wait: part.max_wait.map(|one| one.0),
            stages: read_stages(stages)?,
        };
        work.check()?;
        Ok(work)
    }

    fn check(&self) -> Result<(), BatchError> {
        if !is_name(&self.name) {
            let problem = "it has to be 1 to 60 letters, digits, `-`, `_` or `.`";
            return Err(BatchError::work("name", problem));
        }
        let text = self.dir.display().to_string();
        if !self.dir.is_absolute() || text.contains(['\'', '\n', '%', '\\']) {
            let problem = "it has to be an absolute path without quotes, `%` and backslashes";
            return Err(BatchError::work("dir", problem));
        }
        if self.deadline == Some(0) {
            return Err(BatchError::work("deadline", "it has to be above 0"));
        }
        if self.members().count() > MOST_MEMBERS {
            let problem = format!("more than {MOST_MEMBERS} members; hand it in as several works");
            return Err(BatchError::work("stages", problem));
        }
        Ok(())
    }

    /// All members, by stage.
    pub fn members(&self) -> impl Iterator<Item = MemberId> {
        let stages = self.stages.iter().enumerate();
        stages.flat_map(|(stage, one)| {
            (0..one.members.len()).map(move |index| MemberId { stage, index })
        })
    }

    #[must_use]
    pub fn stage(&self, member: MemberId) -> &Stage {
        &self.stages[member.stage]
    }

    /// The name of a member in files and lists: `render.12`.
    #[must_use]
    pub fn member_name(&self, member: MemberId) -> String {
        format!("{}.{}", self.stages[member.stage].name, member.index)
    }
}

fn read_stages(parts: Vec<StagePart>) -> Result<Vec<Stage>, BatchError> {
    if parts.is_empty() || parts.len() > MOST_STAGES {
        let problem = format!("there have to be 1 to {MOST_STAGES}; or write `command` itself");
        return Err(BatchError::work("stages", problem));
    }
    let mut names = BTreeMap::new();
    let mut stages = Vec::new();
    for part in parts {
        let key = |key: &str| format!("stages.{}.{key}", part.name);
        if !is_name(&part.name) {
            let problem = "it has to be 1 to 60 letters, digits, `-`, `_` or `.`";
            return Err(BatchError::work(key("name"), problem));
        }
        if part.command.trim().is_empty() {
            return Err(BatchError::work(key("command"), "it is empty"));
        }
        if part.cpus == 0 {
            return Err(BatchError::work(key("cpus"), "it has to be above 0"));
        }
        let mut after = BTreeSet::new();
        for before in &part.after {
            let Some(at) = names.get(before) else {
                let problem = format!(
                    "{before:?} is no stage that stands before: write stages in the order in which they can run"
                );
                return Err(BatchError::work(key("after"), problem));
            };
            after.insert(*at);
        }
        let members = members(&key, part.count, &part.parameters)?;
        let checkpoint = part
            .checkpoint
            .map(|one| checkpoint(&key, one))
            .transpose()?;
        if names.insert(part.name.clone(), stages.len()).is_some() {
            return Err(BatchError::work(key("name"), "another stage has this name"));
        }
        stages.push(Stage {
            after: after.into_iter().collect(),
            command: part.command,
            members,
            cpus: part.cpus,
            memory_mb: part.memory_mb,
            length: part.length.map(|one| one.0.max(1)),
            checkpoint,
            inputs: part.inputs,
            outputs: part.outputs,
            retries: part.retries,
            name: part.name,
        });
    }
    Ok(stages)
}

fn checkpoint(
    key: &dyn Fn(&str) -> String,
    part: CheckpointPart,
) -> Result<Checkpoint, BatchError> {
    let cost = part.cost.0.max(1);
    match (part.command, part.criu) {
        (Some(save), false) => Ok(Checkpoint::Commands {
            save,
            restore: part.restore,
            cost,
        }),
        (None, true) if part.restore.is_none() => Ok(Checkpoint::Criu { cost }),
        _ => {
            let problem = "give `command` (and perhaps `restore`), or `criu = true`";
            Err(BatchError::work(key("checkpoint"), problem))
        }
    }
}

/// The members of a stage: so many, or each combination of the parameters' values.
fn members(
    key: &dyn Fn(&str) -> String,
    count: Option<usize>,
    parameters: &BTreeMap<String, Vec<Value>>,
) -> Result<Vec<BTreeMap<String, String>>, BatchError> {
    if parameters.is_empty() {
        let count = count.unwrap_or(1);
        if !(1..=MOST_MEMBERS).contains(&count) {
            let problem = format!("it has to be 1 to {MOST_MEMBERS}");
            return Err(BatchError::work(key("count"), problem));
        }
        return Ok(vec![BTreeMap::new(); count]);
    }
    if count.is_some() {
        let problem = "the parameters say how many members there are";
        return Err(BatchError::work(key("count"), problem));
    }
    let mut all = vec![BTreeMap::new()];
    for (name, values) in parameters {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let is_variable =
            name.chars().all(plain) && !name.starts_with(|c: char| c.is_ascii_digit());
        if !is_variable
            || name.is_empty()
            || name.starts_with("EBBTIDE_")
            || name.starts_with("SLURM")
            || name == "PATH"
        {
            let problem = format!("{name:?} is no name of a variable that members may have");
            return Err(BatchError::work(key("parameters"), problem));
        }
        if values.is_empty() || all.len() * values.len() > MOST_MEMBERS {
            let problem = format!("{name}: 1 to {MOST_MEMBERS} combinations in all");
            return Err(BatchError::work(key("parameters"), problem));
        }
        let mut longer = Vec::with_capacity(all.len() * values.len());
        for member in &all {
            for value in values {
                let text = match value {
                    Value::String(text) => text.clone(),
                    Value::Number(_) | Value::Bool(_) => value.to_string(),
                    _ => {
                        let problem = format!("{name}: values are text, numbers or booleans");
                        return Err(BatchError::work(key("parameters"), problem));
                    }
                };
                if text.contains(['\n', '\0']) {
                    let problem = format!("{name}: a value is one line");
                    return Err(BatchError::work(key("parameters"), problem));
                }
                let mut one: BTreeMap<String, String> = member.clone();
                one.insert(name.clone(), text);
                longer.push(one);
            }
        }
        all = longer;
    }
    Ok(all)
}

fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    (1..=60).contains(&name.len()) && name.chars().all(plain) && !name.starts_with(['-', '.'])
}
