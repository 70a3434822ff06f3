//! One resource provider, as far as it is known.

use super::columns::{Cell, narrow};
use crate::facts::{Inventory, ProviderFacts};
use ebbtide_nova::hosts::ComputeRow;
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// The trait of providers that share what they have with the hosts of their aggregates.
const SHARES: &str = "MISC_SHARES_VIA_AGGREGATE";

/// A provider.
#[derive(Debug, Clone, Default)]
pub(crate) struct Provider {
    pub(crate) name: String,
    pub(crate) parent: Option<Uuid>,
    pub(crate) root: Option<Uuid>,
    /// Its generation when inventories and traits were read, or an older one.
    pub(crate) generation: Option<i64>,
    /// How often that generation was read.
    pub(crate) readings: u64,
    /// Its generation when providers were listed the last time.
    pub(crate) listed: Option<i64>,
    /// Inventories are from a summary, which says how much there is and not what one consumer may take; aggregates are Nova's only.
    pub(crate) partial: bool,
    /// `None`: nobody has read them, the compute node's row is believed.
    pub(crate) inventories: Option<BTreeMap<String, Inventory>>,
    /// `None`: nobody has read it, consumers that we know are added up.
    pub(crate) used: Option<BTreeMap<String, i64>>,
    /// The provider's generation when its consumers were told.
    pub(crate) usage_generation: Option<i64>,
    pub(crate) traits: Option<BTreeSet<String>>,
    pub(crate) aggregates: Option<BTreeSet<Uuid>>,
    /// What all consumers that we know have here.
    pub(crate) consumed: BTreeMap<String, i64>,
    /// What victims of open preemptions still run on and Placement shows as free.
    pub(crate) running: BTreeMap<String, i64>,
    /// What those of them have that may be driven out.
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

/// What Placement lets consumers have of an inventory in all: its comparison is with the exact product, and whole numbers are at
/// most that if they are at most its whole part.
pub(crate) fn capacity(inventory: &Inventory) -> i64 {
    let stock = inventory.total.saturating_sub(inventory.reserved) as f64;
    let capacity = (stock * inventory.allocation_ratio).floor();
    // Casts saturate, and NaN is 0.
    capacity as i64
}

impl Provider {
    /// Takes in what was read.
    pub(crate) fn take(&mut self, facts: ProviderFacts) {
        if !facts.name.is_empty() {
            self.name = facts.name;
        }
        // Where it stands in its tree is told by lists; whoever has read only what it has does not know.
        if facts.root.is_some() {
            self.parent = facts.parent;
        }
        self.root = facts.root.or(self.root).or(Some(facts.uuid));
        if facts.inventories.is_some() {
            self.inventories = facts.inventories;
            self.generation = facts.generation;
            self.readings += 1;
            self.partial = false;
        }
        // A usage that was read before the consumers were told comes too late.
        let late = facts.generation < self.usage_generation && facts.generation.is_some();
        if let Some(used) = facts.used.filter(|_| !late) {
            self.used = Some(used);
        }
        if let Some(traits) = facts.traits {
            self.traits = Some(traits);
        }
        if let Some(aggregates) = facts.aggregates {
            self.aggregates = Some(aggregates);
        }
    }

    /// Whether it shares what it has.
    pub(crate) fn shares(&self) -> bool {
        self.traits
            .as_ref()
            .is_some_and(|traits| traits.contains(SHARES))
    }

    /// A consumer has more or less here than before.
    pub(crate) fn consume(&mut self, resources: &BTreeMap<String, u64>, sign: i64) {
        add(&mut self.consumed, resources, sign);
        if let Some(used) = &mut self.used {
            add(used, resources, sign);
        }
    }

    fn used_of(&self, class: &str) -> i64 {
        let used = self.used.as_ref().unwrap_or(&self.consumed);
        let running = self.running.get(class).copied().unwrap_or(0);
        used.get(class)
            .copied()
            .unwrap_or(0)
            .saturating_add(running)
    }

    /// Its inventories, believed from the compute node's row where they were not read.
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

    /// What it has of a class, and what is left of it.
    pub(crate) fn cell(&self, class: &str, inventory: &Inventory) -> Cell {
        let free = capacity(inventory).saturating_sub(self.used_of(class));
        let freeable = self.preemptible.get(class).copied().unwrap_or(0);
        Cell {
            free: narrow(free),
            free_normal: narrow(free.saturating_add(freeable)),
            min_unit: narrow(inventory.min_unit),
            max_unit: narrow(inventory.max_unit),
            step_size: narrow(inventory.step_size).max(1),
        }
    }

    /// What those use who may not be driven out.
    pub(crate) fn normal_use(&self, class: &str) -> i64 {
        let freeable = self.preemptible.get(class).copied().unwrap_or(0);
        self.used_of(class).saturating_sub(freeable)
    }
}
