//! What is simulated: the cluster, how its short partition is made up, and the seed.

use crate::error::ElasticError;
use crate::policy::{ElasticPolicy, MOST_SERVERS, PROVISIONING_US, duration};
use ebbtide_lifetime::Lifetime;
use std::sync::Arc;

/// The shortest provisioning delay where servers are interrupted, microseconds: one that dies at
/// once and is replaced at once would be replaced for ever.
const QUICKEST_US: u64 = 1_000_000;

/// How short tasks wait for servers, and what happens to those of a preemptible server that is
/// taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Recovery {
    /// Probes as Eagle sends them, and a copy of each task on an on-demand server: the paper's.
    #[default]
    Copies,
    /// Probes without copies: what waited or ran on the server is sent to another one.
    Resend,
    /// One queue for all servers, as a batch system has it: a task that was lost returns to its
    /// place there.
    Requeue,
    /// The same, but a task that was lost goes to the end.
    RequeueLast,
}

impl Recovery {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Copies, Self::Resend, Self::Requeue, Self::RequeueLast];

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Copies => "copies",
            Self::Resend => "resend",
            Self::Requeue => "requeue",
            Self::RequeueLast => "requeue-last",
        }
    }

    /// Whether all servers have one queue.
    #[must_use]
    pub fn shares_queue(self) -> bool {
        matches!(self, Self::Requeue | Self::RequeueLast)
    }
}

/// A cluster in the manner of Eagle (Delgado et al., *Job-aware scheduling in Eagle*, SoCC 2016).
/// Each server runs one task at a time.
#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    /// All on-demand servers, those for short jobs only among them.
    pub servers: u32,
    /// N: on-demand servers that run short jobs only.
    pub short_only: u32,
    /// Jobs whose tasks take longer than this in the mean are long, microseconds.
    pub cutoff_us: u64,
    /// Probes for each task of a short job.
    pub probe_ratio: u32,
    /// The fewest probes for a short job.
    pub min_probes: u32,
    /// Time that a message takes, one way, microseconds.
    pub network_us: u64,
    /// How often a probe may be overtaken by jobs with less left to do.
    pub srpt_cap: u32,
    /// Durations are cut to whole seconds, as Eagle's simulator does; tasks below one second take
    /// no time then.
    pub whole_seconds: bool,
    /// How short tasks wait, and what becomes of those of a server that is taken.
    pub recovery: Recovery,
}

impl Default for Cluster {
    /// The paper's section 4.1, which takes Eagle's settings for the Yahoo trace; but durations as
    /// they are.
    fn default() -> Self {
        Self {
            servers: 4_000,
            short_only: 80,
            cutoff_us: 90_581_100,
            probe_ratio: 2,
            min_probes: 20,
            network_us: 500,
            srpt_cap: 5,
            whole_seconds: false,
            recovery: Recovery::Copies,
        }
    }
}

impl Cluster {
    /// Refuses what no cluster can be.
    ///
    /// # Errors
    /// [`ElasticError::Setting`].
    pub fn checked(&self) -> Result<(), ElasticError> {
        let refuse = |what, value: u32, allowed| Err(ElasticError::setting(what, value, allowed));
        if !(1..=MOST_SERVERS).contains(&self.servers) {
            return refuse("the number of servers", self.servers, "1 to a million");
        }
        if !(1..=self.servers).contains(&self.short_only) {
            return refuse(
                "the number of servers for short jobs only",
                self.short_only,
                "1 to the number of servers",
            );
        }
        if !(1..=100).contains(&self.probe_ratio) {
            return refuse(
                "the number of probes for a task",
                self.probe_ratio,
                "1 to 100",
            );
        }
        if self.min_probes > 10_000 {
            return refuse(
                "the least number of probes",
                self.min_probes,
                "at most 10000",
            );
        }
        duration("the cutoff between short and long jobs", self.cutoff_us)?;
        duration("the time that a message takes", self.network_us)?;
        Ok(())
    }

    pub(crate) fn task_us(&self, us: u64) -> u64 {
        if self.whole_seconds {
            us - us % 1_000_000
        } else {
            us
        }
    }
}

/// Preemptible servers of an elastic partition, and how they come and go.
#[derive(Debug, Clone)]
pub struct Elastic {
    /// How many there are when.
    pub policy: ElasticPolicy,
    /// From the request until a server takes tasks, microseconds.
    pub provisioning_us: u64,
    /// How long they live once they are up; none: until they are released.
    pub lifetime: Option<Arc<dyn Lifetime>>,
    /// How long before its end a server is told of it, microseconds; 0 for never.
    pub notice_us: u64,
    /// Lives are this much as long as the model says: 0.5 is twice the interruptions.
    pub life_scale: f64,
    /// All that are up are taken at once each time this has passed, from the first arrival on,
    /// microseconds; 0 for never.
    pub outage_us: u64,
}

impl Elastic {
    /// The paper's setup: 120 s of provisioning and no interruptions.
    #[must_use]
    pub fn new(policy: ElasticPolicy) -> Self {
        Self {
            policy,
            provisioning_us: PROVISIONING_US,
            lifetime: None,
            notice_us: 0,
            life_scale: 1.0,
            outage_us: 0,
        }
    }
}

/// A simulation.
#[derive(Debug, Clone)]
pub struct Setup {
    pub cluster: Cluster,
    /// Its preemptible servers; none for the static partition.
    pub elastic: Option<Elastic>,
    /// Where probes go, and how long servers live.
    pub seed: u64,
}

impl Setup {
    /// Refuses what cannot be simulated.
    ///
    /// # Errors
    /// [`ElasticError::Setting`].
    pub fn checked(&self) -> Result<(), ElasticError> {
        self.cluster.checked()?;
        let Some(elastic) = &self.elastic else {
            return Ok(());
        };
        if elastic.policy.short_only() != self.cluster.short_only {
            return Err(ElasticError::setting(
                "N of the policy",
                elastic.policy.short_only(),
                "the number of servers for short jobs only of the cluster",
            ));
        }
        duration("the provisioning delay", elastic.provisioning_us)?;
        duration("the notice of an interruption", elastic.notice_us)?;
        duration("the time between outages", elastic.outage_us)?;
        if elastic.outage_us > 0 && elastic.outage_us < QUICKEST_US {
            let value = format!("{} µs", elastic.outage_us);
            let allowed = "0 for never, else a second or more";
            return Err(ElasticError::setting(
                "the time between outages",
                value,
                allowed,
            ));
        }
        let taken = elastic.lifetime.is_some() || elastic.outage_us > 0;
        if taken && elastic.provisioning_us < QUICKEST_US {
            let value = format!("{} µs", elastic.provisioning_us);
            let allowed = "a second or more where servers are interrupted and replaced";
            return Err(ElasticError::setting(
                "the provisioning delay",
                value,
                allowed,
            ));
        }
        if !(elastic.life_scale > 0.0 && elastic.life_scale <= 1e6) {
            return Err(ElasticError::setting(
                "the scale of lives",
                elastic.life_scale,
                "above 0 and at most a million",
            ));
        }
        Ok(())
    }

    /// On-demand servers for short jobs only.
    pub(crate) fn short_on_demand(&self) -> u32 {
        match &self.elastic {
            Some(elastic) => elastic.policy.on_demand(),
            None => self.cluster.short_only,
        }
    }

    /// Servers that long jobs may use.
    pub(crate) fn general(&self) -> u32 {
        self.cluster.servers - self.cluster.short_only
    }
}
