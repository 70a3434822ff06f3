//! A cloud as columns, for speed. The decision is the same as that of [`crate::filtering`] and
//! [`crate::weighing`], which work host by host and are the reference for the tests.
//!
//! - Filters check one host of each kind: hosts with the same hypervisor, the same aggregates or
//!   the same value of an attribute share a verdict (`classes`). Verdicts are applied to sets of
//!   hosts ([`HostSet`]).
//! - A weigher whose result does not depend on the request runs once, when a host comes or changes.
//!   The ends of its scale are found from both ends of a sorted list, and weighers that add exactly
//!   zero are left out (`weights`).
//! - Only the best hosts are sorted (`best`).
//!
//! Unusual cases use the reference code: a rebuild, a filter or weigher that raises, numbers that
//! are not finite. The answer is the same either way, to the last bit.

mod best;
mod classes;
mod plan;
mod up;
mod weights;

pub use ebbtide_model::host_set::HostSet;

use crate::filtering::{self, FilterFault, InitialHosts};
use crate::filters::{Context, FilterPlugins};
use crate::hosts::new_state;
use crate::model::{HostState, Options, RequestSpec};
use crate::schedule::{
    FilterRecord, OrderRecord, RECORDED_DROPPED, ScheduleCall, SortedHosts, WeighingRecord,
};
use crate::states::{HostStateList, HostStates};
use crate::weighing::{self, Plugins, WeighFault};
use classes::ReferenceNeeded;
use plan::FilterPlan;
use std::collections::HashMap;
use std::sync::Arc;
use weights::Weights;

/// How many first hosts are put in order where only the first matter: one that is taken,
/// alternates, and more than usually refuse a claim.
const FIRST: usize = 20;

/// All hosts are sorted if there are at most this many times as many as requested: up to here that
/// is as fast.
const WHOLE: usize = 16;

/// How many hosts have to be in order before the first claim, so that it, and whatever `random` may
/// do, comes out as if all were.
///
/// All of them where more than one instance is to be placed, because the next ones look at the
/// hosts in this order, and where the options shuffle equals.
#[must_use]
pub fn first_of(spec: &RequestSpec, call: &ScheduleCall, options: &Options) -> usize {
    let uuids = call.instance_uuids.as_deref().unwrap_or_default();
    let several = if uuids.is_empty() {
        spec.num_instances > 1
    } else {
        uuids.len() > 1
    };
    if several || options.shuffle_best_same_weighed_hosts {
        return usize::MAX;
    }
    // One more than are in the subset, and one more than alternates.
    let asked = options.host_subset_size.max(options.max_attempts);
    FIRST.max(usize::try_from(asked).unwrap_or(FIRST))
}

/// What a cloud answers to a request.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Decision {
    /// How many hosts pass all filters.
    pub passing: usize,
    /// The best of them with their totals, best first; equal totals in the order of the hosts.
    pub best: Vec<(usize, f64)>,
}

/// What makes Nova fail the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecideFault {
    /// Before or in a filter.
    Filter(FilterFault),
    /// In a weigher.
    Weigh(WeighFault),
}

/// Which hosts pass, and how good they are.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HostSurvey {
    /// Those that pass all filters.
    pub passing: HostSet,
    /// Totals by place; empty unless two hosts pass. Those of hosts that do not pass mean nothing.
    pub totals: Vec<f64>,
    /// What the filters did, and with what the totals were made.
    pub record: Arc<OrderRecord>,
}

impl HostSurvey {
    /// The total of a host.
    #[must_use]
    pub fn total(&self, at: usize) -> f64 {
        self.totals.get(at).copied().unwrap_or(0.0)
    }

    /// All that pass, in the order of the hosts.
    #[must_use]
    pub fn unsorted(&self) -> SortedHosts {
        let hosts: Vec<usize> = self.passing.iter().collect();
        SortedHosts {
            totals: hosts.iter().map(|at| self.total(*at)).collect(),
            hosts,
            unordered: false,
            record: Arc::clone(&self.record),
            behind: 0,
        }
    }

    /// The best `top` of those that pass, or more, best first; equal totals in the order of the
    /// hosts. What is left out comes behind them in [`Self::sorted`].
    #[must_use]
    pub fn best(&self, top: usize) -> SortedHosts {
        if self.passing.count() / WHOLE <= top {
            self.sorted()
        } else {
            self.cut(top)
        }
    }

    /// The same without a host more than that, if more than one passes.
    #[must_use]
    pub fn cut(&self, top: usize) -> SortedHosts {
        let passing = self.passing.count();
        if passing < 2 {
            return self.sorted();
        }
        let best = best::best(&self.totals, &self.passing, top);
        SortedHosts {
            behind: passing - best.len(),
            hosts: best.iter().map(|(at, _)| *at).collect(),
            totals: best.iter().map(|(_, total)| *total).collect(),
            unordered: false,
            record: Arc::clone(&self.record),
        }
    }

    /// What [`Self::best`] left out: all that pass but the first `given`.
    #[must_use]
    pub fn behind(&self, given: usize) -> Vec<usize> {
        let mut all = self.sorted().hosts;
        all.split_off(given.min(all.len()))
    }

    /// All that pass, best first; equal totals in the order of the hosts.
    #[must_use]
    pub fn sorted(&self) -> SortedHosts {
        let mut order: Vec<(f64, u32)> = self
            .passing
            .iter()
            .map(|at| (self.total(at), at as u32))
            .collect();
        // Totals are finite here.
        order.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        SortedHosts {
            hosts: order.iter().map(|(_, at)| *at as usize).collect(),
            totals: order.iter().map(|(total, _)| *total).collect(),
            unordered: false,
            record: Arc::clone(&self.record),
            behind: 0,
        }
    }
}

/// On which hosts an instance is.
#[derive(Debug, Default)]
struct Instances(HashMap<String, Vec<u32>>);

impl Instances {
    fn hosts(&self, uuid: &str) -> impl Iterator<Item = usize> + use<'_> {
        self.0
            .get(uuid)
            .into_iter()
            .flatten()
            .map(|at| *at as usize)
    }

    fn put(&mut self, at: usize, before: Option<&HostState>, state: Option<&HostState>) {
        if let (Some(before), Some(state)) = (before, state)
            && Arc::ptr_eq(&before.instances, &state.instances)
        {
            return;
        }
        let here = at as u32;
        let has = |state: Option<&HostState>, uuid: &str| {
            state.is_some_and(|state| state.instances.contains_key(uuid))
        };
        for uuid in before.iter().flat_map(|state| state.instances.keys()) {
            if !has(state, uuid)
                && let Some(hosts) = self.0.get_mut(uuid)
            {
                hosts.retain(|other| *other != here);
                if hosts.is_empty() {
                    self.0.remove(uuid);
                }
            }
        }
        for uuid in state.iter().flat_map(|state| state.instances.keys()) {
            if !has(before, uuid) {
                self.0.entry(uuid.clone()).or_default().push(here);
            }
        }
    }
}

/// Hosts, ready to answer requests. They may come, change and go; a host keeps its place while it
/// is there.
#[derive(Debug)]
pub struct CloudTable {
    options: Arc<Options>,
    now: i64,
    states: HostStates,
    known: HostSet,
    free: Vec<usize>,
    plans: Vec<FilterPlan>,
    weights: Weights,
    instances: Instances,
}

impl CloudTable {
    /// Takes hosts in. `now` is in microseconds since 1970, UTC.
    #[must_use]
    pub fn new(states: Vec<HostState>, options: Options, now: i64) -> Self {
        let mut cloud = Self {
            now,
            states: HostStates::default(),
            known: HostSet::default(),
            free: Vec::new(),
            plans: FilterPlan::all(&options),
            weights: Weights::new(&options),
            instances: Instances::default(),
            options: Arc::new(options),
        };
        for state in states {
            cloud.add(state);
        }
        cloud
    }

    /// Takes a host in. Where it stands: places of hosts that left are given out again, the lowest
    /// first.
    pub fn add(&mut self, state: HostState) -> usize {
        let at = match self.free.pop() {
            Some(at) => at,
            None => {
                let at = self.states.push(new_state("", "", ""));
                self.known.grow(at + 1);
                at
            }
        };
        self.known.set(at);
        self.enter(at, None, state);
        at
    }

    /// Puts another state into the place of a host that is there.
    pub fn put(&mut self, at: usize, state: HostState) {
        if self.known.has(at) {
            let before = self.states.shared(at);
            self.enter(at, Some(&before), state);
        }
    }

    /// Takes a host out.
    pub fn remove(&mut self, at: usize) {
        if !self.known.has(at) {
            return;
        }
        self.known.clear(at);
        self.instances.put(at, Some(&self.states.shared(at)), None);
        self.plans.iter_mut().for_each(|plan| plan.put(at, None));
        self.weights.put(at, None, &self.options);
        self.states.set(at, new_state("", "", ""));
        let order = self.free.partition_point(|other| *other > at);
        self.free.insert(order, at);
    }

    fn enter(&mut self, at: usize, before: Option<&HostState>, state: HostState) {
        self.instances.put(at, before, Some(&state));
        for plan in &mut self.plans {
            plan.put(at, Some(&state));
        }
        self.weights.put(at, Some(&state), &self.options);
        self.states.set(at, state);
    }

    /// How many hosts there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.known.count()
    }

    /// True without hosts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// The hosts, by place. A copy costs nothing and stays as it is.
    #[must_use]
    pub fn states(&self) -> &HostStates {
        &self.states
    }

    /// The places where there is a host.
    #[must_use]
    pub fn known(&self) -> &HostSet {
        &self.known
    }

    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Takes other options of Nova's into use, from the next question on, for example because the
    /// cloud turns out to be of another release. The operator's own weighers and filters stay.
    pub fn set_options(&mut self, options: Options) {
        let options = options
            .with_plugins(self.options.plugins.clone())
            .with_filter_plugins(self.options.filter_plugins.clone());
        self.plans = FilterPlan::all(&options);
        for at in self.known.iter().collect::<Vec<_>>() {
            let state = self.states.shared(at);
            for plan in &mut self.plans {
                plan.put(at, Some(&state));
            }
        }
        self.take_weighers(options);
    }

    /// Takes other weighers behind Nova's own into use, from the next question on.
    pub fn set_plugins(&mut self, plugins: Plugins) {
        let options = Options::clone(&self.options).with_plugins(plugins);
        self.take_weighers(options);
    }

    /// Takes other filters behind Nova's own into use, from the next question on.
    pub fn set_filter_plugins(&mut self, filters: FilterPlugins) {
        let options = Options::clone(&self.options).with_filter_plugins(filters);
        self.options = Arc::new(options);
    }

    fn take_weighers(&mut self, options: Options) {
        self.options = Arc::new(options);
        // What weighers said of each host is kept by weigher.
        self.weights = Weights::new(&self.options);
        for at in 0..self.states.len() {
            let state = self.known.has(at).then(|| self.states.shared(at));
            self.weights.put(at, state.as_deref(), &self.options);
        }
    }

    #[must_use]
    pub fn shared_options(&self) -> Arc<Options> {
        Arc::clone(&self.options)
    }

    /// Filters and weighs for the first instance of a request, and gives the `top` best hosts.
    ///
    /// # Errors
    /// What Nova raises.
    pub fn decide(&self, spec: &RequestSpec, top: usize) -> Result<Decision, DecideFault> {
        let mut states = self.states.clone();
        match self.survey(spec, self.known.clone(), self.now, &mut states) {
            Some(survey) => {
                let SortedHosts { hosts, totals, .. } = survey.best(top);
                Ok(Decision {
                    passing: survey.passing.count(),
                    best: hosts.into_iter().zip(totals).take(top).collect(),
                })
            }
            None => self.reference(spec, top),
        }
    }

    /// The same decision host by host.
    ///
    /// # Errors
    /// What Nova raises.
    pub fn reference(&self, spec: &RequestSpec, top: usize) -> Result<Decision, DecideFault> {
        let context = Context {
            options: &self.options,
            now: self.now,
        };
        let mut states = self.states.clone();
        let hosts = self.known.iter().collect();
        let mut trace = Vec::new();
        let passed = filtering::filter(&mut states, hosts, spec, &context, 0, &mut trace)
            .map_err(DecideFault::Filter)?;
        let hosts: Vec<&HostState> = passed.iter().map(|at| states.get(*at)).collect();
        let weighed = weighing::weigh(&hosts, spec, &self.options).map_err(DecideFault::Weigh)?;
        let best = weighed.order.iter().take(top);
        Ok(Decision {
            passing: passed.len(),
            best: best
                .map(|place| (passed[*place], weighed.totals[*place]))
                .collect(),
        })
    }

    /// Filters and weighs some hosts for the first instance of a request. `states` are a copy of
    /// [`Self::states`], with whatever belongs to the request alone (candidates); what filters
    /// narrow on a host is changed there. `None`: this is out of the ordinary, and has to be
    /// decided host by host ([`crate::schedule::sorted`]).
    #[must_use]
    pub fn survey(
        &self,
        spec: &RequestSpec,
        among: HostSet,
        now: i64,
        states: &mut HostStates,
    ) -> Option<HostSurvey> {
        let own = &self.options.filter_plugins;
        self.survey_with(own, spec, among, &HostSet::default(), now, states)
    }

    /// The same with these filters behind Nova's own: the operator's on another state of the hosts.
    /// `lacking`: hosts that PciPassthroughFilter refuses in any case. It is not asked about them,
    /// and their states need no candidates.
    #[must_use]
    pub fn survey_with(
        &self,
        own: &FilterPlugins,
        spec: &RequestSpec,
        among: HostSet,
        lacking: &HostSet,
        now: i64,
        states: &mut HostStates,
    ) -> Option<HostSurvey> {
        self.quick(own, spec, (among, lacking), now, states).ok()
    }

    fn quick(
        &self,
        own: &FilterPlugins,
        spec: &RequestSpec,
        (mut alive, lacking): (HostSet, &HostSet),
        now: i64,
        states: &mut HostStates,
    ) -> Result<HostSurvey, ReferenceNeeded> {
        let mut filters = Vec::with_capacity(self.plans.len());
        if !self.narrow(spec, &mut alive)? {
            let context = Context {
                options: &self.options,
                now,
            };
            let mut start = alive.count();
            let mut before = HostSet::default();
            for plan in &self.plans {
                before.copy_from(&alive);
                if plan.filter.name() == "PciPassthroughFilter" {
                    alive.remove(lacking);
                }
                plan.run(states, &self.instances, spec, &context, &mut alive)?;
                let end = alive.count();
                filters.push(FilterRecord {
                    filter: plan.filter.name(),
                    before: start,
                    after: end,
                    dropped: if end == start {
                        Vec::new()
                    } else {
                        before.remove(&alive);
                        before.iter().take(RECORDED_DROPPED).collect()
                    },
                    reasons: Vec::new(),
                    problem: None,
                });
                start = end;
                if end == 0 {
                    break;
                }
            }
            if !own.is_empty() && !alive.is_empty() {
                let mut trace = Vec::new();
                let hosts = alive.iter().collect();
                let passed = own.run(states, hosts, spec, &self.options, &mut trace);
                alive = HostSet::none(self.states.len());
                passed.into_iter().for_each(|at| alive.set(at));
                filters.extend(trace.into_iter().map(FilterRecord::from));
            }
        }
        let (totals, weighing) = if alive.count() < 2 {
            Default::default()
        } else {
            let (totals, scales) =
                self.weights
                    .add_up(states, &self.instances, &self.options, spec, &alive)?;
            (totals, WeighingRecord::Scales(scales))
        };
        Ok(HostSurvey {
            passing: alive,
            totals,
            record: Arc::new(OrderRecord { filters, weighing }),
        })
    }

    /// What comes before the filters. True if they are not asked.
    fn narrow(&self, spec: &RequestSpec, alive: &mut HostSet) -> Result<bool, ReferenceNeeded> {
        let empty = |list: &Option<Vec<String>>| list.as_ref().is_none_or(Vec::is_empty);
        let anywhere = |host: &crate::model::Destination| host.host.is_none();
        let ordinary = spec.requested_destination.as_ref().is_none_or(anywhere)
            && empty(&spec.ignore_hosts)
            && empty(&spec.force_hosts)
            && empty(&spec.force_nodes);
        if filtering::is_rebuild(spec).map_err(|_| ReferenceNeeded)? {
            return Err(ReferenceNeeded);
        }
        if ordinary {
            return Ok(false);
        }
        let hosts = alive.iter().collect();
        let narrowed = filtering::narrow(&self.states, hosts, spec).map_err(|_| ReferenceNeeded)?;
        let (hosts, decided) = match narrowed {
            InitialHosts::Decided(hosts) => (hosts, true),
            InitialHosts::Open(hosts) => (hosts, false),
        };
        *alive = HostSet::none(self.states.len());
        hosts.into_iter().for_each(|at| alive.set(at));
        Ok(decided)
    }
}
