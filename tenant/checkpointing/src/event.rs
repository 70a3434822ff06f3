//! The events of the ACC paper.

use crate::bid_lifetimes::BidLifetimes;
use crate::run::{CheckpointedJob, Market, run};
use crate::schemes::Acc;
use crate::terms::CheckpointTerms;

/// What happens to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// E_ckpt: a checkpoint begins.
    Checkpoint,
    /// E_terminate: the user ends the instance.
    Terminate,
    /// E_launch: an instance is launched again.
    Launch,
}

impl EventKind {
    /// Its name in the paper.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Checkpoint => "E_ckpt",
            Self::Terminate => "E_terminate",
            Self::Launch => "E_launch",
        }
    }
}

/// An event with its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    pub kind: EventKind,
    /// When, seconds.
    pub at: i64,
}

/// The events of ACC on an endless job from `launch` to the end of the history.
#[must_use]
pub fn events(market: &Market<'_>, terms: &CheckpointTerms, launch: i64) -> Vec<Event> {
    let job = CheckpointedJob {
        // Never done, and far from where sums would overflow.
        work_seconds: i64::MAX / 4,
        start: launch,
    };
    run(market, &Acc, terms, &BidLifetimes::default(), job).events
}
