//! The file of a bag: TOML, or JSON with the same keys. `docs/bags.md` explains it.

use super::units::{Price, Seconds};
use crate::errors::CliError;
use ebbtide_bag::{Bag, BagError, Checkpoints, InstanceType, Rules, Task};
use serde::Deserialize;
use std::path::Path;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BagFile {
    rules: RulesPart,
    #[serde(default)]
    tasks: Vec<TasksPart>,
    #[serde(default)]
    types: Vec<TypePart>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RulesPart {
    deadline: Seconds,
    slot: Option<Seconds>,
    boot: Option<Seconds>,
    share: Option<f64>,
    margin: Option<Seconds>,
    period: Option<Seconds>,
    risk: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TasksPart {
    name: String,
    duration: Option<Seconds>,
    count: Option<u32>,
    durations: Option<Vec<Seconds>>,
    memory_mb: u64,
    checkpoints: Option<CheckpointsPart>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckpointsPart {
    every: Seconds,
    takes: Seconds,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TypePart {
    name: String,
    vcpus: u32,
    memory_mb: u64,
    on_demand: Option<Price>,
    preemptible: Option<Price>,
    slowdown: Option<f64>,
}

/// What of the file's rules the command line replaces.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Instead {
    /// The deadline, seconds.
    pub(crate) deadline: Option<u64>,
    /// The smallest deadline that can be met, whatever the file says.
    pub(crate) smallest: bool,
    /// The share of the deadline.
    pub(crate) share: Option<f64>,
}

/// Reads a bag.
///
/// # Errors
/// [`CliError::BagFile`] for a file that is none, [`CliError::Bag`] for a bag that cannot be planned.
pub(crate) fn read(path: &Path, instead: Instead) -> Result<Bag, CliError> {
    let wrong = |problem: String| CliError::BagFile {
        path: path.to_owned(),
        problem,
    };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let json = path
        .extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("json"));
    let file: BagFile = if json {
        serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?
    } else {
        toml::from_str(&text).map_err(|error| wrong(error.to_string().trim_end().to_owned()))?
    };
    let defaults = Rules::default();
    let seconds = |given: Option<Seconds>, default: u64| given.map_or(default, |s| s.0);
    let mut rules = Rules {
        deadline: instead.deadline.unwrap_or(file.rules.deadline.0),
        slot: seconds(file.rules.slot, defaults.slot),
        boot: seconds(file.rules.boot, defaults.boot),
        share: instead.share.or(file.rules.share).unwrap_or(defaults.share),
        margin: seconds(file.rules.margin, defaults.margin),
        period: seconds(file.rules.period, defaults.period),
        risk: file.rules.risk.unwrap_or(defaults.risk),
    };
    let mut tasks = Vec::new();
    for part in file.tasks {
        part.tasks(&mut tasks).map_err(wrong)?;
    }
    let types: Vec<InstanceType> = file.types.into_iter().map(TypePart::into_type).collect();
    if instead.smallest {
        // Any deadline will do to learn the smallest one; the margin has to be below it.
        rules.deadline = rules.margin + 1;
        match Bag::new(tasks.clone(), types.clone(), rules) {
            Err(BagError::Infeasible { seconds, .. }) => rules.deadline = seconds,
            Ok(bag) => return Ok(bag),
            Err(other) => return Err(other.into()),
        }
    }
    Ok(Bag::new(tasks, types, rules)?)
}

impl TasksPart {
    /// One task, several alike, or several of different durations; of several each has a number behind its name.
    fn tasks(self, tasks: &mut Vec<Task>) -> Result<(), String> {
        let of = |problem: &str| format!("tasks {:?}: {problem}", self.name);
        let durations: Vec<u64> = match (self.duration, self.count, &self.durations) {
            (Some(one), None, None) => vec![one.0],
            (Some(each), Some(count), None) => {
                if count as usize > ebbtide_bag::MOST_TASKS {
                    return Err(of("count is more than a million"));
                }
                vec![each.0; count as usize]
            }
            (None, None, Some(each)) => each.iter().map(|s| s.0).collect(),
            _ => {
                return Err(of(
                    "say duration, duration and count, or durations (a list)",
                ));
            }
        };
        let single = self.count.is_none() && self.durations.is_none();
        for (at, seconds) in durations.into_iter().enumerate() {
            tasks.push(Task {
                name: if single {
                    self.name.clone()
                } else {
                    format!("{}-{}", self.name, at + 1)
                },
                seconds,
                memory_mb: self.memory_mb,
                checkpoints: self.checkpoints.as_ref().map(|c| Checkpoints {
                    interval: c.every.0,
                    cost: c.takes.0,
                }),
            });
        }
        Ok(())
    }
}

impl TypePart {
    fn into_type(self) -> InstanceType {
        InstanceType {
            name: self.name,
            vcpus: self.vcpus,
            memory_mb: self.memory_mb,
            on_demand: self.on_demand.map(|p| p.0),
            preemptible: self.preemptible.map(|p| p.0),
            slowdown: self.slowdown.unwrap_or(1.0),
        }
    }
}
