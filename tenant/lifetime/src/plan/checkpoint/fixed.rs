//! Fixed schedules: their exact expectation, Young's and Daly's interval, no checkpoints at all.

use super::CheckpointOptions;
use crate::Lifetime;
use crate::error::LifetimeError;
use crate::plan::{above_zero, job, not_negative};

/// The expected time, hours, of a job with these intervals (hours of work, a checkpoint behind
/// each) that begins at `age`. A failure goes back to the last checkpoint, and on with the same
/// intervals on a new instance. Exact, without a grid; the step and reading of `options` do not
/// matter. Infinite if some interval is longer than any lifetime.
///
/// # Errors
/// [`LifetimeError::Question`] for impossible numbers, or no interval at all.
pub fn expected_makespan(
    model: &dyn Lifetime,
    intervals: &[f64],
    age: f64,
    options: &CheckpointOptions,
) -> Result<f64, LifetimeError> {
    options.check()?;
    not_negative("the age", age)?;
    if intervals.is_empty() {
        return job(0.0);
    }
    let mut spans = Vec::with_capacity(intervals.len());
    for (number, &interval) in intervals.iter().enumerate() {
        let saved = options.final_checkpoint || number + 1 < intervals.len();
        spans.push(job(interval)? + if saved { options.cost } else { 0.0 });
    }
    // From behind: what is left to do from a new instance when the intervals before are saved.
    let mut fresh = vec![0.0; spans.len()];
    for at in (0..spans.len()).rev() {
        fresh[at] = walk(model, &spans, at, 0.0, &fresh, options.restart, true);
    }
    Ok(walk(model, &spans, 0, age, &fresh, options.restart, false))
}

/// The expectation from interval `from` on at age `start`; `own` solves for the first interval's
/// own restart.
fn walk(
    model: &dyn Lifetime,
    spans: &[f64],
    from: usize,
    start: f64,
    fresh: &[f64],
    restart: f64,
    own: bool,
) -> f64 {
    let survival = |t: f64| if t <= 0.0 { 1.0 } else { model.survival(t) };
    let begin = survival(start);
    if begin <= 0.0 {
        return f64::INFINITY;
    }
    let (mut t, mut alive, mut sum, mut first) = (start, begin, 0.0, begin);
    for (at, span) in spans.iter().enumerate().skip(from) {
        let then = t + span;
        let after = survival(then);
        sum += span - model.cdf_integral(t, then);
        let again = if own && at == from {
            first = after;
            restart
        } else {
            restart + fresh[at]
        };
        if alive > after {
            sum += (alive - after) * again;
        }
        (t, alive) = (then, after);
        if alive <= 0.0 {
            break;
        }
    }
    if own { sum / first } else { sum / begin }
}

/// More is no plan for anybody.
const MOST_INTERVALS: f64 = 1e6;

/// Young's and Daly's interval alone, hours: `sqrt(2 d MTTF)`.
///
/// # Errors
/// [`LifetimeError::Question`] for a cost or an MTTF that is not above zero.
pub fn young_daly_interval(cost: f64, mttf: f64) -> Result<f64, LifetimeError> {
    let cost = above_zero("the cost of a checkpoint", cost)?;
    Ok((2.0 * cost * above_zero("the mean time to failure", mttf)?).sqrt())
}

/// The intervals, hours, of Young's and Daly's rule: `sqrt(2 d MTTF)` each, the last one what is
/// left. `mttf` is the mean time to failure, hours, that a memoryless world would have.
///
/// # Errors
/// [`LifetimeError::Question`] for a length, cost or MTTF that is not above zero, or more than a
/// million intervals.
pub fn young_daly(length: f64, cost: f64, mttf: f64) -> Result<Vec<f64>, LifetimeError> {
    let interval = young_daly_interval(cost, mttf)?;
    if job(length)? > interval * MOST_INTERVALS {
        return Err(LifetimeError::Question {
            what: "the mean time to failure",
            value: mttf,
            allowed: format!(
                "longer: a checkpoint every {interval:e} h would be more than a million"
            ),
        });
    }
    let mut left = job(length)?;
    let mut intervals = Vec::new();
    while left > interval * (1.0 + 1e-9) {
        intervals.push(interval);
        left -= interval;
    }
    intervals.push(left);
    Ok(intervals)
}

/// The expected time, hours, of a job without any checkpoint: infinite for a job longer than any
/// lifetime.
///
/// # Errors
/// [`LifetimeError::Question`] for impossible numbers.
pub fn without_checkpoints(
    model: &dyn Lifetime,
    length: f64,
    age: f64,
    options: &CheckpointOptions,
) -> Result<f64, LifetimeError> {
    let options = CheckpointOptions {
        final_checkpoint: false,
        ..*options
    };
    expected_makespan(model, &[length], age, &options)
}
