//! PCI devices of every host as columns: how many are free for a kind of request, and how many the
//! preemptible servers hold that could give them back.
//!
//! A kind is what a request says of its devices, in practice an alias. A column is made at the
//! first request of its kind and follows the hosts from then on: a change marks the host, and the
//! next request of the kind counts it anew. Numbers here are never too small, so that they refuse
//! no host that Nova's filters accept.

use super::Cloud;
use crate::facts::{HeldFacts, HeldResources};
use ebbtide_model::{InterruptionBehaviour, ServerId};
use ebbtide_nova::model::PciRequest;
use ebbtide_nova::pci;
use ebbtide_nova::states::HostStateList as _;
use ebbtide_nova::table::HostSet;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use uuid::Uuid;

/// Kinds that are kept, those asked for last. Each is 20 bytes a host.
const KINDS: usize = 32;
/// Victims of a host whose devices are summed up one by one. A host with more is not bounded beyond
/// them.
const SUMS: usize = 8;

/// Alternatives, each a set of tags.
type Spec = Vec<BTreeMap<String, Value>>;

/// Devices of one kind on one host. Numbers too large for a cell are held at its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct HostDevices {
    free: u16,
    /// Free once all preemptible servers have left.
    most: u16,
    /// Free once the one server has left that frees most, the two, and so on.
    after: [u16; SUMS],
}

impl HostDevices {
    fn new(free: i64, mut freed: Vec<i64>) -> Self {
        let cell = |devices: i64| u16::try_from(devices.max(0)).unwrap_or(u16::MAX);
        let add = |sum: i64, one: i64| sum.saturating_add(one.max(0));
        freed.sort_unstable_by_key(|devices| std::cmp::Reverse(*devices));
        let mut after = [0; SUMS];
        let mut sum = free;
        for (place, after) in after.iter_mut().enumerate() {
            sum = add(sum, freed.get(place).copied().unwrap_or(0));
            *after = cell(sum);
        }
        Self {
            free: cell(free),
            most: cell(freed.into_iter().fold(free, add)),
            after,
        }
    }

    /// How many servers have to leave at least before so many devices are free; `None`: all of them
    /// are not enough.
    pub(crate) fn fewest(&self, wanted: i64) -> Option<u32> {
        let Ok(wanted) = u16::try_from(wanted.max(0)) else {
            // More than a cell can tell.
            return Some(0);
        };
        if self.free >= wanted {
            return Some(0);
        }
        if self.most < wanted {
            return None;
        }
        let victims = self.after.iter().take_while(|free| **free < wanted).count();
        Some(u32::try_from(victims + 1).unwrap_or(u32::MAX))
    }

    /// Whether so many devices are free.
    pub(crate) fn has(&self, wanted: i64) -> bool {
        self.fewest(wanted) == Some(0)
    }
}

/// The devices of one kind that a request wants, and those of the hosts by place.
#[derive(Debug, Clone)]
pub(crate) struct DeviceDemand {
    pub(crate) wanted: i64,
    pub(crate) hosts: Arc<Vec<HostDevices>>,
}

#[derive(Debug)]
struct Kind {
    spec: Spec,
    hosts: Arc<Vec<HostDevices>>,
    /// Hosts that are to be counted anew.
    stale: HostSet,
}

/// Columns of devices, by kind; those that were asked for last are at the end.
#[derive(Debug, Default)]
pub(crate) struct DeviceColumns(Mutex<Vec<Kind>>);

impl DeviceColumns {
    /// A host has other devices, or others hold them.
    pub(super) fn touch(&mut self, place: usize) {
        // A thread that panicked while it counted has left a host marked that is counted already.
        let kinds = match self.0.get_mut() {
            Ok(kinds) => kinds,
            Err(poisoned) => poisoned.into_inner(),
        };
        for kind in kinds {
            kind.stale.grow(place + 1);
            kind.stale.set(place);
        }
    }
}

impl Cloud {
    /// The devices that requests want, those of one kind together, and what the hosts have.
    pub(crate) fn device_demands(&self, requests: &[PciRequest]) -> Vec<DeviceDemand> {
        if self.simple {
            return Vec::new();
        }
        let grouped = grouped(requests, 1);
        let demands = grouped.iter().filter_map(|request| {
            let hosts = self.devices_for(request)?;
            Some(DeviceDemand {
                wanted: request.count,
                hosts,
            })
        });
        demands.collect()
    }

    fn devices_for(&self, request: &PciRequest) -> Option<Arc<Vec<HostDevices>>> {
        // Without the column the filters are asked about every host.
        let mut kinds = self.devices.0.lock().ok()?;
        let known = kinds.iter().position(|kind| kind.spec == request.spec);
        let places = self.at.len();
        let mut kind = match known {
            Some(known) => kinds.remove(known),
            None => Kind {
                spec: request.spec.clone(),
                hosts: Arc::default(),
                stale: HostSet::all(places),
            },
        };
        if kinds.len() >= KINDS {
            kinds.remove(0);
        }
        if !kind.stale.is_empty() {
            let hosts = Arc::make_mut(&mut kind.hosts);
            hosts.resize(places, HostDevices::default());
            for place in kind.stale.iter() {
                if let Some(host) = hosts.get_mut(place) {
                    *host = self.count_devices(place, request);
                }
            }
            kind.stale = HostSet::none(places);
        }
        let hosts = Arc::clone(&kind.hosts);
        kinds.push(kind);
        Some(hosts)
    }

    fn count_devices(&self, place: usize, request: &PciRequest) -> HostDevices {
        // A node that was never updated gets no request for devices.
        let Some(pools) = &self.table.states().get(place).pci_pools else {
            return HostDevices::default();
        };
        let number = self.numbers.get(place).copied().flatten();
        let servers = number.map(|number| self.victims.candidates_of(number));
        let held = servers.into_iter().flatten();
        let freed = held.filter_map(|server| {
            let held = self.held_by(server)?;
            Some(pci::freed(pools, &held.pci_devices, request))
        });
        HostDevices::new(pci::usable(pools, request), freed.collect())
    }

    /// What a server that ends frees besides amounts. In Nova a server that is only stopped keeps
    /// its cells and devices.
    pub(crate) fn held_by(&self, server: ServerId) -> Option<&HeldResources> {
        let instance = self.instances.get(&server.0)?;
        let stops = |terms: &crate::flavor::PreemptibleTerms| {
            terms.interruption == InterruptionBehaviour::Stop
        };
        if instance.terms.as_ref().is_some_and(stops) {
            return None;
        }
        match &instance.record.held {
            HeldFacts::Held(held) => Some(held).filter(|held| held.fault.is_none()).map(|h| &**h),
            HeldFacts::NotRead | HeldFacts::Nothing => None,
        }
    }

    /// The devices of a provider's host, or who holds them, have changed.
    pub(super) fn touch_devices(&mut self, provider: Uuid) {
        if let Some(place) = self.nodes.get(&provider).and_then(|node| node.place) {
            self.devices.touch(place);
        }
    }
}

/// The requests for devices of so many instances; those of the same spec are one.
pub(crate) fn grouped(requests: &[PciRequest], count: u32) -> Vec<PciRequest> {
    let mut groups: Vec<PciRequest> = Vec::new();
    for request in requests {
        let wanted = request.count.saturating_mul(i64::from(count));
        match groups.iter_mut().find(|group| group.spec == request.spec) {
            Some(group) => group.count = group.count.saturating_add(wanted),
            None => groups.push(PciRequest {
                count: wanted,
                ..request.clone()
            }),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// By brute force over all sets of servers.
        #[test]
        fn the_fewest_victims_are_those_of_the_smallest_set_that_frees_enough(
            free in 0_i64..4,
            freed in prop::collection::vec(0_i64..5, 0..10),
            wanted in 0_i64..20,
        ) {
            let sets = 0_u32..1 << freed.len();
            let frees = |set: u32| -> i64 {
                let members = (0..freed.len()).filter(|bit| set >> bit & 1 == 1);
                free + members.map(|bit| freed[bit]).sum::<i64>()
            };
            let least = sets.filter(|set| frees(*set) >= wanted).map(u32::count_ones).min();
            let told = HostDevices::new(free, freed.clone()).fewest(wanted);
            // Beyond the sums that are kept it is a lower bound.
            prop_assert_eq!(told, least.map(|least| least.min(SUMS as u32 + 1)));
        }
    }

    #[test]
    fn numbers_beyond_a_cell_refuse_nothing() {
        let many = HostDevices::new(i64::MAX, vec![i64::MAX, 5]);
        assert_eq!(many.fewest(i64::from(u16::MAX)), Some(0));
        let none = HostDevices::new(-1, Vec::new());
        assert_eq!(none.fewest(70_000), Some(0));
        assert_eq!(none.fewest(1), None);
        assert_eq!(none.fewest(-1), Some(0));
    }
}
