//! Verifies a plan against the consumers that Placement has just listed.

use super::needs::FilterNeeds;
use super::{PlannedVictim, PreemptionPlan, ProviderSnapshot, VerifyResult};
use crate::cloud::Cloud;
use crate::facts::{Allocations, Consumer};
use ebbtide_model::InterruptionBehaviour;
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// What victims release, by resource class.
type Freed = BTreeMap<String, i64>;

impl Cloud {
    /// Compares a plan with the consumers that Placement has just listed for its hosts: every
    /// victim is there and holds what the plan assumes, all claims fit once the victims are gone,
    /// no victim has become superfluous, and no host has other traits or aggregates. Inventories
    /// come from the cloud in memory. If the plan is good, fills in the victims' generations and
    /// what each victim keeps while it still runs.
    pub fn verify(&self, plan: &mut PreemptionPlan, truth: &[ProviderSnapshot]) -> VerifyResult {
        match self.check(plan, truth) {
            Ok(found) => {
                for victim in &mut plan.victims {
                    let found = found.get(&victim.uuid);
                    victim.generation = found.map(|found| found.generation);
                    if let Some(found) = found {
                        victim.keeps.clone_from(&found.keeps);
                    }
                }
                VerifyResult::Good
            }
            Err(changed) => VerifyResult::Changed(changed),
        }
    }

    fn check(
        &self,
        plan: &PreemptionPlan,
        truth: &[ProviderSnapshot],
    ) -> Result<BTreeMap<Uuid, Found>, String> {
        let providers: BTreeSet<Uuid> = plan
            .instances
            .iter()
            .flat_map(|i| i.allocations.keys().copied())
            .collect();
        if let Some(query) = &plan.tree_query {
            return self.check_trees(plan, query, truth);
        }
        let mut generations = BTreeMap::new();
        let mut found = BTreeMap::new();
        for provider in providers {
            if self.traits_changed_since(provider, plan.trait_changes) {
                return Err(format!("traits or aggregates of {provider} have changed"));
            }
            let told = truth.iter().find(|told| told.provider == provider);
            let told = told.ok_or_else(|| format!("the consumers of {provider} are unknown"))?;
            let consumers: BTreeMap<Uuid, &Consumer> = told
                .consumers
                .iter()
                .map(|consumer| (consumer.uuid, consumer))
                .collect();
            let mut freed: BTreeMap<Uuid, Freed> = BTreeMap::new();
            for victim in plan
                .victims
                .iter()
                .filter(|victim| victim.host.uuid == provider)
            {
                let believed = victim.allocations.get(&provider);
                let there = consumers.get(&victim.uuid);
                let there = there.ok_or_else(|| {
                    format!("the victim {} has nothing there any more", victim.uuid)
                })?;
                if believed != Some(&there.resources) {
                    return Err(format!(
                        "the victim {} has other allocations than believed",
                        victim.uuid
                    ));
                }
                generations.insert(victim.uuid, there.generation);
                let kept = |class: &String| {
                    let keeps = victim
                        .keeps
                        .get(&provider)
                        .and_then(|keeps| keeps.get(class));
                    keeps.copied().unwrap_or(0)
                };
                let gives = there.resources.iter();
                let gives =
                    gives.map(|(class, n)| (class.clone(), signed(n.saturating_sub(kept(class)))));
                freed.insert(victim.uuid, gives.collect());
            }
            let free = self.free_after_claims(plan, provider, &told.consumers)?;
            let judged = plan
                .judged
                .as_ref()
                .and_then(|spec| FilterNeeds::of(self, spec));
            let count = plan.instances.iter();
            let count = count.filter(|instance| instance.host.uuid == provider);
            let count = u32::try_from(count.count()).unwrap_or(u32::MAX);
            let is_accepted = |spared: Option<Uuid>| {
                let gone = freed.keys().filter(|uuid| Some(**uuid) != spared);
                let gone: Vec<Uuid> = gone.copied().collect();
                let judged = judged.as_ref();
                judged.is_none_or(|needs| needs.accepts(provider, count, &gone))
            };
            let fits_without = |spared: Option<Uuid>| {
                let amounts = free.iter().all(|(class, free)| {
                    let gone = freed.iter().filter(|(uuid, _)| Some(**uuid) != spared);
                    let gives: i64 = gone.filter_map(|(_, gives)| gives.get(class)).sum();
                    free.saturating_add(gives) >= 0
                });
                amounts && is_accepted(spared)
            };
            if !fits_without(None) {
                return Err(format!("the room on {provider} is not enough any more"));
            }
            if let Some(superfluous) = freed.keys().find(|uuid| fits_without(Some(**uuid))) {
                return Err(format!("the victim {superfluous} need not leave any more"));
            }
            let here = plan.victims.iter().filter(|v| v.host.uuid == provider);
            for (victim, keeps) in keeps(here, provider, &free) {
                if let Some(generation) = generations.remove(&victim) {
                    found.insert(victim, Found { generation, keeps });
                }
            }
        }
        Ok(found)
    }

    /// For each class that the plan claims on a provider: what is free with all current consumers
    /// and the claims. Negative where victims have to leave.
    fn free_after_claims(
        &self,
        plan: &PreemptionPlan,
        provider: Uuid,
        consumers: &[Consumer],
    ) -> Result<BTreeMap<String, i64>, String> {
        let unknown = || format!("{provider} is no compute node any more");
        let node = self.nodes.get(&provider).ok_or_else(unknown)?;
        let inventories = self
            .providers
            .get(&provider)
            .ok_or_else(unknown)?
            .inventories(&node.row);
        let unseen = self.unseen_beside(provider, consumers);
        let mut free: BTreeMap<String, i64> = BTreeMap::new();
        for claims in plan
            .instances
            .iter()
            .filter_map(|instance| instance.allocations.get(&provider))
        {
            for (class, amount) in claims {
                let inventory = inventories.get(class);
                let inventory =
                    inventory.ok_or_else(|| format!("{provider} has no {class} any more"))?;
                let free = free.entry(class.clone()).or_insert_with(|| {
                    let used = consumers
                        .iter()
                        .filter_map(|consumer| consumer.resources.get(class));
                    let used: u64 = used.sum();
                    let unseen = unseen.get(class).copied().unwrap_or(0);
                    crate::cloud::capacity(inventory)
                        .saturating_sub(signed(used))
                        .saturating_sub(unseen)
                });
                *free = free.saturating_sub(signed(*amount));
            }
        }
        Ok(free)
    }
}

/// A victim's data from Placement, and what it keeps.
pub(super) struct Found {
    pub(super) generation: i64,
    pub(super) keeps: Allocations,
}

/// What the victims of a provider keep until they are gone: everything that the newcomers do not
/// need, so that no other consumer gets it while the victims still run. When a victim ends, Nova
/// removes the rest, as for any deleted server. Nova does not do this for a server that is stopped,
/// so that one keeps only its permanent `keeps`. `free`: the result of
/// [`Cloud::free_after_claims`].
fn keeps<'a>(
    victims: impl Iterator<Item = &'a PlannedVictim>,
    provider: Uuid,
    free: &BTreeMap<String, i64>,
) -> Vec<(Uuid, Allocations)> {
    let mut missing: BTreeMap<&String, u64> = free
        .iter()
        .map(|(class, free)| (class, free.saturating_neg().max(0).unsigned_abs()))
        .collect();
    let (stopped, ending): (Vec<_>, Vec<_>) =
        victims.partition(|victim| victim.interruption == InterruptionBehaviour::Stop);
    for victim in &stopped {
        let kept = victim.keeps.get(&provider);
        for (class, amount) in victim.allocations.get(&provider).into_iter().flatten() {
            let kept = kept.and_then(|kept| kept.get(class)).copied().unwrap_or(0);
            if let Some(missing) = missing.get_mut(class) {
                *missing = missing.saturating_sub(amount.saturating_sub(kept));
            }
        }
    }
    let mut all: Vec<(Uuid, Allocations)> = stopped
        .iter()
        .map(|victim| (victim.uuid, victim.keeps.clone()))
        .collect();
    for victim in ending {
        let mut keeps = victim.allocations.clone();
        if let Some(here) = keeps.get_mut(&provider) {
            for (class, amount) in here.iter_mut() {
                if let Some(missing) = missing.get_mut(class) {
                    let gives = (*amount).min(*missing);
                    *amount -= gives;
                    *missing -= gives;
                }
            }
            here.retain(|_, amount| *amount > 0);
        }
        keeps.retain(|_, amounts| !amounts.is_empty());
        all.push((victim.uuid, keeps));
    }
    all
}

fn signed(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}
