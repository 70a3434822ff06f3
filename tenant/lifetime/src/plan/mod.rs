//! What follows from a model for who runs a job on preemptible instances. Hours everywhere.

pub mod checkpoint;
pub mod curves;
pub mod figures;
mod reuse;
mod running_time;

pub use reuse::{
    as_likely_to_last, average_failure, average_failure_believing, failure_under_policy, keeps,
    switch_age, switch_age_by_risk, switch_length,
};
pub use running_time::{
    RunningTime, failure_probability, running_time, wasted_if_one_failure, wasted_work,
};

use crate::error::LifetimeError;

/// Refuses what is no job length.
pub(crate) fn job(value: f64) -> Result<f64, LifetimeError> {
    above_zero("the length of the job", value)
}

/// Refuses what is no time.
pub(crate) fn above_zero(what: &'static str, value: f64) -> Result<f64, LifetimeError> {
    if value.is_finite() && value > 0.0 {
        return Ok(value);
    }
    Err(LifetimeError::Question {
        what,
        value,
        allowed: "a finite number of hours above zero".to_owned(),
    })
}

/// Refuses what is no age, cost or time to wait.
pub(crate) fn not_negative(what: &'static str, value: f64) -> Result<f64, LifetimeError> {
    if value.is_finite() && value >= 0.0 {
        return Ok(value);
    }
    Err(LifetimeError::Question {
        what,
        value,
        allowed: "a finite number of hours, not negative".to_owned(),
    })
}
