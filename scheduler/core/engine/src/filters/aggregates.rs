//! `aggregates`: the flavor's demands on the metadata of the host's aggregates (Nova's
//! AggregateInstanceExtraSpecsFilter, in the scope `aggregate_instance_extra_specs:`).
//!
//! For each key, one of the values that the host's aggregates give it has to match; values are
//! split at commas and trimmed. A key that no aggregate of the host has, fails. See
//! [`extra_specs_ops`] for the operators.
//!
//! Where Nova looks at the values in the order of a hash set and fails the whole request at the
//! first that cannot be compared, a value that cannot be compared simply does not match here: one
//! typing error in an aggregate takes no request down, and the answer does not depend on chance.

use super::{Filter, FilterEffect, HostCandidates, Verdicts};
use crate::state::DecisionState;
use crate::table::HostIndex;
use ebbtide_model::extra_specs_ops;
use std::collections::BTreeSet;

pub(super) struct Aggregates;

fn asks_nothing(state: &DecisionState<'_>) -> bool {
    let wanted = state.ask.host_rules.properties;
    wanted.is_none_or(|wanted| wanted.aggregate_specs.is_empty())
}

/// The first demand that an aggregate set does not meet, with the values it has.
fn unmet<'a>(state: &DecisionState<'a>, set: u32) -> Option<(&'a str, &'a str, BTreeSet<&'a str>)> {
    let sets = state.table.aggregate_sets();
    let specs = state
        .ask
        .host_rules
        .properties
        .map(|wanted| &wanted.aggregate_specs);
    specs.into_iter().flatten().find_map(|(key, demand)| {
        let values: BTreeSet<&str> = sets
            .in_set(set)
            .filter_map(|aggregate| aggregate.metadata.get(key))
            .flat_map(|value| value.split(',').map(str::trim))
            .collect();
        let met = values
            .iter()
            .any(|v| extra_specs_ops::matches(v, demand) == Ok(true));
        (!met).then_some((key.as_str(), demand.as_str(), values))
    })
}

impl Filter for Aggregates {
    fn name(&self) -> &'static str {
        "aggregates"
    }

    fn run(&self, state: &DecisionState<'_>, hosts: &mut HostCandidates) {
        if asks_nothing(state) {
            return;
        }
        let mut verdicts = Verdicts::new(state.table.aggregate_sets().sets());
        hosts.retain(|host| {
            let set = state.table.aggregate_set(host);
            verdicts.get(set, || unmet(state, set).is_none())
        });
    }

    fn effect<'a>(&self, state: &DecisionState<'a>) -> FilterEffect<'a> {
        FilterEffect::none_if(asks_nothing(state))
    }

    fn reason(&self, state: &DecisionState<'_>, host: HostIndex) -> String {
        match unmet(state, state.table.aggregate_set(host)) {
            Some((key, demand, values)) if values.is_empty() => {
                format!("{key} must match {demand:?}, and none of its aggregates has the key")
            }
            Some((key, demand, values)) => {
                let values: Vec<&str> = values.into_iter().collect();
                format!(
                    "{key} must match {demand:?}, its aggregates say {:?}",
                    values.join(", ")
                )
            }
            None => String::new(),
        }
    }
}
