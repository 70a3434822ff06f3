//! Consumers of Placement: what each holds, and how much of it could be freed.

use super::{Cloud, provider};
use crate::facts::{Allocations, Consumer};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ConsumerEntry {
    pub(crate) allocations: Allocations,
    pub(crate) generation: Option<i64>,
    /// True if the allocations come from Placement or an own write; false if they are estimated
    /// from the flavor.
    pub(crate) told: bool,
}

impl Cloud {
    /// Sets the exact allocations of a consumer, after an own write or a read. The generation is
    /// the one after the write.
    pub fn claimed(&mut self, consumer: Uuid, allocations: &Allocations, generation: Option<i64>) {
        let entry = ConsumerEntry {
            allocations: allocations.clone(),
            generation,
            told: true,
        };
        self.set_consumer(consumer, entry);
    }

    /// Records that a consumer holds nothing any more.
    pub fn released(&mut self, consumer: Uuid) {
        self.set_consumer(
            consumer,
            ConsumerEntry {
                told: true,
                ..ConsumerEntry::default()
            },
        );
    }

    /// The known or estimated allocations of a consumer, and its generation if known.
    #[must_use]
    pub fn consumer(&self, uuid: Uuid) -> Option<(&Allocations, Option<i64>)> {
        let entry = self.consumers.get(&uuid)?;
        Some((&entry.allocations, entry.generation))
    }

    /// Sets the complete list of a provider's consumers (`GET
    /// /resource_providers/{uuid}/allocations`), with the provider's generation.
    pub fn consumers_of(&mut self, provider: Uuid, generation: i64, consumers: &[Consumer]) {
        let known = self
            .consumers_at
            .get(&provider)
            .cloned()
            .unwrap_or_default();
        // What a server holds of other providers says nothing of what it holds of its host.
        let of_host = self.nodes.contains_key(&provider);
        let told: BTreeSet<Uuid> = consumers.iter().map(|consumer| consumer.uuid).collect();
        for gone in known.into_iter().filter(|uuid| !told.contains(uuid)) {
            let mut entry = self.consumers.get(&gone).cloned().unwrap_or_default();
            entry.allocations.remove(&provider);
            entry.told |= of_host;
            if entry.allocations.is_empty() {
                entry.generation = None;
            }
            self.set_consumer(gone, entry);
        }
        for consumer in consumers {
            let mut entry = self
                .consumers
                .get(&consumer.uuid)
                .cloned()
                .unwrap_or_default();
            if !entry.told && of_host {
                let others = &self.others;
                entry.allocations.retain(|of, _| others.contains(of));
            }
            entry
                .allocations
                .insert(provider, consumer.resources.clone());
            entry.generation = Some(consumer.generation);
            entry.told |= of_host;
            self.set_consumer(consumer.uuid, entry);
        }
        // The complete list determines the usage; earlier increments do not count any more.
        let mut used = BTreeMap::new();
        for consumer in consumers {
            provider::add(&mut used, &consumer.resources, 1);
        }
        if let Some(known) = self.providers.get_mut(&provider) {
            known.used = Some(used);
            known.usage_generation = Some(generation);
            known.consumers_known = true;
        }
        self.follow_amounts(provider);
    }

    /// Estimates an instance's allocations from its flavor, if Placement's data for it are not
    /// known.
    pub(super) fn believe(&mut self, uuid: Uuid) {
        if self.consumers.get(&uuid).is_some_and(|entry| entry.told) {
            return;
        }
        let believed = self.believed_of(uuid);
        // What was read of other providers stays.
        let read = self.consumers.get(&uuid);
        let read = read.into_iter().flat_map(|entry| &entry.allocations);
        let read = read.filter(|(provider, _)| self.others.contains(provider));
        let read = read.map(|(provider, amounts)| (*provider, amounts.clone()));
        let entry = ConsumerEntry {
            allocations: read.chain(believed).collect(),
            generation: None,
            told: false,
        };
        self.set_consumer(uuid, entry);
    }

    /// Removes the estimated allocations of an instance that is gone.
    pub(super) fn forget_belief(&mut self, uuid: Uuid) {
        if self.consumers.get(&uuid).is_some_and(|entry| !entry.told) {
            self.set_consumer(uuid, ConsumerEntry::default());
        }
    }

    fn set_consumer(&mut self, uuid: Uuid, entry: ConsumerEntry) {
        let before = self.consumers.get(&uuid).cloned().unwrap_or_default();
        let mut touched: BTreeSet<Uuid> = BTreeSet::new();
        if before.allocations != entry.allocations {
            self.uncount(uuid);
            // A usage that was read includes the estimated allocations, whichever of the two
            // arrived first.
            let counted = before.told || entry.told;
            for (provider, sign, allocations) in [
                (&before, -1, &before.allocations),
                (&entry, 1, &entry.allocations),
            ]
            .into_iter()
            .flat_map(|(_, sign, all)| all.iter().map(move |(p, r)| (p, sign, r)))
            {
                touched.insert(*provider);
                let known = self.providers.entry(*provider).or_default();
                if counted {
                    known.consume(allocations, sign);
                } else {
                    provider::add(&mut known.consumed, allocations, sign);
                }
            }
            for provider in before.allocations.keys() {
                if let Some(consumers) = self.consumers_at.get_mut(provider) {
                    consumers.remove(&uuid);
                }
            }
            for provider in entry.allocations.keys() {
                self.consumers_at.entry(*provider).or_default().insert(uuid);
            }
        }
        if entry.allocations.is_empty() && !(entry.told && self.instances.contains_key(&uuid)) {
            self.consumers.remove(&uuid);
        } else {
            self.consumers.insert(uuid, entry);
        }
        if touched.is_empty() {
            return;
        }
        self.count(uuid);
        self.follow_named(uuid);
        touched
            .into_iter()
            .for_each(|provider| self.follow_amounts(provider));
    }

    /// Updates whether an instance counts as evictable.
    pub(super) fn count_again(&mut self, uuid: Uuid) {
        let before = self.uncount(uuid);
        let now = self.count(uuid);
        for provider in [before, now].into_iter().flatten() {
            self.follow_amounts(provider);
        }
    }

    /// Updates the consumers of a compute node that was added or removed.
    pub(super) fn count_again_at(&mut self, provider: Uuid) {
        let consumers = self
            .consumers_at
            .get(&provider)
            .cloned()
            .unwrap_or_default();
        consumers
            .into_iter()
            .for_each(|uuid| self.count_again(uuid));
        // Servers that were added before their node.
        let host = self.nodes.get(&provider).map(|node| node.row.host.clone());
        let list = host.and_then(|host| self.host_instances.get(&host));
        let uuids: Vec<Uuid> = list.map_or_else(Vec::new, |list| {
            list.instances
                .keys()
                .filter_map(|uuid| uuid.parse().ok())
                .collect()
        });
        for uuid in uuids {
            if self.instances.contains_key(&uuid) && !self.consumers.contains_key(&uuid) {
                self.believe(uuid);
            }
        }
    }

    /// Removes an instance from the evictable amounts and from the victims' table. Returns its
    /// provider.
    pub(super) fn uncount(&mut self, uuid: Uuid) -> Option<Uuid> {
        let (provider, resources) = self.instances.get_mut(&uuid)?.counted.take()?;
        if let Some(known) = self.providers.get_mut(&provider) {
            provider::add(&mut known.preemptible, &resources, -1);
        }
        self.victims.remove_instance(uuid.into());
        self.touch_devices(provider);
        Some(provider)
    }

    /// Counts an instance as evictable if it is: its flavor is preemptible, it has no notice yet,
    /// and it holds something of the compute node that it is on. Returns its provider.
    fn count(&mut self, uuid: Uuid) -> Option<Uuid> {
        let instance = self.instances.get(&uuid)?;
        if instance.terms.is_none() || self.leaving.contains(&uuid) {
            return None;
        }
        let provider = self.node_of(&instance.record)?;
        self.nodes.get(&provider)?.place?;
        let resources = self
            .consumers
            .get(&uuid)?
            .allocations
            .get(&provider)?
            .clone();
        if resources.is_empty() {
            return None;
        }
        if !self.put_victim(uuid, provider, &resources) {
            return None;
        }
        if let Some(known) = self.providers.get_mut(&provider) {
            provider::add(&mut known.preemptible, &resources, 1);
        }
        if let Some(instance) = self.instances.get_mut(&uuid) {
            instance.counted = Some((provider, resources));
        }
        Some(provider)
    }
}
