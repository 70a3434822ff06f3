//! The words and rows of an explanation.

use crate::checked_request::CheckedRequest;
use crate::ranking::{RankedPlace, Tier};
use crate::state::DecisionState;
use crate::table::{HostIndex, Slot};
use ebbtide_model::Victim;
use ebbtide_model::decision::{DroppedHost, FilterStep, RankedHost};
use ebbtide_solver::EvictionCost;

/// What explanations call the step that drops hosts on which no victim set is sufficient. It stands
/// behind the filters.
pub(crate) const VICTIMS: &str = "victims";

/// A victim as others see it.
pub(crate) fn victim(state: &DecisionState<'_>, slot: Slot, cost: EvictionCost) -> Victim {
    let row = state.table.row(slot);
    let view = state.table.view_of(slot);
    Victim {
        server_id: view.id,
        name: view.name.to_owned(),
        project_id: view.project_id.to_owned(),
        resources: state.table.shape(row.shape).frees(),
        age_seconds: row.age_millis(state.now) as f64 / 1000.0,
        cost: cost.to_units(),
    }
}

/// A ranked host as others see it.
pub(crate) fn ranked_host(
    state: &DecisionState<'_>,
    ranked: &RankedPlace,
    chosen: bool,
) -> RankedHost {
    let place = &ranked.place;
    let (eviction_cost, victims) = match (&place.eviction, place.tier) {
        (Some(eviction), _) => {
            let victims = eviction
                .victims
                .iter()
                .map(|&(slot, cost)| victim(state, slot, cost));
            (Some(eviction.cost.to_units()), victims.collect())
        }
        (None, Tier::Evicts) => (None, Vec::new()),
        (None, Tier::Room | Tier::Waits) => (Some(0.0), Vec::new()),
    };
    RankedHost {
        host: state.table.host_name(place.host).to_owned(),
        chosen,
        eviction_cost,
        victims,
        weight: ranked.total,
        weights: ranked.weights.clone(),
    }
}

/// Explains the hosts without a sufficient victim set in the form of a filter step.
pub(crate) fn victims_step(
    state: &DecisionState<'_>,
    before: u32,
    lost: u32,
    dropped: Vec<(HostIndex, String)>,
) -> FilterStep {
    let named = |(host, reason)| DroppedHost {
        host: state.table.host_name(host).to_owned(),
        reason,
    };
    FilterStep {
        filter: VICTIMS.to_owned(),
        before,
        after: before.saturating_sub(lost),
        dropped: dropped.into_iter().map(named).collect(),
    }
}

/// Why there is no host, in a sentence that names no tenant.
pub(crate) fn no_valid_host(
    ask: &CheckedRequest<'_>,
    placed_before: usize,
    filters: &[FilterStep],
) -> String {
    let all = ask.server_ids.len();
    let which = match (all, ask.bundle) {
        (1, _) => String::new(),
        (_, 1) => format!(" for instance {} of {all}", placed_before + 1),
        _ => format!(" for all {all} instances together"),
    };
    let fallen: Vec<String> = filters
        .iter()
        .filter(|step| step.before > step.after)
        .map(|step| {
            format!(
                "{} of {} by {}",
                step.before - step.after,
                step.before,
                step.filter
            )
        })
        .collect();
    if fallen.is_empty() {
        return format!("No valid host was found{which}: there are no hosts.");
    }
    format!(
        "No valid host was found{which}: hosts dropped: {}.",
        fallen.join(", ")
    )
}
