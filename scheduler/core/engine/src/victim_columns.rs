//! The problem of one host as the solver takes it.

use crate::candidates::Candidate;
use crate::host_needs::NeedColumns;
use crate::state::DecisionState;
use crate::table::{InstanceRow, Slot};
use crate::victims::{Eviction, ShortageReason, VictimSearchResult};
use ebbtide_solver::{
    Budgets, CoverResult, EvictionCost, Infeasible, MAX_CANDIDATES, Problem, TOTAL_AGE_LIMIT_MS,
};
use smallvec::SmallVec;

/// The problem of one host as columns, filled anew for each host.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    pub(crate) slots: Vec<Slot>,
    pub(crate) deficit: SmallVec<[i64; 4]>,
    pub(crate) resources: Vec<i64>,
    pub(crate) costs: Vec<EvictionCost>,
    pub(crate) ages_ms: Vec<u64>,
    pub(crate) uuids: Vec<u128>,
    pub(crate) keys: Vec<u32>,
    pub(crate) projects: Vec<u32>,
    /// What another component demands in any case; empty unless the request is judged by one.
    pub(crate) demanded: NeedColumns,
    /// A host with more candidates than the solver takes was cut.
    pub(crate) truncated: bool,
}

/// True for an instance whose end gives the request nothing.
pub(crate) fn frees_nothing(state: &DecisionState<'_>, row: &InstanceRow, amounts: &[i64]) -> bool {
    amounts.iter().all(|amount| *amount <= 0) && !frees_needs(state, row)
}

/// True for an instance that frees what the request needs besides amounts.
fn frees_needs(state: &DecisionState<'_>, row: &InstanceRow) -> bool {
    let needs = state.host_needs();
    needs.is_some_and(|needs| needs.frees(state.table.host_name(row.host), row.id))
}

impl Columns {
    pub(crate) fn clear(&mut self) {
        self.slots.clear();
        self.resources.clear();
        self.costs.clear();
        self.ages_ms.clear();
        self.uuids.clear();
        self.keys.clear();
        self.projects.clear();
        self.truncated = false;
    }

    /// One more, if it helps.
    pub(crate) fn add(
        &mut self,
        state: &DecisionState<'_>,
        candidate: &Candidate,
        row: &InstanceRow,
        amounts: &[i64],
    ) {
        let mut pairs = amounts.iter().zip(&self.deficit);
        let helps = pairs.any(|(a, d)| *a > 0 && *d > 0) || frees_needs(state, row);
        if !helps || state.is_taken(candidate.slot) {
            return;
        }
        if self.slots.len() == MAX_CANDIDATES {
            self.truncated = true;
            return;
        }
        self.slots.push(candidate.slot);
        self.resources.extend_from_slice(amounts);
        self.costs.push(candidate.cost);
        self.ages_ms.push(candidate.age_ms);
        self.uuids.push(candidate.id.0.as_u128());
        self.projects.push(row.project);
        if !state.unlimited() {
            self.keys.extend_from_slice(&state.budget_keys(row));
        }
    }

    /// Only beyond 35,700 years of all candidates together is an age ever cut.
    pub(crate) fn hold_ages(&mut self, candidates: usize) {
        let limit = TOTAL_AGE_LIMIT_MS / u64::try_from(candidates.max(1)).unwrap_or(1);
        self.ages_ms
            .iter_mut()
            .for_each(|age| *age = limit.min(*age));
    }

    /// What the solver's answer means for the table's instances.
    pub(crate) fn verdict(&self, outcome: CoverResult<'_>) -> VictimSearchResult {
        let whole = !self.truncated;
        match outcome {
            CoverResult::Solved(solution) => {
                let victim = |&at: &u32| (self.slots[at as usize], self.costs[at as usize]);
                VictimSearchResult::Found(Eviction {
                    victims: solution.victims.iter().map(victim).collect(),
                    cost: solution.cost,
                    optimal: solution.optimal && whole,
                    lower_bound: if whole {
                        solution.lower_bound
                    } else {
                        EvictionCost::ZERO
                    },
                })
            }
            CoverResult::NotNeeded => VictimSearchResult::Found(Eviction {
                victims: Vec::new(),
                cost: EvictionCost::ZERO,
                optimal: true,
                lower_bound: EvictionCost::ZERO,
            }),
            _ if !whole => VictimSearchResult::Undecided(EvictionCost::ZERO),
            CoverResult::NotBetter => VictimSearchResult::NotBetter,
            CoverResult::Infeasible(Infeasible::NotEnough) => {
                VictimSearchResult::Impossible(ShortageReason::NotEnough)
            }
            CoverResult::Infeasible(Infeasible::Budgets) => {
                VictimSearchResult::Impossible(ShortageReason::Budgets)
            }
            CoverResult::Undecided { lower_bound } => VictimSearchResult::Undecided(lower_bound),
        }
    }

    pub(crate) fn problem<'a>(
        &'a self,
        state: &'a DecisionState<'_>,
        cutoff: Option<EvictionCost>,
    ) -> Problem<'a> {
        let budgets = if state.unlimited() {
            Budgets::NONE
        } else {
            Budgets {
                limits: state.limits(),
                keys_per_candidate: 2,
                keys: &self.keys,
            }
        };
        Problem {
            deficit: &self.deficit,
            resources: &self.resources,
            costs: &self.costs,
            ages_ms: &self.ages_ms,
            uuids: &self.uuids,
            budgets,
            cutoff,
        }
    }
}
