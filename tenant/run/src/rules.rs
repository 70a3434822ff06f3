//! What a run goes by.

use crate::{Rhythm, RunError, Span};

/// What a run goes by.
#[derive(Debug, Clone)]
pub struct Rules {
    /// When to save as long as nothing happens.
    pub rhythm: Rhythm,
    /// How much work the job is, as far as anybody knows.
    pub length: Option<Span>,
    /// How long a checkpoint takes, as long as none was measured.
    pub cost: Span,
    /// How long it takes to get an instance and to go on there, as long as it was not measured.
    pub restart: Span,
    /// A checkpoint that takes longer has failed.
    pub timeout: Span,
    /// How many complete checkpoints are kept, at least one: the newest.
    pub keep: usize,
    /// Whether the provider can be told that the instance needs no more time.
    pub releases: bool,
    /// Whether notices are acted on. Without, what is lost is what the rhythm alone loses: to compare with.
    pub heeds: bool,
}

impl Rules {
    /// Rules with the usual numbers: a checkpoint takes ten seconds until one was measured, two are kept.
    #[must_use]
    pub fn new(rhythm: Rhythm) -> Self {
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

    /// Refuses numbers that make no sense.
    ///
    /// # Errors
    /// [`RunError::Zero`].
    pub fn check(&self) -> Result<(), RunError> {
        let zero = |what| Err(RunError::Zero { what });
        match &self.rhythm {
            Rhythm::Every(Span(0)) => return zero("the time between checkpoints"),
            Rhythm::Model(_) if self.cost == Span::ZERO => {
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
