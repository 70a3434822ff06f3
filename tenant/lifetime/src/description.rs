//! Models as text: on a command line, and in the file that `ebbtide-lab model fit` writes.

use crate::Lifetime;
use crate::distributions::{Empirical, Phase, Phases};
use crate::error::LifetimeError;
use crate::fit::Family;
use crate::labelled_life::ALL;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The maximum lifetime, hours, of a model on the command line that names none: the paper's.
pub const DEFAULT_MAXIMUM: f64 = 24.0;

const EMPIRICAL: &str = "empirical";
const PHASES: &str = "phases";

/// Everything that makes a model. Times in hours.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Description {
    /// `bathtub`, `exponential`, `weibull`, `gompertz-makeham`, `uniform`, `phases` or `empirical`.
    pub model: String,
    /// Its parameters by the names of [`Lifetime::parameters`].
    #[serde(default)]
    pub parameters: BTreeMap<String, f64>,
    /// The phases of `phases`.
    #[serde(default)]
    pub phases: Vec<Phase>,
    /// The points (hours, share that has ended) of `empirical`.
    #[serde(default)]
    pub points: Vec<(f64, f64)>,
    /// The provider's maximum lifetime; none if it has none. Phases and points bring their own.
    #[serde(default)]
    pub maximum_hours: Option<f64>,
}

fn refuse<T>(problem: String) -> Result<T, LifetimeError> {
    Err(LifetimeError::Description { problem })
}

impl Description {
    /// Reads `NAME:key=value,…`: `bathtub:A=0.414,tau1=0.94,tau2=0.77,b=24.45`,
    /// `weibull:lambda=0.07,k=0.5,max=none`, `phases:3=0.2,22=0.01,24=0.5` (until which age, which
    /// hazard). `max` is the maximum lifetime, [`DEFAULT_MAXIMUM`] if it is not there.
    ///
    /// # Errors
    /// [`LifetimeError::Description`].
    pub fn parse(text: &str) -> Result<Self, LifetimeError> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let mut description = Self {
            model: name.trim().to_owned(),
            parameters: BTreeMap::new(),
            phases: Vec::new(),
            points: Vec::new(),
            maximum_hours: Some(DEFAULT_MAXIMUM),
        };
        description.known()?;
        if description.model == EMPIRICAL {
            return refuse(
                "an empirical model has too many points for a command line: give the file that `ebbtide-lab model fit -o json` writes"
                    .to_owned(),
            );
        }
        for part in rest.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let Some((key, value)) = part.split_once('=') else {
                return refuse(format!("{part:?} is not key=value"));
            };
            let (key, value) = (key.trim(), value.trim());
            if key == "max" && value == "none" {
                description.maximum_hours = None;
                continue;
            }
            let Ok(number) = value.parse::<f64>() else {
                return refuse(format!("{key} is {value:?}, which is no number of hours"));
            };
            if key == "max" {
                description.maximum_hours = Some(number);
            } else if description.model == PHASES {
                let Ok(until) = key.parse::<f64>() else {
                    return refuse(format!(
                        "{key:?} is no age; phases look like 3=0.2,22=0.01,24=0.5: until which age in hours, which hazard per hour"
                    ));
                };
                description.phases.push(Phase {
                    until,
                    hazard: number,
                });
            } else if description
                .parameters
                .insert(key.to_owned(), number)
                .is_some()
            {
                return refuse(format!("{key} is there twice"));
            }
        }
        Ok(description)
    }

    /// The family, if the model has a formula.
    fn known(&self) -> Result<Option<Family>, LifetimeError> {
        if self.model == EMPIRICAL || self.model == PHASES {
            return Ok(None);
        }
        match Family::ALL.into_iter().find(|f| f.name() == self.model) {
            Some(family) => Ok(Some(family)),
            None => {
                let names: Vec<&str> = Family::ALL.into_iter().map(Family::name).collect();
                refuse(format!(
                    "there is none called {:?}; there are {}, {PHASES} and {EMPIRICAL}",
                    self.model,
                    names.join(", ")
                ))
            }
        }
    }

    /// The model itself.
    ///
    /// # Errors
    /// [`LifetimeError::Description`] for missing or foreign parameters, and what the model's own
    /// constructor refuses.
    pub fn model(&self) -> Result<Box<dyn Lifetime>, LifetimeError> {
        let Some(family) = self.known()? else {
            return Ok(if self.model == EMPIRICAL {
                Box::new(Empirical::new(&self.points)?)
            } else {
                Box::new(Phases::new(self.phases.clone())?)
            });
        };
        let names = family.parameter_names();
        if let Some(foreign) = self
            .parameters
            .keys()
            .find(|k| !names.contains(&k.as_str()))
        {
            return refuse(format!(
                "{} has no parameter {foreign:?}; it has {}",
                self.model,
                list(names)
            ));
        }
        let mut values = Vec::with_capacity(names.len());
        for name in names {
            let Some(value) = self.parameters.get(*name) else {
                return refuse(format!(
                    "{} needs {}; {name} is missing",
                    self.model,
                    list(names)
                ));
            };
            values.push(*value);
        }
        family.model(&values, self.maximum_hours.unwrap_or(f64::INFINITY))
    }
}

fn list(names: &[&str]) -> String {
    if names.is_empty() {
        "none but max".to_owned()
    } else {
        names.join(", ")
    }
}

/// One model of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelEntry {
    /// The name of the group of observations that it was fitted to.
    pub group: String,
    /// The labels of that group.
    pub labels: BTreeMap<String, String>,
    pub description: Description,
}

#[derive(Deserialize)]
struct File {
    groups: Vec<Raw>,
}

/// An entry before anybody asked for it: groups that could not be fitted have no model.
#[derive(Deserialize)]
struct Raw {
    #[serde(default)]
    group: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(flatten)]
    rest: serde_json::Map<String, serde_json::Value>,
}

/// The model of `group` in a file as `ebbtide-lab model fit -o json` writes it. Without `group` the
/// only model, or that of all observations.
///
/// # Errors
/// [`LifetimeError::Description`] if the file is none of ours, or has no such model.
pub fn pick(json: &str, group: Option<&str>) -> Result<ModelEntry, LifetimeError> {
    let mut entries = match read(json)? {
        Content::Groups(groups) => groups,
        Content::One(description) => return Ok(of_all(description)),
    };
    let names: Vec<&str> = entries.iter().map(|e| e.group.as_str()).collect();
    let chosen = match group {
        None if entries.len() == 1 => Some(0),
        None => names.iter().position(|name| *name == ALL),
        Some(wanted) => names.iter().position(|name| *name == wanted).or_else(|| {
            // `n1-highcpu-2` for `flavor=n1-highcpu-2`, if only one is meant.
            let mut short = (0..names.len())
                .filter(|&at| entries[at].labels.values().any(|value| value == wanted));
            short.next().filter(|_| short.next().is_none())
        }),
    };
    let Some(at) = chosen else {
        return refuse(match group {
            Some(wanted) => format!(
                "there is no group {wanted:?}; there are {}",
                names.join(", ")
            ),
            None => format!("which group? There are {}", names.join(", ")),
        });
    };
    let raw = entries.swap_remove(at);
    if !raw.is_fitted() {
        let why = raw
            .rest
            .get("error")
            .and_then(|error| error["message"].as_str());
        return refuse(format!(
            "the group {} could not be fitted: {}",
            raw.group,
            why.unwrap_or("its file does not say why")
        ));
    }
    raw.entry()
}

/// All models of such a file, in their order; groups that could not be fitted are left out. A
/// description alone is the model of everybody.
///
/// # Errors
/// [`LifetimeError::Description`] if the file is none of ours.
pub fn entries(json: &str) -> Result<Vec<ModelEntry>, LifetimeError> {
    match read(json)? {
        Content::One(description) => Ok(vec![of_all(description)]),
        Content::Groups(groups) => {
            let fitted = groups.into_iter().filter(Raw::is_fitted);
            fitted.map(Raw::entry).collect()
        }
    }
}

/// What a file has in it.
enum Content {
    Groups(Vec<Raw>),
    /// One description alone, written by hand.
    One(Description),
}

fn read(json: &str) -> Result<Content, LifetimeError> {
    match serde_json::from_str::<File>(json) {
        Ok(file) => Ok(Content::Groups(file.groups)),
        Err(error) => match serde_json::from_str::<Description>(json) {
            Ok(description) => Ok(Content::One(description)),
            Err(_) => refuse(format!(
                "this is not what `ebbtide-lab model fit -o json` writes: {error}"
            )),
        },
    }
}

fn of_all(description: Description) -> ModelEntry {
    ModelEntry {
        group: ALL.to_owned(),
        labels: BTreeMap::new(),
        description,
    }
}

impl Raw {
    fn is_fitted(&self) -> bool {
        self.rest.contains_key("model")
    }

    fn entry(self) -> Result<ModelEntry, LifetimeError> {
        let Self {
            group,
            labels,
            rest,
        } = self;
        match serde_json::from_value(serde_json::Value::Object(rest)) {
            Ok(description) => Ok(ModelEntry {
                group,
                labels,
                description,
            }),
            Err(error) => refuse(format!("the group {group}: {error}")),
        }
    }
}
