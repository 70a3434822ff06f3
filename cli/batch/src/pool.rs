//! What the service and the programs that slurmctld calls need to know of the pool of servers,
//! whatever decides how many there are.

use crate::journal;
use ebbtide_batch::{BatchError, BatchSettings};
use ebbtide_burst::{BurstError, CloudChoice, NodeGroup};
use ebbtide_model::Money;
use ebbtide_runtime::clock::unix_millis;
use ebbtide_server_pool::ServerPool;
use ebbtide_shell::errors::CliError;
use ebbtide_slurm::Slurm;
use std::path::PathBuf;
use std::time::Duration;

/// A pool of servers.
#[derive(Debug, Clone)]
pub struct PoolOptions<'a> {
    /// Directory of the record.
    pub state_dir: PathBuf,
    /// The cluster.
    pub slurm: Slurm,
    /// The cloud of the servers.
    pub cloud: CloudChoice<'a>,
    /// The nodes and the flavors of their servers.
    pub groups: Vec<NodeGroup>,
    /// A node that is not up by then is given up, seconds.
    pub launch_seconds: f64,
    /// The time that the cloud bills at once, milliseconds: the price of its begin counts.
    pub hour: i64,
    /// The most that may be spent, and the hours, back from now, in which that is counted.
    pub budget: Option<(Money, f64)>,
}

impl<'a> PoolOptions<'a> {
    /// The pool of these settings.
    ///
    /// # Errors
    /// [`ebbtide_batch::BatchError::Setting`].
    pub fn new(settings: &'a BatchSettings) -> Result<Self, BatchError> {
        let (cluster, policy) = (&settings.slurm, &settings.policy);
        Ok(Self {
            state_dir: settings.state_dir.clone(),
            slurm: Slurm {
                conf: cluster.conf.clone(),
                bin_dir: cluster.bin_dir.clone(),
                timeout: Duration::from_secs_f64(cluster.timeout_seconds),
            },
            cloud: settings.cloud()?,
            groups: settings.groups()?,
            launch_seconds: policy.launch_seconds,
            hour: (policy.hour_seconds * 1_000.0) as i64,
            budget: policy.budget.map(|budget| (budget, policy.budget_hours)),
        })
    }

    /// All nodes.
    #[must_use]
    pub fn nodes(&self) -> Vec<String> {
        let all = self.groups.iter().flat_map(|group| group.nodes.iter());
        all.cloned().collect()
    }

    /// Connects to the cloud.
    ///
    /// # Errors
    /// As [`ServerPool::connect`].
    pub async fn connect(&self) -> Result<ServerPool, CliError> {
        ServerPool::connect(self.cloud, self.groups.clone()).await
    }

    /// What the budget says now: an error if it is used up.
    ///
    /// # Errors
    /// [`BurstError::Budget`].
    pub fn within_budget(
        &self,
        record: &ebbtide_burst::BurstRecord,
        now: i64,
    ) -> Result<(), BurstError> {
        let Some((budget, hours)) = self.budget else {
            return Ok(());
        };
        let from = now - (hours * 3_600_000.0) as i64;
        let spent = record.spent(from, now);
        if spent < budget.micros() {
            return Ok(());
        }
        Err(BurstError::Budget {
            spent: Money::from_micros(spent).to_string(),
            budget: budget.to_string(),
            hours: hours.to_string(),
        })
    }

    /// The same by the record on disk.
    ///
    /// # Errors
    /// [`BurstError::Budget`]; as [`journal::read`].
    pub fn budget_on_disk(&self) -> Result<(), BurstError> {
        self.within_budget(&journal::read(&self.state_dir)?, unix_millis())
    }
}

/// The cloud answers within this time, or is taken to be away.
const CLOUD: Duration = Duration::from_secs(20);

/// Waits for a cloud, but not for ever: one that does not answer must not stop a program.
///
/// # Errors
/// [`BurstError::Silent`]; the call's.
pub async fn within<T>(call: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    match tokio::time::timeout(CLOUD, call).await {
        Ok(answer) => answer,
        Err(_) => Err(BurstError::Silent {
            program: "the cloud".to_owned(),
            problem: format!("no answer after {} s", CLOUD.as_secs()),
        }
        .into()),
    }
}
