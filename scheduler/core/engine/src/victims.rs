//! Victims: which instances could leave a host, what that costs, and which set is the cheapest
//! sufficient one.
//!
//! A candidate is a preemptible instance that has had no notice, whose protected time is over, and
//! that this request has not chosen already. Instances that are claimed or being built are
//! candidates like running ones: a server that has not started must not cause the refusal of a
//! normal request. An instance that frees nothing of what the request needs is no candidate. The
//! disk of a stopped or hibernated server stays allocated, and no request for disk ends such a
//! server. Under affinity the members of the request's own group are no candidates.
//!
//! The cost module prices all candidates of all hosts once for each request; from then on costs are
//! integers. Where the module declares a form, the engine computes the same costs itself, and only
//! for the hosts that it solves.

use crate::candidates::{Candidate, ShapeFacts, is_protected, learn, may_leave};
use crate::plugins::{DecideFailure, FailedPlugins};
use crate::set_cost::{BatchColumns, Surcharge, surcharge};
use crate::state::DecisionState;
use crate::table::{HostIndex, Slot};
use crate::victim_columns::{Columns, frees_nothing};
use crate::{Engine, EngineError};
use ebbtide_cost_api::{CostModule, MAX_COST};
use ebbtide_solver::{
    EvictionCost, Groups, HostProblem, MAX_CANDIDATES, Scratch, SearchLimits, SetCost, SetScratch,
    lower_bound, solve, solve_set,
};
use std::borrow::Cow;
use std::cell::RefCell;

/// A victim set of one host.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Eviction {
    /// The victims, each with its cost.
    pub(crate) victims: Vec<(Slot, EvictionCost)>,
    /// What all of them cost, with the surcharge of the set.
    pub(crate) cost: EvictionCost,
    /// Proven to be the best set of this host.
    pub(crate) optimal: bool,
    /// No set of this host costs less.
    pub(crate) lower_bound: EvictionCost,
}

impl Eviction {
    /// The victims without their costs.
    pub(crate) fn slots(&self) -> Vec<Slot> {
        self.victims.iter().map(|(slot, _)| *slot).collect()
    }
}

/// Why a host cannot give enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShortageReason {
    /// All candidates together are not enough.
    NotEnough,
    /// Only beyond a disruption budget.
    Budgets,
    /// The search was cut before it had found anything.
    Unknown,
}

/// What a search found out about one host.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum VictimSearchResult {
    /// The cheapest sufficient set.
    Found(Eviction),
    /// Every sufficient set costs more than the cutoff.
    NotBetter,
    /// There is no sufficient set.
    Impossible(ShortageReason),
    /// The search was cut; nothing costs less than this.
    Undecided(EvictionCost),
}

/// The victim search of one attempt to decide.
#[derive(Debug, Default)]
pub(crate) struct VictimSearch {
    /// By host index: where its candidates are in `candidates`. Empty until the costs are known.
    ranges: Vec<(u32, u32)>,
    /// Where costs are worked out host by host: the period, of which they are the used part.
    period_ms: Option<u64>,
    candidates: Vec<Candidate>,
    pub(crate) shapes: Vec<ShapeFacts>,
    pub(crate) columns: Columns,
    scratch: Scratch,
    pub(crate) set_scratch: SetScratch,
    /// Not known until the costs are.
    pub(crate) surcharge: Option<Surcharge>,
    pub(crate) nodes_left: u64,
}

impl VictimSearch {
    /// A search that spends at most so many nodes on all hosts together. What is left when a host's
    /// turn comes depends on nothing but the hosts before it, so the answer is the same every time.
    pub(crate) fn new(nodes: u64) -> Self {
        Self {
            nodes_left: nodes,
            ..Self::default()
        }
    }

    /// Learns the costs of all candidates on `hosts` at the first call. Later instances of a
    /// request have a subset of these hosts.
    pub(crate) fn prepare(
        &mut self,
        engine: &Engine,
        broken: &FailedPlugins,
        state: &DecisionState<'_>,
        hosts: impl Iterator<Item = HostIndex>,
    ) -> Result<(), DecideFailure> {
        if !self.ranges.is_empty() {
            return Ok(());
        }
        self.learn_surcharge(engine, broken)?;
        self.ranges.resize(state.table.host_slots(), (0, 0));
        self.shapes
            .resize(state.table.shape_slots(), ShapeFacts::default());
        for host in hosts {
            self.ranges[host.at()] = self.gather(state, host);
        }
        self.price(engine, broken, state)?;
        for range in &self.ranges {
            self.check_sum(*range)?;
        }
        Ok(())
    }

    /// Prices candidates where a host is looked at, by what the cost module's form says: the part
    /// of the period that they have used. The module has no surcharge.
    pub(crate) fn price_by_period(&mut self, state: &DecisionState<'_>, period_ms: u64) {
        self.period_ms = Some(period_ms);
        self.shapes
            .resize(state.table.shape_slots(), ShapeFacts::default());
    }

    /// Asks the cost module, the first time, whether it charges for sets.
    pub(crate) fn learn_surcharge(
        &mut self,
        engine: &Engine,
        broken: &FailedPlugins,
    ) -> Result<(), DecideFailure> {
        if self.surcharge.is_none() {
            self.surcharge = Some(Surcharge::of(engine, broken)?);
        }
        Ok(())
    }

    /// What these victims together cost beyond their sum.
    ///
    /// # Errors
    /// What the cost module failed with.
    pub(crate) fn surcharge_of(
        &self,
        state: &DecisionState<'_>,
        victims: &[Slot],
    ) -> Result<EvictionCost, DecideFailure> {
        let surcharge = self.surcharge.as_ref();
        surcharge.map_or(Ok(EvictionCost::ZERO), |s| {
            s.of_all(state, &self.shapes, victims)
        })
    }

    /// What the first, the second, … victim of a project costs more; empty if there is no such
    /// surcharge.
    pub(crate) fn steps(&self) -> &[EvictionCost] {
        self.surcharge.as_ref().map_or(&[], Surcharge::steps)
    }

    /// How many nodes the other searches of this attempt may spend.
    pub(crate) fn nodes_left(&self) -> u64 {
        self.nodes_left
    }

    /// Notes that a search elsewhere has spent so many.
    pub(crate) fn spend(&mut self, nodes: u64) {
        self.nodes_left = self.nodes_left.saturating_sub(nodes);
    }

    /// The problem of `count` more instances on a host, and whether it has more candidates than the
    /// solver takes.
    pub(crate) fn host_problem<'a>(
        &'a mut self,
        state: &'a DecisionState<'_>,
        host: HostIndex,
        count: i64,
    ) -> (HostProblem<'a>, bool) {
        self.load(state, host, count);
        let groups: &[u32] = match self.surcharge {
            Some(Surcharge::PerProject(_)) => &self.columns.projects,
            _ => &[],
        };
        let problem = self.columns.problem(state, None);
        (HostProblem { problem, groups }, self.columns.truncated)
    }

    /// The candidates at these positions of that problem, with what each costs.
    pub(crate) fn named(
        &mut self,
        state: &DecisionState<'_>,
        host: HostIndex,
        count: i64,
        positions: &[u32],
    ) -> Vec<(Slot, EvictionCost)> {
        self.load(state, host, count);
        let columns = &self.columns;
        let named = positions.iter().map(|&at| {
            let at = at as usize;
            (columns.slots[at], columns.costs[at])
        });
        named.collect()
    }

    /// Appends the candidates of a host.
    fn gather(&mut self, state: &DecisionState<'_>, host: HostIndex) -> (u32, u32) {
        let start = self.candidates.len();
        for &slot in state.table.candidates_on(host) {
            let row = state.table.row(slot);
            if may_leave(state, row) {
                let facts = &mut self.shapes[row.shape as usize];
                learn(facts, state, row.shape);
                if frees_nothing(state, row, &facts.amounts) {
                    continue;
                }
                let age_ms = u64::try_from(row.age_millis(state.now)).unwrap_or(0);
                self.candidates.push(Candidate {
                    id: row.id,
                    slot,
                    cost: EvictionCost::ZERO,
                    age_ms,
                });
            }
        }
        // The table keeps no order; what plugins and explanations see must not depend on it.
        self.candidates[start..].sort_unstable_by_key(|c| c.id);
        let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        (place(start), place(self.candidates.len()))
    }

    /// Asks the cost module.
    fn price(
        &mut self,
        engine: &Engine,
        broken: &FailedPlugins,
        state: &DecisionState<'_>,
    ) -> Result<(), DecideFailure> {
        let costs = if broken.has_cost_module() {
            vec![1.0; self.candidates.len()]
        } else {
            self.ask_module(engine.cost_module.as_ref(), state)?
        };
        for (index, (candidate, units)) in self.candidates.iter_mut().zip(costs).enumerate() {
            let good = (0.0..=MAX_COST).contains(&units);
            candidate.cost = match EvictionCost::from_units(units) {
                Ok(cost) if good => cost,
                _ => {
                    return Err(DecideFailure::CostModule(format!(
                        "gave {units} for candidate number {index}; a cost is finite, not negative and at most {MAX_COST}"
                    )));
                }
            };
        }
        Ok(())
    }

    /// The solver adds up what all candidates of a host cost.
    fn check_sum(&self, (start, end): (u32, u32)) -> Result<(), DecideFailure> {
        let here = &self.candidates[start as usize..end as usize];
        let sum: u128 = here.iter().map(|c| u128::from(c.cost.micros())).sum();
        // Half of it is for the surcharge, where there is any.
        let limit = match self.surcharge {
            None | Some(Surcharge::None) => EvictionCost::TOTAL_LIMIT,
            Some(_) => EvictionCost::from_micros(EvictionCost::TOTAL_LIMIT.micros() / 2),
        };
        if sum > u128::from(limit.micros()) {
            return Err(DecideFailure::CostModule(format!(
                "gave costs that add up to more than {limit} on one host"
            )));
        }
        Ok(())
    }

    fn ask_module(
        &self,
        module: &dyn CostModule,
        state: &DecisionState<'_>,
    ) -> Result<Vec<f64>, DecideFailure> {
        let slots = self.candidates.iter().map(|c| c.slot);
        let columns = BatchColumns::of(state, module, &self.shapes, slots);
        let batch = columns.batch();
        // What a module forgets to write is not a cost either.
        let mut costs = vec![f64::NAN; batch.len];
        module
            .cost(&batch, &mut costs)
            .map_err(|error| DecideFailure::CostModule(format!("failed: {error}")))?;
        Ok(costs)
    }

    /// A cost that no victim set of this host can undercut; [`EvictionCost::MAX`] if it has none.
    pub(crate) fn bound(&mut self, state: &DecisionState<'_>, host: HostIndex) -> EvictionCost {
        self.load(state, host, state.ask.bundle);
        if let Some(needs) = state.needs_on(host, state.ask.bundle) {
            self.columns.demand(state, host, needs);
            return self.columns.judged_bound(state);
        }
        lower_bound(&self.columns.problem(state, None))
    }

    /// The cheapest sufficient victim set for `count` more instances on a host.
    pub(crate) fn solve(
        &mut self,
        state: &DecisionState<'_>,
        host: HostIndex,
        count: i64,
        cutoff: Option<EvictionCost>,
    ) -> Result<VictimSearchResult, DecideFailure> {
        self.load(state, host, count);
        // With nothing left the solver still does its first node, which gives a set and a bound.
        let limits = SearchLimits {
            max_nodes: self.nodes_left,
            ..SearchLimits::DEFAULT
        };
        if let Some(needs) = state.needs_on(host, count) {
            return self.solve_judged(state, host, needs, cutoff, limits);
        }
        let problem = self.columns.problem(state, cutoff);
        let internal = |error| {
            let name = state.table.host_name(host);
            EngineError::Internal(format!("victim search on host {name}: {error}"))
        };
        let (verdict, nodes) = match &self.surcharge {
            None | Some(Surcharge::None) => {
                let outcome = solve(&problem, &mut self.scratch, limits).map_err(internal)?;
                let verdict = self.columns.verdict(outcome);
                (verdict, self.scratch.stats().nodes)
            }
            Some(Surcharge::PerProject(steps)) => {
                let of = &self.columns.projects;
                let cost = SetCost::Groups(Groups { of, steps });
                let outcome = solve_set(&problem, &cost, &mut self.set_scratch, limits);
                let verdict = self.columns.verdict(outcome.map_err(internal)?);
                (verdict, self.set_scratch.stats().nodes)
            }
            Some(Surcharge::Monotone(module)) => {
                let slots = self.columns.slots.iter().copied();
                let columns = BatchColumns::of(state, module.as_ref(), &self.shapes, slots);
                // The solver knows no failures: the first is kept, and all sets cost the same from
                // then on.
                let failure = RefCell::new(None);
                let of_set = |set: &[u32]| {
                    let set: Vec<usize> = set.iter().map(|&at| at as usize).collect();
                    surcharge(module.as_ref(), &columns.batch(), &set).unwrap_or_else(|error| {
                        failure.borrow_mut().get_or_insert(error);
                        EvictionCost::ZERO
                    })
                };
                let cost = SetCost::Monotone(&of_set);
                let outcome = solve_set(&problem, &cost, &mut self.set_scratch, limits);
                let verdict = self.columns.verdict(outcome.map_err(internal)?);
                if let Some(failure) = failure.take() {
                    return Err(failure);
                }
                (verdict, self.set_scratch.stats().nodes)
            }
        };
        self.nodes_left = self.nodes_left.saturating_sub(nodes);
        Ok(verdict)
    }

    /// Why a host cannot give enough, in words.
    pub(crate) fn reason(
        &mut self,
        state: &DecisionState<'_>,
        host: HostIndex,
        why: ShortageReason,
    ) -> String {
        match why {
            ShortageReason::Budgets => {
                return "what is missing can only be had beyond a disruption budget".to_owned();
            }
            ShortageReason::Unknown => {
                return "max_solver_nodes was reached before any victim set was found".to_owned();
            }
            ShortageReason::NotEnough => {}
        }
        self.load(state, host, state.ask.bundle);
        let width = state.ask.needs.len();
        let judged = state.needs_on(host, state.ask.bundle).and_then(|needs| {
            let mut gone = state.leaving_for_placed(host);
            gone.extend(state.ids(&self.columns.slots));
            let refused = !needs.fits(&gone);
            refused.then(|| needs.needs.reason(needs.host, needs.count, &gone))
        });
        let mut problems: Vec<String> = Vec::new();
        for (position, need) in state.ask.needs.iter().enumerate() {
            let missing = self.columns.deficit[position];
            let amounts = self.columns.resources.iter().skip(position).step_by(width);
            let offered: i64 = amounts.sum();
            if missing > offered {
                problems.push(format!(
                    "{}: {missing} missing, instances that may be evacuated have {offered}",
                    need.class
                ));
            }
        }
        problems.extend(judged.filter(|reason| !reason.is_empty()));
        let protected = state
            .table
            .slots_on(host)
            .iter()
            .filter(|slot| is_protected(state, state.table.row(**slot)))
            .count();
        if protected > 0 {
            problems.push(format!("{protected} more in protected time"));
        }
        problems.join("; ")
    }

    /// Fills the columns with the problem of `count` more instances on a host.
    pub(crate) fn load(&mut self, state: &DecisionState<'_>, host: HostIndex, count: i64) {
        self.columns.clear();
        self.columns.deficit = state.deficit(host, count);
        if let Some(period_ms) = self.period_ms.filter(|_| self.ranges.is_empty()) {
            self.load_by_period(state, host, period_ms);
            return;
        }
        let (start, end) = self.ranges.get(host.at()).copied().unwrap_or((0, 0));
        let candidates = &self.candidates[start as usize..end as usize];
        for candidate in candidates {
            let row = state.table.row(candidate.slot);
            let amounts = &self.shapes[row.shape as usize].amounts;
            self.columns.add(state, candidate, row, amounts);
        }
        self.columns.hold_ages(candidates.len());
    }

    /// The same without having gathered the candidates before.
    fn load_by_period(&mut self, state: &DecisionState<'_>, host: HostIndex, period_ms: u64) {
        let mut slots = Cow::Borrowed(state.table.candidates_on(host));
        if slots.len() > MAX_CANDIDATES {
            // The solver gets the first by id, whatever the order in the table.
            slots
                .to_mut()
                .sort_unstable_by_key(|slot| state.table.row(*slot).id);
        }
        let mut candidates = 0;
        for &slot in slots.iter() {
            let row = state.table.row(slot);
            if !may_leave(state, row) {
                continue;
            }
            let facts = &mut self.shapes[row.shape as usize];
            learn(facts, state, row.shape);
            if frees_nothing(state, row, &facts.amounts) {
                continue;
            }
            candidates += 1;
            let age_ms = u64::try_from(row.age_millis(state.now)).unwrap_or(0);
            let candidate = Candidate {
                id: row.id,
                slot,
                cost: EvictionCost::from_micros(age_ms % period_ms * 1000),
                age_ms,
            };
            self.columns.add(state, &candidate, row, &facts.amounts);
        }
        self.columns.hold_ages(candidates);
    }
}
