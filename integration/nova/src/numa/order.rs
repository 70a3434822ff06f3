//! In which order the host's cells are tried (`numa_fit_instance_to_host`).

use crate::model::{InstanceNumaTopology, NumaCell, NumaTopology, PciPool};
use std::cmp::Reverse;

/// The host's cells in the order of Nova's tries. Where the guest needs all of them it is the
/// host's order. Else those with more free memory, then those with less used CPUs (or more free
/// dedicated ones) come first, or last if packing is configured; above all, cells with more free
/// PCI devices come first if the guest wants devices, and last if not.
///
/// `pools` is `None` for a node that was never updated.
pub(super) fn tried_order<'a>(
    host: &'a NumaTopology,
    guest: &InstanceNumaTopology,
    pools: Option<&[PciPool]>,
    wants_devices: bool,
    packing: bool,
) -> Vec<&'a NumaCell> {
    let mut cells: Vec<&NumaCell> = host.cells.iter().collect();
    if host.cells.len() <= guest.cells.len() {
        return cells;
    }
    // All sorts are stable, also those in descending order, so an earlier sort decides among
    // equals.
    sort(&mut cells, !packing, NumaCell::avail_memory);
    let floating = guest
        .cells
        .first()
        .is_none_or(|cell| matches!(cell.cpu_policy.as_deref(), None | Some("shared")));
    if floating {
        sort(&mut cells, packing, |cell| cell.cpu_usage);
    } else {
        sort(&mut cells, !packing, |cell| cell.free_pcpus().len());
    }
    if let Some(pools) = pools {
        let devices = |cell: &NumaCell| -> i64 {
            let near = pools.iter().filter(|pool| pool.numa_node == Some(cell.id));
            near.map(|pool| pool.count).sum()
        };
        sort(&mut cells, wants_devices, devices);
    }
    cells
}

fn sort<K: Ord>(cells: &mut [&NumaCell], descending: bool, key: impl Fn(&NumaCell) -> K) {
    if descending {
        cells.sort_by_cached_key(|cell| Reverse(key(cell)));
    } else {
        cells.sort_by_cached_key(|cell| key(cell));
    }
}
