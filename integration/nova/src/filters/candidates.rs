//! Filters that judge each allocation candidate of a host
//! (`CandidateFilterMixin.filter_candidates`).

use crate::fault::NovaException;
use crate::model::{AllocationCandidate, HostState};

/// Keeps the host's candidates that are good, and says whether any is left.
///
/// # Errors
/// What the judge raises; the host then keeps all its candidates.
pub(super) fn keep_good(
    host: &mut HostState,
    mut good: impl FnMut(&HostState, &AllocationCandidate) -> Result<bool, NovaException>,
) -> Result<bool, NovaException> {
    let mut verdicts = Vec::with_capacity(host.allocation_candidates.len());
    for candidate in &host.allocation_candidates {
        verdicts.push(good(host, candidate)?);
    }
    let mut verdict = verdicts.into_iter();
    host.allocation_candidates
        .retain(|_| verdict.next().unwrap_or(false));
    Ok(!host.allocation_candidates.is_empty())
}
