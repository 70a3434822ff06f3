//! Assigns the victims of a host to the instances that wait for them.
//!
//! One victim set was found for all instances of the request on this host. The instances start in
//! the order of the request: the first waits for as few victims as it needs, the next for those
//! that are still missing, and so on. Each victim belongs to exactly one instance.

use crate::state::DecisionState;
use crate::table::{HostIndex, Slot};
use ebbtide_solver::EvictionCost;
use smallvec::SmallVec;

/// The victims of each of `count` instances that were placed on a host. The state already counts
/// these instances as placed. Their victims come from `victims` and not from the state.
pub(crate) fn share_out(
    state: &DecisionState<'_>,
    host: HostIndex,
    count: usize,
    victims: &[(Slot, EvictionCost)],
) -> Vec<Vec<(Slot, EvictionCost)>> {
    let needs = &state.ask.needs;
    let mut free: SmallVec<[i64; 4]> = needs
        .iter()
        .map(|n| n.columns.map_or(0, |c| c.free_future(host)))
        .collect();
    let mut left = victims.iter();
    let mut shares = Vec::with_capacity(count);
    for rank in 1..=count {
        let wanted = i64::try_from(rank).unwrap_or(i64::MAX);
        let mut share = Vec::new();
        while needs
            .iter()
            .zip(&free)
            .any(|(need, free)| wanted * need.amount > *free)
        {
            let Some(&(slot, cost)) = left.next() else {
                break;
            };
            let shape = state.table.shape(state.table.row(slot).shape);
            for (free, need) in free.iter_mut().zip(needs) {
                *free += shape.freed(need.class);
            }
            share.push((slot, cost));
        }
        shares.push(share);
    }
    // Sets are minimal, so no victim is left over. If a cut search left some, the last instance
    // waits for them.
    if let Some(last) = shares.last_mut() {
        last.extend(left.copied());
    }
    shares
}

/// True if the first `count` instances of the request that were placed on a host fit into h_f as
/// the table has it.
pub(crate) fn fits_now(state: &DecisionState<'_>, host: HostIndex, count: usize) -> bool {
    let wanted = i64::try_from(count).unwrap_or(i64::MAX);
    let full = |need: &crate::checked_request::ResourceDemand<'_>| {
        need.columns.map_or(0, |c| c.free_full(host))
    };
    let amounts = state.ask.needs.iter();
    // The instances count as placed already.
    let needs = state.needs_on(host, wanted - state.placed_on(host));
    amounts
        .into_iter()
        .all(|need| wanted * need.amount <= full(need))
        && needs.is_none_or(|needs| needs.fits(&[]))
}
