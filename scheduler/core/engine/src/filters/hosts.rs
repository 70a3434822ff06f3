//! `hosts`: the request's own lists.
//!
//! `ignore_hosts` are dropped. If there are `force_hosts`, every other host is dropped. Names are
//! compared without case, as Nova does (`get_filtered_hosts`). A host in both lists is dropped. A
//! server that can only continue where its retained resources are reachable gets those hosts,
//! whatever the lists say.

use super::{Filter, FilterEffect, HostCandidates};
use crate::state::DecisionState;
use crate::table::HostIndex;
use std::collections::BTreeSet;

pub(super) struct Hosts;

fn folded(names: &[String]) -> BTreeSet<String> {
    names.iter().map(|name| name.to_ascii_lowercase()).collect()
}

impl Filter for Hosts {
    fn name(&self) -> &'static str {
        "hosts"
    }

    fn run(&self, state: &DecisionState<'_>, hosts: &mut HostCandidates) {
        let rules = state.ask.host_rules;
        if let Some(only) = &state.ask.only {
            hosts.retain(|host| only.contains(&host));
            return;
        }
        if rules.ignore_hosts.is_empty() && rules.force_hosts.is_empty() {
            return;
        }
        let (ignored, forced) = (folded(rules.ignore_hosts), folded(rules.force_hosts));
        hosts.retain(|host| {
            let name = state.table.host_name(host).to_ascii_lowercase();
            !ignored.contains(&name) && (forced.is_empty() || forced.contains(&name))
        });
    }

    fn effect<'a>(&self, state: &DecisionState<'a>) -> FilterEffect<'a> {
        FilterEffect::none_if(
            state.ask.only.is_none()
                && state.ask.host_rules.ignore_hosts.is_empty()
                && state.ask.host_rules.force_hosts.is_empty(),
        )
    }

    fn reason(&self, state: &DecisionState<'_>, host: HostIndex) -> String {
        let name = state.table.host_name(host);
        if state.ask.only.is_some() {
            return "what was kept of the server cannot go on here".to_owned();
        }
        let ignored = state
            .ask
            .host_rules
            .ignore_hosts
            .iter()
            .any(|n| n.eq_ignore_ascii_case(name));
        if ignored {
            "the request ignores it".to_owned()
        } else {
            "the request forces other hosts".to_owned()
        }
    }

    fn applies_to_forced(&self) -> bool {
        true
    }
}
