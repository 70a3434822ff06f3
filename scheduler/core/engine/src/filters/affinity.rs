//! `affinity`: all members of the group on one host (Nova's ServerGroupAffinityFilter).
//!
//! Only hosts with members pass; if no host has members, every host passes. A member that is
//! leaving does not count, because it is gone when the new instance starts. Several instances of
//! one request are placed together on one host. Members of the group are never victims of a request
//! that joins it.

use super::{Filter, FilterEffect, HostCandidates};
use crate::state::DecisionState;
use crate::table::HostIndex;
use ebbtide_model::GroupPolicy;

pub(super) struct Affinity;

impl Filter for Affinity {
    fn name(&self) -> &'static str {
        "affinity"
    }

    fn run(&self, state: &DecisionState<'_>, hosts: &mut HostCandidates) {
        let Some(group) = state
            .ask
            .group
            .filter(|g| g.policy == GroupPolicy::Affinity)
        else {
            return;
        };
        let settled = state
            .table
            .members(group.id)
            .is_some_and(|m| m.values().any(|n| n.staying > 0))
            || state.touched().any(|(_, pending)| pending.placed > 0);
        if settled {
            hosts.retain(|host| state.members_on(host).staying > 0);
        }
    }

    fn effect<'a>(&self, state: &DecisionState<'a>) -> FilterEffect<'a> {
        FilterEffect::none_if(state.ask.policy() != Some(GroupPolicy::Affinity))
    }

    fn reason(&self, _state: &DecisionState<'_>, _host: HostIndex) -> String {
        "the server group's members are on another host".to_owned()
    }
}
