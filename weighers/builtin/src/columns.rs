//! Shared code of most weighers: one column in, one number for each host out.

use ebbtide_weigher_api::{Bounds, Column, HostBatch, WeigherError};

/// Nova's `minval = 0`: raw numbers below zero count as zero, and zero is the lower end of the
/// scale.
pub(crate) const FROM_ZERO: Bounds = Bounds {
    min: Some(0.0),
    max: None,
};

/// opie's `maxval = 0`: no burden is the best value and the upper end of the scale, so that the
/// normalised number is `1 − burden / largest burden`.
pub(crate) const UP_TO_ZERO: Bounds = Bounds {
    min: None,
    max: Some(0.0),
};

/// Writes `f` of each host's entry in `column`.
///
/// # Errors
/// A column that is missing, or room for another number of hosts than there are.
pub(crate) fn map(
    hosts: &HostBatch<'_>,
    column: Column,
    out: &mut [f64],
    f: impl Fn(f64) -> f64,
) -> Result<(), WeigherError> {
    let values = hosts.column(column)?;
    check_room(hosts, out)?;
    for (out, &value) in out.iter_mut().zip(values) {
        *out = f(value);
    }
    Ok(())
}

/// The engine's side of the contract: `out` has an entry for each host.
///
/// # Errors
/// [`WeigherError::Other`] with both lengths.
pub(crate) fn check_room(hosts: &HostBatch<'_>, out: &[f64]) -> Result<(), WeigherError> {
    if out.len() == hosts.len {
        Ok(())
    } else {
        Err(WeigherError::Other(format!(
            "was called with room for {} numbers and {} hosts; both must be equal",
            out.len(),
            hosts.len
        )))
    }
}

/// The other way round, without making the zero a negative one (Python's `-1 * 0` is 0, and signs
/// of zero show in explanations).
pub(crate) fn negated(value: f64) -> f64 {
    0.0 - value
}
