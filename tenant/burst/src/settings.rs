//! What an operator writes: one TOML file for the controller, its programs and the report.

use crate::error::BurstError;
use crate::slurm::hosts;
use ebbtide_elastic::{ElasticError, Policy};
use ebbtide_model::{Money, toml_text};
use serde::Deserialize;
use std::path::PathBuf;

/// Everything.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Where the record of what happened is kept.
    pub state_dir: PathBuf,
    /// How often Slurm and the region are asked, seconds.
    #[serde(default = "poll")]
    pub poll_seconds: f64,
    /// The cluster.
    pub slurm: SlurmSettings,
    /// Where instances come from.
    pub region: RegionSettings,
    /// How many there may be, and what they may cost.
    pub policy: PolicySettings,
    /// What Slurm is told of their age.
    #[serde(default)]
    pub age: AgeSettings,
}

/// The cluster.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlurmSettings {
    /// The nodes that are instances when they are there, as Slurm lists them: `c[1-6]`. All others stay.
    pub nodes: String,
    /// slurm.conf, if it is not where Slurm looks for it.
    #[serde(default)]
    pub conf: Option<PathBuf>,
    /// Where `squeue`, `sinfo`, `scontrol` and `scancel` are, if not in PATH.
    #[serde(default)]
    pub bin_dir: Option<PathBuf>,
    /// How long one of them may take, seconds.
    #[serde(default = "timeout")]
    pub timeout_seconds: f64,
    /// Jobs of these partitions are long ones.
    #[serde(default)]
    pub long_partitions: Vec<String>,
    /// Jobs with a time limit of so many hours or more are long ones, too.
    #[serde(default)]
    pub long_hours: Option<f64>,
    /// The signal that tells a batch script to save its work.
    #[serde(default = "signal")]
    pub checkpoint_signal: String,
}

/// Where instances come from. How to prove who asks is as in the configuration file of `ebbtide`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegionSettings {
    /// Its address.
    pub endpoint: String,
    /// On whose behalf.
    pub project: String,
    /// The preemptible flavor of the instances.
    pub flavor: String,
    /// The most that is paid for an hour of one; none for whatever the market takes.
    #[serde(default)]
    pub max_price: Option<Money>,
    /// The availability zone; any if there is none.
    #[serde(default)]
    pub zone: Option<String>,
    /// A file with the token.
    #[serde(default)]
    pub token_file: Option<PathBuf>,
    /// Roots of the region's certificate.
    #[serde(default)]
    pub ca: Option<PathBuf>,
    /// A certificate of one's own.
    #[serde(default)]
    pub certificate: Option<PathBuf>,
    /// Its private key.
    #[serde(default)]
    pub key: Option<PathBuf>,
}

/// How many there may be, and what they may cost.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicySettings {
    /// N: on-demand servers for short jobs that the cluster would have without preemptible ones.
    pub short_servers: u32,
    /// p: the part of them that is given up for preemptible ones.
    #[serde(default = "whole")]
    pub share: f64,
    /// What an hour of an on-demand server costs.
    pub on_demand_price: Money,
    /// What an hour of a preemptible one costs.
    pub preemptible_price: Money,
    /// The long-load ratio above which servers are added.
    #[serde(default = "threshold")]
    pub threshold: f64,
    /// At most one server is released in so many seconds.
    #[serde(default = "release")]
    pub release_seconds: f64,
    /// A server whose node is not up after so many seconds is given up.
    #[serde(default = "launch")]
    pub launch_seconds: f64,
    /// How long the region is left alone when it had no place, seconds.
    #[serde(default = "launch_again")]
    pub launch_again_seconds: f64,
    /// The most that may be spent on preemptible servers in `budget_hours`; none for no limit beside K.
    #[serde(default)]
    pub budget: Option<Money>,
    /// The time over which `budget` is counted, back from now.
    #[serde(default = "day")]
    pub budget_hours: f64,
    /// How long a job may take to save its work before it is put back into the queue, seconds.
    #[serde(default = "checkpoint")]
    pub checkpoint_seconds: f64,
    /// So long before an instance's end its jobs are put back at the latest, seconds.
    #[serde(default = "margin")]
    pub margin_seconds: f64,
}

/// What Slurm is told of instances' age.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgeSettings {
    /// The lifetime model, as `ebbtide plan --model` takes it; without one Slurm is told the age alone.
    #[serde(default)]
    pub model: Option<String>,
    /// Lengths of jobs, hours, for which nodes have a feature while they are as good as a new instance.
    #[serde(default)]
    pub job_hours: Vec<f64>,
    /// Features that nodes have in slurm.conf and keep.
    #[serde(default)]
    pub features: Vec<String>,
    /// The weight of a new instance; older ones get more if the model says that they are worse.
    #[serde(default = "weight")]
    pub weight: u32,
}

impl Default for AgeSettings {
    fn default() -> Self {
        Self {
            model: None,
            job_hours: Vec::new(),
            features: Vec::new(),
            weight: weight(),
        }
    }
}

fn poll() -> f64 {
    1.0
}

fn timeout() -> f64 {
    10.0
}

fn signal() -> String {
    "USR1".to_owned()
}

fn whole() -> f64 {
    1.0
}

fn threshold() -> f64 {
    ebbtide_elastic::THRESHOLD
}

/// A job that ends leaves the ratio lower for a moment; a minute is no reason to let an instance go.
fn release() -> f64 {
    60.0
}

/// Five minutes: images that boot slower are broken.
fn launch() -> f64 {
    300.0
}

fn launch_again() -> f64 {
    30.0
}

fn day() -> f64 {
    24.0
}

fn checkpoint() -> f64 {
    20.0
}

fn margin() -> f64 {
    5.0
}

fn weight() -> u32 {
    100
}

/// Milliseconds.
pub(crate) fn millis(seconds: f64) -> i64 {
    (seconds * 1_000.0).round() as i64
}

impl Settings {
    /// Reads and checks them.
    ///
    /// # Errors
    /// [`BurstError::Setting`] for what cannot be read or makes no sense, with the key.
    pub fn parse(text: &str) -> Result<Self, BurstError> {
        let settings: Self = toml::from_str(text).map_err(|error: toml::de::Error| {
            let problem = toml_text::problem(text, error.span(), error.message());
            BurstError::setting("the file", &problem)
        })?;
        settings.check()?;
        Ok(settings)
    }

    fn check(&self) -> Result<(), BurstError> {
        let times = [
            ("poll_seconds", self.poll_seconds, 0.05, 3_600.0),
            (
                "slurm.timeout_seconds",
                self.slurm.timeout_seconds,
                0.1,
                600.0,
            ),
            (
                "policy.release_seconds",
                self.policy.release_seconds,
                0.0,
                1e6,
            ),
            (
                "policy.launch_seconds",
                self.policy.launch_seconds,
                1.0,
                1e6,
            ),
            (
                "policy.launch_again_seconds",
                self.policy.launch_again_seconds,
                0.1,
                1e6,
            ),
            (
                "policy.budget_hours",
                self.policy.budget_hours,
                0.01,
                87_600.0,
            ),
            (
                "policy.checkpoint_seconds",
                self.policy.checkpoint_seconds,
                0.0,
                1e6,
            ),
            (
                "policy.margin_seconds",
                self.policy.margin_seconds,
                0.0,
                1e6,
            ),
        ];
        for (key, value, least, most) in times {
            if !(least..=most).contains(&value) {
                let problem = format!("it is {value}; it has to be {least} to {most}");
                return Err(BurstError::setting(key, problem));
            }
        }
        if let Some(hours) = self.slurm.long_hours
            && !(hours > 0.0 && hours.is_finite())
        {
            let problem = format!("it is {hours}; it has to be above 0");
            return Err(BurstError::setting("slurm.long_hours", problem));
        }
        if self.slurm.long_partitions.is_empty() && self.slurm.long_hours.is_none() {
            let problem =
                "neither this nor slurm.long_hours is there: nothing says which jobs are long";
            return Err(BurstError::setting("slurm.long_partitions", problem));
        }
        let signal = &self.slurm.checkpoint_signal;
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '+' || c == '-';
        if signal.is_empty() || !signal.chars().all(plain) {
            let problem = format!("{signal:?} is no signal; write USR1, TERM and the like");
            return Err(BurstError::setting("slurm.checkpoint_signal", problem));
        }
        for word in &self.age.features {
            if !is_feature(word) {
                let problem = format!("{word:?} is no feature: letters, digits, _ and . only");
                return Err(BurstError::setting("age.features", problem));
            }
        }
        if !self.age.job_hours.is_empty() && self.age.features.is_empty() {
            let problem = "with age.job_hours the features of nodes are written anew; name those that they have in slurm.conf";
            return Err(BurstError::setting("age.features", problem));
        }
        if self.policy.preemptible_price.micros() == 0 {
            let problem = "it has to be above 0: the price ratio r follows from it";
            return Err(BurstError::setting("policy.preemptible_price", problem));
        }
        let nodes = self.nodes()?;
        let policy = self.elastic()?;
        if (policy.budget() as usize) > nodes.len() {
            let problem = format!(
                "K = rNp is {} preemptible servers, and {} are {} nodes: declare more in slurm.conf, or lower short_servers or share",
                policy.budget(),
                self.slurm.nodes,
                nodes.len()
            );
            return Err(BurstError::setting("slurm.nodes", problem));
        }
        Ok(())
    }

    /// The names of the nodes that are instances when they are there.
    ///
    /// # Errors
    /// [`BurstError::Hosts`], [`BurstError::Setting`] if there are none.
    pub fn nodes(&self) -> Result<Vec<String>, BurstError> {
        let mut nodes = hosts(&self.slurm.nodes)?;
        nodes.dedup();
        // The names go into command lines and into the region.
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if let Some(odd) = nodes
            .iter()
            .find(|node| !node.chars().all(plain) || node.starts_with('-'))
        {
            let problem = format!("{odd:?} is no name of a node");
            return Err(BurstError::setting("slurm.nodes", problem));
        }
        if nodes.is_empty() {
            let problem = "it is empty; list the nodes of State=CLOUD, as in c[1-6]";
            return Err(BurstError::setting("slurm.nodes", problem));
        }
        Ok(nodes)
    }

    /// r, the price of an on-demand server over that of a preemptible one.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        let policy = &self.policy;
        policy.on_demand_price.micros() as f64 / policy.preemptible_price.micros() as f64
    }

    /// The policy of the elastic partition.
    ///
    /// # Errors
    /// [`BurstError::Setting`] for what the policy refuses.
    pub fn elastic(&self) -> Result<Policy, BurstError> {
        let policy = &self.policy;
        let us = |seconds: f64| millis(seconds).unsigned_abs() * 1_000;
        let refused = |error: ElasticError| BurstError::setting("policy", error.to_string());
        Policy::new(policy.short_servers, self.ratio(), policy.share)
            .and_then(|made| made.threshold(policy.threshold))
            .and_then(|made| made.release_interval(us(policy.release_seconds)))
            .and_then(|made| made.launch_timeout(us(policy.launch_seconds)))
            .map_err(refused)
    }
}

/// Whether Slurm takes this as a feature: no commas, no operators.
fn is_feature(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    !word.is_empty() && word.chars().all(plain)
}
