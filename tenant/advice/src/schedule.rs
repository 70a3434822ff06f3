//! Checkpoint schedules of jobs by a model, and their expected running times.

use crate::advice::AdviceQuery;
use crate::error::AdviceError;
use crate::limits::{MOST_AGES, MOST_COMPARISONS, PARTS, STEPS};
use ebbtide_lifetime::plan::checkpoint::{
    CheckpointOptions, EquationReading, Planner, expected_makespan, without_checkpoints,
};
use ebbtide_lifetime::{Lifetime, LifetimeError};

/// A schedule and its expected running time. Hours.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// Work between checkpoints, in order, as long as only the maximum lifetime ends the server.
    /// The last interval ends with the job and needs no checkpoint: a single interval means no
    /// checkpoint.
    pub intervals: Vec<f64>,
    /// Indexes of intervals that need a new server, because the previous one reaches its maximum
    /// lifetime first.
    pub new_instances: Vec<usize>,
    /// The step: intervals are multiples of it.
    pub step: f64,
    /// The job, rounded to steps.
    pub job: f64,
    /// The expected time to the job's end with this schedule, planned again after each
    /// interruption.
    pub makespan: f64,
    /// The expected time with a checkpoint every hour; infinite if the job never ends.
    pub hourly: f64,
    /// The expected time without checkpoints; infinite if the job never ends.
    pub none: f64,
}

/// Plans the job of a question; `length` in hours.
pub(crate) fn plan(
    model: &dyn Lifetime,
    question: &AdviceQuery,
    length: f64,
) -> Result<Schedule, AdviceError> {
    let grain = grain(model, question, length);
    let options = CheckpointOptions {
        step: grain.unwrap_or(length),
        cost: question.checkpoint,
        restart: question.restart,
        reading: EquationReading::Corrected,
        // At its end the job writes a result instead of a checkpoint.
        final_checkpoint: false,
    };
    let Some(step) = grain else {
        return equal_parts(model, question, length, &options);
    };
    let planner = Planner::new(model, length, question.age, &options)?;
    let schedule = planner.schedule();
    let job: f64 = schedule.intervals.iter().sum();
    Ok(Schedule {
        hourly: hourly(model, question, job, &options)?,
        none: without_checkpoints(model, job, question.age, &options)?,
        intervals: schedule.intervals,
        new_instances: schedule.new_instances,
        makespan: schedule.makespan,
        step,
        job,
    })
}

/// The expected time with a checkpoint every hour.
fn hourly(
    model: &dyn Lifetime,
    question: &AdviceQuery,
    job: f64,
    options: &CheckpointOptions,
) -> Result<f64, LifetimeError> {
    let hours = job.ceil().max(1.0) as usize;
    // Whole hours, and the rest.
    let hourly: Vec<f64> = (0..hours)
        .map(|at| (job - at as f64).min(1.0))
        .filter(|interval| *interval > 1e-9)
        .collect();
    expected_makespan(model, &hourly, question.age, options)
}

/// The best plan of equal parts: for a job that is much shorter than its server's age or than its
/// checkpoint. A grid that is fine enough for the job would be too large for the age or the
/// checkpoint. The expected times are exact.
/// one would be too long for the other. Their expectation is exact.
fn equal_parts(
    model: &dyn Lifetime,
    question: &AdviceQuery,
    job: f64,
    options: &CheckpointOptions,
) -> Result<Schedule, AdviceError> {
    let mut best = (f64::INFINITY, 1);
    for parts in PARTS {
        let intervals = vec![job / parts as f64; parts];
        let makespan = expected_makespan(model, &intervals, question.age, options)?;
        if makespan < best.0 {
            best = (makespan, parts);
        }
    }
    let (makespan, parts) = best;
    let step = job / parts as f64;
    if !makespan.is_finite() {
        return Err(LifetimeError::NeverEnds {
            step_hours: step,
            checkpoint_hours: question.checkpoint,
        }
        .into());
    }
    // Assumes that only the maximum lifetime ends the server.
    let (mut age, mut new_instances) = (question.age, Vec::new());
    for at in 0..parts {
        let checkpoint = if at + 1 < parts {
            question.checkpoint
        } else {
            0.0
        };
        if age + step + checkpoint >= model.maximum() {
            new_instances.push(at);
            age = 0.0;
        }
        age += step + checkpoint;
    }
    Ok(Schedule {
        hourly: hourly(model, question, job, options)?,
        none: without_checkpoints(model, job, question.age, options)?,
        intervals: vec![step; parts],
        new_instances,
        makespan,
        step,
        job,
    })
}

/// The finest step, at most as long as the job, with which the plan is small enough; `None` if
/// there is none.
fn grain(model: &dyn Lifetime, question: &AdviceQuery, length: f64) -> Option<f64> {
    let small = |step: &f64| {
        let work = length / step;
        let ages = (question.age / step + work * (2.0 + question.checkpoint / step))
            .min(model.maximum() / step);
        // On average half of all intervals are possible, and none is longer than the lifetime.
        ages <= MOST_AGES && work * ages * work.min(ages) / 2.0 <= MOST_COMPARISONS
    };
    // For a job shorter than the finest step, the job itself is the step.
    let shortest = Some(length).filter(|length| *length < STEPS[0]);
    let grains = shortest.into_iter().chain(STEPS);
    grains.take_while(|grain| *grain <= length).find(small)
}
