//! `anti-affinity`: at most `max_server_per_host` members of the group on one host (Nova's
//! ServerGroupAntiAffinityFilter).
//!
//! A member that is leaving still counts until it is gone: the room for the new one would be free
//! only after it, but two members would share the host if its end failed. So evicting a member
//! never makes room under the policy.

use super::{Filter, FilterEffect, HostCandidates};
use crate::EligibleHosts;
use crate::state::DecisionState;
use crate::table::HostIndex;
use ebbtide_model::GroupPolicy;

/// How many more members of its group the request may place on a host at once; `None` if any
/// number.
pub(crate) fn most_members(state: &DecisionState<'_>, host: HostIndex) -> Option<u32> {
    if let Some(most) = state.ask.eligible.and_then(|eligible| eligible.most(host)) {
        let placed = state.pending(host).map_or(0, |pending| pending.placed);
        return Some(most.saturating_sub(u32::try_from(placed).unwrap_or(u32::MAX)));
    }
    let group = state
        .ask
        .group
        .filter(|g| g.policy == GroupPolicy::AntiAffinity)?;
    // A forced host skips this filter.
    state.ask.host_rules.force_hosts.is_empty().then(|| {
        let limit = group.max_server_per_host.max(1);
        limit.saturating_sub(state.members_on(host).all())
    })
}

pub(super) struct AntiAffinity;

impl Filter for AntiAffinity {
    fn name(&self) -> &'static str {
        "anti-affinity"
    }

    fn run(&self, state: &DecisionState<'_>, hosts: &mut HostCandidates) {
        if state.ask.eligible.is_some_and(EligibleHosts::is_limited) {
            hosts.retain(|host| most_members(state, host).is_none_or(|most| most > 0));
            return;
        }
        let Some(group) = state
            .ask
            .group
            .filter(|g| g.policy == GroupPolicy::AntiAffinity)
        else {
            return;
        };
        // A stored zero would lock the group out everywhere; Nova's smallest value is 1.
        let limit = group.max_server_per_host.max(1);
        hosts.retain(|host| state.members_on(host).all() < limit);
    }

    fn effect<'a>(&self, state: &DecisionState<'a>) -> FilterEffect<'a> {
        let limited = state.ask.eligible.is_some_and(EligibleHosts::is_limited);
        FilterEffect::none_if(!limited && state.ask.policy() != Some(GroupPolicy::AntiAffinity))
    }

    fn reason(&self, state: &DecisionState<'_>, host: HostIndex) -> String {
        if let Some(most) = state.ask.eligible.and_then(|eligible| eligible.most(host)) {
            return format!("the server group allows {most} instances of the request");
        }
        let limit = state.ask.group.map_or(1, |g| g.max_server_per_host.max(1));
        let members = state.members_on(host).all();
        format!("it has {members} members of the server group, allowed are {limit}")
    }
}
