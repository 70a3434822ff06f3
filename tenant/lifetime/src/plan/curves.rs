//! The curves of the paper's figures 4 to 7, for charts. Points are (hours, value).

use super::{RunningTime, average_failure_believing, failure_under_policy, job, wasted_work};
use crate::Lifetime;
use crate::error::LifetimeError;

pub type CurvePoints = Vec<(f64, f64)>;

/// Figure 4: by how many hours jobs from a new instance get longer, for lengths up to `longest`
/// hours.
///
/// # Errors
/// [`LifetimeError::Question`] for a length that is not above zero.
pub fn wasted_by_length(
    model: &dyn Lifetime,
    longest: f64,
    count: u32,
) -> Result<CurvePoints, LifetimeError> {
    along(job(longest)?, count)
        .map(|length| Ok((length, wasted_work(model, length, RunningTime::Corrected)?)))
        .collect()
}

/// Figure 5: the chance that a job of `length` hours fails, by the age of the instance that is
/// there: who always keeps it (`None`, what a memoryless model advises), or who takes a new one
/// where that is better.
///
/// # Errors
/// [`LifetimeError::Question`] for a length that is not above zero.
pub fn failure_by_age(
    model: &dyn Lifetime,
    length: f64,
    oldest: f64,
    count: u32,
    policy: Option<RunningTime>,
) -> Result<CurvePoints, LifetimeError> {
    along(job(oldest)?, count)
        .map(|age| {
            let chance = failure_under_policy(model, model, age, length, policy)?;
            Ok((age, chance))
        })
        .collect()
}

/// Figures 6 and 7: the chance that a job fails, averaged over instances of every age, by its
/// length. Lives follow `model`, decisions `believed`: the same for figure 6, another one for
/// figure 7.
///
/// # Errors
/// [`LifetimeError::Question`] for a length that is not above zero, or a model without a maximum
/// lifetime.
pub fn failure_by_length(
    model: &dyn Lifetime,
    believed: &dyn Lifetime,
    longest: f64,
    count: u32,
    policy: Option<RunningTime>,
) -> Result<CurvePoints, LifetimeError> {
    along(job(longest)?, count)
        .map(|length| {
            let chance = average_failure_believing(model, believed, length, policy)?;
            Ok((length, chance))
        })
        .collect()
}

/// `count` places up to `end`, none at zero, where neither a job nor a chance to fail is.
fn along(end: f64, count: u32) -> impl Iterator<Item = f64> {
    (1..=count).map(move |at| end * f64::from(at) / f64::from(count))
}
