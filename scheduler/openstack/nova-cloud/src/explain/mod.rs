//! Why a request got its hosts, as the engine's explanations say it: made after the answer, from
//! what the decision was made from.

mod offer;
mod reason;

use crate::candidates::CandidateHosts;
use crate::shadow::ShadowRules;
use ebbtide_model::decision::{
    DroppedHost, FilterCount, FilterStep, InstanceExplanation, RankedHost, Weight,
};
use ebbtide_nova::model::{HostState, Options, RequestSpec};
use ebbtide_nova::schedule::{FilterRecord, HostWeights, InstanceRecord};
use ebbtide_nova::states::HostStateList;
use ebbtide_nova::table::HostSet;
use reason::reason;
use std::sync::Arc;

/// Most hosts in a ranking, besides the chosen one.
const RANKED: usize = 5;

/// How one request was decided, as far as an explanation needs it. Holds the states of the hosts as
/// they were then: shared with the cloud, so that it costs next to nothing.
#[derive(Debug)]
pub struct SchedulingRecord {
    pub(crate) instances: Vec<InstanceRecord>,
    /// The host of each instance.
    pub(crate) chosen: Vec<usize>,
    /// The request as it was decided.
    pub(crate) spec: RequestSpec,
    pub(crate) options: Arc<Options>,
    pub(crate) now: i64,
    /// What was offered to the filters.
    pub(crate) candidates: CandidateHosts,
    /// The hosts that they saw.
    pub(crate) hosts: HostSet,
    /// With what the decision is compared.
    pub(crate) shadow: Option<Arc<ShadowRules>>,
}

impl SchedulingRecord {
    /// One explanation for each recorded instance, in order, up to and including the one that got
    /// no host. `warnings` gets what no record can hold: numbers that are not finite.
    #[must_use]
    pub fn explain(&self, warnings: &mut Vec<String>) -> Vec<InstanceExplanation> {
        let instances = self.instances.iter().enumerate();
        instances
            .map(|(index, record)| {
                let chosen = self.chosen.get(index).copied();
                self.instance(record, chosen, warnings)
            })
            .collect()
    }

    /// The hosts that were offered to the filters.
    #[must_use]
    pub fn candidates(&self) -> &CandidateHosts {
        &self.candidates
    }

    /// How many instances got a host.
    #[must_use]
    pub fn placed(&self) -> u32 {
        count(self.chosen.len())
    }

    /// For each filter how many hosts it dropped for the instance that was looked at last, and how
    /// many hosts there were.
    #[must_use]
    pub fn dropped(&self) -> (Vec<FilterCount>, u32) {
        let filters = self.instances.last().map(|record| record.sort.filters());
        let filters = filters.unwrap_or_default();
        let counts = filters.iter().map(|step| FilterCount {
            filter: step.filter.to_owned(),
            dropped: count(step.before.saturating_sub(step.after)),
        });
        let hosts = filters.first().map_or(0, |step| step.before);
        (counts.collect(), count(hosts))
    }

    fn instance(
        &self,
        record: &InstanceRecord,
        chosen: Option<usize>,
        warnings: &mut Vec<String>,
    ) -> InstanceExplanation {
        let sort = &record.sort;
        let best = sort.best.iter();
        let mut ranked: Vec<(usize, Option<f64>)> = best
            .map(|(host, total)| (*host, Some(*total)))
            .take(RANKED)
            .collect();
        if let Some(chosen) = chosen
            && !ranked.iter().any(|(host, _)| *host == chosen)
        {
            let known = sort.best.iter().find(|(host, _)| *host == chosen);
            ranked.push((chosen, known.map(|(_, total)| *total)));
        }
        let problems = sort
            .filters()
            .iter()
            .filter_map(|step| step.problem.clone());
        warnings.extend(problems);
        let hosts: Vec<usize> = ranked.iter().map(|(host, _)| *host).collect();
        let weights = sort.weights(&hosts, &record.states, &self.spec, &self.options);
        let ranking = ranked.into_iter().zip(weights);
        InstanceExplanation {
            filters: sort
                .filters()
                .iter()
                .map(|step| {
                    let novas =
                        |state: &HostState| reason(step.filter, state, &self.spec, self.now);
                    filter_step(step, &record.states, novas)
                })
                .collect(),
            ranking: ranking
                .map(|((host, total), weights)| {
                    let name = &record.states.get(host).host;
                    ranked_host(name, chosen == Some(host), total, &weights, warnings)
                })
                .collect(),
            ranked: count(sort.passing),
        }
    }
}

/// What a filter did, as explanations have it. `reason`: why one of Nova's filters dropped a host.
pub(crate) fn filter_step(
    step: &FilterRecord,
    states: &impl HostStateList,
    reason: impl Fn(&HostState) -> String,
) -> FilterStep {
    let dropped = step.dropped.iter().enumerate().map(|(place, at)| {
        let state = states.get(*at);
        let own = step.reasons.get(place).cloned();
        DroppedHost {
            host: state.host.clone(),
            reason: own.unwrap_or_else(|| reason(state)),
        }
    });
    FilterStep {
        filter: step.filter.to_owned(),
        before: count(step.before),
        after: count(step.after),
        dropped: dropped.collect(),
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn ranked_host(
    host: &str,
    chosen: bool,
    total: Option<f64>,
    weights: &HostWeights,
    warnings: &mut Vec<String>,
) -> RankedHost {
    let mut finite = |what: &str, number: f64| {
        if number.is_finite() {
            return number;
        }
        // As much as a record can hold of it.
        warnings.push(format!("{what} on {host} is {number}; recorded as 0"));
        0.0
    };
    let weights: Vec<Weight> = weights
        .iter()
        .map(|weight| Weight {
            weigher: weight.class.to_owned(),
            raw: finite(weight.class, weight.raw),
            normalised: finite(weight.class, weight.norm),
            multiplier: finite(weight.class, weight.mult),
        })
        .collect();
    let sum = || {
        let weights = weights.iter();
        // In Nova's order: another one would round differently.
        weights.fold(0.0, |sum, weight| {
            sum + weight.multiplier * weight.normalised
        })
    };
    RankedHost {
        host: host.to_owned(),
        chosen,
        eviction_cost: None,
        victims: Vec::new(),
        weight: finite("the weight", total.unwrap_or_else(sum)),
        weights,
    }
}
