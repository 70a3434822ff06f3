//! When a job should write checkpoints by a model, and what that is worth.

use crate::advice::Question;
use crate::error::AdviceError;
use crate::limits::{MOST_AGES, MOST_COMPARISONS, STEPS};
use ebbtide_lifetime::Lifetime;
use ebbtide_lifetime::plan::checkpoint::{
    Options, Planner, Reading, expected_makespan, without_checkpoints,
};

/// A schedule and what it is worth. Hours.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// Work between checkpoints, in order, as long as nothing but the maximum lifetime ends the server.
    pub intervals: Vec<f64>,
    /// The places of intervals that need a new server, since the one before reaches its maximum lifetime first.
    pub new_instances: Vec<usize>,
    /// The grain: intervals are multiples of it.
    pub step: f64,
    /// The job, rounded to steps.
    pub job: f64,
    /// The expected time to the end with this schedule, made anew after each interruption.
    pub makespan: f64,
    /// With a checkpoint every hour; infinite if it never ends.
    pub hourly: f64,
    /// Without checkpoints; infinite if it never ends.
    pub none: f64,
}

/// Plans the job of a question; `length` in hours.
pub(crate) fn plan(
    model: &dyn Lifetime,
    question: &Question,
    length: f64,
) -> Result<Schedule, AdviceError> {
    let step = step_of(model, question, length);
    let options = Options {
        step,
        cost: question.checkpoint,
        restart: question.restart,
        reading: Reading::Corrected,
        final_checkpoint: true,
    };
    let planner = Planner::new(model, length, question.age, &options)?;
    let schedule = planner.schedule();
    let job: f64 = schedule.intervals.iter().sum();
    let hours = job.ceil().max(1.0) as usize;
    // Whole hours, and what is left at the end.
    let hourly: Vec<f64> = (0..hours)
        .map(|at| (job - at as f64).min(1.0))
        .filter(|interval| *interval > 1e-9)
        .collect();
    Ok(Schedule {
        hourly: expected_makespan(model, &hourly, question.age, &options)?,
        none: without_checkpoints(model, job, question.age, &options)?,
        intervals: schedule.intervals,
        new_instances: schedule.new_instances,
        makespan: schedule.makespan,
        step,
        job,
    })
}

/// The finest grain with which the plan is small enough.
fn step_of(model: &dyn Lifetime, question: &Question, length: f64) -> f64 {
    let small = |step: &f64| {
        let work = length / step;
        let ages = (question.age / step + work * (2.0 + question.checkpoint / step))
            .min(model.maximum() / step);
        // Half of all intervals are possible on average, and none that is longer than the life.
        ages <= MOST_AGES && work * ages * work.min(ages) / 2.0 <= MOST_COMPARISONS
    };
    let [.., coarsest] = STEPS;
    let finest = STEPS.into_iter().find(small).unwrap_or(coarsest);
    // A short job is one step at least.
    finest.min(length)
}
