//! Input and output of the controller.

use crate::book::WorkId;
use crate::work::MemberId;
use ebbtide_burst::ClusterSnapshot;
use ebbtide_burst::slurm::{Node, SlurmJob};
use std::collections::BTreeMap;

/// What an attempt left in the work's directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AttemptResult {
    /// The exit code of its script; `None` if it did not come that far.
    pub exit: Option<i32>,
    /// Work of the member that is saved, milliseconds.
    pub saved: i64,
    /// Number of the member's newest complete checkpoint; 0 for none.
    pub checkpoint: u64,
}

/// Whether a member is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// No attempt has finished it.
    None,
    /// This attempt has.
    DoneBy(u32),
    /// The work's directory cannot be read: nothing is started, and nothing is taken for ended.
    Unknown,
}

/// All that is looked at.
#[derive(Clone, Copy)]
pub struct BatchWorld<'a> {
    /// Slurm, the pool's servers, and whether no more may be spent.
    pub burst: ClusterSnapshot<'a>,
    /// What an hour of each flavor costs now, millionths.
    pub prices: &'a BTreeMap<String, u64>,
    /// When the cloud was last asked for them and answered, milliseconds.
    pub prices_at: i64,
    /// What the present hour of a node's server costs, millionths, and since when it lasts,
    /// milliseconds; `None` if that is not known.
    pub paid: &'a dyn Fn(&str) -> Option<(i64, u64)>,
    /// Whether a member is done, by its mark.
    pub mark: &'a dyn Fn(WorkId, MemberId) -> Mark,
    /// What an attempt left.
    pub result: &'a dyn Fn(WorkId, MemberId, u32) -> AttemptResult,
}

impl std::fmt::Debug for BatchWorld<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BatchWorld")
            .field("burst", &self.burst)
            .field("prices", &self.prices)
            .finish_non_exhaustive()
    }
}

impl<'a> BatchWorld<'a> {
    #[must_use]
    pub fn node(&self, name: &str) -> Option<&'a Node> {
        self.burst.nodes.iter().find(|node| node.name == name)
    }

    /// Slurm's job of an attempt: the newest with its name.
    #[must_use]
    pub fn job(&self, name: &str) -> Option<&'a SlurmJob> {
        let named = self.burst.jobs.iter().filter(|job| job.name == name);
        named.max_by_key(|job| job.id)
    }
}

/// The name of an attempt's job: `ebbtide-WORK.STAGE.INDEX.ATTEMPT`, all of them numbers.
#[must_use]
pub fn job_name(work: WorkId, member: MemberId, attempt: u32) -> String {
    format!("{PREFIX}{work}.{}.{}.{attempt}", member.stage, member.index)
}

/// What the names of the service's jobs begin with.
const PREFIX: &str = "ebbtide-";

/// The attempt that a job's name means; `None` for other jobs.
#[must_use]
pub fn attempt_of(name: &str) -> Option<(WorkId, MemberId, u32)> {
    let mut parts = name.strip_prefix(PREFIX)?.split('.');
    let mut next = || parts.next()?.parse::<u64>().ok();
    let (work, stage, index, attempt) = (next()?, next()?, next()?, next()?);
    let member = MemberId {
        stage: usize::try_from(stage).ok()?,
        index: usize::try_from(index).ok()?,
    };
    Some((work, member, u32::try_from(attempt).ok()?))
}

/// What is to be done with jobs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum BatchAction {
    /// Submit the job of an attempt to its node.
    Start {
        work: WorkId,
        member: MemberId,
        /// Number of the attempt.
        attempt: u32,
        node: String,
        /// The age of the node's server, milliseconds.
        age: i64,
        /// How much work is expected to be left, milliseconds.
        length: i64,
    },
    /// Tell an attempt to save its work and end.
    Save {
        /// Slurm's number.
        job: u32,
    },
    /// Tell an attempt to save its work and go on.
    Checkpoint {
        /// Slurm's number.
        job: u32,
    },
    /// End a job at once.
    Stop {
        /// Slurm's number.
        job: u32,
    },
}
