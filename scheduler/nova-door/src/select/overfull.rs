//! What physically runs counts in a claim, whatever Placement shows: it is looked at once more after the claim was made, and the claim is
//! given back if it does not fit.

use super::Selector;
use super::claim::{Claimer, consumer};
use crate::facts::amounts;
use ebbtide_nova_cloud::{Claim, Claimed};
use ebbtide_openstack::{NewClaim, OpenStackError, Resources};
use uuid::Uuid;

/// How often a claim that is given back is tried again that met another writer.
const TRIES: u32 = 4;

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

    /// Claims, and gives back at once what was claimed where somebody still runs that Placement does not show.
    ///
    /// Between the rows' last look and the claim a newcomer may have been deleted whose victims still run. Its row is older than its
    /// claim, so that a look after ours sees it, whichever scheduler it belongs to.
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
            claimer.give_back(claim).await;
            return Claimed::Refused;
        }
        outcome
    }
}

impl Claimer<'_> {
    /// Gives back what was claimed, and leaves what the instance holds elsewhere.
    async fn give_back(&self, claim: &Claim) {
        let Ok(consumer) = consumer(&claim.instance_uuid) else {
            return;
        };
        for _ in 0..TRIES {
            match self.reduce(consumer, claim).await {
                Ok(true) => return,
                Ok(false) => break,
                Err(error) => {
                    tracing::info!(code = error.code(), %consumer, "{error}; trying again")
                }
            }
        }
        self.release(&claim.instance_uuid).await;
    }

    /// False: nothing else is held.
    async fn reduce(&self, consumer: Uuid, claim: &Claim) -> Result<bool, OpenStackError> {
        let held = self.placement.allocations(consumer).await?;
        let mut rest: ebbtide_nova_cloud::Allocations = held
            .allocations
            .iter()
            .map(|(provider, of)| (*provider, of.resources.clone()))
            .collect();
        for (provider, claimed) in amounts(&claim.candidate.allocations) {
            let Some(of) = rest.get_mut(&provider) else {
                continue;
            };
            for (class, amount) in claimed {
                if let Some(left) = of.get_mut(&class) {
                    *left = left.saturating_sub(amount);
                }
            }
            of.retain(|_, amount| *amount > 0);
        }
        rest.retain(|_, of| !of.is_empty());
        if rest.is_empty() {
            return Ok(false);
        }
        let (project_id, user_id) = self.request.owner();
        let left = NewClaim {
            consumer,
            resources: Resources::from_amounts(&rest)?,
            project_id,
            user_id,
            generation: held.consumer_generation,
        };
        self.placement.put_allocations(&left).await?;
        self.facts.providers.claimed(consumer, &rest, None);
        Ok(true)
    }
}
