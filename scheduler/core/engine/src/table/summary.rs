//! What a cloud's API shows of its hosts, whichever cloud it is.

use super::{ClassUsage, HostUsage};
use ebbtide_model::{Host, HostHealth, Inventory, ResourceClass};
use std::collections::BTreeMap;

/// A host with both states. On an OpenStack the amounts are those of its root provider: nested and
/// sharing providers are not in them.
#[derive(Debug, Clone)]
pub struct HostSummary {
    /// Its name, inventory, traits and heartbeat.
    pub host: Host,
    /// Whether it may get new servers.
    pub health: HostHealth,
    pub availability_zone: String,
    /// Names of its aggregates.
    pub aggregates: Vec<String>,
    /// Usage in both states.
    pub usage: HostUsage,
    /// Normal servers that hold capacity there.
    pub normal_servers: u32,
    /// Preemptible servers that hold capacity there.
    pub preemptible_servers: u32,
}

#[derive(Debug, Clone)]
pub struct CloudTotals {
    /// Hosts by health.
    pub hosts: BTreeMap<&'static str, u32>,
    /// Servers that are not gone, by status.
    pub servers: BTreeMap<&'static str, u32>,
    /// Both states by resource class, over all hosts.
    pub totals: Vec<ClassUsage>,
    /// The inventories of all hosts; see [`sum_inventories`].
    pub inventories: BTreeMap<ResourceClass, Inventory>,
    /// Evacuations under way.
    pub evacuations: usize,
    /// Hosts for which two agents report.
    pub contested: usize,
}

impl CloudTotals {
    /// Hosts by health; each health is there, also without hosts.
    pub fn by_health(all: impl Iterator<Item = HostHealth>) -> BTreeMap<&'static str, u32> {
        let each = [HostHealth::Up, HostHealth::Down, HostHealth::Disabled];
        let mut hosts = BTreeMap::from(each.map(|health| (health.as_str(), 0)));
        for health in all {
            *hosts.entry(health.as_str()).or_default() += 1;
        }
        hosts
    }
}

/// Both states over all hosts, by resource class.
#[must_use]
pub fn class_totals(hosts: &[HostSummary]) -> Vec<ClassUsage> {
    let mut sums: BTreeMap<&str, ClassUsage> = BTreeMap::new();
    for class in hosts.iter().flat_map(|host| &host.usage.classes) {
        match sums.get_mut(class.class.as_str()) {
            None => drop(sums.insert(class.class.as_str(), class.clone())),
            Some(sum) => {
                sum.capacity += class.capacity;
                sum.normal += class.normal;
                sum.preemptible += class.preemptible;
                sum.leaving += class.leaving;
                sum.claimed += class.claimed;
                sum.free_full += class.free_full;
                sum.free_normal += class.free_normal;
            }
        }
    }
    sums.into_values().collect()
}

/// The inventories of hosts summed up. The allocation ratio is the mean with which the sum's total
/// and reserved amounts give its capacity.
#[allow(clippy::cast_precision_loss)] // A ratio for people; amounts stay far below 2^53.
#[must_use]
pub fn sum_inventories<'a>(
    hosts: impl Iterator<Item = &'a Host>,
) -> BTreeMap<ResourceClass, Inventory> {
    let mut sums: BTreeMap<ResourceClass, (Inventory, u64)> = BTreeMap::new();
    for (class, inventory) in hosts.flat_map(|host| &host.inventory) {
        let nothing = || (Inventory::of(0), 0);
        let (sum, capacity) = sums.entry(class.clone()).or_insert_with(nothing);
        sum.total = sum.total.saturating_add(inventory.total);
        sum.reserved = sum.reserved.saturating_add(inventory.reserved);
        *capacity = capacity.saturating_add(inventory.capacity());
    }
    let with_ratio = |(class, (mut sum, capacity)): (ResourceClass, (Inventory, u64))| {
        let usable = sum.total.saturating_sub(sum.reserved);
        if usable > 0 {
            sum.allocation_ratio = capacity as f64 / usable as f64;
        }
        (class, sum)
    };
    sums.into_iter().map(with_ratio).collect()
}
