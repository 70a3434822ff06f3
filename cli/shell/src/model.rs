//! A model given to a command: as parameters, or as a file.

use crate::errors::CliError;
use crate::json::Json;
use clap::Args;
use ebbtide_lifetime::description::{Description, ModelEntry, pick};
use ebbtide_lifetime::labelled_life::ALL;
use ebbtide_lifetime::{Lifetime, LifetimeError};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// The model of a plan.
#[derive(Debug, Clone, Args)]
pub struct ModelArgs {
    /// How long instances live: NAME:key=value,… in hours (max=24 unless it says another, or
    /// max=none), or the file that `ebbtide-lab model fit -o json` writes
    #[arg(long, value_name = "MODEL")]
    pub model: String,
    /// Which model of that file: a group's name, or the value of its label [default: the one of all
    /// lifetimes]
    #[arg(long, value_name = "GROUP")]
    pub group: Option<String>,
}

/// A model and where it comes from.
#[derive(Debug)]
pub struct SourcedModel {
    /// The model.
    pub model: Arc<dyn Lifetime>,
    /// The labels of the lifetimes that it was fitted to.
    pub labels: BTreeMap<String, String>,
    /// The longest life that the provider allows, hours; a model may end before.
    pub longest: f64,
    group: Option<String>,
}

impl SourcedModel {
    /// Reads it. What is a file is a file; what is none has to be parameters.
    pub fn read(args: &ModelArgs) -> Result<Self, CliError> {
        let path = Path::new(&args.model);
        if !path.is_file() {
            if args.group.is_some() {
                return Err(CliError::Usage(
                    "--group chooses from a file; the model is given by its parameters".to_owned(),
                ));
            }
            let description = Description::parse(&args.model).map_err(|error| {
                if args.model.ends_with(".json") || args.model.contains('/') {
                    LifetimeError::Description {
                        problem: format!("there is no file {}", args.model),
                    }
                } else {
                    error
                }
            })?;
            let model = description.model()?;
            return Ok(Self {
                longest: longest(&description, model.as_ref()),
                model: model.into(),
                labels: BTreeMap::new(),
                group: None,
            });
        }
        let at = |error| CliError::lifetimes(path, error);
        let bytes = ebbtide_files::read(path)?;
        let text = String::from_utf8(bytes).map_err(|_| {
            at(LifetimeError::Description {
                problem: "the file is no text".to_owned(),
            })
        })?;
        let ModelEntry {
            group,
            labels,
            description,
        } = pick(&text, args.group.as_deref()).map_err(at)?;
        let model = description.model().map_err(at)?;
        Ok(Self {
            longest: longest(&description, model.as_ref()),
            model: model.into(),
            labels,
            group: Some(group),
        })
    }

    /// The model itself, for several threads.
    pub fn shared(&self) -> Arc<dyn Lifetime> {
        Arc::clone(&self.model)
    }

    /// The model in a line for people.
    pub fn words(&self) -> String {
        let model = self.model.as_ref();
        let mut words = parameters_words(model);
        if model.maximum().is_finite() {
            words.push_str(&format!(", at most {} h", short(model.maximum())));
        }
        if let Some(group) = self.group.as_ref().filter(|group| *group != ALL) {
            words.push_str(&format!(" ({group})"));
        }
        words
    }

    /// The model as JSON.
    pub fn json(&self) -> Json {
        let model = self.model.as_ref();
        Json::object([("name", Json::from(model.name()))])
            .with(
                "group",
                self.group.as_deref().map_or(Json::Null, Json::from),
            )
            .with("parameters", parameters_json(model))
            .with("maximum_hours", Json::from(model.maximum()))
            .with("expected_lifetime_hours", Json::from(model.mean()))
    }
}

fn longest(description: &Description, model: &dyn Lifetime) -> f64 {
    let allowed = description.maximum_hours.unwrap_or(f64::INFINITY);
    allowed.max(model.maximum())
}

/// `bathtub A 0.414, tau1 0.94, …`.
fn parameters_words(model: &dyn Lifetime) -> String {
    let all: Vec<String> = model
        .parameters()
        .iter()
        .map(|(name, value)| format!("{name} {}", short(*value)))
        .collect();
    if all.is_empty() {
        model.name().to_owned()
    } else {
        format!("{} {}", model.name(), all.join(", "))
    }
}

/// Parameters as an object, in their order. Those of phases have the same names again and again: a
/// list of pairs would be the model again, which `phases` has.
pub fn parameters_json(model: &dyn Lifetime) -> Json {
    if model.name() == "phases" {
        return Json::Object(Vec::new());
    }
    let pairs = model.parameters().into_iter();
    Json::Object(
        pairs
            .map(|(name, value)| (name.to_owned(), Json::from(value)))
            .collect(),
    )
}

/// A number with four digits that matter.
pub fn short(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let digits = (3.0 - value.abs().log10().floor()).clamp(0.0, 12.0) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}
