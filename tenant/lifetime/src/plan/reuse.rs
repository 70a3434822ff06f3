//! Keep the instance for the next job, or take a new one?

use super::running_time::{RunningTime, failure_probability, running_time};
use super::{job, not_negative};
use crate::Lifetime;
use crate::error::LifetimeError;

/// Ages and lengths are searched with this step, hours, then halved.
const STEP: f64 = 0.01;

/// Whether an instance of age `age` is at least as good for a job of `length` hours as a new one:
/// by expected running time.
///
/// # Errors
/// [`LifetimeError::Question`] for a negative age, or a length that is not above zero.
pub fn keeps(
    model: &dyn Lifetime,
    age: f64,
    length: f64,
    reading: RunningTime,
) -> Result<bool, LifetimeError> {
    let kept = running_time(model, age, length, reading)?;
    let new = running_time(model, 0.0, length, reading)?;
    // Equal but for the last bits of the integrals is equal: a few milliseconds.
    Ok(kept <= new + 1e-6)
}

/// Whether an instance of age `age` is at least as likely to last for a job of `length` hours as a
/// new one. The paper's age of 18 h for a job of 6 h follows from this, not from its equation 8.
///
/// # Errors
/// [`LifetimeError::Question`] for a negative age, or a length that is not above zero.
pub fn as_likely_to_last(
    model: &dyn Lifetime,
    age: f64,
    length: f64,
) -> Result<bool, LifetimeError> {
    let new = failure_probability(model, 0.0, length)?;
    Ok(failure_probability(model, age, length)? <= new + 1e-9)
}

/// As [`switch_age`], by [`as_likely_to_last`].
///
/// # Errors
/// [`LifetimeError::Question`] for a length that is not above zero.
pub fn switch_age_by_risk(model: &dyn Lifetime, length: f64) -> Result<Option<f64>, LifetimeError> {
    job(length)?;
    last_good_age(model, |age| as_likely_to_last(model, age, length))
}

/// The age, hours, at which the longest span of ages ends in which an instance is kept for a job of
/// `length`: after it a new one is better. `None` if there is no such span, or if it goes on to the
/// end of all lives.
///
/// Beyond it an instance may be kept again just before the maximum lifetime: it ends so soon that
/// it can lose nothing. Equation 8 counts lost work and no restarts.
///
/// # Errors
/// [`LifetimeError::Question`] for a length that is not above zero.
pub fn switch_age(
    model: &dyn Lifetime,
    length: f64,
    reading: RunningTime,
) -> Result<Option<f64>, LifetimeError> {
    job(length)?;
    last_good_age(model, |age| keeps(model, age, length, reading))
}

/// Where the longest span of good ages ends.
fn last_good_age(
    model: &dyn Lifetime,
    is_good: impl Fn(f64) -> Result<bool, LifetimeError>,
) -> Result<Option<f64>, LifetimeError> {
    let end = model.maximum().min(model.quantile(1.0 - 1e-6));
    let (mut longest, mut until) = (0.0, None);
    let (mut age, mut since) = (0.0, Some(0.0));
    while age < end {
        let next = age + STEP;
        let good = next < end && is_good(next)?;
        match since {
            None if good => since = Some(next),
            Some(begin) if !good => {
                if age - begin > longest {
                    (longest, until) = (age - begin, Some(age));
                }
                since = None;
            }
            _ => {}
        }
        age = next;
    }
    match until {
        Some(age) if age + STEP < end => halve(age, age + STEP, is_good).map(Some),
        _ => Ok(None),
    }
}

/// The paper's T*: the longest job, hours, for which an instance of age `age` is better than a new
/// one, as are all shorter ones. `None` if there is none; the maximum lifetime (or infinity) if all
/// are.
///
/// # Errors
/// [`LifetimeError::Question`] for a negative age.
pub fn switch_length(
    model: &dyn Lifetime,
    age: f64,
    reading: RunningTime,
) -> Result<Option<f64>, LifetimeError> {
    not_negative("the age", age)?;
    let end = model.maximum().min(model.quantile(1.0 - 1e-6));
    let good = |length: f64| keeps(model, age, length, reading);
    let mut length = STEP;
    if !good(length)? {
        return Ok(None);
    }
    while length < end {
        if !good(length + STEP)? {
            return halve(length, length + STEP, good).map(Some);
        }
        length += STEP;
    }
    Ok(Some(model.maximum()))
}

/// The place between `good` and `bad` where the answer changes.
fn halve(
    mut good: f64,
    mut bad: f64,
    is_good: impl Fn(f64) -> Result<bool, LifetimeError>,
) -> Result<f64, LifetimeError> {
    for _ in 0..40 {
        let middle = 0.5 * (good + bad);
        if is_good(middle)? {
            good = middle;
        } else {
            bad = middle;
        }
    }
    Ok(good)
}

/// The chance that a job of `length` fails, averaged over instances of every age below the maximum
/// lifetime: `None` always keeps (what a memoryless model advises), a reading takes a new instance
/// where it is better. Needs a maximum lifetime.
///
/// # Errors
/// [`LifetimeError::Question`] for a length that is not above zero, or a model without a maximum
/// lifetime.
pub fn average_failure(
    model: &dyn Lifetime,
    length: f64,
    policy: Option<RunningTime>,
) -> Result<f64, LifetimeError> {
    average_failure_believing(model, model, length, policy)
}

/// As [`average_failure`], where lives follow `model` and decisions `believed`: what a wrong model
/// costs.
///
/// # Errors
/// As [`average_failure`].
pub fn average_failure_believing(
    model: &dyn Lifetime,
    believed: &dyn Lifetime,
    length: f64,
    policy: Option<RunningTime>,
) -> Result<f64, LifetimeError> {
    let end = model.maximum();
    if !end.is_finite() {
        return Err(LifetimeError::Question {
            what: "the maximum lifetime",
            value: end,
            allowed: "finite, since ages up to it are averaged".to_owned(),
        });
    }
    let count = (end / STEP).ceil();
    let mut sum = 0.0;
    let mut at = 0.0;
    while at < count {
        let age = (at + 0.5) * end / count;
        sum += failure_under_policy(model, believed, age, length, policy)?;
        at += 1.0;
    }
    Ok(sum / count)
}

/// The chance that a job of `length` fails if the tenant has an instance of `age` and decides by
/// the model `believed` whether to use this instance or a new one.
///
/// # Errors
/// [`LifetimeError::Question`] for a negative age, or a length that is not above zero.
pub fn failure_under_policy(
    model: &dyn Lifetime,
    believed: &dyn Lifetime,
    age: f64,
    length: f64,
    policy: Option<RunningTime>,
) -> Result<f64, LifetimeError> {
    let kept = match policy {
        Some(reading) => keeps(believed, age, length, reading)?,
        None => true,
    };
    failure_probability(model, if kept { age } else { 0.0 }, length)
}
