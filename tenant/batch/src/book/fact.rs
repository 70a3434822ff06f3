//! What the book has: one line of JSON for each fact.

use crate::work::MemberId;
use ebbtide_bag::BagEvent;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Number of a work, counted from 1.
pub type WorkId = u64;

/// A line of the book.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BookEntry {
    /// When the service noticed it, milliseconds since 1970.
    pub at: i64,
    /// The work that it is about.
    pub work: WorkId,
    /// What happened.
    #[serde(flatten)]
    pub fact: Fact,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Fact {
    /// The work was handed in.
    Submitted {
        /// As it was handed in; of a bag by maps with its plan.
        document: Value,
    },
    /// The service is about to start an attempt. It stands here before Slurm knows of it.
    Started {
        /// Place of the stage.
        stage: usize,
        /// Place in the stage.
        index: usize,
        /// Number of the attempt, from 1.
        attempt: u32,
        node: String,
        /// The type of the node's server.
        server_type: String,
        /// Whether the provider may take the server.
        preemptible: bool,
        /// What an hour of the server costs, millionths.
        hourly: u64,
        /// The part of the server that the attempt has.
        share: f64,
        /// Work that was saved before and need not be done again, milliseconds.
        from: i64,
    },
    /// Slurm has started an attempt.
    Running {
        /// Place of the stage.
        stage: usize,
        /// Place in the stage.
        index: usize,
        /// Number of the attempt.
        attempt: u32,
        /// When, milliseconds since 1970.
        since: i64,
    },
    /// A new hour of an attempt's server costs something else than the one before.
    Price {
        /// Place of the stage.
        stage: usize,
        /// Place in the stage.
        index: usize,
        /// Number of the attempt.
        attempt: u32,
        /// When that hour began, milliseconds since 1970.
        since: i64,
        /// What it costs, millionths.
        hourly: u64,
    },
    /// An attempt is over.
    Ended {
        /// Place of the stage.
        stage: usize,
        /// Place in the stage.
        index: usize,
        /// Number of the attempt.
        attempt: u32,
        /// When, milliseconds since 1970.
        end: i64,
        how: AttemptEnd,
        /// Work of the member that is saved now, milliseconds.
        saved: i64,
    },
    /// The price was looked at near the end of a paid hour of an attempt's server, and the attempt
    /// saves its work or is let go.
    Bid {
        /// Place of the stage.
        stage: usize,
        /// Place in the stage.
        index: usize,
        /// Number of the attempt.
        attempt: u32,
        /// What was decided.
        decision: BidDecision,
        /// What an hour cost, millionths; `None` if the cloud did not say.
        price: Option<u64>,
        /// Number of the newest checkpoint that was complete then; 0 for none.
        checkpoint: u64,
    },
    /// What the executor of a bag by maps was told.
    Bag {
        /// What happened.
        what: BagEvent,
    },
    /// The tenant has cancelled the work.
    Cancelled,
    /// The tenant has changed what may be spent on the work.
    BudgetSet {
        /// Millionths; `None` for no limit.
        budget: Option<u64>,
    },
}

impl Fact {
    /// The member that the fact is about.
    #[must_use]
    pub fn member(&self) -> Option<MemberId> {
        match self {
            Self::Started { stage, index, .. }
            | Self::Running { stage, index, .. }
            | Self::Price { stage, index, .. }
            | Self::Ended { stage, index, .. }
            | Self::Bid { stage, index, .. } => Some(MemberId {
                stage: *stage,
                index: *index,
            }),
            Self::Submitted { .. }
            | Self::Bag { .. }
            | Self::Cancelled
            | Self::BudgetSet { .. } => None,
        }
    }
}

/// What follows from a price above the bid of a work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BidDecision {
    /// E_ckpt: the attempt saves its work, and goes on.
    Checkpoint,
    /// E_terminate: the attempt ends, and the server with it unless others need it.
    LetGo,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptEnd {
    /// The member is done.
    Done,
    /// The command failed by itself.
    Failed {
        /// Its exit code.
        exit: i32,
    },
    /// The attempt saved its work and made room.
    PutBack,
    /// Its server went, or Slurm lost it.
    Lost,
    /// The service stopped it: the member is done elsewhere, cancelled, or moved.
    Stopped,
    /// Slurm never started it.
    NeverStarted,
}
