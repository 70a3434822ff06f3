//! What a project has of preemptible servers, for its quota.

use super::Cloud;
use super::view::flavor_id;
use ebbtide_model::{FlavorId, Money};
use ebbtide_nova::model::Flavor;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Add;
use uuid::Uuid;

/// Amounts of preemptible servers, as Nova counts quota: by their flavors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PreemptibleUsage {
    pub servers: u64,
    /// Their vCPUs.
    pub vcpus: u64,
    /// Their memory in MiB.
    pub memory_mb: u64,
}

impl PreemptibleUsage {
    /// One server of a flavor.
    #[must_use]
    pub fn of(flavor: &Flavor) -> Self {
        let amount = |n: i64| u64::try_from(n).unwrap_or(0);
        Self {
            servers: 1,
            vcpus: amount(flavor.vcpus),
            memory_mb: amount(flavor.memory_mb),
        }
    }

    /// Whether it is at least as much of everything.
    #[must_use]
    pub fn covers(self, other: Self) -> bool {
        self.servers >= other.servers
            && self.vcpus >= other.vcpus
            && self.memory_mb >= other.memory_mb
    }

    /// So many of them.
    #[must_use]
    pub fn times(self, count: u64) -> Self {
        Self {
            servers: self.servers.saturating_mul(count),
            vcpus: self.vcpus.saturating_mul(count),
            memory_mb: self.memory_mb.saturating_mul(count),
        }
    }
}

/// A server that a price can end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PricedServer {
    pub uuid: Uuid,
    pub flavor: FlavorId,
    /// What an hour of its flavor costs without a market.
    pub price_per_hour: Money,
    /// The most that its owner pays by the flavor, where the request named nothing.
    pub max_price: Option<Money>,
}

impl Add for PreemptibleUsage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            servers: self.servers.saturating_add(other.servers),
            vcpus: self.vcpus.saturating_add(other.vcpus),
            memory_mb: self.memory_mb.saturating_add(other.memory_mb),
        }
    }
}

impl Cloud {
    /// What the preemptible servers of a project take, without some of them.
    #[must_use]
    pub fn preemptible_usage(&self, project: &str, without: &BTreeSet<Uuid>) -> PreemptibleUsage {
        let its = self.instances.iter().filter(|(uuid, instance)| {
            instance.record.project_id == project && !without.contains(uuid)
        });
        let each = its.filter_map(|(uuid, _)| self.preemptible_usage_of(*uuid));
        each.fold(PreemptibleUsage::default(), Add::add)
    }

    /// The preemptible servers that a price can end: they run on a host and are not leaving.
    pub fn priced_servers(&self) -> impl Iterator<Item = PricedServer> + '_ {
        let all = self.instances.iter();
        all.filter_map(|(uuid, instance)| {
            let record = &instance.record;
            let runs = record.vm_state.as_deref() == Some("active") && record.host.is_some();
            let terms = instance.terms.as_ref().filter(|_| runs)?;
            (!self.leaving.contains(uuid)).then(|| PricedServer {
                uuid: *uuid,
                flavor: flavor_id(&record.flavor),
                price_per_hour: terms.price_per_hour,
                max_price: terms.max_price,
            })
        })
    }

    /// How many preemptible servers of each project and flavor, by name, run, for rating.
    #[must_use]
    pub fn running_preemptible(&self) -> BTreeMap<(&str, &str), u64> {
        let mut all = BTreeMap::new();
        for instance in self.instances.values() {
            let record = &instance.record;
            let runs = record.vm_state.as_deref() == Some("active") && record.host.is_some();
            if runs && instance.terms.is_some() {
                let of = (record.project_id.as_str(), record.flavor.name.as_str());
                *all.entry(of).or_default() += 1;
            }
        }
        all
    }

    /// Flavors of the preemptible servers that run, by name, with their identifiers and the prices
    /// in their extra specs.
    #[must_use]
    pub fn running_flavors(&self) -> BTreeMap<&str, (FlavorId, Money)> {
        let all = self.instances.values();
        let priced = all.filter_map(|instance| {
            let flavor = &instance.record.flavor;
            let price = instance.terms.as_ref()?.price_per_hour;
            Some((flavor.name.as_str(), (flavor_id(flavor), price)))
        });
        priced.collect()
    }

    /// What a server takes; `None` for one that is unknown or normal. One that is shelved and
    /// offloaded has no room and takes nothing; a stopped one does.
    #[must_use]
    pub fn preemptible_usage_of(&self, server: Uuid) -> Option<PreemptibleUsage> {
        let instance = self.instances.get(&server)?;
        instance.terms.as_ref()?;
        let offloaded = instance.record.vm_state.as_deref() == Some("shelved_offloaded");
        (!offloaded).then(|| PreemptibleUsage::of(&instance.record.flavor))
    }
}
