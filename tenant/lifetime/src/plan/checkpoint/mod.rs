//! When to checkpoint: dynamic programming over the paper's equations 9 to 13, with Young and Daly
//! and no checkpoints beside it.

mod corrected;
mod fixed;
mod grid;
mod paper;
mod planner;
mod simulate;

pub use fixed::{expected_makespan, without_checkpoints, young_daly, young_daly_interval};
pub use planner::{Planner, Schedule};
pub use simulate::Estimate;

use super::not_negative;
use crate::error::LifetimeError;

/// Which reading of equations 9 to 13. In all of them a job that fails goes on from its last
/// checkpoint on a new instance, as the text says; the printed equation 12 goes on at the age of
/// the dead one, and equation 11 adds the age to the time at every step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EquationReading {
    /// The chance to fail is conditional on the age, and what is lost is the exact expectation
    /// since the last checkpoint, the atom at the maximum lifetime included. The one to use.
    #[default]
    Corrected,
    /// The paper's schedules: the chance to fail is `F(t+i+d) - F(t)`, not conditional on the
    /// instance being alive, and a failure loses half of the interval.
    Paper,
    /// As [`Self::Paper`], but with the exact expectation of what is lost.
    PaperExactLoss,
}

/// What a plan has to reckon with. Hours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CheckpointOptions {
    /// The grain of the plan: intervals between checkpoints are multiples of it.
    pub step: f64,
    /// How long a checkpoint takes; any length. One that is no multiple of the step is planned as a
    /// mixture of the two next to it, which has the same expectation.
    pub cost: f64,
    /// How long it takes to get a new instance and load the checkpoint; its life begins after that.
    pub restart: f64,
    pub reading: EquationReading,
    /// Whether the last interval ends with a checkpoint, too: results have to be saved. The paper's
    /// schedules have it.
    pub final_checkpoint: bool,
}

impl Default for CheckpointOptions {
    /// Steps and checkpoints of a minute, as in the paper.
    fn default() -> Self {
        Self {
            step: 1.0 / 60.0,
            cost: 1.0 / 60.0,
            restart: 0.0,
            reading: EquationReading::default(),
            final_checkpoint: true,
        }
    }
}

impl CheckpointOptions {
    fn check(&self) -> Result<(), LifetimeError> {
        if !(self.step.is_finite() && self.step > 0.0) {
            return Err(LifetimeError::Question {
                what: "the step",
                value: self.step,
                allowed: "a finite number of hours above zero".to_owned(),
            });
        }
        not_negative("the cost of a checkpoint", self.cost)?;
        not_negative("the cost of a restart", self.restart)?;
        Ok(())
    }
}
