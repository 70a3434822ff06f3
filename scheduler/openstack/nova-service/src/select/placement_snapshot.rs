//! Placement's data about the hosts, victims and newcomers of a preemption, read just before it
//! begins.

use super::{SelectRequest, Selector};
use crate::evacuate::{json_of, victim};
use crate::preemption::{Holding, Newcomer, Victim};
use ebbtide_nova_cloud::{PlannedVictim, PreemptionPlan, ProviderSnapshot};
use ebbtide_openstack::OpenStackError;
use ebbtide_openstack::placement::{ConsumerAllocations, Generation, ProviderAllocation};
use futures::future::try_join_all;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

impl Selector {
    /// Reads from Placement the hosts and the victims of a plan, and the newcomers that already
    /// hold something.
    pub(super) async fn snapshot(
        &self,
        request: &SelectRequest,
        plan: &PreemptionPlan,
    ) -> Result<PlacementSnapshot, OpenStackError> {
        // What was kept counts only with its second reading.
        let foreseen = self.prefetched(request, plan);
        if let Some(snapshot) = foreseen.filter(|snapshot| !snapshot.is_kept) {
            return Ok(snapshot);
        }
        let (hosts, newcomers) = self.concerned(request, plan);
        let of = &self.facts.providers;
        let providers = try_join_all(hosts.into_iter().map(|provider| of.snapshot(provider)));
        let (providers, mut held) = tokio::try_join!(providers, self.held(request, newcomers))?;
        let mut unseen = Vec::new();
        for victim in &plan.victims {
            match seen_whole(victim, &providers) {
                Some(seen) => drop(held.insert(victim.uuid, seen)),
                None => unseen.push(victim.uuid),
            }
        }
        held.extend(self.held(request, unseen).await?);
        Ok(PlacementSnapshot {
            providers,
            held,
            is_kept: false,
        })
    }

    /// What was read ahead, if it has all that the plan needs; once.
    pub(super) fn prefetched(
        &self,
        request: &SelectRequest,
        plan: &PreemptionPlan,
    ) -> Option<PlacementSnapshot> {
        let (hosts, newcomers) = self.concerned(request, plan);
        let foreseen = request.ahead().snapshot.take();
        foreseen.filter(|snapshot| snapshot.covers(&hosts, &newcomers, plan))
    }

    /// The allocations of consumers, with one query for each.
    async fn held(
        &self,
        request: &SelectRequest,
        consumers: Vec<Uuid>,
    ) -> Result<BTreeMap<Uuid, ConsumerAllocations>, OpenStackError> {
        let placement = self.facts.providers.placement(&request.id);
        let asked = consumers.into_iter().map(|consumer| {
            let placement = placement.clone();
            async move { Ok((consumer, placement.allocations(consumer).await?)) }
        });
        Ok(try_join_all(asked).await?.into_iter().collect())
    }

    /// The providers of a plan, and the newcomers whose allocations must be known for it.
    ///
    /// A newcomer that no scheduler has placed yet holds nothing, so the scheduler does not query
    /// its allocations; this saves one query for each request. If it does hold something, Placement
    /// refuses the swap (its claim names no consumer generation), and then the scheduler queries
    /// it.
    pub(super) fn concerned(
        &self,
        request: &SelectRequest,
        plan: &PreemptionPlan,
    ) -> (BTreeSet<Uuid>, Vec<Uuid>) {
        let hosts = plan
            .instances
            .iter()
            .flat_map(|instance| instance.allocations.keys())
            .chain(plan.victims.iter().flat_map(|v| v.allocations.keys()))
            .copied()
            .collect();
        let newcomers = plan.instances.iter().map(|instance| instance.uuid);
        let placed = if request.newcomers_may_hold() {
            newcomers.collect()
        } else {
            self.facts.read(|cloud| {
                newcomers
                    .filter(|uuid| cloud.instance(*uuid).is_some())
                    .collect()
            })
        };
        (hosts, placed)
    }
}

/// Placement's data for a plan.
pub(super) struct PlacementSnapshot {
    pub(super) providers: Vec<ProviderSnapshot>,
    held: BTreeMap<Uuid, ConsumerAllocations>,
    /// They were read before the request arrived, and not just now.
    pub(super) is_kept: bool,
}

impl PlacementSnapshot {
    /// Data that were read before the request arrived. `None`: they do not show all that the
    /// victims hold.
    pub(super) fn of_cached(
        providers: Vec<ProviderSnapshot>,
        plan: &PreemptionPlan,
    ) -> Option<Self> {
        let victims = plan.victims.iter();
        let held = victims.map(|victim| Some((victim.uuid, seen_whole(victim, &providers)?)));
        Some(Self {
            held: held.collect::<Option<_>>()?,
            providers,
            is_kept: true,
        })
    }

    /// Whether the snapshot contains everything that the plan needs.
    fn covers(&self, hosts: &BTreeSet<Uuid>, newcomers: &[Uuid], plan: &PreemptionPlan) -> bool {
        let told: BTreeSet<Uuid> = self.providers.iter().map(|p| p.provider).collect();
        let victims = plan.victims.iter().map(|victim| &victim.uuid);
        hosts.is_subset(&told)
            && newcomers
                .iter()
                .chain(victims)
                .all(|consumer| self.held.contains_key(consumer))
    }

    pub(super) fn victim(&self, planned: &PlannedVictim) -> Result<Victim, Uuid> {
        let held = self.held.get(&planned.uuid).ok_or(planned.uuid)?;
        victim(planned, held).ok_or(planned.uuid)
    }

    /// A newcomer, with its existing allocations elsewhere: an instance whose owner evacuates it
    /// holds allocations on its old host until it is rebuilt.
    pub(super) fn newcomer(&self, instance: Uuid, host: String, mut claim: Holding) -> Newcomer {
        let held = self
            .held
            .get(&instance)
            .filter(|held| !held.allocations.is_empty());
        let before = held.map(|held| {
            let generation = held.consumer_generation.map(|generation| generation.0);
            let before = Holding {
                allocations: json_of(held),
                mappings: None,
                generation,
                ..claim.clone()
            };
            if let (Value::Object(claimed), Value::Object(had)) =
                (&mut claim.allocations, &before.allocations)
            {
                for (provider, of) in had {
                    claimed.insert(provider.clone(), of.clone());
                }
            }
            claim.mappings = None;
            claim.generation = generation;
            before
        });
        Newcomer {
            instance,
            host,
            claim,
            before,
        }
    }
}

/// A victim's allocations, if the provider of its host shows all of them: the victim holds there
/// exactly what the cloud in memory says it holds anywhere. A query for the victim itself would
/// cost each preemption one more query.
///
/// A server that its owner has evacuated from a dead host may hold allocations there that the
/// scheduler does not know. The swap frees those, too; Nova would free them when the host comes
/// back.
fn seen_whole(
    victim: &PlannedVictim,
    providers: &[ProviderSnapshot],
) -> Option<ConsumerAllocations> {
    let (believed_on, believed) = victim.allocations.first_key_value()?;
    if victim.allocations.len() > 1 {
        return None;
    }
    let told = providers.iter().find(|p| p.provider == *believed_on)?;
    let seen = told.consumers.iter().find(|c| c.uuid == victim.uuid)?;
    let generation = u64::try_from(seen.generation).ok()?;
    (seen.resources == *believed).then(|| ConsumerAllocations {
        allocations: BTreeMap::from([(
            *believed_on,
            ProviderAllocation {
                resources: seen.resources.clone(),
                generation: None,
            },
        )]),
        consumer_generation: Some(Generation(generation)),
        ..ConsumerAllocations::default()
    })
}
