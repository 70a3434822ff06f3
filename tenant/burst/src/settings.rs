//! The operator's settings: one TOML file for the controller, its programs and the report.

use crate::error::BurstError;
use crate::slurm::hosts;
use ebbtide_elastic::{ElasticError, ElasticPolicy};
use ebbtide_model::{Money, toml_text};
use serde::Deserialize;
use std::path::PathBuf;

/// All settings.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BurstSettings {
    /// Directory of the record.
    pub state_dir: PathBuf,
    /// Polling interval for Slurm and the region, seconds.
    #[serde(default = "poll")]
    pub poll_seconds: f64,
    /// The cluster.
    pub slurm: SlurmSettings,
    /// A region and the servers there; either this or `openstack`.
    #[serde(default)]
    pub region: Option<RegionSettings>,
    /// An OpenStack and the servers there.
    #[serde(default)]
    pub openstack: Option<OpenStackSettings>,
    /// Limits on the number and the cost of instances.
    pub policy: PolicySettings,
    /// How the instances' age is reported to Slurm.
    #[serde(default)]
    pub age: AgeSettings,
}

/// The cluster.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlurmSettings {
    /// The nodes that run on preemptible instances, as Slurm lists them: `c[1-6]`. All others are
    /// on-demand nodes.
    pub nodes: String,
    /// slurm.conf, if it is not where Slurm looks for it.
    #[serde(default)]
    pub conf: Option<PathBuf>,
    /// Directory of `squeue`, `sinfo`, `scontrol` and `scancel`, if not in PATH.
    #[serde(default)]
    pub bin_dir: Option<PathBuf>,
    /// Timeout of one of these programs, seconds.
    #[serde(default = "timeout")]
    pub timeout_seconds: f64,
    /// Partitions whose jobs are long.
    #[serde(default)]
    pub long_partitions: Vec<String>,
    /// Jobs with a time limit of at least this many hours are long too.
    #[serde(default)]
    pub long_hours: Option<f64>,
    /// The signal that tells a batch script to save its work.
    #[serde(default = "signal")]
    pub checkpoint_signal: String,
}

/// The region and the instances. Credentials are given as in the configuration file of `ebbtide`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegionSettings {
    /// Its address.
    pub endpoint: String,
    /// Project that owns the instances.
    pub project: String,
    /// The preemptible flavor of the instances; a batch service has one for each type instead.
    #[serde(default)]
    pub flavor: Option<String>,
    /// Maximum price of an instance per hour; `None` accepts every market price.
    #[serde(default)]
    pub max_price: Option<Money>,
    /// The availability zone; `None` for any.
    #[serde(default)]
    pub zone: Option<String>,
    /// A file with the token.
    #[serde(default)]
    pub token_file: Option<PathBuf>,
    /// Roots of the region's certificate.
    #[serde(default)]
    pub ca: Option<PathBuf>,
    /// A client certificate.
    #[serde(default)]
    pub certificate: Option<PathBuf>,
    /// Its private key.
    #[serde(default)]
    pub key: Option<PathBuf>,
}

/// An OpenStack and the servers there. Credentials are those of `clouds.yaml` and `OS_*` variables,
/// as the openstack client reads them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenStackSettings {
    /// The cloud of `clouds.yaml`; `None` for the one that variables name or describe.
    #[serde(default)]
    pub cloud: Option<String>,
    /// The file with the cloud. slurmctld starts its programs without environment, so that they
    /// find only this one and /etc/openstack/clouds.yaml.
    #[serde(default)]
    pub clouds_file: Option<PathBuf>,
    /// The region of the cloud.
    #[serde(default)]
    pub region_name: Option<String>,
    /// The preemptible flavor of the servers, name or id; a batch service has one for each type
    /// instead.
    #[serde(default)]
    pub flavor: Option<String>,
    /// The image, name or id. Its guests start slurmd with the server's name as node name.
    pub image: String,
    /// `auto` for the project's network, `none`, or the name or id of one.
    #[serde(default = "auto")]
    pub network: String,
    /// A file with user data for cloud-init.
    #[serde(default)]
    pub user_data: Option<PathBuf>,
    /// Key pair.
    #[serde(default)]
    pub key_name: Option<String>,
    /// Names of security groups; empty for the project's default one.
    #[serde(default)]
    pub security_groups: Vec<String>,
    /// Availability zone; `None` for any.
    #[serde(default)]
    pub zone: Option<String>,
    /// Maximum price of a server per hour; `None` accepts every market price.
    #[serde(default)]
    pub max_price: Option<Money>,
}

/// The cloud of the servers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CloudSettings<'a> {
    /// A region.
    Region(&'a RegionSettings),
    /// An OpenStack.
    OpenStack(&'a OpenStackSettings),
}

impl<'a> CloudSettings<'a> {
    /// The one cloud that a file names.
    ///
    /// # Errors
    /// [`BurstError::Setting`] if none or two are given.
    pub fn of(
        region: Option<&'a RegionSettings>,
        openstack: Option<&'a OpenStackSettings>,
    ) -> Result<Self, BurstError> {
        match (region, openstack) {
            (Some(region), None) => Ok(Self::Region(region)),
            (None, Some(openstack)) => Ok(Self::OpenStack(openstack)),
            (Some(_), Some(_)) => {
                let problem = "there is [region] too: servers come from one cloud";
                Err(BurstError::setting("openstack", problem))
            }
            (None, None) => {
                let problem =
                    "neither this nor [openstack] is there: nothing says where servers come from";
                Err(BurstError::setting("region", problem))
            }
        }
    }

    /// The flavor that the cloud's table names, and the most that is paid for it.
    #[must_use]
    pub fn flavor(&self) -> (Option<&'a str>, Option<Money>) {
        match self {
            Self::Region(own) => (own.flavor.as_deref(), own.max_price),
            Self::OpenStack(own) => (own.flavor.as_deref(), own.max_price),
        }
    }

    /// The key of that flavor in the file.
    #[must_use]
    pub fn flavor_key(&self) -> &'static str {
        match self {
            Self::Region(_) => "region.flavor",
            Self::OpenStack(_) => "openstack.flavor",
        }
    }
}

/// Nodes whose servers have one flavor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeGroup {
    /// The nodes, one name each.
    pub nodes: Vec<String>,
    /// The flavor of their servers: a name, on an OpenStack also an id.
    pub flavor: String,
    /// Maximum price of a server per hour; `None` accepts every market price.
    pub max_price: Option<Money>,
}

/// Limits on the number and the cost of instances.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicySettings {
    /// N: on-demand servers for short jobs that the cluster would have without preemptible ones.
    pub short_servers: u32,
    /// p: the share of them that is replaced by preemptible ones.
    #[serde(default = "whole")]
    pub share: f64,
    /// Price of an on-demand server per hour.
    pub on_demand_price: Money,
    /// Price of a preemptible server per hour.
    pub preemptible_price: Money,
    /// The long-load ratio above which servers are added.
    #[serde(default = "threshold")]
    pub threshold: f64,
    /// The controller releases at most one server within this many seconds.
    #[serde(default = "release")]
    pub release_seconds: f64,
    /// The controller gives up a server whose node is not up after this many seconds.
    #[serde(default = "launch")]
    pub launch_seconds: f64,
    /// Delay before the next launch after the region had no capacity, seconds.
    #[serde(default = "launch_again")]
    pub launch_again_seconds: f64,
    /// Maximum amount to spend on preemptible servers within `budget_hours`; `None` for no limit
    /// except K.
    #[serde(default)]
    pub budget: Option<Money>,
    /// Length of the budget's window, which ends now, hours.
    #[serde(default = "day")]
    pub budget_hours: f64,
    /// Maximum time for a job to save its work before the controller requeues it, seconds.
    #[serde(default = "checkpoint")]
    pub checkpoint_seconds: f64,
    /// The controller requeues jobs at least this many seconds before their instance ends.
    #[serde(default = "margin")]
    pub margin_seconds: f64,
}

/// How the instances' age is reported to Slurm.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgeSettings {
    /// The lifetime model, as `ebbtide-lab plan --model` takes it; without one Slurm receives the
    /// age only.
    #[serde(default)]
    pub model: Option<String>,
    /// Lengths of jobs, hours, for which nodes have a feature while they are as good as a new
    /// instance.
    #[serde(default)]
    pub job_hours: Vec<f64>,
    /// Features that nodes have in slurm.conf and keep.
    #[serde(default)]
    pub features: Vec<String>,
    /// The weight of a new instance; older ones have a higher weight if the model rates them worse.
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

fn auto() -> String {
    "auto".to_owned()
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

/// The end of a job lowers the ratio for a moment. A minute avoids releasing an instance because of
/// that.
fn release() -> f64 {
    60.0
}

/// Five minutes: an image that boots more slowly is considered broken.
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

/// Converts seconds to milliseconds.
pub(crate) fn millis(seconds: f64) -> i64 {
    (seconds * 1_000.0).round() as i64
}

impl BurstSettings {
    /// Reads and checks the settings.
    ///
    /// # Errors
    /// [`BurstError::Setting`] for an unreadable or invalid value, with its key.
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
        self.groups()?;
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

    /// The cloud of the servers.
    ///
    /// # Errors
    /// [`BurstError::Setting`] if none or two are given.
    pub fn cloud(&self) -> Result<CloudSettings<'_>, BurstError> {
        CloudSettings::of(self.region.as_ref(), self.openstack.as_ref())
    }

    /// The nodes of the pool with the flavor of their servers: one group.
    ///
    /// # Errors
    /// [`BurstError::Setting`] without a flavor; as [`Self::nodes`].
    pub fn groups(&self) -> Result<Vec<NodeGroup>, BurstError> {
        let cloud = self.cloud()?;
        let (flavor, max_price) = cloud.flavor();
        let missing = || BurstError::setting(cloud.flavor_key(), "it is not there");
        Ok(vec![NodeGroup {
            nodes: self.nodes()?,
            flavor: flavor.ok_or_else(missing)?.to_owned(),
            max_price,
        }])
    }

    /// The names of the nodes that run on preemptible instances.
    ///
    /// # Errors
    /// [`BurstError::Hosts`], [`BurstError::Setting`] if there are none.
    pub fn nodes(&self) -> Result<Vec<String>, BurstError> {
        node_names("slurm.nodes", &self.slurm.nodes)
    }

    /// r, the price of an on-demand server divided by that of a preemptible one.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        let policy = &self.policy;
        policy.on_demand_price.micros() as f64 / policy.preemptible_price.micros() as f64
    }

    /// The policy of the elastic partition.
    ///
    /// # Errors
    /// [`BurstError::Setting`] for values that the policy refuses.
    pub fn elastic(&self) -> Result<ElasticPolicy, BurstError> {
        let policy = &self.policy;
        let us = |seconds: f64| millis(seconds).unsigned_abs() * 1_000;
        let refused = |error: ElasticError| BurstError::setting("policy", error.to_string());
        ElasticPolicy::new(policy.short_servers, self.ratio(), policy.share)
            .and_then(|made| made.threshold(policy.threshold))
            .and_then(|made| made.release_interval(us(policy.release_seconds)))
            .and_then(|made| made.launch_timeout(us(policy.launch_seconds)))
            .map_err(refused)
    }
}

/// The names in a list of nodes, as Slurm writes it.
///
/// # Errors
/// [`BurstError::Hosts`], [`BurstError::Setting`] with this key if there are none, or if one is no
/// name of a node.
pub fn node_names(key: &str, list: &str) -> Result<Vec<String>, BurstError> {
    let mut nodes = hosts(list)?;
    nodes.dedup();
    // The names appear in command lines and in the cloud.
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if let Some(odd) = nodes
        .iter()
        .find(|node| !node.chars().all(plain) || node.starts_with('-'))
    {
        let problem = format!("{odd:?} is no name of a node");
        return Err(BurstError::setting(key, problem));
    }
    if nodes.is_empty() {
        let problem = "it is empty; list the nodes of State=CLOUD, as in c[1-6]";
        return Err(BurstError::setting(key, problem));
    }
    Ok(nodes)
}

/// Whether Slurm takes this as a feature: no commas, no operators.
fn is_feature(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    !word.is_empty() && word.chars().all(plain)
}
