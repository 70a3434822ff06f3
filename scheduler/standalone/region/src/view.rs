//! Read-only views of a region for the API.

use crate::Region;
use ebbtide_engine::{CloudTotals, HostSummary, sum_inventories};
use ebbtide_model::aggregate::DEFAULT_ZONE;
use ebbtide_model::{
    Aggregate, DisruptionBudget, Evacuation, EvacuationId, Flavor, Server, ServerGroup, ServerId,
};
use std::collections::BTreeMap;

impl Region {
    /// All hosts, by name.
    #[must_use]
    pub fn hosts(&self) -> Vec<HostSummary> {
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
    pub fn host(&self, name: &str) -> Option<HostSummary> {
        let entry = self.hosts.get(name)?;
        let of_host = self.aggregates.values().filter(|a| a.hosts.contains(name));
        let mut aggregates: Vec<String> = of_host.map(|a| a.name.clone()).collect();
        aggregates.sort();
        let mut view = HostSummary {
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
    pub fn summary(&self) -> CloudTotals {
        let mut servers = BTreeMap::new();
        for server in self.servers.values() {
            *servers.entry(server.status.as_str()).or_default() += 1;
        }
        CloudTotals {
            hosts: CloudTotals::by_health(self.hosts.values().map(|entry| entry.health)),
            servers,
            inventories: sum_inventories(self.hosts.values().map(|entry| &entry.host)),
            totals: self.table.totals(),
            evacuations: self.evacuations.active_count(),
            contested: self.hosts.values().filter(|entry| entry.contested).count(),
        }
    }
}
