//! `availability-zone`: if the request names a zone, the host has to be in it.
//!
//! A zone is an aggregate with the metadata key `availability_zone`; hosts in none are in the zone
//! `nova`. Nova allows a host one zone only; if aggregates say several, the host is in each of
//! them. Names are compared with case.

use super::{Filter, FilterEffect, HostCandidates, Verdicts};
use crate::state::DecisionState;
use crate::table::HostIndex;

pub(super) struct AvailabilityZone;

impl Filter for AvailabilityZone {
    fn name(&self) -> &'static str {
        "availability-zone"
    }

    fn run(&self, state: &DecisionState<'_>, hosts: &mut HostCandidates) {
        let Some(zone) = state.ask.host_rules.availability_zone else {
            return;
        };
        let sets = state.table.aggregate_sets();
        let mut verdicts = Verdicts::new(sets.sets());
        hosts.retain(|host| {
            let set = state.table.aggregate_set(host);
            verdicts.get(set, || sets.zones(set).contains(&zone))
        });
    }

    fn effect<'a>(&self, state: &DecisionState<'a>) -> FilterEffect<'a> {
        FilterEffect::none_if(state.ask.host_rules.availability_zone.is_none())
    }

    fn reason(&self, state: &DecisionState<'_>, host: HostIndex) -> String {
        let zones = state
            .table
            .aggregate_sets()
            .zones(state.table.aggregate_set(host));
        format!("it is in zone {}", zones.join(", "))
    }
}
