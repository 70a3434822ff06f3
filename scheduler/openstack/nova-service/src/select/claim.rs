//! Claims: writes a decision made in memory to Placement, which may refuse it.

use super::SelectRequest;
use crate::facts::Facts;
use ebbtide_nova::fault::NovaException;
use ebbtide_nova_cloud::{Claim, ClaimResult};
use ebbtide_openstack::placement::Inventory;
use ebbtide_openstack::{NewClaim, OpenStackError, Placement, RequestEffect, Resources};
use ebbtide_runtime::task::pause;
use ebbtide_swap::{holds, take_back, taken_by};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// The pause before an unavailable Placement is asked again. It doubles up to `LONGEST_PAUSE`.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// How long a request waits for an unavailable service.
pub(super) struct RetryBudget<'a> {
    left: Duration,
    next: Duration,
    stop: &'a CancellationToken,
}

impl<'a> RetryBudget<'a> {
    pub(super) fn new(limit: Duration, stop: &'a CancellationToken) -> Self {
        Self {
            left: limit,
            next: FIRST_PAUSE,
            stop,
        }
    }

    /// Waits for an unavailable service. False: the time is used up, the error is permanent, or the
    /// scheduler stops.
    pub(super) async fn wait(&mut self, error: &OpenStackError) -> bool {
        if !error.is_passing() || self.left.is_zero() {
            return false;
        }
        tracing::warn!(code = error.code(), "{error}; asking again");
        let time = self.next.min(self.left);
        self.left -= time;
        self.next = (self.next * 2).min(LONGEST_PAUSE);
        pause(self.stop, time).await
    }
}

/// Makes claims for one request.
pub(super) struct Claimer<'a> {
    pub(super) facts: &'a Facts,
    pub(super) placement: Placement,
    pub(super) request: &'a SelectRequest,
    pub(super) patience: Duration,
}

impl Claimer<'_> {
    /// Claims what was decided.
    pub(super) async fn claim(&self, claim: &Claim) -> ClaimResult {
        let new = match self.new_claim(claim) {
            Ok(new) => new,
            Err(error) => {
                tracing::error!(code = error.code(), "{error}");
                return ClaimResult::Refused;
            }
        };
        let _writing = self.facts.providers.begin_write(claim.host.uuid);
        let mut patience = RetryBudget::new(self.patience, &self.request.stop);
        loop {
            // The lock is held only during the query. A claim that waits for an unavailable
            // Placement does not block other claims.
            let turn = self
                .facts
                .providers
                .lock_for_write(std::slice::from_ref(&new))
                .await;
            let readings = self.facts.providers.readings(&new);
            let tried = if self.request.redelivered || self.request.is_doubtful(new.consumer) {
                self.replace(&new).await
            } else {
                self.placement.claim_new(&new).await
            };
            let over = match &tried {
                Ok(ebbtide_openstack::AllocationResult::Yes) => {
                    self.taken(&new, &readings);
                    self.takes_too_much(&new).await
                }
                _ => false,
            };
            drop(turn);
            let error = match tried {
                Ok(ebbtide_openstack::AllocationResult::Yes) if over => {
                    tracing::info!(instance = %new.consumer, host = %claim.host.host, "another scheduler's claim met ours, and both are too much; ours is given back");
                    self.give_back(std::slice::from_ref(&new)).await;
                    return ClaimResult::Refused;
                }
                Ok(ebbtide_openstack::AllocationResult::Yes) => return ClaimResult::Taken,
                Ok(ebbtide_openstack::AllocationResult::No { status, text, .. }) => {
                    tracing::info!(instance = %new.consumer, host = %claim.host.host, status, "Placement refuses the claim: {text}");
                    return ClaimResult::Refused;
                }
                Err(OpenStackError::ConsumerChanged { text, .. }) => {
                    let words = format!(
                        "Failed to update allocations for consumer {}. Error: {text}",
                        new.consumer
                    );
                    return ClaimResult::Fault(NovaException::new("AllocationUpdateFailed", words));
                }
                Err(error) => error,
            };
            if error.effect() == RequestEffect::Unknown {
                // Until the outcome is known, the next claim for this consumer replaces this one.
                self.request.note_doubtful(&new);
                if let Ok(true) = holds(&self.placement, &new).await {
                    // This does not count as a write of this scheduler: the time of the write is
                    // unknown, so the scheduler reads the host again.
                    self.taken(&new, &BTreeMap::new());
                    return ClaimResult::Taken;
                }
            }
            if !patience.wait(&error).await {
                self.request.note_silence();
                tracing::warn!(code = error.code(), "{error}");
                return ClaimResult::Refused;
            }
        }
    }

    pub(super) fn new_claim(&self, claim: &Claim) -> Result<NewClaim, OpenStackError> {
        let candidate = &claim.candidate;
        let mappings = (!candidate.mappings.is_null()).then(|| candidate.mappings.clone());
        let (project_id, user_id) = self.request.owner();
        Ok(NewClaim {
            consumer: consumer(&claim.instance_uuid)?,
            resources: Resources::new(candidate.allocations.clone(), mappings)?,
            project_id,
            user_id,
            generation: None,
        })
    }

    fn taken(&self, new: &NewClaim, readings: &BTreeMap<Uuid, u64>) {
        let held = taken_by(new);
        self.request.forget_doubt(new.consumer);
        self.facts
            .providers
            .own_claim(new.consumer, &held, readings);
    }

    /// Whether the claim has overcommitted a provider because another scheduler claimed at the same
    /// time: Placement then takes both claims (see `provider_locks.rs`). The scheduler that claims
    /// last always sees the excess. The caller holds the provider's lock, so only other schedulers
    /// increment the generation meanwhile. If Placement does not answer now, the claim stays.
    async fn takes_too_much(&self, new: &NewClaim) -> bool {
        for (provider, amounts) in taken_by(new) {
            let Ok(given) = self.placement.usages(provider).await else {
                continue;
            };
            let generation = i64::try_from(given.generation.0).unwrap_or(i64::MAX);
            let known = self.facts.providers.known_generation(provider);
            if known.is_some_and(|known| generation <= known) {
                continue;
            }
            let Ok(has) = self.placement.inventories(provider).await else {
                continue;
            };
            let over = amounts.keys().any(|class| {
                let used = given.usages.get(class).copied().unwrap_or(0);
                let has = has.inventories.get(class);
                has.is_some_and(|has| used as f64 > capacity(has))
            });
            if over {
                return true;
            }
        }
        false
    }

    /// Deletes claims of one consumer and keeps its allocations elsewhere (an instance that its
    /// owner evacuates).
    pub(super) async fn give_back(&self, claims: &[NewClaim]) {
        let Some(new) = claims.first() else { return };
        let mut patience = RetryBudget::new(self.patience, &self.request.stop);
        loop {
            match take_back(&self.placement, claims).await {
                Ok(()) => {
                    self.request.forget_doubt(new.consumer);
                    self.facts.providers.released(new.consumer);
                    return;
                }
                Err(error) => {
                    if !patience.wait(&error).await {
                        let instance = new.consumer;
                        tracing::error!(
                            code = "EB-DOOR-030",
                            %instance,
                            "its claim could not be taken back: {error}; `openstack resource provider allocation delete {instance}` does it"
                        );
                        return;
                    }
                }
            }
        }
    }

    /// Deletes claims with unknown outcome of a request that got no host.
    pub(super) async fn give_back_doubtful(&self) {
        for claims in self.request.doubtful() {
            self.give_back(&claims).await;
        }
    }

    /// Writes a claim for a request that may have been begun before.
    async fn replace(
        &self,
        new: &NewClaim,
    ) -> Result<ebbtide_openstack::AllocationResult, OpenStackError> {
        let home = async {
            match self.request.home.get(&new.consumer) {
                Some(home) => Some(*home),
                None if self.request.redelivered => None,
                None => {
                    let homes = self.facts.database.homes(&[new.consumer]).await;
                    homes.get(&new.consumer).copied()
                }
            }
        };
        ebbtide_swap::replace(&self.placement, new, home).await
    }

    /// Deletes an instance's claim.
    pub(super) async fn release(&self, instance: &str) {
        let Ok(consumer) = consumer(instance) else {
            return;
        };
        let mut patience = RetryBudget::new(self.patience, &self.request.stop);
        loop {
            match self.placement.delete_allocations(consumer).await {
                Ok(_) => {
                    self.facts.providers.released(consumer);
                    return;
                }
                Err(error) => {
                    if !patience.wait(&error).await {
                        tracing::error!(
                            code = "EB-DOOR-030",
                            instance,
                            "its claim could not be taken back: {error}; `openstack resource provider allocation delete {instance}` does it"
                        );
                        return;
                    }
                }
            }
        }
    }
}

/// The amount of an inventory that all consumers together may hold, computed as Placement does.
fn capacity(has: &Inventory) -> f64 {
    (has.total as f64 - has.reserved as f64) * has.allocation_ratio
}

/// An instance's UUID in Placement's form.
fn consumer(instance: &str) -> Result<Uuid, OpenStackError> {
    Uuid::parse_str(instance).map_err(|_| OpenStackError::Config {
        place: "request".to_owned(),
        option: "instance_uuid".to_owned(),
        problem: "it is no UUID".to_owned(),
    })
}
