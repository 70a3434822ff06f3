//! `capacity`: the request has to fit. It is the last filter, because it determines which state is
//! seen.
//!
//! The filter compares a normal request with h_n, in which preemptible instances do not count, so a
//! host that passes may still need victims. It compares a preemptible request with h_f; such a
//! request never has victims. As in Placement, only requested classes are compared: a host that is
//! over-committed in another class passes. Under affinity all instances of the request have to fit
//! together.

use super::{Filter, HostCandidates};
use crate::checked_request::ResourceDemand;
use crate::state::DecisionState;
use crate::table::HostIndex;

pub(super) struct Capacity;

fn free(state: &DecisionState<'_>, host: HostIndex, need: &ResourceDemand<'_>) -> i64 {
    if state.ask.preemptible() {
        state.free_full(host, need)
    } else {
        state.free_normal(host, need)
    }
}

impl Filter for Capacity {
    fn name(&self) -> &'static str {
        "capacity"
    }

    fn run(&self, state: &DecisionState<'_>, hosts: &mut HostCandidates) {
        let needs = &state.ask.needs;
        let bundle = state.ask.bundle;
        if needs.iter().any(|need| need.columns.is_none()) {
            hosts.retain(|_| false);
            return;
        }
        hosts.retain(|host| {
            needs
                .iter()
                .all(|need| free(state, host, need) >= need.amount * bundle)
        });
    }

    fn reason(&self, state: &DecisionState<'_>, host: HostIndex) -> String {
        let counted = if state.ask.preemptible() {
            "all"
        } else {
            "normal only"
        };
        let lacking = state.ask.needs.iter().filter_map(|need| {
            let (wanted, has) = (need.amount * state.ask.bundle, free(state, host, need));
            let capacity = need.columns.map_or(0, |c| c.capacity[host.at()]);
            (has < wanted).then(|| {
                format!(
                    "{}: needs {wanted}, {has} of {capacity} free ({counted})",
                    need.class
                )
            })
        });
        lacking.collect::<Vec<_>>().join("; ")
    }

    fn applies_to_forced(&self) -> bool {
        true
    }
}
