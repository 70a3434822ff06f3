//! One resource provider, with what is known of it.

use super::columns::{ClassCell, narrow};
use crate::facts::{Inventory, ProviderFacts};
use ebbtide_nova::hosts::ComputeRow;
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// The trait of providers that share their inventory with the hosts of their aggregates.
pub(crate) const SHARES: &str = "MISC_SHARES_VIA_AGGREGATE";

#[derive(Debug, Clone, Default)]
pub(crate) struct Provider {
    pub(crate) name: String,
    pub(crate) parent: Option<Uuid>,
    pub(crate) root: Option<Uuid>,
    /// Its generation when inventories and traits were read, or an older one.
    pub(crate) generation: Option<i64>,
    /// How often that generation was read.
    pub(crate) readings: u64,
    /// Its generation in the last list of providers.
    pub(crate) listed: Option<i64>,
    /// True if the inventories come from a summary, which has the totals but not the limits of one
    /// consumer. Then only Nova's aggregates are known.
    pub(crate) partial: bool,
    /// `None`: not read; the compute node's row is used instead.
    pub(crate) inventories: Option<BTreeMap<String, Inventory>>,
    /// `None`: not read; the sum over the known consumers is used instead.
    pub(crate) used: Option<BTreeMap<String, i64>>,
    /// Whether all its consumers are known one by one: they were read, and only own writes have
    /// changed them since.
    pub(crate) consumers_known: bool,
    /// The provider's generation when its consumers were read.
    pub(crate) usage_generation: Option<i64>,
    pub(crate) traits: Option<BTreeSet<String>>,
    pub(crate) aggregates: Option<BTreeSet<Uuid>>,
    /// The number of the last change of its traits, or loss of an aggregate, in
    /// `Cloud::trait_changes`.
    pub(crate) traits_changed: u64,
    /// What all known consumers hold here.
    pub(crate) consumed: BTreeMap<String, i64>,
    /// What victims of open preemptions still use while Placement shows it as free.
    pub(crate) running: BTreeMap<String, i64>,
    /// What the evictable consumers hold here.
    pub(crate) preemptible: BTreeMap<String, i64>,
}

/// Adds amounts to sums, or takes them away.
pub(crate) fn add(sums: &mut BTreeMap<String, i64>, amounts: &BTreeMap<String, u64>, sign: i64) {
    for (class, amount) in amounts {
        let amount = i64::try_from(*amount)
            .unwrap_or(i64::MAX)
            .saturating_mul(sign);
        match sums.get_mut(class) {
            Some(sum) => *sum = sum.saturating_add(amount),
            None => drop(sums.insert(class.clone(), amount)),
        }
    }
}

/// How much of an inventory Placement gives to all consumers together. Placement compares with the
/// exact product; a whole number is at most the product exactly if it is at most the product's
/// integer part.
pub(crate) fn capacity(inventory: &Inventory) -> i64 {
    let stock = inventory.total.saturating_sub(inventory.reserved) as f64;
    let capacity = (stock * inventory.allocation_ratio).floor();
    // Casts saturate, and NaN is 0.
    capacity as i64
}

impl Provider {
    /// Stores what was read. Returns whether its traits differ from the known ones or an aggregate
    /// was lost.
    pub(crate) fn take(&mut self, facts: ProviderFacts) -> bool {
        if !facts.name.is_empty() {
            self.name = facts.name;
        }
        // Only lists contain the position in the provider tree; other reads leave it unknown.
        if facts.root.is_some() {
            self.parent = facts.parent;
        }
        self.root = facts.root.or(self.root).or(Some(facts.uuid));
        if facts.inventories.is_some() {
            self.consumers_known &= facts.generation == self.generation;
            self.inventories = facts.inventories;
            self.generation = facts.generation;
            self.readings += 1;
            self.partial = false;
        }
        // A usage that was read before the consumers is outdated.
        let late = facts.generation < self.usage_generation && facts.generation.is_some();
        if let Some(used) = facts.used.filter(|_| !late) {
            self.used = Some(used);
        }
        let traits = facts.traits.is_some() && facts.traits != self.traits;
        if traits {
            self.traits = facts.traits;
        }
        let lost = facts.aggregates.map(|now| self.take_aggregates(now));
        traits || lost.unwrap_or(false)
    }

    /// Stores the aggregates that it is in. Returns whether it has left one: Placement's answer to
    /// a request that asks for a new aggregate comes before the aggregate is read here.
    pub(crate) fn take_aggregates(&mut self, now: BTreeSet<Uuid>) -> bool {
        let before = self.aggregates.replace(now);
        let now = self.aggregates.as_ref();
        before.is_some_and(|before| now.is_some_and(|now| !before.is_subset(now)))
    }

    /// Whether it shares its inventory.
    pub(crate) fn shares(&self) -> bool {
        self.traits
            .as_ref()
            .is_some_and(|traits| traits.contains(SHARES))
    }

    /// Adds a change of a consumer's allocations here.
    pub(crate) fn consume(&mut self, resources: &BTreeMap<String, u64>, sign: i64) {
        add(&mut self.consumed, resources, sign);
        if let Some(used) = &mut self.used {
            add(used, resources, sign);
        }
    }

    pub(crate) fn used_of(&self, class: &str) -> i64 {
        let used = self.used.as_ref().unwrap_or(&self.consumed);
        let running = self.running.get(class).copied().unwrap_or(0);
        used.get(class)
            .copied()
            .unwrap_or(0)
            .saturating_add(running)
    }

    /// Its inventories; estimated from the compute node's row if they were not read.
    pub(crate) fn inventories(&self, row: &ComputeRow) -> BTreeMap<String, Inventory> {
        if let Some(known) = &self.inventories {
            return known.clone();
        }
        let whole = |total: i64, allocation_ratio: f64| Inventory {
            total,
            reserved: 0,
            min_unit: 1,
            max_unit: total,
            step_size: 1,
            allocation_ratio,
        };
        let believed = [
            ("VCPU", whole(row.vcpus, row.cpu_allocation_ratio)),
            ("MEMORY_MB", whole(row.memory_mb, row.ram_allocation_ratio)),
            ("DISK_GB", whole(row.local_gb, row.disk_allocation_ratio)),
        ];
        believed
            .into_iter()
            .map(|(class, inventory)| (class.to_owned(), inventory))
            .collect()
    }

    /// The capacity of a class, and what is free of it.
    pub(crate) fn cell(&self, class: &str, inventory: &Inventory) -> ClassCell {
        let free = capacity(inventory).saturating_sub(self.used_of(class));
        let freeable = self.preemptible.get(class).copied().unwrap_or(0);
        ClassCell {
            free: narrow(free),
            free_normal: narrow(free.saturating_add(freeable)),
            min_unit: narrow(inventory.min_unit),
            max_unit: narrow(inventory.max_unit),
            step_size: narrow(inventory.step_size).max(1),
        }
    }

    /// The usage of consumers that must not be evicted.
    pub(crate) fn normal_use(&self, class: &str) -> i64 {
        let freeable = self.preemptible.get(class).copied().unwrap_or(0);
        self.used_of(class).saturating_sub(freeable)
    }
}
