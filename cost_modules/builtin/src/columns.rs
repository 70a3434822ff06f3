//! Shared code of the cost modules: one number for each candidate, held within the range of costs.

use ebbtide_cost_api::{CostError, MAX_COST, VictimBatch};

/// Writes `cost` of each row into `out`, held within 0…[`MAX_COST`].
///
/// # Errors
/// [`CostError::Other`] if a column or `out` has another length than the batch.
pub(crate) fn map<T: Copy>(
    victims: &VictimBatch<'_>,
    name: &str,
    column: &[T],
    out: &mut [f64],
    cost: impl Fn(T) -> f64,
) -> Result<(), CostError> {
    check(victims, name, column.len())?;
    check(victims, "out", out.len())?;
    for (out, &value) in out.iter_mut().zip(column) {
        *out = cost(value).clamp(0.0, MAX_COST);
    }
    Ok(())
}

/// A column has an entry for each candidate.
///
/// # Errors
/// [`CostError::Other`] with the name and both lengths.
pub(crate) fn check(victims: &VictimBatch<'_>, name: &str, len: usize) -> Result<(), CostError> {
    if len == victims.len {
        Ok(())
    } else {
        Err(CostError::Other(format!(
            "was called with {len} entries in {name} and {} candidates; both must be equal",
            victims.len
        )))
    }
}

/// The used part of an instance's current period, in seconds. At exactly one period it is 0: the
/// period is paid and over.
pub(crate) fn used_of_period(age_seconds: f64, period_seconds: f64) -> f64 {
    age_seconds.max(0.0) % period_seconds
}
