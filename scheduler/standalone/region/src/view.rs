//! Read-only views of a region for the API.

use crate::Region;
use ebbtide_engine::{CloudTotals, HostSummary, sum_inventories};
use ebbtide_market::FlavorPrice;
use ebbtide_model::aggregate::DEFAULT_ZONE;
use ebbtide_model::{
    Aggregate, DisruptionBudget, Evacuation, EvacuationId, Flavor, Server, ServerGroup, ServerId,
    ServerStatus, Timestamp,
};
use std::collections::BTreeMap;

/// What a page of metrics shows besides [`Region::summary`].
#[derive(Debug, Clone, Default)]
pub struct RegionFigures {
    /// Preemptible servers that run, by project and flavor, for rating.
    pub running: BTreeMap<(String, String), u64>,
    /// The price of each flavor that has one.
    pub prices: Vec<FlavorPrice>,
    /// How long the latest evacuation under way has lasted beyond its grace period; 0 if none has.
    pub overtime_millis: i64,
}

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

    /// The figures of a page of metrics at `now`.
    #[must_use]
    pub fn figures(&self, now: Timestamp) -> RegionFigures {
        let mut running = BTreeMap::new();
        for server in self.servers.values() {
            let runs = matches!(
                server.status,
                ServerStatus::Active | ServerStatus::Evacuating
            );
            if runs && server.flavor.is_preemptible() {
                let of = (server.project_id.clone(), server.flavor.name.clone());
                *running.entry(of).or_default() += 1;
            }
        }
        let under_way = self.evacuations.active();
        let under_way = under_way.filter_map(|id| self.evacuations.get(&id));
        let overtime = under_way.map(|e| now.millis_since(e.claimed_at.plus(e.grace)));
        RegionFigures {
            running,
            prices: self.flavor_prices(),
            overtime_millis: overtime.max().unwrap_or(0).max(0),
        }
    }
}
