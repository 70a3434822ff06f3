//! Whether the networks of a request are near the chosen cells
//! (`_numa_cells_support_network_metadata`).

use crate::model::{NetworkMetadata, NumaCell, NumaTopology};
use std::collections::BTreeSet;

/// True unless a network that the request needs is near some cell of the host, but near none of the
/// chosen ones. A network that is near no cell at all is no constraint.
pub(super) fn networks_fit(
    host: &NumaTopology,
    chosen: &[&NumaCell],
    needed: &NetworkMetadata,
) -> bool {
    let mut physnets: BTreeSet<&String> = needed.physnets.iter().collect();
    for near in chosen
        .iter()
        .filter_map(|cell| cell.network_metadata.as_ref())
    {
        physnets.retain(|name| !near.physnets.contains(*name));
    }
    let mut all = host
        .cells
        .iter()
        .filter_map(|cell| cell.network_metadata.as_ref());
    if all
        .clone()
        .any(|near| physnets.iter().any(|name| near.physnets.contains(*name)))
    {
        return false;
    }
    let here = |cell: &&NumaCell| {
        cell.network_metadata
            .as_ref()
            .is_some_and(|near| near.tunneled)
    };
    !needed.tunneled || chosen.iter().any(here) || !all.any(|near| near.tunneled)
}
