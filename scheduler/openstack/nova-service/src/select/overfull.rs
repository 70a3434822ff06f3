//! A claim counts what physically runs, whatever Placement shows: the scheduler checks again after
//! the claim, and gives the claim back if it does not fit.

use super::Selector;
use super::claim::Claimer;
use super::claim_fault::ClaimFault;
use ebbtide_openstack::NewClaim;
use ebbtide_swap::taken_by;

impl Selector {
    /// Reads the preemptions that are under way. Without the ledger the known ones count.
    pub(super) async fn know_what_runs(&self) {
        let Some(evacuations) = self.preempting.get() else {
            return;
        };
        if let Err(error) = evacuations.freshen().await {
            tracing::warn!(
                code = error.code(),
                "{error}; preemptions count as they were last read"
            );
        }
    }
}

impl Claimer<'_> {
    /// Whether a victim that Placement does not show still runs where the claim is.
    ///
    /// Between the last read of the rows and the claim, a newcomer may have been deleted whose
    /// victims still run. Its row is older than its claim, so a read after this claim sees the row,
    /// whichever scheduler owns it.
    pub(super) async fn runs_there(&self, new: &NewClaim) -> Option<ClaimFault> {
        let evacuations = self.preempting.get()?;
        for provider in taken_by(new).into_keys() {
            match evacuations.overfull(provider, None).await {
                Ok(None) => {}
                Ok(Some(what)) => return Some(ClaimFault::Overfull(what)),
                Err(error) => {
                    let what = format!("it cannot be known what runs: {error}");
                    return Some(ClaimFault::Overfull(what));
                }
            }
        }
        None
    }
}
