//! Settings of a run.

use crate::{CheckpointSchedule, RunError, Span};

/// Settings of a run.
#[derive(Debug, Clone)]
pub struct Rules {
    /// When to save without a notice.
    pub rhythm: CheckpointSchedule,
    /// Amount of work of the job, if known.
    pub length: Option<Span>,
    /// Duration of a checkpoint until one was measured.
    pub cost: Span,
    /// Duration of obtaining an instance and continuing there, until it was measured.
    pub restart: Span,
    /// A checkpoint that takes longer counts as failed.
    pub timeout: Span,
    /// Number of complete checkpoints to keep, at least one: the newest.
    pub keep: usize,
    /// Whether the provider accepts a report that the instance needs no more time.
    pub releases: bool,
    /// Whether the job reacts to notices. Without, the rhythm alone limits the loss; this serves
    /// comparisons.
    pub heeds: bool,
}

impl Rules {
    /// Rules with default numbers: a checkpoint takes ten seconds until one was measured, and two
    /// are kept.
    #[must_use]
    pub fn new(rhythm: CheckpointSchedule) -> Self {
        Self {
            rhythm,
            length: None,
            cost: Span(10_000),
            restart: Span(60_000),
            timeout: Span(600_000),
            keep: 2,
            releases: true,
            heeds: true,
        }
    }

    /// Refuses invalid numbers.
    ///
    /// # Errors
    /// [`RunError::Zero`].
    pub fn check(&self) -> Result<(), RunError> {
        let zero = |what| Err(RunError::Zero { what });
        match &self.rhythm {
            CheckpointSchedule::Every(Span(0)) => return zero("the time between checkpoints"),
            CheckpointSchedule::Model(_) if self.cost == Span::ZERO => {
                return zero("the cost of a checkpoint, which the plan is made by,");
            }
            _ => {}
        }
        if self.length == Some(Span::ZERO) {
            return zero("the length of the job");
        }
        if self.timeout == Span::ZERO {
            return zero("the time limit of a checkpoint");
        }
        if self.keep == 0 {
            return zero("the number of checkpoints that are kept");
        }
        Ok(())
    }
}
