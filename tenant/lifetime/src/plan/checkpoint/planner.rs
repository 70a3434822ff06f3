//! A solved problem, and the plans in it.

use super::corrected::CorrectedTable;
use super::grid::Grid;
use super::paper::Paper;
use super::{CheckpointOptions, EquationReading};
use crate::Lifetime;
use crate::error::LifetimeError;
use crate::plan::{job, not_negative};

#[derive(Debug)]
enum SolvedTable {
    Corrected(CorrectedTable),
    Paper(Paper),
}

/// All best plans of a job: from its start, and from every state that it can come into. To be
/// computed once and asked often.
#[derive(Debug)]
pub struct Planner {
    pub(super) grid: Grid,
    solved: SolvedTable,
}

/// A plan as long as nothing but the maximum lifetime ends an instance.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// Work between checkpoints, hours, in order.
    pub intervals: Vec<f64>,
    /// The places of intervals that need a new instance, since the one before reaches its maximum
    /// lifetime first. Zero if even the first interval cannot be finished on the instance that is
    /// there.
    pub new_instances: Vec<usize>,
    /// The expected time to the end, hours, failures and checkpoints included, as the reading
    /// reckons it.
    pub makespan: f64,
    /// By which share that is longer than the work alone.
    pub overhead: f64,
}

impl Planner {
    /// Solves the problem of a job of `length` hours that begins on an instance of `age` hours.
    /// Both are rounded to steps.
    ///
    /// # Errors
    /// [`LifetimeError::Question`] for impossible numbers, an age that no instance reaches, or so
    /// many steps that memory ends; [`LifetimeError::NeverEnds`] if no instance lives for a step
    /// and a checkpoint.
    pub fn new(
        model: &dyn Lifetime,
        length: f64,
        age: f64,
        options: &CheckpointOptions,
    ) -> Result<Self, LifetimeError> {
        options.check()?;
        let grid = Grid::new(model, job(length)?, not_negative("the age", age)?, options)?;
        if model.survival(age) <= 0.0 || grid.age >= grid.end {
            return Err(LifetimeError::Question {
                what: "the age",
                value: age,
                allowed: format!(
                    "below the maximum lifetime, {} h by this model",
                    model.maximum()
                ),
            });
        }
        let last = if options.final_checkpoint {
            options.cost
        } else {
            0.0
        };
        let needs = grid.age as f64 * grid.step + grid.job as f64 * grid.step + last;
        if options.reading != EquationReading::Corrected && needs > model.maximum() + 1e-9 {
            return Err(LifetimeError::Question {
                what: "the length of the job",
                value: length,
                allowed: format!(
                    "so short that it can end before the maximum lifetime, {} h: the paper's reading knows nothing of what comes then; take \
                     the corrected one",
                    model.maximum()
                ),
            });
        }
        let solved = match options.reading {
            EquationReading::Corrected => SolvedTable::Corrected(CorrectedTable::solve(&grid)?),
            EquationReading::Paper => SolvedTable::Paper(Paper::solve(&grid, false)?),
            EquationReading::PaperExactLoss => SolvedTable::Paper(Paper::solve(&grid, true)?),
        };
        Ok(Self { grid, solved })
    }

    /// The plan from the job's start.
    #[must_use]
    pub fn schedule(&self) -> Schedule {
        self.at_state(self.grid.job, self.grid.age)
    }

    /// The plan on a new instance with `left` hours of work to do: after a failure. Rounded to
    /// steps, at most the whole job.
    ///
    /// # Errors
    /// [`LifetimeError::Question`] if nothing is left.
    pub fn resumed(&self, left: f64) -> Result<Schedule, LifetimeError> {
        let steps = (job(left)? / self.grid.step).round().max(1.0);
        Ok(self.at_state((steps as usize).min(self.grid.job), 0))
    }

    fn at_state(&self, mut left: usize, mut age: usize) -> Schedule {
        let makespan = match &self.solved {
            SolvedTable::Corrected(solved) => solved.makespan(&self.grid, left, age),
            SolvedTable::Paper(solved) => solved.makespan(left, age),
        };
        let work = left as f64 * self.grid.step;
        let mut intervals = Vec::new();
        let mut new_instances = Vec::new();
        // What a checkpoint takes beyond whole steps adds up over the intervals.
        let mut rest = 0.0;
        while left > 0 {
            let interval = self.interval(left, age.min(self.grid.end.saturating_sub(1)));
            let saved = interval < left || self.grid.final_checkpoint;
            let then = age + interval + if saved { self.grid.cost } else { 0 };
            if age > 0 && self.grid.mortal && then >= self.grid.end {
                new_instances.push(intervals.len());
                (age, rest) = (0, 0.0);
                continue;
            }
            intervals.push(interval as f64 * self.grid.step);
            left -= interval;
            rest += self.grid.more;
            age += interval + self.grid.cost;
            if rest >= 0.5 {
                age += 1;
                rest -= 1.0;
            }
        }
        Schedule {
            intervals,
            new_instances,
            makespan,
            overhead: makespan / work - 1.0,
        }
    }

    /// The first interval of the best plan, steps.
    pub(super) fn interval(&self, left: usize, age: usize) -> usize {
        match &self.solved {
            SolvedTable::Corrected(solved) => solved.interval(&self.grid, left, age),
            SolvedTable::Paper(solved) => solved.interval(&self.grid, left, age),
        }
    }
}
