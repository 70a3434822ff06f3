//! Expected wasted work and running time of a job without checkpoints: the paper's equations 5, 7
//! and 8, as printed and corrected.

use super::{checkpoint, job, not_negative};
use crate::Lifetime;
use crate::error::LifetimeError;

/// Which reading of equations 5, 7 and 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunningTime {
    /// As printed. Equations 5 and 7 leave out the atom at the maximum lifetime. Equation 8 is `T +
    /// ∫ t f(t) dt` over `s..s+T`. The age of the instance counts as lost work, and that it has
    /// lived until `s` is forgotten.
    Literal,
    /// With the atom. Equation 8 is `T + ∫ (t-s) f(t) dt / (1 - F(s))`, the atom at the maximum
    /// lifetime included: the work that the first failure takes, in expectation, given that the
    /// instance is `s` old.
    Corrected,
    /// As [`Self::Corrected`], but the new instance that comes after a failure can fail, too: the
    /// expected time until the job is done. The one to decide by: equation 8 counts lost work only,
    /// so just before the maximum lifetime, where nothing is lost, it keeps instances that
    /// certainly fail. Infinite for a job that is longer than any life.
    UntilDone,
}

/// The integral of `t f(t)` over `from..to`, without atoms.
fn moment(model: &dyn Lifetime, from: f64, to: f64) -> f64 {
    let (from, to) = (from.min(model.maximum()), to.min(model.maximum()));
    to * model.continuous_cdf(to) - from * model.continuous_cdf(from) - model.cdf_integral(from, to)
}

/// The chance that an instance of age `age` ends before it has worked `length` hours more: the
/// curves of figures 4 to 7.
///
/// # Errors
/// [`LifetimeError::Question`] for a negative age, or a length that is not above zero.
pub fn failure_probability(
    model: &dyn Lifetime,
    age: f64,
    length: f64,
) -> Result<f64, LifetimeError> {
    Ok(1.0 - model.conditional_survival(not_negative("the age", age)?, job(length)?))
}

/// Equation 5: the work, hours, that is lost if the one failure comes within the job: `∫ t f(t) dt
/// / F(T)` from a new instance. Instances that never come up count as failures that lose nothing.
///
/// # Errors
/// [`LifetimeError::Question`] for a length that is not above zero.
pub fn wasted_if_one_failure(
    model: &dyn Lifetime,
    length: f64,
    reading: RunningTime,
) -> Result<f64, LifetimeError> {
    let wasted = wasted_work(model, length, reading)?;
    let failed = match reading {
        RunningTime::Literal => model.continuous_cdf(length),
        RunningTime::Corrected | RunningTime::UntilDone => model.cdf(length),
    };
    Ok(if failed > 0.0 { wasted / failed } else { 0.0 })
}

/// Equation 7: by how many hours a job from a new instance gets longer in expectation if it fails
/// once at most, `∫ t f(t) dt` over `0..T`. Both readings are the same for jobs that are shorter
/// than the maximum lifetime.
///
/// # Errors
/// [`LifetimeError::Question`] for a length that is not above zero.
pub fn wasted_work(
    model: &dyn Lifetime,
    length: f64,
    reading: RunningTime,
) -> Result<f64, LifetimeError> {
    let end = model.maximum();
    let atom = match reading {
        RunningTime::Corrected | RunningTime::UntilDone if job(length)? >= end => {
            end * model.atom()
        }
        _ => 0.0,
    };
    Ok(moment(model, 0.0, job(length)?) + atom)
}

/// Equation 8: the expected running time, hours, of a job of `length` on an instance of `age`, if
/// it fails once at most (but see [`RunningTime::UntilDone`]). Infinite where no instance is that
/// old, but in the printed equation.
///
/// # Errors
/// [`LifetimeError::Question`] for a negative age, or a length that is not above zero.
pub fn running_time(
    model: &dyn Lifetime,
    age: f64,
    length: f64,
    reading: RunningTime,
) -> Result<f64, LifetimeError> {
    let (s, end) = (not_negative("the age", age)?, age + job(length)?);
    match reading {
        RunningTime::Literal => Ok(length + moment(model, s, end)),
        RunningTime::Corrected => {
            let alive = model.survival(s);
            if alive <= 0.0 {
                return Ok(f64::INFINITY);
            }
            Ok(length + (length * model.cdf(end) - model.cdf_integral(s, end)) / alive)
        }
        RunningTime::UntilDone => {
            let options = checkpoint::CheckpointOptions::default();
            checkpoint::without_checkpoints(model, length, age, &options)
        }
    }
}
