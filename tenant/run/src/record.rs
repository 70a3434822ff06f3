//! The part of a job's state that outlives the process.

use crate::{RunError, Span};
use serde::{Deserialize, Serialize};

/// Number of measured costs to keep: enough to smooth outliers, few enough to follow a trend.
const COSTS: usize = 5;

/// A complete checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    /// Its number.
    pub id: u64,
    /// The work that it contains, milliseconds.
    pub work: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstanceWork {
    /// The instance's age when the job arrived.
    pub age: Span,
    /// The work that the job had when it started there.
    pub from: Span,
    /// How long the process ran there, checkpoints included.
    pub lasted: Span,
    /// The part of it spent on starting or restoring.
    pub restoring: Span,
    /// The part of it spent on writing checkpoints.
    pub saving: Span,
    /// The work that the job reached there.
    pub reached: Span,
    /// How it ended.
    pub end: WorkEnd,
}

/// How the work on an instance ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkEnd {
    /// The life continues. In the record of a run that has ended: the process was lost before it
    /// recorded an end.
    Open,
    /// The provider took the instance.
    Interrupted,
    /// The process was ended because of a notice, and the instance stayed after all.
    Stayed,
    /// The user stopped it.
    Stopped,
    /// The process ended by itself.
    Exited,
}

impl InstanceWork {
    /// True if the provider ended it.
    #[must_use]
    pub fn interrupted(&self) -> bool {
        self.end == WorkEnd::Interrupted
    }
}

/// The account of a job over all its instances. Times are milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRecord {
    /// Complete checkpoints, oldest first.
    pub checkpoints: Vec<Checkpoint>,
    /// The highest number of any checkpoint, complete or not.
    pub numbered: u64,
    /// The work on each instance.
    pub lives: Vec<InstanceWork>,
    /// Durations of the last checkpoints, oldest first.
    pub costs: Vec<Span>,
    /// Durations of the last restarts.
    pub restarts: Vec<Span>,
    /// Number of completed checkpoints.
    pub saved: u64,
    /// Number of failed or aborted checkpoints.
    pub failed: u64,
    /// Work that was done and has to be done again.
    pub lost: Span,
    /// The exit code, once the job has ended by itself.
    pub exit: Option<u8>,
}

impl RunRecord {
    /// Reads a record and checks it.
    ///
    /// # Errors
    /// [`RunError::Record`].
    pub fn parse(text: &str) -> Result<Self, RunError> {
        let problem = |problem: String| RunError::Record { problem };
        let record: Self = serde_json::from_str(text).map_err(|e| problem(e.to_string()))?;
        record.checked()
    }

    /// The record, if its invariants hold.
    pub(crate) fn checked(self) -> Result<Self, RunError> {
        let problem = |problem: &str| RunError::Record {
            problem: problem.to_owned(),
        };
        self.check().map_err(problem)?;
        Ok(self)
    }

    /// Checks the invariants of a record.
    fn check(&self) -> Result<(), &'static str> {
        let mut numbers = self.checkpoints.iter().map(|c| c.id);
        if !numbers.clone().is_sorted_by(|a, b| a < b) {
            return Err("checkpoints are not numbered upwards");
        }
        if numbers.next_back().is_some_and(|last| last > self.numbered) {
            return Err("a checkpoint has a number that was never given");
        }
        let ended = self.saved.checked_add(self.failed);
        if self.numbered > u64::from(u32::MAX) || ended.is_none_or(|ended| ended > self.numbered) {
            return Err(
                "more checkpoints ended than were ever numbered, or more were numbered than can be",
            );
        }
        if self.costs.len() > COSTS || self.restarts.len() > COSTS {
            return Err("there are more measured costs than are ever kept");
        }
        if self.lives.iter().any(|life| life.reached < life.from) {
            return Err("a life has less work at its end than at its beginning");
        }
        Ok(())
    }

    #[must_use]
    pub fn newest(&self) -> Option<Checkpoint> {
        self.checkpoints.last().copied()
    }

    /// The work at the last known moment.
    #[must_use]
    pub fn reached(&self) -> Span {
        self.lives.last().map_or(Span::ZERO, |life| life.reached)
    }

    /// Expected duration of a checkpoint, for plans: the mean of the last ones.
    #[must_use]
    pub fn cost(&self) -> Option<Span> {
        mean(&self.costs)
    }

    /// Duration of a checkpoint with a safety margin, for deadlines: the longest of the last ones
    /// plus a quarter.
    #[must_use]
    pub fn safe_cost(&self) -> Option<Span> {
        self.costs.iter().max().map(|cost| cost.percent(125))
    }

    /// Expected duration of a restart, for plans.
    #[must_use]
    pub fn restart(&self) -> Option<Span> {
        mean(&self.restarts)
    }

    pub(crate) fn measured(costs: &mut Vec<Span>, cost: Span) {
        if costs.len() == COSTS {
            costs.remove(0);
        }
        costs.push(cost);
    }
}

fn mean(costs: &[Span]) -> Option<Span> {
    let count = u64::try_from(costs.len()).ok().filter(|n| *n > 0)?;
    let sum = costs.iter().fold(Span::ZERO, |sum, cost| sum.plus(*cost));
    Some(Span(sum.0 / count))
}
