//! Victims for a request that another component judges: see [`HostNeeds`](crate::HostNeeds).

use crate::EngineError;
use crate::host_needs::NeedsOn;
use crate::plugins::DecideFailure;
use crate::set_cost::{BatchColumns, Surcharge, surcharge};
use crate::state::DecisionState;
use crate::table::HostIndex;
use crate::victim_columns::Columns;
use crate::victims::{Eviction, ShortageReason, VictimSearch, VictimSearchResult};
use ebbtide_model::ServerId;
use ebbtide_solver::{
    AlternativesOutcome, EvictionCost, Groups, Infeasible, Problem, SearchLimits, SetCost,
    lower_bound, solve_judged,
};
use std::cell::RefCell;

impl Columns {
    /// Adds what is demanded of every set besides amounts.
    pub(crate) fn demand(
        &mut self,
        state: &DecisionState<'_>,
        host: HostIndex,
        needs: NeedsOn<'_>,
    ) {
        let before = state.leaving_for_placed(host);
        let candidates = state.ids(&self.slots);
        let asked = needs.needs;
        self.demanded = asked.columns(needs.host, needs.count, &before, &candidates);
    }

    /// How many columns are demanded besides amounts.
    fn demanded_width(&self) -> usize {
        self.demanded.deficits.first().map_or(0, Vec::len)
    }

    /// What each candidate frees: amounts, then what else is demanded.
    fn all_freed(&self) -> Vec<i64> {
        let (own, more) = (self.deficit.len(), self.demanded_width());
        let rows = 0..self.slots.len();
        rows.flat_map(|row| {
            let amounts = &self.resources[row * own..(row + 1) * own];
            let demanded = &self.demanded.freed[row * more..(row + 1) * more];
            amounts.iter().chain(demanded).copied()
        })
        .collect()
    }

    /// What is missing, in each of the ways to meet the demand.
    fn all_deficits(&self) -> Vec<Vec<i64>> {
        let demanded = self.demanded.deficits.iter();
        demanded
            .map(|demanded| self.deficit.iter().chain(demanded).copied().collect())
            .collect()
    }

    /// A cost that no accepted set can undercut.
    pub(crate) fn judged_bound(&self, state: &DecisionState<'_>) -> EvictionCost {
        let resources = self.all_freed();
        let deficits = self.all_deficits();
        let bounds = deficits.iter().map(|deficit| {
            lower_bound(&Problem {
                deficit,
                resources: &resources,
                ..self.problem(state, None)
            })
        });
        bounds.min().unwrap_or(EvictionCost::ZERO)
    }
}

impl VictimSearch {
    /// The cheapest of all sets of the loaded host that free enough amounts and that are accepted.
    pub(crate) fn solve_judged(
        &mut self,
        state: &DecisionState<'_>,
        host: HostIndex,
        needs: NeedsOn<'_>,
        cutoff: Option<EvictionCost>,
        limits: SearchLimits,
    ) -> Result<VictimSearchResult, DecideFailure> {
        self.columns.demand(state, host, needs);
        let columns = &self.columns;
        let resources = columns.all_freed();
        let deficits = columns.all_deficits();
        let deficits: Vec<&[i64]> = deficits.iter().map(Vec::as_slice).collect();
        let own = vec![0; columns.deficit.len() + columns.demanded_width()];
        let problem = Problem {
            deficit: &own,
            resources: &resources,
            ..columns.problem(state, cutoff)
        };
        let ids = state.ids(&columns.slots);
        let before = state.leaving_for_placed(host);
        let mut judge = |set: &[u32]| {
            let gone = set.iter().map(|at| ids[*at as usize]);
            let gone: Vec<ServerId> = before.iter().copied().chain(gone).collect();
            needs.fits(&gone)
        };
        // The solver knows no failures: the first is kept, and all sets cost the same from then on.
        let failure = RefCell::new(None);
        let batch;
        let of_set;
        let set_cost = match &self.surcharge {
            None | Some(Surcharge::None) => SetCost::Additive,
            Some(Surcharge::PerProject(steps)) => SetCost::Groups(Groups {
                of: &columns.projects,
                steps,
            }),
            Some(Surcharge::Monotone(module)) => {
                let slots = columns.slots.iter().copied();
                batch = BatchColumns::of(state, module.as_ref(), &self.shapes, slots);
                of_set = |set: &[u32]| {
                    let set: Vec<usize> = set.iter().map(|&at| at as usize).collect();
                    surcharge(module.as_ref(), &batch.batch(), &set).unwrap_or_else(|error| {
                        failure.borrow_mut().get_or_insert(error);
                        EvictionCost::ZERO
                    })
                };
                SetCost::Monotone(&of_set)
            }
        };
        let scratch = &mut self.set_scratch;
        let solved = solve_judged(&problem, &deficits, &set_cost, scratch, limits, &mut judge);
        let (outcome, nodes) = solved.map_err(|error| {
            let name = state.table.host_name(host);
            EngineError::Internal(format!("judged victim search on host {name}: {error}"))
        })?;
        if let Some(failure) = failure.take() {
            return Err(failure);
        }
        self.nodes_left = self.nodes_left.saturating_sub(nodes);
        Ok(self.columns.judged(outcome))
    }
}

impl Columns {
    /// What the solver's answer means for the table's instances.
    fn judged(&self, outcome: AlternativesOutcome) -> VictimSearchResult {
        let whole = !self.truncated;
        match outcome {
            AlternativesOutcome::Solved(cover) => {
                let victim = |&at: &u32| (self.slots[at as usize], self.costs[at as usize]);
                VictimSearchResult::Found(Eviction {
                    victims: cover.victims.iter().map(victim).collect(),
                    cost: cover.cost,
                    optimal: cover.optimal && whole,
                    lower_bound: match whole {
                        true => cover.lower_bound,
                        false => EvictionCost::ZERO,
                    },
                })
            }
            _ if !whole => VictimSearchResult::Undecided(EvictionCost::ZERO),
            AlternativesOutcome::NotBetter => VictimSearchResult::NotBetter,
            AlternativesOutcome::Infeasible(Infeasible::NotEnough) => {
                VictimSearchResult::Impossible(ShortageReason::NotEnough)
            }
            AlternativesOutcome::Infeasible(Infeasible::Budgets) => {
                VictimSearchResult::Impossible(ShortageReason::Budgets)
            }
            AlternativesOutcome::Undecided(bound) => VictimSearchResult::Undecided(bound),
        }
    }
}
