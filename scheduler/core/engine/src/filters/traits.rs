//! `traits`: the host has to have every trait that the flavor requires (`trait:NAME=required`) and
//! none that it forbids (`trait:NAME=forbidden`), as Placement has it. Hosts with the same traits
//! are judged once.

use super::{Filter, FilterEffect, HostCandidates, Verdicts};
use crate::state::DecisionState;
use crate::table::HostIndex;

pub(super) struct Traits;

fn asks_nothing(state: &DecisionState<'_>) -> bool {
    state.ask.host_rules.properties.is_none_or(|wanted| {
        wanted.required_traits.is_empty() && wanted.forbidden_traits.is_empty()
    })
}

/// What is wrong with a set of traits, in words.
fn problem(state: &DecisionState<'_>, set: u32) -> Option<String> {
    let traits = state.table.traits(set);
    let wanted = state.ask.host_rules.properties?;
    if let Some(missing) = wanted.required_traits.iter().find(|t| !traits.contains(*t)) {
        return Some(format!("it has no {missing}, which is required"));
    }
    let present = wanted.forbidden_traits.iter().find(|t| traits.contains(*t));
    present.map(|t| format!("it has {t}, which is forbidden"))
}

impl Filter for Traits {
    fn name(&self) -> &'static str {
        "traits"
    }

    fn run(&self, state: &DecisionState<'_>, hosts: &mut HostCandidates) {
        if asks_nothing(state) {
            return;
        }
        let mut verdicts = Verdicts::new(state.table.trait_set_slots());
        hosts.retain(|host| {
            let set = state.table.trait_set(host);
            verdicts.get(set, || problem(state, set).is_none())
        });
    }

    fn effect<'a>(&self, state: &DecisionState<'a>) -> FilterEffect<'a> {
        FilterEffect::none_if(asks_nothing(state))
    }

    fn reason(&self, state: &DecisionState<'_>, host: HostIndex) -> String {
        problem(state, state.table.trait_set(host)).unwrap_or_default()
    }
}
