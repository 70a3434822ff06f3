//! A guest's NUMA topology on a host's (`numa_fit_instance_to_host`).

use super::fit_cell::fit_cell;
use super::network::networks_fit;
use super::order::tried_order;
use super::pages::NOT_SUPPORTED;
use super::permutations::Permutations;
use crate::fault::NovaException;
use crate::model::{InstanceNumaTopology, NetworkMetadata, NumaCell, NumaTopology, PciRequest};
use crate::pci::{PciStats, ProviderMapping};
use std::collections::BTreeSet;

/// `NUMATopologyLimits`: how far floating CPUs and small pages may be over-committed, and the
/// networks that must be near.
#[derive(Debug, Clone, Copy)]
pub struct NumaFitLimits<'a> {
    /// Floating CPUs for each CPU.
    pub cpu_allocation_ratio: f64,
    /// Memory for each MiB of memory.
    pub ram_allocation_ratio: f64,
    /// Networks of the request, if known.
    pub network_metadata: Option<&'a NetworkMetadata>,
}

/// The devices that must go with the cells.
#[derive(Debug, Clone, Copy)]
pub struct PciNeeds<'a> {
    /// What is asked for; empty for nothing.
    pub requests: &'a [PciRequest],
    /// What the host has; `None` if the node was never updated.
    pub stats: Option<PciStats<'a>>,
    /// Who provides it, according to Placement.
    pub mapping: ProviderMapping<'a>,
}

/// Whether the guest fits on the host. If so, its cells carry the numbers of the host's cells, page
/// sizes and pinning. If not, they are left as the last try left them, and that matters to the next
/// call, see [the module](super).
///
/// # Errors
/// `ValueError` for a pinned guest on a cell without thread siblings, and what
/// [`PciStats::supports`] raises.
pub fn fit(
    host: &NumaTopology,
    guest: &mut InstanceNumaTopology,
    limits: Option<&NumaFitLimits<'_>>,
    pci: &PciNeeds<'_>,
    packing: bool,
) -> Result<bool, NovaException> {
    let wanted = guest.cells.len();
    if wanted == 0 || host.cells.len() < wanted {
        return Ok(false);
    }
    let isolate_emulator = guest.emulator_threads_policy.as_deref() == Some("isolate");
    let pools = pci.stats.map(|stats| stats.pools);
    let cells = tried_order(host, guest, pools, !pci.requests.is_empty(), packing);
    let mut known = TriedCells::default();
    let mut permutations = Permutations::new(cells.len(), wanted);
    while let Some(choice) = permutations.next_choice() {
        let chosen: Vec<&NumaCell> = choice.iter().map(|&at| cells[at]).collect();
        if !cells_fit(&chosen, guest, limits, isolate_emulator, &mut known)? {
            continue;
        }
        if let Some(stats) = pci.stats
            && !pci.requests.is_empty()
        {
            let ids: Vec<i64> = guest.cells.iter().map(|cell| cell.id).collect();
            if !stats.supports(pci.requests, pci.mapping, Some(&ids))? {
                continue;
            }
        }
        if limits
            .and_then(|limits| limits.network_metadata)
            .is_some_and(|needed| !networks_fit(host, &chosen, needed))
        {
            continue;
        }
        return Ok(true);
    }
    Ok(false)
}

/// What was tried before: pairs of the host cell's number and the number that the guest cell had
/// *before* it was tried.
#[derive(Default)]
struct TriedCells {
    fit: BTreeSet<(i64, i64)>,
    misfit: BTreeSet<(i64, i64)>,
}

fn cells_fit(
    chosen: &[&NumaCell],
    guest: &mut InstanceNumaTopology,
    limits: Option<&NumaFitLimits<'_>>,
    isolate_emulator: bool,
    known: &mut TriedCells,
) -> Result<bool, NovaException> {
    for (place, (host, cell)) in chosen.iter().zip(&mut guest.cells).enumerate() {
        let pair = (host.id, cell.id);
        if known.misfit.contains(&pair) {
            return Ok(false);
        }
        if known.fit.contains(&pair) {
            cell.id = host.id;
            continue;
        }
        // The emulator's own CPU comes from the cell of the guest's first.
        let reserved = usize::from(isolate_emulator && place == 0);
        match fit_cell(host, cell, limits, reserved) {
            Ok(true) => known.fit.insert(pair),
            Err(fault) if fault.class != NOT_SUPPORTED => return Err(fault),
            Ok(false) | Err(_) => {
                known.misfit.insert(pair);
                return Ok(false);
            }
        };
    }
    Ok(true)
}
