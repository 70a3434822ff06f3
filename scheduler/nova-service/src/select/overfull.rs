//! What physically runs counts in a claim, whatever Placement shows: it is looked at once more
//! after the claim was made, and the claim is given back if it does not fit.

use super::Selector;
use super::claim::Claimer;
use crate::facts::amounts;
use ebbtide_nova_cloud::{Claim, Claimed};

impl Selector {
    /// Reads which preemptions are under way: without the ledger those count that are known.
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

    /// Claims, and gives back at once what was claimed where a victim still runs that Placement
    /// does not show.
    ///
    /// Between the rows' last look and the claim a newcomer may have been deleted whose victims
    /// still run. Its row is older than its claim, so that a look after ours sees it, whichever
    /// scheduler it belongs to.
    pub(super) async fn claim_what_fits(&self, claimer: &Claimer<'_>, claim: &Claim) -> Claimed {
        let outcome = claimer.claim(claim).await;
        let (Claimed::Taken, Some(evacuations)) = (&outcome, self.preempting.get()) else {
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
            return Claimed::Refused;
        }
        outcome
    }
}
