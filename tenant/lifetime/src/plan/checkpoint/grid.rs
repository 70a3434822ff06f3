//! A model on the plan's grid, and the table that both recursions fill.

use super::CheckpointOptions;
use crate::Lifetime;
use crate::error::LifetimeError;

/// No table has more entries: 800 MB. 24 h at one-minute steps has four million.
const LARGEST: usize = 100_000_000;

/// Survival and its integral at every step, and the size of the problem in steps.
#[derive(Debug)]
pub(super) struct Grid {
    /// Survival at each age. That of age 0 is 1: instances that never come up fail in their first
    /// interval.
    pub(super) survival: Vec<f64>,
    /// The integral of the survival up to each age, hours.
    pub(super) lived: Vec<f64>,
    /// The last age of the grid, steps.
    pub(super) end: usize,
    /// Whether the survival at the last age is zero.
    pub(super) mortal: bool,
    /// Steps of the job.
    pub(super) job: usize,
    /// The age at which it begins, steps.
    pub(super) age: usize,
    /// Whole steps of a checkpoint.
    pub(super) cost: usize,
    /// The rest of it, a part of a step: the chance that it takes one more.
    pub(super) more: f64,
    /// Hours of a step.
    pub(super) step: f64,
    /// Hours of a restart.
    pub(super) restart: f64,
    /// Whether the last interval has a checkpoint.
    pub(super) final_checkpoint: bool,
}

impl Grid {
    pub(super) fn new(
        model: &dyn Lifetime,
        job: f64,
        age: f64,
        options: &CheckpointOptions,
    ) -> Result<Self, LifetimeError> {
        let step = options.step;
        let steps = |hours: f64| (hours / step).round();
        let work = steps(job).max(1.0);
        let cost = (options.cost / step * (1.0 + 1e-12)).floor();
        let mut more = (options.cost / step - cost).max(0.0);
        if more < 1e-9 {
            more = 0.0;
        }
        // Without a maximum lifetime, or with one far beyond: no plan takes more time than the job
        // with a checkpoint every step.
        let farthest = steps(age) + work * (2.0 + cost);
        let life = (model.maximum() / step - 1e-9).ceil();
        let end = farthest.min(life);
        let entries = (end + work + cost + 2.0) * (end + 1.0);
        if entries > LARGEST as f64 {
            return Err(LifetimeError::Question {
                what: "the step",
                value: step,
                allowed: format!(
                    "longer: the plan would have {entries:.0} states, more than {LARGEST}"
                ),
            });
        }
        let end = end as usize;
        let mut survival = Vec::with_capacity(end + 1);
        let mut lived = Vec::with_capacity(end + 1);
        let mut sum = 0.0;
        for at in 0..=end {
            let t = at as f64 * step;
            if at > 0 {
                sum += (step - model.cdf_integral(t - step, t)).max(0.0);
            }
            survival.push(if at == 0 { 1.0 } else { model.survival(t) });
            lived.push(sum);
        }
        let mortal = survival[end] <= 0.0;
        Ok(Self {
            survival,
            lived,
            end,
            mortal,
            job: work as usize,
            age: steps(age) as usize,
            cost: cost as usize,
            more,
            step,
            restart: options.restart,
            final_checkpoint: options.final_checkpoint,
        })
    }

    /// The oldest age, steps, that a plan can reach with `left` steps of work to do.
    pub(super) fn oldest(&self, left: usize) -> usize {
        let done = self.job - left;
        let longest = self.cost + usize::from(self.more > 0.0);
        (self.age + done * (1 + longest)).min(self.end.saturating_sub(1))
    }

    /// An empty table.
    pub(super) fn table(&self) -> Table {
        let rows = self.job + self.end + self.cost + 2;
        Table {
            width: self.end + 1,
            entries: vec![f64::INFINITY; rows * (self.end + 1)],
        }
    }

    pub(super) fn never_ends(&self) -> LifetimeError {
        LifetimeError::NeverEnds {
            step_hours: self.step,
            checkpoint_hours: self.step * (self.cost as f64 + self.more),
        }
    }
}

/// A value for each (work left, age). A row has all of the same sum of both: after an interval and
/// its checkpoint the sum has grown by the checkpoint's steps, whatever the interval, so all
/// choices of a state lie side by side in one row.
#[derive(Debug)]
pub(super) struct Table {
    width: usize,
    entries: Vec<f64>,
}

impl Table {
    pub(super) fn row(&self, sum: usize) -> &[f64] {
        &self.entries[sum * self.width..(sum + 1) * self.width]
    }

    pub(super) fn set(&mut self, left: usize, age: usize, value: f64) {
        self.entries[(left + age) * self.width + age] = value;
    }

    pub(super) fn get(&self, left: usize, age: usize) -> f64 {
        self.entries[(left + age) * self.width + age]
    }
}
