//! Nova's arithmetic of weights (`nova/weights.py`), to the last bit. Its parts are in
//! [`arithmetic`], which `integration/nova` uses, too.
//!
//! ```text
//! raw    clamped to the weigher's bounds
//! lo, hi the bounds where there are any, else the smallest and the largest raw number
//! norm   0 for all if lo == hi, else (raw − lo) / (hi − lo)
//! total  0.0 + multiplier × norm + …   in the configured order
//! ```
//!
//! A single host is not weighed: its total is 0. The multiplier of a host is the smallest of what
//! its aggregates say under the weigher's key, or the configured one if none says anything or one
//! of them is not a number. Where Nova leaves the result to the order of a hash set (one aggregate
//! says `nan`), NaN counts as larger than every number here. A total that is NaN puts its host
//! behind all others.

use super::RankedCandidate;
use super::columns::Batch;
use crate::Engine;
use crate::plugins::{DecideFailure, FailedPlugins, UsedWeigher};
use crate::state::DecisionState;
use ebbtide_model::decision::Weight;
use ebbtide_weigher_api::{Column, Details, HostBatch, RequestDetails, RequestView, arithmetic};

/// What one weigher gave to all hosts.
#[derive(Debug)]
struct Part {
    weigher: String,
    raw: Vec<f64>,
    normalised: Vec<f64>,
    multiplier: Vec<f64>,
}

#[derive(Debug)]
pub(crate) struct HostWeights {
    /// By position of the host.
    pub(crate) totals: Vec<f64>,
    /// Positions, best first; equal totals stay in their order.
    pub(crate) order: Vec<usize>,
    parts: Vec<Part>,
}

impl HostWeights {
    /// What each weigher gave the host at a position.
    pub(crate) fn weights(&self, position: usize) -> Vec<Weight> {
        let weight = |part: &Part| Weight {
            weigher: part.weigher.clone(),
            raw: part.raw[position],
            normalised: part.normalised[position],
            multiplier: part.multiplier[position],
        };
        self.parts.iter().map(weight).collect()
    }
}

/// Weighs hosts against each other.
pub(crate) fn weigh(
    engine: &Engine,
    broken: &FailedPlugins,
    state: &DecisionState<'_>,
    places: &[RankedCandidate],
) -> Result<HostWeights, DecideFailure> {
    let mut totals = vec![0.0; places.len()];
    let mut parts = Vec::new();
    if let Some(eligible) = state.ask.eligible {
        let given = places.iter().map(|place| eligible.weight(place.host));
        totals
            .iter_mut()
            .zip(given)
            .for_each(|(total, given)| *total = given);
    } else if places.len() > 1 {
        let used: Vec<(usize, &UsedWeigher)> = engine
            .weighers
            .iter()
            .enumerate()
            .filter(|(place, _)| !broken.has_weigher(*place))
            .collect();
        let mut needed = [false; Column::COUNT];
        for column in used.iter().flat_map(|(_, w)| w.weigher.needs()) {
            needed[column.index()] = true;
        }
        let ages = used.iter().any(|(_, w)| w.weigher.needs_preemptibles());
        let mut batch = Batch::new(state, places, &needed, ages);
        let facts = used.iter().flat_map(|(_, w)| w.weigher.facts());
        batch.add_facts(state, places, facts);
        for (place, weigher) in used {
            let part = run(place, weigher, state, places, &batch)?;
            for (total, (m, n)) in totals
                .iter_mut()
                .zip(part.multiplier.iter().zip(&part.normalised))
            {
                *total += m * n;
            }
            parts.push(part);
        }
    }
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by(|&a, &b| arithmetic::best_first(totals[a], totals[b]));
    Ok(HostWeights {
        totals,
        order,
        parts,
    })
}

fn run(
    place: usize,
    used: &UsedWeigher,
    state: &DecisionState<'_>,
    places: &[RankedCandidate],
    batch: &Batch,
) -> Result<Part, DecideFailure> {
    let weigher = used.weigher.as_ref();
    let hosts = HostBatch {
        len: places.len(),
        columns: &batch.columns,
        preemptibles: batch.preemptibles(),
        details: Details {
            facts: &batch.facts,
            ..Details::default()
        },
    };
    // What a weigher forgets to write is not a weight either.
    let mut raw = vec![f64::NAN; places.len()];
    request_view(state, |request| weigher.weigh(request, &hosts, &mut raw))
        .map_err(|error| DecideFailure::Weigher(place, format!("failed: {error}")))?;
    if let Some(bad) = raw.iter().position(|x| !x.is_finite()) {
        let host = state.table.host_name(places[bad].host);
        return Err(DecideFailure::Weigher(
            place,
            format!("gave {} for host {host}", raw[bad]),
        ));
    }
    arithmetic::clamp(&mut raw, weigher.bounds());
    let mut normalised = raw.clone();
    arithmetic::normalise(&mut normalised, weigher.bounds());
    let multiplier = multipliers(used, state, places);
    Ok(Part {
        weigher: weigher.name().to_owned(),
        raw,
        normalised,
        multiplier,
    })
}

/// The request as plugins see it.
pub(crate) fn request_view<T>(
    state: &DecisionState<'_>,
    ask: impl FnOnce(&RequestView<'_>) -> T,
) -> T {
    let flavor = state.ask.flavor;
    let extra_specs = flavor.iter().flat_map(|flavor| &flavor.extra_specs);
    let extra_specs: Vec<(&str, &str)> =
        extra_specs.map(|(k, v)| (k.as_str(), v.as_str())).collect();
    ask(&RequestView {
        project_id: state.ask.project_id,
        resources: state.ask.resources,
        preemptible: state.ask.preemptible(),
        group_policy: state.ask.policy(),
        details: RequestDetails {
            flavor: flavor.map_or("", |flavor| &flavor.name),
            extra_specs: &extra_specs,
            image_id: None,
            scheduler_hints: &[],
        },
    })
}

/// True if the metadata of some aggregate says how much a weigher counts on its hosts.
pub(crate) fn has_own_multipliers(used: &UsedWeigher, state: &DecisionState<'_>) -> bool {
    let key = used.weigher.multiplier_key();
    let mut all = state.table.aggregates().iter();
    all.any(|aggregate| aggregate.metadata.contains_key(key))
}

/// How much the weigher counts on each host.
fn multipliers(
    used: &UsedWeigher,
    state: &DecisionState<'_>,
    places: &[RankedCandidate],
) -> Vec<f64> {
    let sets = state.table.aggregate_sets();
    let mut of_set: Vec<Option<f64>> = vec![None; sets.sets()];
    let key = used.weigher.multiplier_key();
    let look_up = |set: u32| {
        let values = sets
            .in_set(set)
            .filter_map(|aggregate| aggregate.metadata.get(key))
            .map(String::as_str);
        let own = arithmetic::multiplier(values, Some(used.multiplier));
        used.weigher.multiplier_sign() * own.unwrap_or(used.multiplier)
    };
    places
        .iter()
        .map(|place| {
            let set = state.table.aggregate_set(place.host);
            match of_set.get_mut(set as usize) {
                Some(slot) => *slot.get_or_insert_with(|| look_up(set)),
                None => look_up(set),
            }
        })
        .collect()
}
