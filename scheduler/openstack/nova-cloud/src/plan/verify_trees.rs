//! Verifies a plan whose claims are in trees of providers.

use super::needs::FilterNeeds;
use super::tree_needs::{TreeNeeds, signed};
use super::verify::Found;
use super::{PlannedVictim, PreemptionPlan, ProviderSnapshot};
use crate::cloud::{Cloud, capacity};
use crate::facts::Allocations;
use ebbtide_engine::HostNeeds as _;
use ebbtide_model::{InterruptionBehaviour, ServerId};
use ebbtide_nova::placement::Query;
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// Amounts that are missing, by provider and class.
type Missing = BTreeMap<(Uuid, String), i64>;

impl Cloud {
    pub(super) fn check_trees(
        &self,
        plan: &PreemptionPlan,
        query: &Query,
        truth: &[ProviderSnapshot],
    ) -> Result<BTreeMap<Uuid, Found>, String> {
        let index = self.tree_index();
        let hosts: BTreeSet<Uuid> = plan.instances.iter().map(|i| i.host.uuid).collect();
        let mut found = BTreeMap::new();
        for host in hosts {
            for provider in index.providers_of(self, host) {
                if self.traits_changed_since(provider, plan.trait_changes) {
                    return Err(format!("traits or aggregates of {provider} have changed"));
                }
            }
            let here = plan
                .victims
                .iter()
                .filter(|victim| victim.host.uuid == host);
            let victims: Vec<&PlannedVictim> = here.collect();
            let mut generations = BTreeMap::new();
            for victim in &victims {
                generations.insert(victim.uuid, seen(victim, truth)?);
            }
            let missing = self.missing_for(plan, host, truth)?;
            let keeps = keeps(&victims, missing)?;
            let place = self.nodes.get(&host).and_then(|node| node.place);
            let place = place.ok_or_else(|| format!("{host} is no compute node any more"))?;
            let spec = plan.judged.as_ref();
            let filters = spec.and_then(|spec| FilterNeeds::of(self, spec));
            let needs = TreeNeeds::of(self, query, filters, &index, std::iter::once(place));
            let name = &self.names[place];
            let count = plan
                .instances
                .iter()
                .filter(|i| i.host.uuid == host)
                .count();
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            let fits_without = |spared: Option<Uuid>| {
                let gone = victims.iter().map(|victim| victim.uuid);
                let gone = gone.filter(|uuid| Some(*uuid) != spared);
                let gone: Vec<ServerId> = gone.map(ServerId::from).collect();
                needs.fits(name, count, &gone)
            };
            if !fits_without(None) {
                return Err(format!("the providers of {host} are not enough any more"));
            }
            let needless = victims.iter().find(|one| fits_without(Some(one.uuid)));
            if let Some(needless) = needless {
                return Err(format!(
                    "the victim {} need not leave any more",
                    needless.uuid
                ));
            }
            for (victim, keeps) in keeps {
                if let Some(generation) = generations.remove(&victim) {
                    found.insert(victim, Found { generation, keeps });
                }
            }
        }
        Ok(found)
    }

    /// What the claims on a host lack of each provider with all consumers there.
    fn missing_for(
        &self,
        plan: &PreemptionPlan,
        host: Uuid,
        truth: &[ProviderSnapshot],
    ) -> Result<Missing, String> {
        let mut claimed: BTreeMap<(Uuid, &String), i64> = BTreeMap::new();
        let here = plan.instances.iter().filter(|i| i.host.uuid == host);
        for (provider, amounts) in here.flat_map(|instance| &instance.allocations) {
            for (class, amount) in amounts {
                let sum = claimed.entry((*provider, class)).or_default();
                *sum = sum.saturating_add(signed(*amount));
            }
        }
        let mut missing = Missing::new();
        for ((provider, class), amount) in claimed {
            let told = truth.iter().find(|told| told.provider == provider);
            let told = told.ok_or_else(|| format!("the consumers of {provider} are unknown"))?;
            let known = self.providers.get(&provider);
            let inventory = known.and_then(|known| known.inventories.as_ref()?.get(class));
            let inventory =
                inventory.ok_or_else(|| format!("{provider} has no {class} any more"))?;
            let used = told.consumers.iter();
            let used: u64 = used.filter_map(|one| one.resources.get(class)).sum();
            let unseen = self.unseen_beside(provider, &told.consumers);
            let free = capacity(inventory)
                .saturating_sub(signed(used))
                .saturating_sub(unseen.get(class).copied().unwrap_or(0))
                .saturating_sub(amount);
            if free < 0 {
                missing.insert((provider, class.clone()), free.saturating_neg());
            }
        }
        Ok(missing)
    }
}

/// The consumer generation of a victim that holds what the plan assumes.
fn seen(victim: &PlannedVictim, truth: &[ProviderSnapshot]) -> Result<i64, String> {
    let mut generation = None;
    for (provider, believed) in &victim.allocations {
        let told = truth.iter().find(|told| told.provider == *provider);
        let told = told.ok_or_else(|| format!("the consumers of {provider} are unknown"))?;
        let there = told.consumers.iter().find(|one| one.uuid == victim.uuid);
        let there = there.filter(|there| there.resources == *believed);
        let there = there.ok_or_else(|| {
            format!(
                "the victim {} has other allocations than believed",
                victim.uuid
            )
        })?;
        generation = Some(there.generation);
    }
    generation.ok_or_else(|| format!("the victim {} has nothing there any more", victim.uuid))
}

/// What the victims keep until they are gone: everything that the newcomers do not lack. Stopped
/// ones keep what they keep for good, and give the rest first.
///
/// # Errors
/// The victims do not have what is missing.
fn keeps(
    victims: &[&PlannedVictim],
    mut missing: Missing,
) -> Result<Vec<(Uuid, Allocations)>, String> {
    let stops = |victim: &&&PlannedVictim| victim.interruption == InterruptionBehaviour::Stop;
    let mut all = Vec::new();
    for victim in victims.iter().filter(stops) {
        for (provider, amounts) in &victim.allocations {
            for (class, amount) in amounts {
                let kept = victim.keeps.get(provider).and_then(|kept| kept.get(class));
                let gives = amount.saturating_sub(kept.copied().unwrap_or(0));
                if let Some(missing) = missing.get_mut(&(*provider, class.clone())) {
                    *missing = missing.saturating_sub(signed(gives));
                }
            }
        }
        all.push((victim.uuid, victim.keeps.clone()));
    }
    for victim in victims.iter().filter(|victim| !stops(victim)) {
        let mut keeps = victim.allocations.clone();
        for (provider, amounts) in &mut keeps {
            for (class, amount) in amounts.iter_mut() {
                let Some(missing) = missing.get_mut(&(*provider, class.clone())) else {
                    continue;
                };
                let gives = (*amount).min((*missing).max(0).unsigned_abs());
                *amount -= gives;
                *missing -= signed(gives);
            }
            amounts.retain(|_, amount| *amount > 0);
        }
        keeps.retain(|_, amounts| !amounts.is_empty());
        all.push((victim.uuid, keeps));
    }
    match missing.iter().find(|(_, missing)| **missing > 0) {
        Some(((provider, class), missing)) => {
            Err(format!("{missing} {class} are missing on {provider}"))
        }
        None => Ok(all),
    }
}
