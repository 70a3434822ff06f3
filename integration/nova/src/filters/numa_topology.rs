//! NUMATopologyFilter: the guest's NUMA topology fits on the host's, with its pinned CPUs, huge
//! pages, networks and PCI devices. For floating CPUs and small pages the host's CPU and memory
//! allocation ratios are the limits, which are also handed to the host that is chosen. Candidates
//! of Placement whose devices are out of reach are dropped; without any left the host fails.
//!
//! Option: `[compute] packing_host_numa_cells_allocation_strategy` (false: spread guests over
//! cells).
//!
//! A request without topology passes everywhere, one with topology fails on hosts without. Before
//! that a pinned guest that requires thread siblings fails on hosts without hyperthreads, by flavor
//! or image, whatever its topology says.
//!
//! Source: `nova/scheduler/filters/numa_topology_filter.py`.

use super::candidates::keep_good;
use super::contract::{Context, Filter};
use crate::fault::NovaException;
use crate::model::{HostState, InstanceNumaTopology, NumaTopology, RequestSpec};
use crate::numa::{NumaFitLimits, PciNeeds, fit};
use crate::pci::{PciStats, ProviderMapping};

/// See the module.
#[derive(Debug, Clone, Copy, Default)]
pub struct NumaTopologyFits;

impl Filter for NumaTopologyFits {
    fn name(&self) -> &'static str {
        "NUMATopologyFilter"
    }

    /// Without a topology of the guest only its threads count.
    fn passes(
        &self,
        host: &HostState,
        spec: &RequestSpec,
        _: &Context<'_>,
    ) -> Result<bool, NovaException> {
        let needs_threads = requires_threads(spec)?;
        Ok(!(needs_threads && topology(host).is_some_and(|host| !host.has_threads())))
    }

    fn narrows(&self, spec: &RequestSpec) -> bool {
        wanted(spec).is_some()
    }

    fn narrow(
        &self,
        host: &mut HostState,
        spec: &RequestSpec,
        context: &Context<'_>,
    ) -> Result<bool, NovaException> {
        if !self.passes(host, spec, context)? {
            return Ok(false);
        }
        let Some(wanted) = wanted(spec) else {
            return Ok(true);
        };
        if topology(host).is_none() {
            return Ok(false);
        }
        let (Some(cpu), Some(ram)) = (host.cpu_allocation_ratio, host.ram_allocation_ratio) else {
            return Err(NovaException::new(
                "ValueError",
                "the host has no allocation ratio",
            ));
        };
        let limits = NumaFitLimits {
            cpu_allocation_ratio: cpu,
            ram_allocation_ratio: ram,
            network_metadata: spec.network_metadata.as_ref(),
        };
        // One copy for all candidates of the host: what the try for one changes in it, the next one
        // sees.
        let mut guest = wanted.clone();
        let any = keep_good(host, |host, candidate| {
            let Some(topology) = host.numa_topology.as_ref() else {
                return Ok(false);
            };
            let pci = PciNeeds {
                requests: spec.pci_requests.as_deref().unwrap_or_default(),
                stats: PciStats::of(host),
                mapping: ProviderMapping::Candidate(&candidate.mappings),
            };
            let packing = context.options.packing_host_numa_cells_allocation_strategy;
            fit(topology, &mut guest, Some(&limits), &pci, packing)
        })?;
        if any {
            host.numa_limits = Some((cpu, ram));
        }
        Ok(any)
    }
}

/// The host's topology, if it has cells.
fn topology(host: &HostState) -> Option<&NumaTopology> {
    let topology = host.numa_topology.as_ref();
    topology.filter(|host| !host.cells.is_empty())
}

/// The guest's topology, if it has cells.
fn wanted(spec: &RequestSpec) -> Option<&InstanceNumaTopology> {
    let guest = spec.numa_topology.as_ref();
    guest.filter(|guest| !guest.cells.is_empty())
}

/// Policies `dedicated` and `require`, each from flavor or image.
fn requires_threads(spec: &RequestSpec) -> Result<bool, NovaException> {
    let Some(extra_specs) = &spec.flavor.extra_specs else {
        return Err(NovaException::new(
            "ObjectActionError",
            "the flavor came without extra specs",
        ));
    };
    let Some(image) = &spec.image else {
        return Err(NovaException::new(
            "AttributeError",
            "the request has no image",
        ));
    };
    let asks = |extra_spec: &str, property: &str, value: &str| {
        extra_specs.get(extra_spec).is_some_and(|own| own == value)
            || image.properties.text(property) == Some(value)
    };
    Ok(asks("hw:cpu_policy", "hw_cpu_policy", "dedicated")
        && asks("hw:cpu_thread_policy", "hw_cpu_thread_policy", "require"))
}
