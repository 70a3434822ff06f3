//! What a decision knows, and what it says.

use crate::DeadlineJob;

/// The server that the job has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum JobServer {
    /// No server.
    #[default]
    Nothing,
    /// A preemptible server; `starting` seconds of its changeover are still to come.
    Spot {
        /// Seconds until the job makes progress on it.
        starting: u64,
    },
    /// An on-demand server; `starting` as above.
    OnDemand {
        /// Seconds until the job makes progress on it.
        starting: u64,
    },
}

/// What the caller knows when it asks for a decision. A server that was lost is not held any more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JobFacts {
    /// Seconds since the start of the job's life.
    pub now: u64,
    /// Seconds of work that are done and need not be done again.
    pub done: u64,
    pub held: JobServer,
    /// A preemptible server could be had now, or is held.
    pub spot_available: bool,
}

/// What to do until the next decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Decision {
    /// Hold no server.
    Wait,
    /// Hold a preemptible server: keep it, or start one.
    Spot,
    /// Hold an on-demand server: keep it, or start one.
    OnDemand,
}

impl JobFacts {
    /// Seconds of work that are left.
    #[must_use]
    pub fn work_left(&self, job: &DeadlineJob) -> u64 {
        job.terms().work.saturating_sub(self.done)
    }

    /// Seconds that can be spent without progress before the deadline is lost; negative when it is.
    #[must_use]
    pub fn slack(&self, job: &DeadlineJob) -> i64 {
        let left = self.now + self.work_left(job);
        signed(job.terms().deadline) - signed(left)
    }

    #[must_use]
    pub fn is_done(&self, job: &DeadlineJob) -> bool {
        self.work_left(job) == 0
    }
}

/// Seconds as a signed number; [`crate::LONGEST_SECONDS`] is far below its limit.
pub(crate) fn signed(seconds: u64) -> i64 {
    i64::try_from(seconds).unwrap_or(i64::MAX)
}
