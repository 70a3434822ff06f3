//! Randomness from the operating system's generator; the only source of randomness in this crate.

use crate::AccessError;

/// Unpredictable bytes.
///
/// # Errors
/// [`AccessError::NoRandomness`] if the system has none.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], AccessError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|e| AccessError::NoRandomness(e.to_string()))?;
    Ok(bytes)
}
