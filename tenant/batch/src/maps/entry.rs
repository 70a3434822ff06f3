//! What is written down of a bag: one line of JSON for each fact.

use crate::error::BatchError;
use ebbtide_bag::VmId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A line of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BagEntry {
    /// When it was noticed, milliseconds since 1970.
    pub at: i64,
    /// What happened.
    #[serde(flatten)]
    pub fact: BagFact,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum BagFact {
    /// The bag begins: what was handed in with all that its plan depends on, and the maps.
    Begun {
        /// As [`super::settle`] made it.
        document: Value,
        /// For people, and to notice a program that plans in another way.
        maps: Value,
    },
    /// A server is up and takes tasks.
    Started {
        /// Which.
        vm: VmId,
    },
    /// A server is frozen.
    Hibernated {
        /// Which.
        vm: VmId,
    },
    /// A frozen server goes on.
    Resumed {
        /// Which.
        vm: VmId,
    },
    /// A server is gone.
    Interrupted {
        /// Which.
        vm: VmId,
    },
    /// A task is done.
    Finished {
        /// Its place in the bag.
        task: usize,
        /// Where.
        vm: VmId,
    },
    /// The latest start of a backup.
    Time,
    /// An attempt at a task is about to start. It stands here before Slurm knows of it.
    Attempt {
        /// The task.
        task: usize,
        /// Where.
        vm: VmId,
        /// Its number among the task's attempts, from 1.
        number: u32,
    },
    /// An attempt is over, and its task was not done by it.
    AttemptEnded {
        /// The task.
        task: usize,
        /// Number of the attempt.
        number: u32,
        /// Its exit code, if it failed by itself.
        exit: Option<i32>,
    },
    /// The tenant has given the bag up.
    Cancelled,
    /// Nothing more runs: all tasks are done, one failed for good, or the bag was given up.
    Over,
    /// All servers were given back: the next bag may begin.
    GivenBack,
}

/// The entries of the newest bag of a journal, beginning with [`BagFact::Begun`]; none if all bags
/// have given their servers back.
///
/// # Errors
/// [`BatchError::Book`] for a line that cannot be used.
pub fn unfinished(text: &str) -> Result<Vec<BagEntry>, BatchError> {
    let mut newest = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let wrong = |problem: String| BatchError::Book {
            line: at + 1,
            problem,
        };
        let entry: BagEntry = serde_json::from_str(line).map_err(|e| wrong(e.to_string()))?;
        match (&entry.fact, newest.is_empty()) {
            (BagFact::Begun { .. }, _) => newest = vec![entry],
            (BagFact::GivenBack, _) => newest.clear(),
            (_, true) => return Err(wrong("no bag has begun before it".to_owned())),
            (_, false) => newest.push(entry),
        }
    }
    Ok(newest)
}
