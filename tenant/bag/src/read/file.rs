//! The text of a bag: TOML, or JSON with the same keys. `docs/tenants/bags.md` explains it.

use super::units::{PriceField, Seconds};
use crate::error::BagError;
use crate::input::{Bag, Checkpoints, InstanceType, MOST_TASKS, Rules, Task};
use ebbtide_lifetime::plan::checkpoint::young_daly;
use ebbtide_model::toml_text;
use serde::Deserialize;

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
    lifetime: Option<Seconds>,
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
    every: Option<Seconds>,
    takes: Seconds,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TypePart {
    name: String,
    vcpus: u32,
    memory_mb: u64,
    on_demand: Option<PriceField>,
    preemptible: Option<PriceField>,
    slowdown: Option<f64>,
}

/// What of the file's rules the command line replaces.
#[derive(Debug, Clone, Copy, Default)]
pub struct FileOverrides {
    /// The deadline, seconds.
    pub deadline: Option<u64>,
    /// The smallest deadline that can be met, whatever the file says.
    pub smallest: bool,
    /// The share of the deadline.
    pub share: Option<f64>,
}

/// How a bag is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Toml,
    /// JSON with the same keys.
    Json,
}

/// Reads a bag.
///
/// # Errors
/// [`BagError::File`] for text that is none, the others for a bag that cannot be planned.
pub fn bag(text: &str, format: Format, instead: FileOverrides) -> Result<Bag, BagError> {
    let wrong = |problem: String| BagError::File(problem);
    let file: BagFile = match format {
        Format::Json => serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?,
        Format::Toml => toml::from_str(text).map_err(|error: toml::de::Error| {
            wrong(toml_text::problem(text, error.span(), error.message()))
        })?,
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
    let lifetime = file.rules.lifetime.map(|s| s.0);
    let mut tasks = Vec::new();
    for part in file.tasks {
        part.tasks(lifetime, &mut tasks).map_err(wrong)?;
    }
    let types: Vec<InstanceType> = file.types.into_iter().map(TypePart::into_type).collect();
    if instead.smallest {
        // Any deadline will do to learn the smallest one; the margin has to be below it.
        rules.deadline = rules.margin.saturating_add(1);
        match Bag::new(tasks.clone(), types.clone(), rules) {
            Err(BagError::Infeasible { seconds, .. }) => rules.deadline = seconds,
            Ok(bag) => return Ok(bag),
            Err(other) => return Err(other),
        }
    }
    Bag::new(tasks, types, rules)
}

impl TasksPart {
    /// One task, several alike, or several of different durations; of several each has a number
    /// behind its name.
    fn tasks(self, lifetime: Option<u64>, tasks: &mut Vec<Task>) -> Result<(), String> {
        let of = |problem: &str| format!("tasks {:?}: {problem}", self.name);
        let durations: Vec<u64> = match (self.duration, self.count, &self.durations) {
            (Some(one), None, None) => vec![one.0],
            (Some(each), Some(count), None) => {
                if count as usize > MOST_TASKS {
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
        if tasks.len().saturating_add(durations.len()) > MOST_TASKS {
            return Err(of("with them there are more than a million"));
        }
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
                checkpoints: match &self.checkpoints {
                    Some(part) => Some(part.of(seconds, lifetime).map_err(|e| of(&e))?),
                    None => None,
                },
            });
        }
        Ok(())
    }
}

impl CheckpointsPart {
    /// As written, or by the rule of Young and Daly for instances that live so long in the mean,
    /// seconds.
    fn of(&self, seconds: u64, lifetime: Option<u64>) -> Result<Checkpoints, String> {
        let cost = self.takes.0;
        let interval = match (self.every, lifetime) {
            (Some(every), _) => every.0,
            (None, Some(lifetime)) => {
                if cost == 0 || lifetime == 0 {
                    return Err(
                        "to find every, takes and lifetime have to be above zero".to_owned()
                    );
                }
                let hours = |seconds: u64| seconds as f64 / 3600.0;
                let intervals = young_daly(hours(seconds), hours(cost), hours(lifetime));
                let intervals = intervals.map_err(|error| error.to_string())?;
                let first = intervals.first().copied().unwrap_or_default();
                ((first * 3600.0).round() as u64).max(cost).max(1)
            }
            (None, None) => {
                return Err("checkpoints need every, or lifetime in [rules] to find it".to_owned());
            }
        };
        Ok(Checkpoints { interval, cost })
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
