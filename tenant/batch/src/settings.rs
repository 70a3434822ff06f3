//! The operator's settings: one TOML file for the service and the programs that slurmctld calls.

use crate::error::BatchError;
use ebbtide_burst::{
    AgeSettings, CloudChoice, ElasticSettings, ManagerOptions, NodeGroup, NodeTimes,
    OpenStackSettings, RegionSettings, node_names,
};
use ebbtide_deadline::PolicyKind;
use ebbtide_elastic::{ElasticError, ElasticPolicy};
use ebbtide_lifetime::Lifetime;
use ebbtide_lifetime::description::Description;
use ebbtide_lifetime::plan::RunningTime;
use ebbtide_model::{Money, toml_text};
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// All settings.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchSettings {
    /// Directory of the book and the record.
    pub state_dir: PathBuf,
    /// Where the service listens: `unix:PATH` or `ADDRESS:PORT`.
    pub listen: String,
    /// The file with the token that callers show; a must for `ADDRESS:PORT`.
    #[serde(default)]
    pub token_file: Option<PathBuf>,
    /// Pages for Prometheus and load balancers.
    #[serde(default)]
    pub http: HttpSettings,
    /// Polling interval for Slurm and the cloud, seconds.
    #[serde(default = "poll")]
    pub poll_seconds: f64,
    /// Nothing runs on the servers, and no Slurm is asked: tasks of bags by maps are done once
    /// their server was active for as long as they take.
    #[serde(default)]
    pub rehearse: bool,
    pub slurm: ClusterSettings,
    /// A region and the servers there; either this or `openstack`.
    #[serde(default)]
    pub region: Option<RegionSettings>,
    /// An OpenStack and the servers there.
    #[serde(default)]
    pub openstack: Option<OpenStackSettings>,
    /// Types of servers.
    #[serde(default)]
    pub types: Vec<TypeSettings>,
    /// The elastic partition: nodes for short jobs of the cluster's users.
    #[serde(default)]
    pub elastic: Option<ElasticSettings>,
    /// What decides which server a member gets, and limits that hold for all servers.
    #[serde(default)]
    pub policy: BatchPolicy,
}

/// The pages `/metrics`, `/healthz` and `/readyz`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpSettings {
    /// Where they are; `None`: nowhere.
    #[serde(default)]
    pub listen: Option<SocketAddr>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterSettings {
    /// slurm.conf, if it is not where Slurm looks for it.
    #[serde(default)]
    pub conf: Option<PathBuf>,
    /// Directory of Slurm's programs, if not in PATH.
    #[serde(default)]
    pub bin_dir: Option<PathBuf>,
    /// Timeout of one of these programs, seconds.
    #[serde(default = "timeout")]
    pub timeout_seconds: f64,
    /// The partition of the types' nodes; `None` for Slurm's default one.
    #[serde(default)]
    pub partition: Option<String>,
    /// The program `ebbtide` on the nodes, which saves members.
    #[serde(default = "ebbtide")]
    pub ebbtide: String,
}

/// Whether the provider may take a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MarketSetting {
    /// It may.
    Preemptible,
    /// It may not.
    OnDemand,
}

/// A type of servers: a flavor, and the nodes that run on its servers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TypeSettings {
    pub name: String,
    /// The nodes, as Slurm lists them: `p[1-6]`. So many servers there are at most.
    pub nodes: String,
    /// The flavor of the servers.
    pub flavor: String,
    /// Whether the provider may take them.
    pub market: MarketSetting,
    /// Processors that Slurm gives to jobs.
    pub vcpus: u32,
    /// Memory that Slurm gives to jobs, MB.
    pub memory_mb: u64,
    /// What an hour costs where the cloud does not say.
    pub price: Money,
    /// The most that is paid for an hour of a server; `None` accepts every market price.
    #[serde(default)]
    pub max_price: Option<Money>,
    /// The type is for bags by maps, and for nothing else: its preemptible servers may hibernate,
    /// its on-demand ones are backups.
    #[serde(default)]
    pub maps: bool,
    /// How long such servers live, as `ebbtide-lab plan --model` takes it; without it they are
    /// taken to last.
    #[serde(default)]
    pub model: Option<String>,
}

/// By which rule an aged server is kept for the next member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReuseRule {
    /// Expected running time until the member is done, restarts included.
    #[default]
    ExpectedTime,
    /// The bathtub paper's equation 8 as printed.
    Equation8,
    /// The chance to fail: the paper's example follows from this rule.
    Risk,
    /// Always: what a memoryless model advises.
    Always,
}

impl ReuseRule {
    /// The reading of the expected running time; `None` for the rules without one.
    #[must_use]
    pub fn reading(self) -> Option<RunningTime> {
        match self {
            Self::ExpectedTime => Some(RunningTime::UntilDone),
            Self::Equation8 => Some(RunningTime::Literal),
            Self::Risk | Self::Always => None,
        }
    }
}

/// By which rule a work of one member that can be saved changes between preemptible and on-demand
/// servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SingleRule {
    /// Ours: least expected cost under a model of availability that learns.
    #[default]
    Planned,
    /// *Can't Be Late*'s Uniform Progress, as its text has the rules.
    UniformProgress,
    /// The same, but an on-demand server is kept until a preemptible one can be had.
    UniformProgressKeep,
    /// Preemptible servers until time runs out.
    Greedy,
    /// The rule for all other works.
    Bound,
}

impl SingleRule {
    /// The policy; `None` for the rule of other works.
    #[must_use]
    pub fn policy(self) -> Option<PolicyKind> {
        match self {
            Self::Planned => Some(PolicyKind::Planned),
            Self::UniformProgress => Some(PolicyKind::UniformProgress),
            Self::UniformProgressKeep => Some(PolicyKind::UniformProgressKeep),
            Self::Greedy => Some(PolicyKind::Greedy),
            Self::Bound => None,
        }
    }
}

/// What decides which server a member gets, and limits that hold for all servers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BatchPolicy {
    /// When an aged server is kept.
    pub reuse: ReuseRule,
    /// How a work of one member that can be saved holds its deadline.
    pub single: SingleRule,
    /// How long an idle server is kept as a hot spare, seconds.
    pub spare_seconds: f64,
    /// How long a server takes until its node is up, until that was measured, seconds.
    pub boot_seconds: f64,
    /// A node that is not up by then is given up, seconds.
    pub launch_seconds: f64,
    /// Delay before the next launch after the cloud had no capacity, seconds.
    pub launch_again_seconds: f64,
    /// Maximum time for a member or a job to save its work, seconds.
    pub checkpoint_seconds: f64,
    /// Kept in reserve before a deadline, seconds.
    pub margin_seconds: f64,
    /// What the cloud bills at once, seconds: works with a bid look at the price near its end.
    pub hour_seconds: f64,
    /// How often the cloud is asked for prices, seconds.
    pub price_seconds: f64,
    /// From the end of a task to the begin of the next on the same processor at most, in a bag that
    /// is run by maps, seconds.
    pub lag_seconds: f64,
    /// How long a member of unknown length is taken to work, seconds.
    pub length_seconds: f64,
    /// By so much a member may take longer than expected without missing its deadline.
    pub length_reserve: f64,
    /// The most that may be spent on servers within `budget_hours`; `None` for no limit.
    pub budget: Option<Money>,
    /// Length of the budget's window, which ends now, hours.
    pub budget_hours: f64,
}

impl Default for BatchPolicy {
    fn default() -> Self {
        Self {
            reuse: ReuseRule::default(),
            single: SingleRule::default(),
            // The bathtub paper's hot spares: an hour (section 5).
            spare_seconds: 3_600.0,
            boot_seconds: 60.0,
            // An image that boots more slowly is considered broken.
            launch_seconds: 300.0,
            launch_again_seconds: 30.0,
            checkpoint_seconds: 20.0,
            margin_seconds: 30.0,
            hour_seconds: 3_600.0,
            price_seconds: 60.0,
            lag_seconds: 5.0,
            length_seconds: 3_600.0,
            length_reserve: 0.2,
            budget: None,
            budget_hours: 24.0,
        }
    }
}

fn poll() -> f64 {
    1.0
}

fn timeout() -> f64 {
    10.0
}

fn ebbtide() -> String {
    "ebbtide".to_owned()
}

/// A type of servers, checked.
#[derive(Debug, Clone)]
pub struct ServerType {
    pub name: String,
    pub nodes: Vec<String>,
    /// The flavor of its servers.
    pub flavor: String,
    /// Whether the provider may take them.
    pub preemptible: bool,
    /// Processors for jobs.
    pub vcpus: u32,
    /// Memory for jobs, MB.
    pub memory_mb: u64,
    /// What an hour costs where the cloud does not say, millionths.
    pub price: u64,
    /// The most that is paid for an hour.
    pub max_price: Option<Money>,
    /// Whether it is for bags by maps, and for nothing else.
    pub maps: bool,
    /// How long they live.
    pub model: Option<Arc<dyn Lifetime>>,
    /// The model as it was written, for `ebbtide run`.
    pub model_text: Option<String>,
}

/// What is wrong with the file of a program that is no more.
const OF_BURST: &str = "it is one of ebbtide-burst, which is a part of ebbtide-batch now: its keys stand in the table [elastic]; docs/tenants/burst.md says where each has gone";

/// Whether this is a file of `ebbtide-burst`.
fn is_of_burst(text: &str) -> bool {
    let Ok(file) = toml::from_str::<toml::Table>(text) else {
        return false;
    };
    let has = |table: &str, key: &str| file.get(table).is_some_and(|own| own.get(key).is_some());
    has("slurm", "nodes") || has("policy", "short_servers") || file.contains_key("age")
}

impl BatchSettings {
    /// Reads and checks the settings.
    ///
    /// # Errors
    /// [`BatchError::Setting`] for an unreadable or invalid value, with its key.
    pub fn parse(text: &str) -> Result<Self, BatchError> {
        Self::parse_with(text, |_| None)
    }

    /// The same with files that come from elsewhere, as the credentials of systemd: `file_of` has
    /// the file of a key, which then goes before the text's.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn parse_with(
        text: &str,
        file_of: impl Fn(&str) -> Option<PathBuf>,
    ) -> Result<Self, BatchError> {
        let mut settings: Self = toml::from_str(text).map_err(|error: toml::de::Error| {
            let problem = match is_of_burst(text) {
                true => OF_BURST.to_owned(),
                false => toml_text::problem(text, error.span(), error.message()),
            };
            BatchError::setting("the file", problem)
        })?;
        let replace = |key: &str, file: &mut Option<PathBuf>| {
            *file = file_of(key).or_else(|| file.take());
        };
        replace("token_file", &mut settings.token_file);
        if let Some(region) = &mut settings.region {
            replace("region.token_file", &mut region.token_file);
            replace("region.key", &mut region.key);
        }
        if let Some(openstack) = &mut settings.openstack {
            replace("openstack.clouds_file", &mut openstack.clouds_file);
        }
        settings.check()?;
        Ok(settings)
    }

    fn check(&self) -> Result<(), BatchError> {
        let policy = &self.policy;
        let times = [
            ("poll_seconds", self.poll_seconds, 0.05, 3_600.0),
            (
                "slurm.timeout_seconds",
                self.slurm.timeout_seconds,
                0.1,
                600.0,
            ),
            ("policy.spare_seconds", policy.spare_seconds, 0.0, 1e6),
            ("policy.boot_seconds", policy.boot_seconds, 0.0, 1e6),
            ("policy.launch_seconds", policy.launch_seconds, 1.0, 1e6),
            (
                "policy.launch_again_seconds",
                policy.launch_again_seconds,
                0.1,
                1e6,
            ),
            (
                "policy.checkpoint_seconds",
                policy.checkpoint_seconds,
                0.0,
                1e6,
            ),
            ("policy.margin_seconds", policy.margin_seconds, 0.0, 1e6),
            ("policy.hour_seconds", policy.hour_seconds, 1.0, 1e6),
            ("policy.price_seconds", policy.price_seconds, 0.1, 3_600.0),
            ("policy.lag_seconds", policy.lag_seconds, 0.0, 3_600.0),
            ("policy.length_seconds", policy.length_seconds, 1.0, 1e8),
            ("policy.length_reserve", policy.length_reserve, 0.0, 10.0),
            ("policy.budget_hours", policy.budget_hours, 0.01, 87_600.0),
        ];
        for (key, value, least, most) in times {
            if !(least..=most).contains(&value) {
                let problem = format!("it is {value}; it has to be {least} to {most}");
                return Err(BatchError::setting(key, problem));
            }
        }
        let last = 2.0 * policy.checkpoint_seconds + policy.margin_seconds;
        if policy.hour_seconds <= last {
            let problem = format!(
                "it is {}; it has to be more than {last}, which two checkpoints and margin_seconds take",
                policy.hour_seconds
            );
            return Err(BatchError::setting("policy.hour_seconds", problem));
        }
        if self.listen.strip_prefix("unix:").is_none_or(str::is_empty) {
            if self.listen.parse::<SocketAddr>().is_err() {
                let problem = "write unix:PATH or ADDRESS:PORT";
                return Err(BatchError::setting("listen", problem));
            }
            if self.token_file.is_none() {
                let problem =
                    "it is not there: over TCP every user of the machine could hand in work";
                return Err(BatchError::setting("token_file", problem));
            }
        }
        self.cloud()?;
        let types = self.server_types()?;
        let Some(elastic) = &self.elastic else {
            return Ok(());
        };
        elastic.check()?;
        if self.rehearse {
            let problem = "with rehearse no Slurm is asked, whose long jobs it needs to know";
            return Err(BatchError::setting("elastic", problem));
        }
        for node in elastic.group()?.nodes {
            if let Some(ty) = types.iter().find(|ty| ty.nodes.contains(&node)) {
                let problem = format!("{node} is a node of the type {}", ty.name);
                return Err(BatchError::setting("elastic.nodes", problem));
            }
        }
        Ok(())
    }

    /// The cloud of the servers.
    ///
    /// # Errors
    /// [`BatchError::Setting`] if none or two are given.
    pub fn cloud(&self) -> Result<CloudChoice<'_>, BatchError> {
        Ok(CloudChoice::of(
            self.region.as_ref(),
            self.openstack.as_ref(),
        )?)
    }

    /// The types of servers.
    ///
    /// # Errors
    /// [`BatchError::Setting`] with the key of what cannot be used.
    pub fn server_types(&self) -> Result<Vec<ServerType>, BatchError> {
        let mut all: Vec<ServerType> = Vec::new();
        for one in &self.types {
            let key = |key: &str| format!("types.{}.{key}", one.name);
            let nodes = node_names(&key("nodes"), &one.nodes)?;
            let taken = |node: &String| all.iter().any(|other| other.nodes.contains(node));
            if let Some(twice) = nodes.iter().find(|node| taken(node)) {
                let problem = format!("{twice} is a node of another type");
                return Err(BatchError::setting(key("nodes"), problem));
            }
            if all.iter().any(|other| other.name == one.name) {
                return Err(BatchError::setting(
                    key("name"),
                    "another type has this name",
                ));
            }
            if one.vcpus == 0 || one.memory_mb == 0 {
                return Err(BatchError::setting(
                    key("vcpus"),
                    "vcpus and memory_mb are above 0",
                ));
            }
            let refused = |error: ebbtide_lifetime::LifetimeError| {
                BatchError::setting(key("model"), error.to_string())
            };
            let model = match (&one.model, one.market) {
                (None, _) => None,
                (Some(_), MarketSetting::OnDemand) => {
                    let problem = "on-demand servers last";
                    return Err(BatchError::setting(key("model"), problem));
                }
                (Some(text), MarketSetting::Preemptible) => {
                    let description = Description::parse(text).map_err(refused)?;
                    Some(Arc::from(description.model().map_err(refused)?))
                }
            };
            all.push(ServerType {
                name: one.name.clone(),
                nodes,
                flavor: one.flavor.clone(),
                preemptible: one.market == MarketSetting::Preemptible,
                vcpus: one.vcpus,
                memory_mb: one.memory_mb,
                price: one.price.micros(),
                max_price: one.max_price,
                maps: one.maps,
                model,
                model_text: one.model.clone(),
            });
        }
        if all.is_empty() && self.elastic.is_none() {
            let problem = "there is none, and no elastic: nothing says which servers there are";
            return Err(BatchError::setting("types", problem));
        }
        Ok(all)
    }

    /// The nodes of each type and of the elastic partition.
    ///
    /// # Errors
    /// As [`Self::server_types`].
    pub fn groups(&self) -> Result<Vec<NodeGroup>, BatchError> {
        let types = self.server_types()?.into_iter();
        let group = |one: ServerType| NodeGroup {
            nodes: one.nodes,
            flavor: one.flavor,
            max_price: one.max_price,
            features: Vec::new(),
            weight: AgeSettings::default().weight,
        };
        let elastic = self.elastic.as_ref().map(ElasticSettings::group);
        Ok(types.map(group).chain(elastic.transpose()?).collect())
    }

    /// Times that hold for all nodes.
    #[must_use]
    pub fn node_times(&self) -> NodeTimes {
        NodeTimes {
            launch_seconds: self.policy.launch_seconds,
            launch_again_seconds: self.policy.launch_again_seconds,
            checkpoint_seconds: self.policy.checkpoint_seconds,
        }
    }

    /// What the manager of a type's nodes needs to know.
    ///
    /// # Errors
    /// [`BatchError::Setting`] for times that it refuses.
    pub fn manager_options(&self, one: &ServerType) -> Result<ManagerOptions, BatchError> {
        let refused = |error: ElasticError| BatchError::setting("policy", error.to_string());
        let policy = &self.policy;
        let us = |seconds: f64| millis(seconds).unsigned_abs() * 1_000;
        // N servers at a ratio and a share of 1: the target is what the load says, N at most.
        let elastic = ElasticPolicy::new(one.nodes.len() as u32, 1.0, 1.0)
            .and_then(|made| made.threshold(1.0))
            .and_then(|made| made.launch_timeout(us(policy.launch_seconds)))
            .map_err(refused)?;
        Ok(ManagerOptions {
            nodes: one.nodes.clone(),
            age: AgeSettings::default(),
            policy: elastic,
            checkpoint_ms: millis(policy.checkpoint_seconds),
            margin_ms: millis(policy.margin_seconds),
            launch_again_ms: millis(policy.launch_again_seconds),
            // Jobs of the service are never requeued, and others are not its business.
            releases: false,
        })
    }
}

/// Converts seconds to milliseconds.
pub(crate) fn millis(seconds: f64) -> i64 {
    (seconds * 1_000.0).round() as i64
}
