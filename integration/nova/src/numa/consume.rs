//! What a placed instance takes of a host's NUMA cells and PCI devices
//! (`HostState._locked_consume_from_request`).

use super::fit::{NumaFitLimits, PciNeeds, fit};
use super::usage::usage_with;
use crate::fault::NovaException;
use crate::model::{HostState, InstanceNumaTopology, RequestSpec};
use crate::options::Options;
use crate::pci::{PciStats, ProviderMapping, apply};

/// Takes what the instance of the request needs from the host. The request's NUMA topology becomes
/// the fitted one, or none if it does not fit, and that is what the next instance of the request
/// asks for.
///
/// # Errors
/// What Nova raises here it only logs, so the caller goes on, but leaves out what comes after it in
/// Nova: the host's count of I/O operations. State that is left behind is Nova's: an error while
/// fitting leaves the guest topology half tried, one while adding up leaves the host's cells as
/// they were, one among the devices keeps what earlier requests took.
pub fn consume(
    host: &mut HostState,
    spec: &mut RequestSpec,
    options: &Options,
) -> Result<(), NovaException> {
    let requests = match (&spec.pci_requests, &host.pci_pools) {
        (Some(requests), Some(_)) => requests.as_slice(),
        _ => &[],
    };
    let mapping = ProviderMapping::Groups(&spec.requested_resources);
    if let Some(topology) = host
        .numa_topology
        .as_ref()
        .filter(|host| !host.cells.is_empty())
        && let Some(guest) = spec
            .numa_topology
            .as_mut()
            .filter(|guest| !guest.cells.is_empty())
    {
        let limits = host.numa_limits.map(|(cpu, ram)| NumaFitLimits {
            cpu_allocation_ratio: cpu,
            ram_allocation_ratio: ram,
            network_metadata: spec.network_metadata.as_ref(),
        });
        let pci = PciNeeds {
            requests,
            stats: PciStats::of(host),
            mapping,
        };
        let packing = options.packing_host_numa_cells_allocation_strategy;
        if fit(topology, guest, limits.as_ref(), &pci, packing)? {
            let used = usage_with(topology, guest)?;
            host.fitted = Some(guest.clone());
            host.numa_topology = Some(used);
        } else {
            spec.numa_topology = None;
        }
    }
    if !requests.is_empty()
        && let Some(pools) = host.pci_pools.as_mut()
    {
        let ids = spec.numa_topology.as_ref().map(cell_ids);
        apply(
            pools,
            host.numa_topology.as_ref(),
            requests,
            mapping,
            ids.as_deref(),
        )?;
    }
    Ok(())
}

fn cell_ids(guest: &InstanceNumaTopology) -> Vec<i64> {
    guest.cells.iter().map(|cell| cell.id).collect()
}
