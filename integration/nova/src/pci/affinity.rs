//! Devices near the guest's cells (`_filter_pools_for_numa_cells`,
//! `_filter_pools_for_socket_affinity`).

use super::stats::{Free, total};
use crate::fault::NovaException;
use crate::model::{NumaTopology, PciRequest};
use std::collections::BTreeSet;

/// The pools that are near enough. `required`: on the guest's cells. `socket`: on their sockets.
/// `legacy` (the default): on the guest's cells, or of unknown place. `preferred`: any, near ones
/// first. Where the nearest suffice, every policy takes just these.
///
/// # Errors
/// `AttributeError` for policy `socket` if the host reports no topology.
pub(super) fn near<'a>(
    pools: Vec<Free<'a>>,
    request: &PciRequest,
    cells: Option<&[i64]>,
    host: Option<&NumaTopology>,
) -> Result<Vec<Free<'a>>, NovaException> {
    let Some(cells) = cells.filter(|cells| !cells.is_empty()) else {
        return Ok(pools);
    };
    let policy = request.numa_policy.as_deref().unwrap_or("legacy");
    let on_cells = |free: &Free<'_>| {
        free.pool
            .numa_node
            .is_some_and(|node| cells.contains(&node))
    };
    let close: Vec<Free<'a>> = pools
        .iter()
        .filter(|free| on_cells(free))
        .copied()
        .collect();
    if policy == "required" || total(&close) >= request.count {
        return Ok(close);
    }
    if policy == "socket" {
        return on_sockets(pools, cells, host);
    }
    let close_or_unknown = |free: &Free<'_>| free.pool.numa_node.is_none() || on_cells(free);
    let legacy: Vec<Free<'a>> = pools
        .iter()
        .filter(|free| close_or_unknown(free))
        .copied()
        .collect();
    if policy == "legacy" || total(&legacy) >= request.count {
        return Ok(legacy);
    }
    let mut all = pools;
    all.sort_by_key(|free| !close_or_unknown(free));
    Ok(all)
}

fn on_sockets<'a>(
    pools: Vec<Free<'a>>,
    cells: &[i64],
    host: Option<&NumaTopology>,
) -> Result<Vec<Free<'a>>, NovaException> {
    let Some(host) = host else {
        return Err(NovaException::new(
            "AttributeError",
            "the host reports no NUMA topology",
        ));
    };
    // One cell of unknown socket, and no device is known to be near.
    if host.cells.iter().any(|cell| cell.socket.is_none()) {
        return Ok(Vec::new());
    }
    let of_guest = host.cells.iter().filter(|cell| cells.contains(&cell.id));
    let sockets: BTreeSet<Option<i64>> = of_guest.map(|cell| cell.socket).collect();
    let on_socket = host
        .cells
        .iter()
        .filter(|cell| sockets.contains(&cell.socket));
    let nodes: BTreeSet<i64> = on_socket.map(|cell| cell.id).collect();
    let near = |free: &Free<'_>| {
        free.pool
            .numa_node
            .is_some_and(|node| nodes.contains(&node))
    };
    Ok(pools.into_iter().filter(near).collect())
}
