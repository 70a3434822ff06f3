//! The operator's filters, behind the built-in ones.
//!
//! They are asked for each instance of a request about the hosts that passed so far, on the state
//! on which the request is filtered. An answer is kept until the request has placed something more:
//! whatever asks again on the same state gets the same answer, so that a filter that changes its
//! mind cannot make one decision by two answers.

use super::{FilterResult, HostCandidates, count};
use crate::plugins::{DecideFailure, FailedPlugins, UsedFilter};
use crate::ranking::{FilterBatch, request_view};
use crate::state::DecisionState;
use crate::table::HostIndex;
use crate::{Engine, PluginFailure};
use ebbtide_model::decision::{DroppedHost, FilterStep};
use ebbtide_weigher_api::FilterVerdicts;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// The filters in use and those that have failed for this request.
#[derive(Clone, Copy)]
pub(crate) struct FilterPlugins<'e> {
    filters: &'e [UsedFilter],
    failed: &'e FailedPlugins,
}

impl<'e> FilterPlugins<'e> {
    pub(crate) fn new(engine: &'e Engine, failed: &'e FailedPlugins) -> Self {
        Self {
            filters: &engine.filters,
            failed,
        }
    }

    /// True if no filter runs for a request: forced hosts skip them, and hosts that another
    /// component has selected have passed them there.
    pub(crate) fn is_idle(&self, state: &DecisionState<'_>) -> bool {
        self.filters.is_empty()
            || state.ask.eligible.is_some()
            || !state.ask.host_rules.force_hosts.is_empty()
    }
}

/// The last answer of each filter, by its place.
#[derive(Debug, Default)]
pub(crate) struct FilterAnswers(RefCell<BTreeMap<usize, FilterAnswer>>);

#[derive(Debug)]
struct FilterAnswer {
    /// What the request had done when it was given.
    changes: usize,
    hosts: Vec<HostIndex>,
    verdicts: FilterVerdicts,
}

impl FilterAnswers {
    /// Takes out the hosts that the filters refuse, and appends a step for each filter.
    ///
    /// # Errors
    /// The failure of a filter.
    pub(super) fn run(
        &self,
        plugins: FilterPlugins<'_>,
        state: &DecisionState<'_>,
        mut passed: FilterResult,
        sample: usize,
    ) -> Result<FilterResult, DecideFailure> {
        if plugins.is_idle(state) {
            return Ok(passed);
        }
        for (place, used) in plugins.filters.iter().enumerate() {
            if passed.hosts.is_empty() {
                break;
            }
            let before = count(&passed.hosts);
            let mut dropped = Vec::new();
            match plugins.failed.filter(place) {
                Some((PluginFailure::Ignore, _)) => continue,
                Some((PluginFailure::Refuse, problem)) => {
                    let all = std::mem::take(&mut passed.hosts);
                    let named = all.iter().take(sample);
                    dropped.extend(named.map(|host| (*host, problem.to_owned())));
                }
                None => {
                    let hosts = std::mem::take(&mut passed.hosts);
                    let mut candidates = HostCandidates {
                        hosts,
                        dropped: Vec::new(),
                        sample,
                    };
                    self.ask(place, used, state, &mut candidates, &mut dropped)?;
                    passed.hosts = candidates.hosts;
                }
            }
            let named = dropped.into_iter().map(|(host, reason)| DroppedHost {
                host: state.table.host_name(host).to_owned(),
                reason,
            });
            passed.steps.push(FilterStep {
                filter: used.filter.name().to_owned(),
                before,
                after: count(&passed.hosts),
                dropped: named.collect(),
            });
        }
        Ok(passed)
    }

    fn ask(
        &self,
        place: usize,
        used: &UsedFilter,
        state: &DecisionState<'_>,
        candidates: &mut HostCandidates,
        dropped: &mut Vec<(HostIndex, String)>,
    ) -> Result<(), DecideFailure> {
        let changes = state.changes();
        let mut answers = self.0.borrow_mut();
        let known = answers.get(&place);
        let is_same =
            |known: &&FilterAnswer| known.changes == changes && known.hosts == candidates.hosts;
        if known.filter(is_same).is_none() {
            let hosts = candidates.hosts.clone();
            let verdicts = verdicts(used, state, &hosts)
                .map_err(|problem| DecideFailure::Filter(place, problem))?;
            let answer = FilterAnswer {
                changes,
                hosts,
                verdicts,
            };
            answers.insert(place, answer);
        }
        let Some(FilterAnswer { verdicts, .. }) = answers.get(&place) else {
            return Ok(());
        };
        let mut at = 0;
        let sample = candidates.sample;
        candidates.hosts.retain(|host| {
            let reason = verdicts.reason(at);
            at += 1;
            if let Some(reason) = reason
                && dropped.len() < sample
            {
                dropped.push((*host, reason.to_owned()));
            }
            reason.is_none()
        });
        Ok(())
    }
}

/// What a filter says of hosts.
fn verdicts(
    used: &UsedFilter,
    state: &DecisionState<'_>,
    hosts: &[HostIndex],
) -> Result<FilterVerdicts, String> {
    let filter = used.filter.as_ref();
    let batch = FilterBatch::new(state, hosts, filter);
    let answered = request_view(state, |request| filter.filter(request, &batch.view()));
    let checked = answered.and_then(|verdicts| verdicts.check(hosts.len()).map(|()| verdicts));
    checked.map_err(|error| error.to_string())
}
