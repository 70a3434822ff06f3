//! NUMA cells and PCI devices of a request: Nova's filters judge a host as it would be without its
//! victims.

use super::needs_columns::{demanded, freed_columns};
use crate::candidates::candidate;
use crate::cloud::Cloud;
use crate::cloud::devices::DeviceDemand;
use crate::facts::{HeldFacts, HeldResources};
use ebbtide_engine::{HostNeeds, NeedColumns};
use ebbtide_model::ServerId;
use ebbtide_nova::fault::NovaException;
use ebbtide_nova::filters::{self, Context, Filter};
use ebbtide_nova::model::{
    AllocationCandidate, HostState, InstanceNumaTopology, NumaTopology, RequestSpec,
};
use ebbtide_nova::states::HostStateList as _;
use ebbtide_nova::{filtering, hosts, numa, pci};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use uuid::Uuid;

pub(super) const NUMA_FILTER: &str = "NUMATopologyFilter";
pub(crate) const PCI_FILTER: &str = "PciPassthroughFilter";

/// Most servers that a reason names.
const NAMED: usize = 3;

/// The needs of a request that Nova's filters judge, and the cloud that they judge.
pub(super) struct FilterNeeds<'a> {
    pub(super) cloud: &'a Cloud,
    pub(super) spec: RequestSpec,
    /// In the order of the options.
    filters: Vec<&'static dyn Filter>,
    /// The request needs cells.
    pub(super) numa: bool,
    /// The request needs devices.
    pub(super) pci: bool,
}

impl fmt::Debug for FilterNeeds<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.filters.iter().map(|filter| filter.name());
        f.debug_list().entries(names).finish()
    }
}

impl<'a> FilterNeeds<'a> {
    /// What these filters say about a request; `None` if it needs no cells and no devices, or if
    /// no filter looks at them: by the options, or because the request forces its host.
    pub(super) fn of(cloud: &'a Cloud, spec: &RequestSpec) -> Option<Self> {
        let forces = |list: &Option<Vec<String>>| list.as_ref().is_some_and(|l| !l.is_empty());
        if forces(&spec.force_hosts) || forces(&spec.force_nodes) {
            return None;
        }
        let enabled = cloud.options().enabled_filters.iter();
        let judges = enabled
            .filter(|name| matches!(name.as_str(), NUMA_FILTER | PCI_FILTER))
            .filter_map(|name| filters::by_name(name))
            .filter(|filter| filter.narrows(spec));
        let filters: Vec<&'static dyn Filter> = judges.collect();
        let has = |name: &str| filters.iter().any(|filter| filter.name() == name);
        let numa = has(NUMA_FILTER);
        let requests = spec.pci_requests.as_ref();
        let pci = requests.is_some_and(|requests| !requests.is_empty());
        (!filters.is_empty()).then(|| Self {
            cloud,
            spec: spec.clone(),
            numa,
            pci,
            filters,
        })
    }

    /// The limits that NUMATopologyFilter leaves on a host that passes.
    pub(super) fn limits(&self, state: &HostState) -> Option<(f64, f64)> {
        let ratios = state.cpu_allocation_ratio.zip(state.ram_allocation_ratio);
        ratios.filter(|_| self.numa)
    }

    /// Places of hosts on which servers with cells or devices are leaving: what they free is
    /// promised, and nothing here says to whom.
    pub(super) fn evacuated(&self) -> BTreeSet<usize> {
        let leaving = self.cloud.leaving.iter().filter_map(|uuid| {
            let record = &self.cloud.instances.get(uuid)?.record;
            let holds = record.held != HeldFacts::Nothing && record.held != HeldFacts::NotRead;
            let node = self.cloud.node_of(record).filter(|_| holds)?;
            self.cloud.nodes.get(&node)?.place
        });
        leaving.collect()
    }

    /// Whether a compute node takes so many instances of the request without these servers.
    pub(super) fn accepts(&self, node: Uuid, count: u32, gone: &[Uuid]) -> bool {
        let place = self.cloud.nodes.get(&node).and_then(|node| node.place);
        place.is_some_and(|place| {
            let gone: Vec<ServerId> = gone.iter().map(|uuid| (*uuid).into()).collect();
            self.judge(place, count, &gone)
                .is_ok_and(|refused| refused.is_none())
        })
    }

    /// What a server frees, in words.
    pub(super) fn freed(&self, server: Uuid) -> Vec<String> {
        let Some(held) = self.held(server.into()) else {
            return Vec::new();
        };
        let devices = held.pci_devices.iter().filter(|_| self.pci).map(|device| {
            let (vendor, product) = (&device.vendor_id, &device.product_id);
            format!("PCI device {} ({vendor}:{product})", device.address)
        });
        let topology = held.numa_topology.iter().filter(|_| self.numa);
        let cells = topology.flat_map(|topology| &topology.cells).map(|cell| {
            let pinned: BTreeSet<i64> = cell.cpu_pinning.iter().flatten().map(|p| p.1).collect();
            match pinned.is_empty() {
                true => format!("{} MiB of NUMA cell {}", cell.memory, cell.id),
                false => format!(
                    "CPUs {} and {} MiB of NUMA cell {}",
                    pinned
                        .iter()
                        .map(i64::to_string)
                        .collect::<Vec<_>>()
                        .join(","),
                    cell.memory,
                    cell.id
                ),
            }
        });
        devices.chain(cells).collect()
    }

    /// What a server that ends frees besides amounts.
    pub(super) fn held(&self, server: ServerId) -> Option<&'a HeldResources> {
        self.cloud.held_by(server)
    }

    /// The devices that one instance of the request wants, and what the hosts have.
    pub(super) fn device_demands(&self) -> Vec<DeviceDemand> {
        let requests = self.spec.pci_requests.as_deref().filter(|_| self.pci);
        self.cloud.device_demands(requests.unwrap_or_default())
    }

    /// The cells of a host without these servers.
    ///
    /// # Errors
    /// A server does not fit the host's cells.
    pub(super) fn cells_without<'t>(
        &self,
        topology: &'t NumaTopology,
        gone: impl Iterator<Item = &'t InstanceNumaTopology>,
    ) -> Result<Cow<'t, NumaTopology>, NovaException> {
        let mut left = Cow::Borrowed(topology);
        for guest in gone.filter(|_| self.numa) {
            left = Cow::Owned(numa::usage_without(&left, guest)?);
        }
        Ok(left)
    }

    pub(super) fn place(&self, host: &str) -> Option<usize> {
        self.cloud.named.get(host).copied()
    }

    pub(super) fn state(&self, place: usize) -> &HostState {
        self.cloud.table.states().get(place)
    }

    /// A host as it would be without these servers, with what the filters look at.
    pub(super) fn without(
        &self,
        place: usize,
        gone: &[ServerId],
    ) -> Result<HostState, NovaException> {
        let host = self.state(place);
        let mut state = hosts::new_state(&host.host, &host.nodename, &host.cell_uuid);
        state.uuid.clone_from(&host.uuid);
        state.cpu_allocation_ratio = host.cpu_allocation_ratio;
        state.ram_allocation_ratio = host.ram_allocation_ratio;
        let held = || gone.iter().filter_map(|server| self.held(*server));
        if let Some(topology) = &host.numa_topology {
            let guests = held().filter_map(|held| held.numa_topology.as_ref());
            state.numa_topology = Some(self.cells_without(topology, guests)?.into_owned());
        }
        state.pci_pools.clone_from(&host.pci_pools);
        if let Some(pools) = state.pci_pools.as_mut().filter(|_| self.pci) {
            let devices = held().flat_map(|held| &held.pci_devices);
            devices.for_each(|device| pci::add_device(pools, device));
        }
        Ok(state)
    }

    /// A host and the request once an instance with this candidate is on it; `None`: a filter
    /// refuses the candidate.
    pub(super) fn take(
        &self,
        state: &HostState,
        spec: &RequestSpec,
        offered: &AllocationCandidate,
    ) -> Option<(HostState, RequestSpec)> {
        let options = self.cloud.options();
        let context = Context { options, now: 0 };
        let (mut state, mut spec) = (state.clone(), spec.clone());
        state.allocation_candidates = vec![offered.clone()];
        for filter in &self.filters {
            if !filtering::passes(*filter, &mut state, &spec, &context).ok()? {
                return None;
            }
        }
        // Nova fills these in when it claims the candidate.
        for group in &mut spec.requested_resources {
            let of = group.requester_id.as_deref().unwrap_or_default();
            let named = offered.mappings.get(of).and_then(Value::as_array);
            let named = named.into_iter().flatten().filter_map(Value::as_str);
            group.provider_uuids = named.map(str::to_owned).collect();
        }
        hosts::consume(&mut state, &mut spec, options);
        Some((state, spec))
    }

    /// The filter that refuses one of so many instances of the request on a host without these
    /// servers; `None`: all are accepted.
    fn judge(
        &self,
        place: usize,
        count: u32,
        gone: &[ServerId],
    ) -> Result<Option<&'static str>, NovaException> {
        let mut state = self.without(place, gone)?;
        let node = self.cloud.at.get(place).copied().flatten();
        let offered = candidate(node.unwrap_or_default(), &BTreeMap::new());
        let options = self.cloud.options();
        let context = Context { options, now: 0 };
        let mut taken = None;
        for number in 1..=count {
            let spec = taken.as_ref().unwrap_or(&self.spec);
            state.allocation_candidates = vec![offered.clone()];
            for filter in &self.filters {
                if !filtering::passes(*filter, &mut state, spec, &context)? {
                    return Ok(Some(filter.name()));
                }
            }
            if number < count {
                // Nova goes on with the request as the instance before has left it.
                let spec = taken.get_or_insert_with(|| self.spec.clone());
                hosts::consume(&mut state, spec, options);
            }
        }
        Ok(None)
    }

    /// Servers on a host that are no victims because it is not known what they hold.
    fn unknown(&self, place: usize) -> Vec<String> {
        let host = self.cloud.host_at(place);
        let here = self.cloud.host_instances.get(&host.host);
        let here = here.iter().flat_map(|list| list.instances.keys());
        let unknown = here.filter_map(|uuid| {
            let instance = self.cloud.instances.get(&uuid.parse::<Uuid>().ok()?)?;
            instance.terms.as_ref()?;
            match &instance.record.held {
                HeldFacts::Held(held) => {
                    let fault = held.fault.as_ref()?;
                    Some(format!("{} is no victim: {fault}", instance.record.name))
                }
                HeldFacts::NotRead | HeldFacts::Nothing => None,
            }
        });
        unknown.take(NAMED).collect()
    }
}

impl HostNeeds for FilterNeeds<'_> {
    fn frees(&self, host: &str, instance: ServerId) -> bool {
        let (Some(place), Some(held)) = (self.place(host), self.held(instance)) else {
            return false;
        };
        let devices = self.pci && !held.pci_devices.is_empty();
        let has_cells = self.numa && held.numa_topology.is_some();
        let fits = || {
            let topology = self.state(place).numa_topology.as_ref();
            topology.is_none_or(|topology| {
                let guest = held.numa_topology.iter();
                self.cells_without(topology, guest).is_ok()
            })
        };
        // One that does not fit its host's cells has nothing to give back.
        (devices || has_cells) && fits()
    }

    fn fits(&self, host: &str, count: u32, gone: &[ServerId]) -> bool {
        let place = self.place(host);
        place.is_some_and(|place| {
            let refused = self.judge(place, count, gone);
            refused.is_ok_and(|refused| refused.is_none())
        })
    }

    fn columns(
        &self,
        host: &str,
        count: u32,
        before: &[ServerId],
        candidates: &[ServerId],
    ) -> NeedColumns {
        let Some(state) = self
            .place(host)
            .and_then(|place| self.without(place, before).ok())
        else {
            return NeedColumns::none();
        };
        let demand = demanded(self, &state, count);
        let freed = candidates
            .iter()
            .flat_map(|server| freed_columns(self, &demand, &state, self.held(*server)));
        NeedColumns {
            freed: freed.collect(),
            deficits: demand.deficits,
        }
    }

    fn reason(&self, host: &str, count: u32, gone: &[ServerId]) -> String {
        let Some(place) = self.place(host) else {
            return String::new();
        };
        let refused = match self.judge(place, count, gone) {
            Ok(Some(filter)) => {
                format!("{filter} refuses the host even without the servers that may be evacuated")
            }
            Ok(None) => return String::new(),
            Err(fault) => format!("the servers do not fit the host's cells: {fault}"),
        };
        [vec![refused], self.unknown(place)].concat().join("; ")
    }
}
