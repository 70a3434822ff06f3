//! Filters: which hosts may take the request at all.
//!
//! One filter a file, all of them in [`STATIC`] and [`DYNAMIC`], in the order in which they run.
//! Those of the first list do not depend on what the request has done so far and run once a
//! request; those of the second run for each of its instances. They stop after the first that
//! leaves nothing, as Nova does. The operator's filters ([`plugins`]) come behind all of them.
//!
//! A host that the request forces skips every filter but the one that keeps only forced hosts, and
//! capacity: an administrator may force a request onto a host that is disabled, down, in another
//! zone or against a group's policy, as with Nova, but never onto one that is full.

mod affinity;
mod aggregates;
mod anti_affinity;
mod availability_zone;
mod capacity;
mod enabled_and_up;
mod hosts;
mod plugins;
mod traits;

pub(crate) use anti_affinity::most_members;
pub(crate) use plugins::FilterPlugins;

use crate::EligibleHosts;
use crate::HostTable;
use crate::plugins::DecideFailure;
use crate::state::DecisionState;
use crate::table::HostIndex;
use ebbtide_model::decision::{DroppedHost, FilterStep};
use ebbtide_model::host_set::HostSet;
use plugins::FilterAnswers;

pub(crate) trait Filter: Sync {
    /// Its name in explanations.
    fn name(&self) -> &'static str;

    /// Drops the hosts that do not pass.
    fn run(&self, state: &DecisionState<'_>, hosts: &mut HostCandidates);

    /// What it does to a large set of hosts, if that is known without asking for each.
    fn effect<'a>(&self, state: &DecisionState<'a>) -> FilterEffect<'a> {
        let _ = state;
        FilterEffect::Unknown
    }

    /// Why a host that it dropped did not pass, in words.
    fn reason(&self, state: &DecisionState<'_>, host: HostIndex) -> String;

    /// True if it also runs for forced hosts.
    fn applies_to_forced(&self) -> bool {
        false
    }
}

/// What a filter does to any set of hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FilterEffect<'a> {
    /// It has to be run.
    Unknown,
    /// The request does not use this filter: every host passes.
    None,
    /// The hosts of this set pass.
    Keeps(&'a HostSet),
}

impl FilterEffect<'_> {
    fn none_if(idle: bool) -> Self {
        if idle { Self::None } else { Self::Unknown }
    }
}

/// Filters that run once a request, in order.
const STATIC: &[&dyn Filter] = &[
    &hosts::Hosts,
    &enabled_and_up::EnabledAndUp,
    &availability_zone::AvailabilityZone,
    &aggregates::Aggregates,
    &traits::Traits,
];

/// Filters that run for each instance of the request, in order.
const DYNAMIC: &[&dyn Filter] = &[
    &affinity::Affinity,
    &anti_affinity::AntiAffinity,
    &capacity::Capacity,
];

/// Where the capacity filter stands among them: it is the last.
const CAPACITY: usize = 2;

/// The hosts that are left, in the order of their registration.
#[derive(Debug)]
pub(crate) struct HostCandidates {
    pub(crate) hosts: Vec<HostIndex>,
    /// The first few that the running filter has dropped.
    dropped: Vec<HostIndex>,
    /// How many of them are kept.
    sample: usize,
}

impl HostCandidates {
    /// Keeps the hosts of which `keep` says so.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(HostIndex) -> bool) {
        let (dropped, sample) = (&mut self.dropped, self.sample);
        self.hosts.retain(|&host| {
            let kept = keep(host);
            if !kept && dropped.len() < sample {
                dropped.push(host);
            }
            kept
        });
    }
}

/// What the filters left, and what each of them did.
#[derive(Debug, Clone)]
pub(crate) struct FilterResult {
    pub(crate) hosts: Vec<HostIndex>,
    pub(crate) steps: Vec<FilterStep>,
}

/// The same as a set.
#[derive(Debug, Clone)]
pub(crate) struct FilteredHosts {
    pub(crate) hosts: HostSet,
    pub(crate) steps: Vec<FilterStep>,
}

/// Runs the filters of a request. The first answer is kept for the instances that follow.
#[derive(Debug)]
pub(crate) struct Pipeline {
    once: FilteredHosts,
    sample: usize,
    answers: FilterAnswers,
}

impl Pipeline {
    /// Runs the static filters. `sample` is how many dropped hosts each filter names.
    pub(crate) fn new(state: &DecisionState<'_>, sample: usize) -> Self {
        let mut once = FilteredHosts {
            hosts: state.table.known().clone(),
            steps: Vec::new(),
        };
        match state.ask.eligible {
            Some(eligible) => keep_eligible(&mut once, eligible),
            None => run_on_set(STATIC, state, &mut once, sample),
        }
        Self {
            once,
            sample,
            answers: FilterAnswers::default(),
        }
    }

    /// The same, host by host.
    pub(crate) fn simple(state: &DecisionState<'_>, sample: usize) -> Self {
        let all = FilterResult {
            hosts: state.table.order().to_vec(),
            steps: Vec::new(),
        };
        let filters = if state.ask.eligible.is_some() {
            &[]
        } else {
            STATIC
        };
        let FilterResult { hosts, steps } = run(filters, state, all, sample);
        let mut set = state.table.known().none_like();
        hosts.into_iter().for_each(|host| set.set(host.at()));
        let mut once = FilteredHosts { hosts: set, steps };
        if let Some(eligible) = state.ask.eligible {
            keep_eligible(&mut once, eligible);
        }
        Self {
            once,
            sample,
            answers: FilterAnswers::default(),
        }
    }

    /// The hosts that the static filters let pass.
    pub(crate) fn static_hosts(&self, table: &HostTable) -> Vec<HostIndex> {
        table.in_order(&self.once.hosts)
    }

    /// The hosts that may take the next instance.
    ///
    /// # Errors
    /// The failure of a plugin.
    pub(crate) fn next(
        &self,
        plugins: FilterPlugins<'_>,
        state: &DecisionState<'_>,
    ) -> Result<FilterResult, DecideFailure> {
        let start = FilterResult {
            hosts: state.table.in_order(&self.once.hosts),
            steps: self.once.steps.clone(),
        };
        let passed = run(DYNAMIC, state, start, self.sample);
        self.answers.run(plugins, state, passed, self.sample)
    }

    /// The hosts that may take the next instance; `capacity` returns those of a set that have the
    /// capacity.
    ///
    /// # Errors
    /// The failure of a plugin.
    pub(crate) fn next_set(
        &self,
        plugins: FilterPlugins<'_>,
        state: &DecisionState<'_>,
        capacity: impl FnOnce(&HostSet) -> HostSet,
    ) -> Result<FilteredHosts, DecideFailure> {
        let mut passed = self.once.clone();
        run_on_set(&DYNAMIC[..CAPACITY], state, &mut passed, self.sample);
        if !passed.hosts.is_empty() {
            let left = capacity(&passed.hosts);
            note(DYNAMIC[CAPACITY], state, &mut passed, left, self.sample);
        }
        if plugins.is_idle(state) {
            return Ok(passed);
        }
        let start = FilterResult {
            hosts: state.table.in_order(&passed.hosts),
            steps: passed.steps,
        };
        let left = self.answers.run(plugins, state, start, self.sample)?;
        let mut hosts = passed.hosts.none_like();
        left.hosts.iter().for_each(|host| hosts.set(host.at()));
        Ok(FilteredHosts {
            hosts,
            steps: left.steps,
        })
    }
}

/// Keeps the hosts that external filters (in OpenStack mode Nova's) have selected. The explanation
/// lists this as one step.
fn keep_eligible(passed: &mut FilteredHosts, eligible: &EligibleHosts<'_>) {
    let number = |set: &HostSet| u32::try_from(set.count()).unwrap_or(u32::MAX);
    let before = number(&passed.hosts);
    passed.hosts.keep(eligible.hosts());
    passed.steps.push(FilterStep {
        filter: "eligible".to_owned(),
        before,
        after: number(&passed.hosts),
        dropped: Vec::new(),
    });
}

/// Runs filters on a set; host by host only where that cannot be helped.
fn run_on_set(
    filters: &[&dyn Filter],
    state: &DecisionState<'_>,
    passed: &mut FilteredHosts,
    sample: usize,
) {
    let forced = !state.ask.host_rules.force_hosts.is_empty();
    for &filter in filters.iter().filter(|f| !forced || f.applies_to_forced()) {
        if passed.hosts.is_empty() {
            break;
        }
        let left = match filter.effect(state) {
            FilterEffect::None => passed.hosts.clone(),
            FilterEffect::Keeps(set) => {
                let mut left = passed.hosts.clone();
                left.keep(set);
                left
            }
            FilterEffect::Unknown => {
                let mut candidates = HostCandidates {
                    hosts: passed.hosts.iter().map(HostIndex::new).collect(),
                    dropped: Vec::new(),
                    sample: 0,
                };
                filter.run(state, &mut candidates);
                let mut left = passed.hosts.none_like();
                let hosts = candidates.hosts.into_iter();
                hosts.for_each(|host| left.set(host.at()));
                left
            }
        };
        note(filter, state, passed, left, sample);
    }
}

/// Notes what a filter has left.
fn note(
    filter: &dyn Filter,
    state: &DecisionState<'_>,
    passed: &mut FilteredHosts,
    left: HostSet,
    sample: usize,
) {
    let number = |set: &HostSet| u32::try_from(set.count()).unwrap_or(u32::MAX);
    let dropped = state.table.first_of(&passed.hosts.without(&left), sample);
    let named = |host| DroppedHost {
        host: state.table.host_name(host).to_owned(),
        reason: filter.reason(state, host),
    };
    passed.steps.push(FilterStep {
        filter: filter.name().to_owned(),
        before: number(&passed.hosts),
        after: number(&left),
        dropped: dropped.into_iter().map(named).collect(),
    });
    passed.hosts = left;
}

fn run(
    filters: &[&dyn Filter],
    state: &DecisionState<'_>,
    start: FilterResult,
    sample: usize,
) -> FilterResult {
    let forced = !state.ask.host_rules.force_hosts.is_empty();
    let mut steps = start.steps;
    let mut candidates = HostCandidates {
        hosts: start.hosts,
        dropped: Vec::new(),
        sample,
    };
    for filter in filters.iter().filter(|f| !forced || f.applies_to_forced()) {
        if candidates.hosts.is_empty() {
            break;
        }
        let before = count(&candidates.hosts);
        filter.run(state, &mut candidates);
        let dropped = candidates.dropped.drain(..).map(|host| DroppedHost {
            host: state.table.host_name(host).to_owned(),
            reason: filter.reason(state, host),
        });
        steps.push(FilterStep {
            filter: filter.name().to_owned(),
            before,
            dropped: dropped.collect(),
            after: count(&candidates.hosts),
        });
    }
    FilterResult {
        hosts: candidates.hosts,
        steps,
    }
}

/// A number of hosts as explanations hold it.
pub(crate) fn count<T>(items: &[T]) -> u32 {
    u32::try_from(items.len()).unwrap_or(u32::MAX)
}

/// The verdict on each of a few values that many hosts share, worked out at first sight.
pub(crate) struct Verdicts(Vec<Option<bool>>);

impl Verdicts {
    /// For values numbered below `slots`.
    pub(crate) fn new(slots: usize) -> Self {
        Self(vec![None; slots])
    }

    /// The verdict on value `number`.
    pub(crate) fn get(&mut self, number: u32, judge: impl FnOnce() -> bool) -> bool {
        match self.0.get_mut(number as usize) {
            Some(slot) => *slot.get_or_insert_with(judge),
            None => judge(),
        }
    }
}
