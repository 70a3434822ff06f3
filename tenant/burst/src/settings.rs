//! Tables of the operator's file: the cloud, and the elastic partition.

use crate::error::BurstError;
use crate::manager::ManagerOptions;
use crate::reuse_policy::ReusePolicy;
use crate::slurm::hosts;
use ebbtide_elastic::{ElasticError, ElasticPolicy};
use ebbtide_model::Money;
use serde::Deserialize;
use std::path::PathBuf;

/// The table `[elastic]`: the elastic partition, nodes for short jobs while long ones hold the
/// others.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ElasticSettings {
    /// The nodes that run on preemptible servers, as Slurm lists them: `c[1-6]`.
    pub nodes: String,
    /// The preemptible flavor of the servers: a name, on an OpenStack also an id.
    pub flavor: String,
    /// Maximum price of a server per hour; `None` accepts every market price.
    #[serde(default)]
    pub max_price: Option<Money>,
    /// Partitions whose jobs are long.
    #[serde(default)]
    pub long_partitions: Vec<String>,
    /// Jobs with a time limit of at least this many hours are long too.
    #[serde(default)]
    pub long_hours: Option<f64>,
    /// The signal that tells a batch script to save its work.
    #[serde(default = "signal")]
    pub checkpoint_signal: String,
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
    /// At most one server is released within this many seconds.
    #[serde(default = "release")]
    pub release_seconds: f64,
    /// Jobs are requeued at least this many seconds before their server ends.
    #[serde(default = "margin")]
    pub margin_seconds: f64,
    /// How the servers' age is reported to Slurm.
    #[serde(default)]
    pub age: AgeSettings,
}

/// Times that hold for all nodes of a service, seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NodeTimes {
    /// A node that is not up after this time is given up.
    pub launch_seconds: f64,
    /// Delay before the next launch after the cloud had no capacity.
    pub launch_again_seconds: f64,
    /// Maximum time for a job to save its work before it is requeued.
    pub checkpoint_seconds: f64,
}

/// The region and the instances. Credentials are given as in the configuration file of `ebbtide`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegionSettings {
    /// Its address.
    pub endpoint: String,
    /// Project that owns the instances.
    pub project: String,
    /// The availability zone; `None` for any.
    #[serde(default)]
    pub zone: Option<String>,
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
}

/// The cloud that a file names for the servers, with its settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CloudChoice<'a> {
    Region(&'a RegionSettings),
    /// An OpenStack.
    OpenStack(&'a OpenStackSettings),
}

impl<'a> CloudChoice<'a> {
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
    /// Features that the nodes have in slurm.conf.
    pub features: Vec<String>,
    pub weight: u32,
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

fn margin() -> f64 {
    5.0
}

fn weight() -> u32 {
    100
}

/// Converts seconds to milliseconds.
fn millis(seconds: f64) -> i64 {
    (seconds * 1_000.0).round() as i64
}

fn micros(seconds: f64) -> u64 {
    millis(seconds).unsigned_abs() * 1_000
}

impl ElasticSettings {
    /// Checks the table.
    ///
    /// # Errors
    /// [`BurstError::Setting`] for a value that cannot be used, with its key;
    /// [`BurstError::Hosts`].
    pub fn check(&self) -> Result<(), BurstError> {
        let times = [
            ("elastic.release_seconds", self.release_seconds),
            ("elastic.margin_seconds", self.margin_seconds),
        ];
        for (key, value) in times {
            if !(0.0..=1e6).contains(&value) {
                let problem = format!("it is {value}; it has to be 0 to 1000000");
                return Err(BurstError::setting(key, problem));
            }
        }
        if let Some(hours) = self.long_hours
            && !(hours > 0.0 && hours.is_finite())
        {
            let problem = format!("it is {hours}; it has to be above 0");
            return Err(BurstError::setting("elastic.long_hours", problem));
        }
        if self.long_partitions.is_empty() && self.long_hours.is_none() {
            let problem =
                "neither this nor elastic.long_hours is there: nothing says which jobs are long";
            return Err(BurstError::setting("elastic.long_partitions", problem));
        }
        let signal = &self.checkpoint_signal;
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '+' || c == '-';
        if signal.is_empty() || !signal.chars().all(plain) {
            let problem = format!("{signal:?} is no signal; write USR1, TERM and the like");
            return Err(BurstError::setting("elastic.checkpoint_signal", problem));
        }
        for word in &self.age.features {
            if !is_feature(word) {
                let problem = format!("{word:?} is no feature: letters, digits, _ and . only");
                return Err(BurstError::setting("elastic.age.features", problem));
            }
        }
        if !self.age.job_hours.is_empty() && self.age.features.is_empty() {
            let problem = "with elastic.age.job_hours the features of nodes are written anew; name those that they have in slurm.conf";
            return Err(BurstError::setting("elastic.age.features", problem));
        }
        if self.preemptible_price.micros() == 0 {
            let problem = "it has to be above 0: the price ratio r follows from it";
            return Err(BurstError::setting("elastic.preemptible_price", problem));
        }
        let (most, nodes) = (self.policy()?.budget(), self.group()?.nodes.len());
        if (most as usize) > nodes {
            let problem = format!(
                "K = rNp is {most} preemptible servers, and {} are {nodes} nodes: declare more in slurm.conf, or lower short_servers or share",
                self.nodes
            );
            return Err(BurstError::setting("elastic.nodes", problem));
        }
        Ok(())
    }

    /// The nodes with the flavor of their servers and what slurm.conf has of them.
    ///
    /// # Errors
    /// [`BurstError::Hosts`], [`BurstError::Setting`] if there are none, or for an invalid model of
    /// the servers' lifetime.
    pub fn group(&self) -> Result<NodeGroup, BurstError> {
        Ok(NodeGroup {
            nodes: node_names("elastic.nodes", &self.nodes)?,
            flavor: self.flavor.clone(),
            max_price: self.max_price,
            features: ReusePolicy::new(&self.age)?.all_features(),
            weight: self.age.weight,
        })
    }

    /// r, the price of an on-demand server divided by that of a preemptible one.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.on_demand_price.micros() as f64 / self.preemptible_price.micros() as f64
    }

    /// How many servers there may be, and how fast they go.
    ///
    /// # Errors
    /// [`BurstError::Setting`] for values that the policy refuses.
    pub fn policy(&self) -> Result<ElasticPolicy, BurstError> {
        ElasticPolicy::new(self.short_servers, self.ratio(), self.share)
            .and_then(|made| made.threshold(self.threshold))
            .and_then(|made| made.release_interval(micros(self.release_seconds)))
            .map_err(refused)
    }

    /// What the manager of the nodes needs to know.
    ///
    /// # Errors
    /// [`BurstError::Setting`] for values that the policy refuses, [`BurstError::Hosts`].
    pub fn manager_options(&self, times: NodeTimes) -> Result<ManagerOptions, BurstError> {
        let launch = micros(times.launch_seconds);
        Ok(ManagerOptions {
            nodes: self.group()?.nodes,
            age: self.age.clone(),
            policy: self.policy()?.launch_timeout(launch).map_err(refused)?,
            checkpoint_ms: millis(times.checkpoint_seconds),
            margin_ms: millis(self.margin_seconds),
            launch_again_ms: millis(times.launch_again_seconds),
            releases: true,
        })
    }
}

fn refused(error: ElasticError) -> BurstError {
    BurstError::setting("elastic", error.to_string())
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
