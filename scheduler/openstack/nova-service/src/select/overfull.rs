//! A claim counts what physically runs, whatever Placement shows: the scheduler checks again after
//! the claim, and gives the claim back if it does not fit.

use super::Selector;
use super::claim::Claimer;
use crate::facts::amounts;
use ebbtide_nova_cloud::{Claim, ClaimResult};

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

    /// Claims, and gives the claim back at once if a victim that Placement does not show still runs
    /// there.
    ///
    /// Between the last read of the rows and the claim, a newcomer may have been deleted whose
    /// victims still run. Its row is older than its claim, so a read after this claim sees the row,
    /// whichever scheduler owns it.
    pub(super) async fn claim_what_fits(
        &self,
        claimer: &Claimer<'_>,
        claim: &Claim,
    ) -> ClaimResult {
        let outcome = claimer.claim(claim).await;
        let (ClaimResult::Taken, Some(evacuations)) = (&outcome, self.preempting.get()) else {
            return outcome;
        };
        for provider in amounts(&claim.candidate.allocations).into_keys() {
            let what = match evacuations.overfull(provider).await {
                Ok(None) => continue,
                Ok(Some(what)) => what,
                Err(error) => format!("it cannot be known what runs: {error}"),
            };
            tracing::info!(
                instance = claim.instance_uuid,
                host = %claim.host.host,
                "the claim goes back, victims of a preemption still run there: {what}"
            );
            self.metrics.claim("overfull");
            if let Ok(new) = claimer.new_claim(claim) {
                claimer.give_back(std::slice::from_ref(&new)).await;
            }
            return ClaimResult::Refused;
        }
        outcome
    }
}
