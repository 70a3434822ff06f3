//! Input and output of the controller.

use crate::reuse_policy::Label;
use crate::slurm::{Node, SlurmJob};

/// State of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Requested, not running yet.
    Coming,
    /// Running.
    Active,
    /// Running, and has notice.
    Leaving,
    /// Frozen or stopped by the provider: of no use to the cluster.
    Kept,
    /// Being deleted.
    Going,
    /// The cloud could not start it, or had no capacity.
    Failed,
    Gone,
}

impl Status {
    /// Whether a node runs on it, now or soon.
    #[must_use]
    pub fn is_there(self) -> bool {
        matches!(self, Self::Coming | Self::Active | Self::Leaving)
    }
}

/// A server of the pool, as the cloud reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolServer {
    pub id: String,
    /// When it was asked for, milliseconds; of two servers of a node the older one counts.
    pub created_ms: i64,
    pub node: String,
    /// Its state.
    pub status: Status,
    /// Since when it runs, milliseconds.
    pub launched_ms: Option<i64>,
    /// Until when it runs at most, once it has notice, milliseconds.
    pub deadline_ms: Option<i64>,
    /// When it ended, milliseconds.
    pub ended_ms: Option<i64>,
    /// True if the provider took it.
    pub taken: bool,
    /// Why, in the cloud's words.
    pub reason: String,
}

impl PoolServer {
    /// Orders servers by age, the oldest first.
    #[must_use]
    pub fn age_key(&self) -> (i64, &str) {
        (self.created_ms, &self.id)
    }
}

/// What Slurm and the cloud look like at one moment.
#[derive(Debug, Clone, Copy)]
pub struct ClusterSnapshot<'a> {
    /// Slurm's nodes.
    pub nodes: &'a [Node],
    /// Slurm's jobs.
    pub jobs: &'a [SlurmJob],
    /// The pool: the cloud's servers for this cluster.
    pub instances: &'a [PoolServer],
    /// Whether no more may be spent.
    pub budget_used_up: bool,
    /// Nodes that are not released, however many there are.
    pub kept: &'a [String],
}

impl<'a> ClusterSnapshot<'a> {
    /// The instance of a node: the oldest that is there, else one that still has to be dealt with.
    #[must_use]
    pub fn instance(&self, node: &str) -> Option<&'a PoolServer> {
        let own = self.instances.iter().filter(|one| one.node == node);
        own.filter(|one| one.status != Status::Gone)
            .min_by_key(|one| (!one.status.is_there(), one.age_key()))
    }

    /// The jobs that hold something on a node.
    pub fn jobs_on<'b>(&self, node: &'b str) -> impl Iterator<Item = &'a SlurmJob> + use<'a, 'b> {
        self.jobs.iter().filter(move |job| job.is_on(node))
    }

    /// How much a node has to do: the processors of its jobs.
    #[must_use]
    pub fn work_on(&self, node: &str) -> u64 {
        self.jobs_on(node).map(|job| u64::from(job.cpus)).sum()
    }

    /// By what nodes are released, the least first: their work. Those that are kept have
    /// [`u64::MAX`].
    #[must_use]
    pub fn worth_of(&self, node: &str) -> u64 {
        if self.kept.iter().any(|one| one == node) {
            return u64::MAX;
        }
        self.work_on(node)
    }
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum BurstAction {
    /// Let Slurm start a node: it calls its resume program.
    PowerUp { node: String },
    /// Let a node take jobs.
    Open { node: String },
    /// Let a node take no new jobs.
    Drain { node: String, reason: String },
    /// Keep a node that is away from being started for jobs that wait.
    Rest { node: String },
    /// Tell Slurm that a node does not exist any more: its jobs go back into the queue at once.
    Down { node: String, reason: String },
    /// Let Slurm give a node back: it calls its suspend program.
    PowerDown { node: String },
    /// Delete an instance in the cloud.
    Delete {
        /// Its id.
        instance: String,
    },
    /// Tell a job's batch script to save its work.
    Signal {
        /// Slurm's number.
        job: u32,
    },
    /// Put a job that has not ended back into the queue.
    Requeue {
        /// Slurm's number.
        job: u32,
    },
    /// Let a job that waits be started at once.
    StartNow {
        /// Slurm's number.
        job: u32,
    },
    /// Give a job that lost its node the priority that it would have if it had waited.
    KeepPlace {
        /// As `scontrol update` calls it.
        job: String,
        /// What is subtracted from its priority.
        nice: i32,
    },
    /// Release a job that Slurm holds because its launch failed.
    Release {
        /// Slurm's number.
        job: u32,
    },
    /// Tell Slurm what a node is like.
    Label {
        node: String,
        /// What it is like.
        label: Label,
    },
}
