//! The only place of this crate where chance comes in: from the system's generator.

use crate::AccessError;

/// Bytes that nobody can guess.
///
/// # Errors
/// [`AccessError::NoRandomness`] if the system has none.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], AccessError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|e| AccessError::NoRandomness(e.to_string()))?;
    Ok(bytes)
}
