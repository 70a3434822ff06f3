//! Read-only views of a region for the API.

use crate::Region;
use ebbtide_engine::{ClassTotals, HostUsage};
use ebbtide_model::aggregate::DEFAULT_ZONE;
use ebbtide_model::{
    Aggregate, DisruptionBudget, Evacuation, EvacuationId, Flavor, Host, HostHealth, Inventory,
    ResourceClass, Server, ServerGroup, ServerId,
};
use std::collections::BTreeMap;

/// A host as the API shows it.
#[derive(Debug, Clone)]
pub struct HostView {
    /// The host.
    pub host: Host,
    /// Whether it may get new servers.
    pub health: HostHealth,
    /// Its availability zone.
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

/// Totals of a region.
#[derive(Debug, Clone)]
pub struct RegionSummary {
    /// Hosts by health.
    pub hosts: BTreeMap<&'static str, u32>,
    /// Servers that are not gone, by status.
    pub servers: BTreeMap<&'static str, u32>,
    /// Both states by resource class, over all hosts.
    pub totals: Vec<ClassTotals>,
    /// The inventories of all hosts, summed up by resource class. The allocation ratio is the mean
    /// with which the sum's total and reserved amounts give its capacity.
    pub inventories: BTreeMap<ResourceClass, Inventory>,
    /// Evacuations under way.
    pub evacuations: usize,
    /// Hosts for which two agents report.
    pub contested: usize,
}

impl Region {
    /// All hosts, by name.
    #[must_use]
    pub fn hosts(&self) -> Vec<HostView> {
        self.hosts
            .keys()
            .filter_map(|name| self.host(name))
            .collect()
    }

    /// The availability zone of a host.
    pub(crate) fn zone_of(&self, host: &str) -> &str {
        let of_host = self.aggregates.values().filter(|a| a.hosts.contains(host));
        let mut zones = of_host.filter_map(Aggregate::availability_zone);
        zones.next().unwrap_or(DEFAULT_ZONE)
    }

    /// One host.
    #[must_use]
    pub fn host(&self, name: &str) -> Option<HostView> {
        let entry = self.hosts.get(name)?;
        let of_host = self.aggregates.values().filter(|a| a.hosts.contains(name));
        let mut aggregates: Vec<String> = of_host.map(|a| a.name.clone()).collect();
        aggregates.sort();
        let mut view = HostView {
            host: entry.host.clone(),
            health: entry.health,
            availability_zone: self.zone_of(name).to_owned(),
            aggregates,
            usage: self.table.usage(name)?,
            normal_servers: 0,
            preemptible_servers: 0,
        };
        for server in self.servers_on(name).filter(|s| s.status.holds_room()) {
            if server.is_preemptible() {
                view.preemptible_servers += 1;
            } else {
                view.normal_servers += 1;
            }
        }
        Some(view)
    }

    /// Servers that are on a host or placed there, and are not gone, by id.
    pub fn servers_on(&self, host: &str) -> impl Iterator<Item = &Server> {
        self.servers.on(host)
    }

    /// A server that is not gone.
    #[must_use]
    pub fn server(&self, id: ServerId) -> Option<&Server> {
        self.servers.get(&id)
    }

    /// An evacuation that is under way or ended recently.
    #[must_use]
    pub fn evacuation(&self, id: EvacuationId) -> Option<&Evacuation> {
        self.evacuations.get(&id)
    }

    /// All flavors, by name.
    #[must_use]
    pub fn flavors(&self) -> Vec<Flavor> {
        let mut all: Vec<Flavor> = self.flavors.values().cloned().collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// All server groups, by name.
    #[must_use]
    pub fn groups(&self) -> Vec<ServerGroup> {
        let mut all: Vec<ServerGroup> = self.groups.values().cloned().collect();
        all.sort_by(|a, b| a.name.cmp(&b.name).then(a.id.cmp(&b.id)));
        all
    }

    /// All aggregates, by name.
    #[must_use]
    pub fn aggregates(&self) -> Vec<Aggregate> {
        let mut all: Vec<Aggregate> = self.aggregates.values().cloned().collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// All disruption budgets.
    #[must_use]
    pub fn budgets(&self) -> Vec<DisruptionBudget> {
        self.budgets.values().cloned().collect()
    }

    /// Totals of the region.
    #[must_use]
    pub fn summary(&self) -> RegionSummary {
        let mut hosts = BTreeMap::from([("up", 0), ("down", 0), ("disabled", 0)]);
        for entry in self.hosts.values() {
            *hosts.entry(entry.health.as_str()).or_default() += 1;
        }
        let mut servers = BTreeMap::new();
        for server in self.servers.values() {
            *servers.entry(server.status.as_str()).or_default() += 1;
        }
        RegionSummary {
            hosts,
            servers,
            inventories: sum_inventories(self.hosts.values().map(|entry| &entry.host)),
            totals: self.table.totals(),
            evacuations: self.evacuations.active_count(),
            contested: self.hosts.values().filter(|entry| entry.contested).count(),
        }
    }
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
