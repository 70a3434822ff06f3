//! Reports the age of instances to Slurm, so that Slurm places jobs by the reuse policy.
//!
//! For each length in `elastic.age.job_hours` a node has a feature, for example `fits_6h`, as long
//! as its instance is at least as good for such a job as a new one, by the expected running time
//! until the job is done ([`ebbtide_lifetime::plan::reuse::keeps`]). A job of four hours asks for
//! `--prefer=fits_6h`, or requires it with `--constraint`. A powered-down node has all of these
//! features, because its next instance is new. Slurm uses nodes of lower weight first; the weight
//! grows with the risk that the longest of these jobs fails. The comment contains the instance and
//! its launch time.

use crate::error::BurstError;
use crate::settings::AgeSettings;
use ebbtide_lifetime::Lifetime;
use ebbtide_lifetime::description::Description;
use ebbtide_lifetime::plan::{RunningTime, failure_probability, keeps};

/// Features, weight and comment of a node in Slurm.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Label {
    pub features: Vec<String>,
    pub weight: u64,
    pub comment: String,
}

/// Weight of a failure probability of 1.
const RISK_WEIGHT: f64 = 100.0;
/// Weights change in steps, so that the controller does not update Slurm every second.
const STEP: f64 = 5.0;

/// The reuse policy with its settings.
#[derive(Debug)]
pub struct ReusePolicy {
    model: Option<Box<dyn Lifetime>>,
    job_hours: Vec<f64>,
    features: Vec<String>,
    weight: u32,
}

impl ReusePolicy {
    /// Builds the policy from the settings.
    ///
    /// # Errors
    /// [`BurstError::Setting`] for an invalid model or invalid lengths.
    pub fn new(settings: &AgeSettings) -> Result<Self, BurstError> {
        let refused = |error: ebbtide_lifetime::LifetimeError| {
            BurstError::setting("elastic.age.model", error.to_string())
        };
        let model = match &settings.model {
            Some(text) => {
                let description = Description::parse(text).map_err(refused)?;
                Some(description.model().map_err(refused)?)
            }
            None => None,
        };
        let mut job_hours = settings.job_hours.clone();
        let sound = |hours: &f64| *hours > 0.0 && *hours <= 8_760.0;
        if let Some(odd) = job_hours.iter().find(|hours| !sound(hours)) {
            let problem = format!("{odd} h is no length of a job: above 0, at most 8760");
            return Err(BurstError::setting("elastic.age.job_hours", problem));
        }
        if model.is_none() && !job_hours.is_empty() {
            let problem = "lengths of jobs are of use with elastic.age.model only";
            return Err(BurstError::setting("elastic.age.job_hours", problem));
        }
        job_hours.sort_by(f64::total_cmp);
        Ok(Self {
            model,
            job_hours,
            features: settings.features.clone(),
            weight: settings.weight,
        })
    }

    /// All features that a node can have. slurm.conf must list them, and a powered-down node has
    /// all of them.
    #[must_use]
    pub fn all_features(&self) -> Vec<String> {
        let lengths = self.job_hours.iter().map(|hours| feature(*hours));
        self.features.iter().cloned().chain(lengths).collect()
    }

    /// The label of a node whose instance is `age_hours` old. `about` is the comment.
    ///
    /// # Errors
    /// [`BurstError::Setting`] if the model returns an error.
    pub fn label(&self, age_hours: f64, about: String) -> Result<Label, BurstError> {
        let refused = |error: ebbtide_lifetime::LifetimeError| {
            BurstError::setting("elastic.age.model", error.to_string())
        };
        let age_hours = age_hours.max(0.0);
        let mut features = self.features.clone();
        let mut weight = f64::from(self.weight);
        if let Some(model) = self.model.as_deref() {
            for &hours in &self.job_hours {
                if keeps(model, age_hours, hours, RunningTime::UntilDone).map_err(refused)? {
                    features.push(feature(hours));
                }
            }
            if let Some(&longest) = self.job_hours.last() {
                let risk = failure_probability(model, age_hours, longest).map_err(refused)?;
                weight += (risk * RISK_WEIGHT / STEP).round() * STEP;
            }
        }
        Ok(Label {
            features,
            weight: weight.max(0.0) as u64,
            comment: about,
        })
    }
}

/// The name of the feature: `fits_6h`, `fits_0.5h`.
fn feature(hours: f64) -> String {
    format!("fits_{hours}h")
}
