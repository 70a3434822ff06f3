//! Who of several instances on one host waits for which victim.
//!
//! A victim set was found for all of them together. The instances start in the order of the request, so the first waits for
//! as few victims as it needs, the next for those that are missing then, and so on. Every victim is one instance's.

use crate::state::State;
use crate::table::{HostIndex, Slot};
use ebbtide_solver::Cost;
use smallvec::SmallVec;

/// The victims of each of `count` instances that were placed on a host. They are in the table's state as placed; who has to leave
/// for them is in `victims`, whatever the state says.
pub(crate) fn share_out(
    state: &State<'_>,
    host: HostIndex,
    count: usize,
    victims: &[(Slot, Cost)],
) -> Vec<Vec<(Slot, Cost)>> {
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
    // Sets are minimal, so there is nobody left; if a cut search left somebody, the last instance answers for it.
    if let Some(last) = shares.last_mut() {
        last.extend(left.copied());
    }
    shares
}

/// True if the first `count` instances of the request that were placed on a host fit into h_f as the table has it.
pub(crate) fn fits_now(state: &State<'_>, host: HostIndex, count: usize) -> bool {
    let wanted = i64::try_from(count).unwrap_or(i64::MAX);
    let full = |need: &crate::ask::Need<'_>| need.columns.map_or(0, |c| c.free_full(host));
    state
        .ask
        .needs
        .iter()
        .all(|need| wanted * need.amount <= full(need))
}
