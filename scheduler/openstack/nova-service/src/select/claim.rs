//! Claims: writes a decision made in memory to Placement, which may refuse it.

use super::claim_fault::ClaimFault;
use super::request::SelectRequest;
use crate::evacuate::PreemptionDriver;
use crate::facts::Facts;
use crate::metrics::Metrics;
use ebbtide_nova::fault::NovaException;
use ebbtide_nova_cloud::{Claim, ClaimResult};
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

/// What proves that a host is as the decision took it to be: Placement verifies the amounts of a
/// claim, but not traits and aggregates, and it may take two claims at once that are too much
/// together (see `provider_locks.rs`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HostProof {
    /// A look at the host's generation before the claim, or Placement's own answer. The look after
    /// the claim only has to show that the claim is not too much.
    Before,
    /// The look after the claim: only this claim has raised the generation.
    After,
    /// A look beside the claim, for a scheduler that is the only one: no other claim can meet this
    /// one. If the look saw the generation raised, by this claim or before it, a look after the
    /// claim says which.
    Beside,
}

/// Makes claims for one request.
pub(super) struct Claimer<'a> {
    pub(super) facts: &'a Facts,
    pub(super) preempting: &'a PreemptionDriver,
    pub(super) metrics: &'a Metrics,
    pub(super) placement: Placement,
    pub(super) request: &'a SelectRequest,
    pub(super) patience: Duration,
}

impl Claimer<'_> {
    /// Claims what was decided, and gives the claim back if the looks after it show that it must
    /// not stay.
    pub(super) async fn claim(&self, claim: &Claim, proof: HostProof) -> ClaimResult {
        let refused = |why: &str| {
            let mut trace = self.request.trace();
            trace.refused(&claim.instance_uuid, &claim.host.host, why);
        };
        let new = match self.new_claim(claim) {
            Ok(new) => new,
            Err(error) => {
                tracing::error!(code = error.code(), "{error}");
                refused(&error.to_string());
                return ClaimResult::Refused;
            }
        };
        if let Some(trial) = &self.request.trial {
            return match trial.claim(self.facts, &new) {
                Ok(()) => ClaimResult::Taken,
                Err(why) => {
                    refused(why);
                    ClaimResult::Refused
                }
            };
        }
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
            let readings = self.facts.providers.readings(std::slice::from_ref(&new));
            let tried = async {
                match self.request.redelivered || self.request.is_doubtful(new.consumer) {
                    true => self.replace(&new).await,
                    false => self.placement.claim_new(&new).await,
                }
            };
            // The look goes first, so that it rarely sees the claim.
            let (is_proven, tried) = tokio::join!(self.look_beside(&new, proof), tried);
            let fault = match &tried {
                Ok(ebbtide_openstack::AllocationResult::Yes) => {
                    self.taken(&new, &readings);
                    self.fault_of(&new, claim, proof, is_proven, 0).await
                }
                _ => None,
            };
            drop(turn);
            let error = match tried {
                Ok(ebbtide_openstack::AllocationResult::Yes) => {
                    return self.keep_or_give_back(&new, claim, fault).await;
                }
                Ok(ebbtide_openstack::AllocationResult::No { status, text, .. }) => {
                    tracing::info!(instance = %new.consumer, host = %claim.host.host, status, "Placement refuses the claim: {text}");
                    refused(&text);
                    return ClaimResult::Refused;
                }
                Err(OpenStackError::ConsumerChanged { text, .. }) => {
                    let words = format!(
                        "Failed to update allocations for consumer {}. Error: {text}",
                        new.consumer
                    );
                    refused(&text);
                    return ClaimResult::Fault(NovaException::new("AllocationUpdateFailed", words));
                }
                Err(error) => error,
            };
            if error.effect() == RequestEffect::Unknown {
                // Until the outcome is known, the next claim for this consumer replaces this one.
                self.request.note_doubtful(&new);
                if let Ok(true) = holds(&self.placement, &new).await {
                    // This does not count as a write of this scheduler: the time of the write is
                    // unknown, so the scheduler reads the host again. The claim has raised the
                    // generation by one all the same.
                    self.taken(&new, &BTreeMap::new());
                    let fault = self.fault_of(&new, claim, proof, false, 1).await;
                    return self.keep_or_give_back(&new, claim, fault).await;
                }
            }
            if !patience.wait(&error).await {
                self.request.note_silence();
                tracing::warn!(code = error.code(), "{error}");
                refused(&error.to_string());
                return ClaimResult::Refused;
            }
        }
    }

    async fn keep_or_give_back(
        &self,
        new: &NewClaim,
        claim: &Claim,
        fault: Option<ClaimFault>,
    ) -> ClaimResult {
        let Some(fault) = fault else {
            return ClaimResult::Taken;
        };
        tracing::info!(instance = %new.consumer, host = %claim.host.host, "the claim is given back: {fault}");
        if let Some(kind) = fault.metric() {
            self.metrics.claim(kind);
        }
        self.give_back(std::slice::from_ref(new)).await;
        self.request.trace().refused(
            &claim.instance_uuid,
            &claim.host.host,
            format!("given back: {fault}"),
        );
        ClaimResult::Refused
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
        self.facts.providers.claimed(new.consumer, &held, None);
        self.facts.providers.wrote(readings);
    }

    /// Why a claim that Placement has taken must not stay. Placement and the ledger are asked in
    /// parallel. `is_proven`: the look beside the claim has shown the host as it was known.
    /// `unseen`: how many writes of this scheduler the known generation does not count.
    async fn fault_of(
        &self,
        new: &NewClaim,
        claim: &Claim,
        proof: HostProof,
        is_proven: bool,
        unseen: i64,
    ) -> Option<ClaimFault> {
        // A reading between the decision and the claim makes the new generation the known one.
        if self.has_other_traits(new, claim) {
            return Some(ClaimFault::HostChanged);
        }
        if !is_proven {
            let host = self.host_fault(new, claim, proof, unseen);
            let (host, runs) = tokio::join!(host, self.runs_there(new));
            return host.or(runs);
        }
        // This reads the ledger, which knows of schedulers that have started since the decision. A
        // scheduler that registers after this read claims after this claim.
        let runs = self.runs_there(new).await;
        if runs.is_none() && self.facts.others.may_claim() {
            return self.host_fault(new, claim, proof, unseen).await;
        }
        runs
    }

    /// Whether a host was found to have other traits or aggregates since it was chosen.
    fn has_other_traits(&self, new: &NewClaim, claim: &Claim) -> bool {
        let mut providers = taken_by(new).into_keys();
        self.facts.read(|cloud| {
            providers.any(|provider| cloud.traits_changed_since(provider, claim.trait_changes))
        })
    }

    /// Whether a look that runs beside the claim shows its host as it was known. False: only a look
    /// after the claim can tell.
    async fn look_beside(&self, new: &NewClaim, proof: HostProof) -> bool {
        if proof != HostProof::Beside {
            return false;
        }
        let providers: Vec<(Uuid, Option<i64>)> = taken_by(new)
            .into_keys()
            .map(|provider| (provider, self.facts.providers.known_generation(provider)))
            .collect();
        for (provider, known) in providers {
            let now = self.placement.provider(provider).await;
            let now = now
                .ok()
                .and_then(|now| i64::try_from(now.generation.0).ok());
            if !matches!((known, now), (Some(known), Some(now)) if now == known) {
                return false;
            }
        }
        true
    }

    /// Whether another writer has changed a provider. The caller holds the provider's lock, so only
    /// other writers increment the generation meanwhile. A claim that has overcommitted a provider
    /// because another scheduler claimed at the same time is given back: the scheduler that claims
    /// last always sees the excess. So is one on a host whose traits or aggregates have changed. If
    /// Placement does not answer now, the claim stays.
    async fn host_fault(
        &self,
        new: &NewClaim,
        claim: &Claim,
        proof: HostProof,
        unseen: i64,
    ) -> Option<ClaimFault> {
        for (provider, amounts) in taken_by(new) {
            let known = self.facts.providers.known_generation(provider);
            let Ok(now) = self.placement.provider(provider).await else {
                continue;
            };
            let generation = i64::try_from(now.generation.0).unwrap_or(i64::MAX);
            // An older one is that of another provider: this one was deleted and made again.
            let as_known =
                |known: i64| (known..=known.saturating_add(unseen)).contains(&generation);
            if known.is_some_and(as_known) {
                continue;
            }
            self.facts.providers.note_other_writer();
            if proof != HostProof::Before {
                return Some(ClaimFault::HostChanged);
            }
            let Ok(Some(facts)) = self.facts.providers.read_whole(provider).await else {
                continue;
            };
            if facts.overcommitted(amounts.keys()).is_some() {
                return Some(ClaimFault::TooMuch);
            }
            if self.has_other_traits(new, claim) {
                return Some(ClaimFault::HostChanged);
            }
        }
        None
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

    /// Deletes claims with unknown outcome of a request that got no host. Placement may write them
    /// later.
    pub(super) async fn give_back_doubtful(&self) {
        for claims in self.request.doubtful() {
            self.give_back(&claims).await;
            self.facts.late_claims.note(claims);
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
        if let Some(trial) = &self.request.trial {
            trial.release(consumer);
            return;
        }
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

/// An instance's UUID in Placement's form.
fn consumer(instance: &str) -> Result<Uuid, OpenStackError> {
    Uuid::parse_str(instance).map_err(|_| OpenStackError::Config {
        place: "request".to_owned(),
        option: "instance_uuid".to_owned(),
        problem: "it is no UUID".to_owned(),
    })
}
