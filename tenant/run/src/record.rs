//! What outlives the process that runs a job.

use crate::{RunError, Span};
use serde::{Deserialize, Serialize};

/// How many measured costs are kept: enough to see a trend, few enough to follow it.
const COSTS: usize = 5;

/// A complete checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    /// Its number.
    pub id: u64,
    /// The work that is in it, milliseconds.
    pub work: Span,
}

/// What became of the work on one instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Life {
    /// The instance's age when the job came to it.
    pub age: Span,
    /// The work that the job had when it began there.
    pub from: Span,
    /// How long the process was there, checkpoints included, until it was ended or ended by itself.
    pub lasted: Span,
    /// Of this how long it took to start or restore it.
    pub restoring: Span,
    /// Of this the time in which checkpoints were written.
    pub saving: Span,
    /// The work that the job had reached there.
    pub reached: Span,
    /// How it ended.
    pub end: End,
}

/// How the work on an instance ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// It goes on. In the record of a run that has ended: nobody was there any more to write down how.
    Open,
    /// The provider took the instance.
    Interrupted,
    /// The process was ended because of a notice, and then the instance stayed.
    Stayed,
    /// The user stopped it.
    Stopped,
    /// The process ended by itself.
    Exited,
}

impl Life {
    /// True if the provider ended it.
    #[must_use]
    pub fn interrupted(&self) -> bool {
        self.end == End::Interrupted
    }
}

/// The account of a job over all its instances. Times are milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Complete checkpoints, oldest first.
    pub checkpoints: Vec<Checkpoint>,
    /// The highest number that a checkpoint ever had, complete or not.
    pub numbered: u64,
    /// What became of each instance.
    pub lives: Vec<Life>,
    /// What the last checkpoints took, oldest first.
    pub costs: Vec<Span>,
    /// What it took to go on, the last times.
    pub restarts: Vec<Span>,
    /// How many checkpoints were completed.
    pub saved: u64,
    /// How many failed or were given up.
    pub failed: u64,
    /// Work that was done and has to be done again.
    pub lost: Span,
    /// The exit code, once the job has ended by itself.
    pub exit: Option<u8>,
}

impl Record {
    /// Reads a record and checks it: what another program wrote is not believed.
    ///
    /// # Errors
    /// [`RunError::Record`].
    pub fn parse(text: &str) -> Result<Self, RunError> {
        let problem = |problem: String| RunError::Record { problem };
        let record: Self = serde_json::from_str(text).map_err(|e| problem(e.to_string()))?;
        record.check().map_err(|e| problem(e.to_owned()))?;
        Ok(record)
    }

    /// What holds of every record.
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

    /// The newest checkpoint.
    #[must_use]
    pub fn newest(&self) -> Option<Checkpoint> {
        self.checkpoints.last().copied()
    }

    /// The work that the job had when it was last heard of.
    #[must_use]
    pub fn reached(&self) -> Span {
        self.lives.last().map_or(Span::ZERO, |life| life.reached)
    }

    /// What a checkpoint takes, for plans: the mean of the last ones.
    #[must_use]
    pub fn cost(&self) -> Option<Span> {
        mean(&self.costs)
    }

    /// What a checkpoint takes at most, for deadlines: the worst of the last ones and a quarter more.
    #[must_use]
    pub fn safe_cost(&self) -> Option<Span> {
        self.costs.iter().max().map(|cost| cost.percent(125))
    }

    /// What it takes to go on, for plans.
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
