//! The paper's figures 4 to 8 as rows of numbers, for tables and files; [`super::curves`] has the
//! same for charts. Hours everywhere.

use super::checkpoint::{
    CheckpointOptions, EquationReading, Planner, expected_makespan, without_checkpoints, young_daly,
};
use super::{
    RunningTime, average_failure_believing, failure_under_policy, wasted_if_one_failure,
    wasted_work,
};
use crate::Lifetime;
use crate::error::LifetimeError;

/// Figure 4: what failures cost jobs of one length, on a new instance and without checkpoints.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WasteRow {
    /// Length of the job.
    pub length: f64,
    /// Figure 4a, equation 5: the work that is lost if the instance ends within the job.
    pub lost_if_failed: f64,
    /// Figure 4b, equation 7: the expected increase of the running time.
    pub increase: f64,
}

/// Figure 4 for jobs of `lengths`.
///
/// # Errors
/// [`LifetimeError::Question`] for a length that is not above zero.
pub fn waste(model: &dyn Lifetime, lengths: &[f64]) -> Result<Vec<WasteRow>, LifetimeError> {
    let reading = RunningTime::Corrected;
    let rows = lengths.iter().map(|&length| {
        Ok(WasteRow {
            length,
            lost_if_failed: wasted_if_one_failure(model, length, reading)?,
            increase: wasted_work(model, length, reading)?,
        })
    });
    rows.collect()
}

/// Figures 5 to 7: the chance that a job fails.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FailureRow {
    /// Figure 5: age of the instance that is there. Figures 6 and 7: length of the job.
    pub at: f64,
    /// The tenant always keeps the instance, as a memoryless model advises.
    pub always_kept: f64,
    /// The tenant keeps it while the expected time until the job is done is not longer.
    pub by_model: f64,
    /// The same decision by a wrong model, while instances live as the right one says (figure 7).
    pub by_wrong_model: Option<f64>,
}

/// Figure 5: a job of `length` on instances of `ages`.
///
/// # Errors
/// [`LifetimeError::Question`] for a negative age, or a length that is not above zero.
pub fn failures_by_age(
    model: &dyn Lifetime,
    wrong: Option<&dyn Lifetime>,
    length: f64,
    ages: &[f64],
) -> Result<Vec<FailureRow>, LifetimeError> {
    let policy = Some(RunningTime::UntilDone);
    let rows = ages.iter().map(|&age| {
        let by = |believed| failure_under_policy(model, believed, age, length, policy);
        Ok(FailureRow {
            at: age,
            always_kept: failure_under_policy(model, model, age, length, None)?,
            by_model: by(model)?,
            by_wrong_model: wrong.map(by).transpose()?,
        })
    });
    rows.collect()
}

/// Figures 6 and 7: jobs of `lengths`, averaged over instances of every age below the maximum
/// lifetime.
///
/// # Errors
/// [`LifetimeError::Question`] for a length that is not above zero, or a model without a maximum
/// lifetime.
pub fn failures_by_length(
    model: &dyn Lifetime,
    wrong: Option<&dyn Lifetime>,
    lengths: &[f64],
) -> Result<Vec<FailureRow>, LifetimeError> {
    let policy = Some(RunningTime::UntilDone);
    let rows = lengths.iter().map(|&length| {
        let by = |believed| average_failure_believing(model, believed, length, policy);
        Ok(FailureRow {
            at: length,
            always_kept: average_failure_believing(model, model, length, None)?,
            by_model: by(model)?,
            by_wrong_model: wrong.map(by).transpose()?,
        })
    });
    rows.collect()
}

/// Figure 8: the share by which checkpoints and failures lengthen a job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OverheadRow {
    /// Length of the job.
    pub length: f64,
    /// Age of the instance when the job begins.
    pub age: f64,
    /// The corrected plan, in exact expectation.
    pub corrected: f64,
    /// The plan by the paper's equations, in exact expectation; `None` for a job that outlives its
    /// instance, for which these equations have no plan.
    pub paper: Option<f64>,
    /// What the paper's equations expect of that plan. The figure shows this value.
    pub paper_reckons: Option<f64>,
    /// Equal intervals by the rule of Young and Daly.
    pub young_daly: f64,
    /// Without checkpoints; infinite for a job that outlives every instance.
    pub none: f64,
}

/// A row of figure 8. `mttf` is the mean time to failure that the rule of Young and Daly gets.
/// `options.reading` is not used: both readings are in the row.
///
/// # Errors
/// [`LifetimeError::Question`] for a length, cost or MTTF that is not above zero, or a negative
/// age.
pub fn overhead(
    model: &dyn Lifetime,
    length: f64,
    age: f64,
    options: &CheckpointOptions,
    mttf: f64,
) -> Result<OverheadRow, LifetimeError> {
    let of = |reading| CheckpointOptions {
        reading,
        ..*options
    };
    let corrected = of(EquationReading::Corrected);
    let above = |time: f64| time / length - 1.0;
    let exact = |intervals: &[f64]| -> Result<f64, LifetimeError> {
        Ok(above(expected_makespan(model, intervals, age, &corrected)?))
    };
    let plan = Planner::new(model, length, age, &corrected)?.schedule();
    let (paper, paper_reckons) = match Planner::new(model, length, age, &of(EquationReading::Paper))
    {
        Ok(planner) => {
            let plan = planner.schedule();
            (Some(exact(&plan.intervals)?), Some(above(plan.makespan)))
        }
        Err(LifetimeError::Question { .. }) => (None, None),
        Err(error) => return Err(error),
    };
    Ok(OverheadRow {
        length,
        age,
        corrected: above(plan.makespan),
        paper,
        paper_reckons,
        young_daly: exact(&young_daly(length, options.cost, mttf)?)?,
        none: above(without_checkpoints(model, length, age, &corrected)?),
    })
}
