//! A need that can be met in several ways: pinned CPUs and memory of NUMA cell 0, or of cell 1; a
//! device of one PCI pool, or of another.
//!
//! What a host reports for each cell or pool is a resource class like any other, and what a victim
//! frees there a column. Only the request has a choice, so there are several deficits for the same
//! candidates. Each is a problem of its own; the answer is the set that is first in the total order
//! over all of them. The cost of the best so far is the cutoff of the next, so most are cut short.
//!
//! The engine asks for sums of classes so far, each exactly as named
//! (`resources:CUSTOM_NUMA0_PCPU`). For a request that may take either cell it would need lists of
//! needs in place of one, a capacity filter that is content with any of them, and this in the place
//! of `solve`.

use crate::EvictionCost;
use crate::error::SolverError;
use crate::outcome::{CoverResult, Infeasible, SearchLimits, Solution};
use crate::problem::Problem;
use crate::set_cost::{Best, Rank, SetCost, SetScratch, solve_set};

/// The answer, and which of the deficits its set covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlternativeCover {
    /// Position of the alternative; the first of equals.
    pub alternative: usize,
    /// Positions of the victims, by ascending UUID; empty if this alternative needs none.
    pub victims: Vec<u32>,
    /// What they cost, with the surcharge.
    pub cost: EvictionCost,
    /// Sum of their ages in milliseconds.
    pub total_age_ms: u64,
    /// Proven to be first over all alternatives.
    pub optimal: bool,
    /// No set costs less, whatever the alternative.
    pub lower_bound: EvictionCost,
}

/// What [`solve_any`] found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AlternativesOutcome {
    /// A set for one of the alternatives; an empty one if an alternative needs no victim.
    Solved(AlternativeCover),
    /// With a cutoff: every sufficient set costs more.
    NotBetter,
    /// No set within the budgets is sufficient for any alternative. [`Infeasible::Budgets`] if one
    /// would be sufficient without the budgets.
    Infeasible(Infeasible),
    /// The limits ran out before a set was seen; none costs less.
    Undecided(EvictionCost),
}

/// Chooses the victims that cover at least one of several deficits, each as long as
/// `problem.deficit` (which is not looked at), and are first in the order of
/// [`solve`](crate::solve).
///
/// # Errors
///
/// As [`solve_set`]; a deficit of another length is [`SolverError::ColumnLength`]. Without
/// alternatives nothing suffices.
pub fn solve_any(
    problem: &Problem<'_>,
    deficits: &[&[i64]],
    set_cost: &SetCost<'_>,
    scratch: &mut SetScratch,
    limits: SearchLimits,
) -> Result<AlternativesOutcome, SolverError> {
    let mut best = Best::default();
    let mut alternative = 0;
    // Of alternatives that are not proven: no set costs less.
    let mut cut: Option<EvictionCost> = None;
    let mut reason = Infeasible::NotEnough;
    let mut not_better = false;
    let mut spent = 0;
    for (at, deficit) in deficits.iter().enumerate() {
        let (found, expected) = (deficit.len(), problem.deficit.len());
        if found != expected {
            return Err(SolverError::ColumnLength {
                column: "deficits",
                expected,
                found,
            });
        }
        let cheapest = best.rank.map(|rank| EvictionCost::from_micros(rank.micros));
        let cutoff = match (cheapest, problem.cutoff) {
            (Some(cheapest), Some(cutoff)) => Some(cheapest.min(cutoff)),
            (cheapest, cutoff) => cheapest.or(cutoff),
        };
        let one = Problem {
            deficit,
            cutoff,
            ..*problem
        };
        let left = SearchLimits {
            max_nodes: limits.max_nodes.saturating_sub(spent).max(1),
            ..limits
        };
        let mut lower =
            |bound: EvictionCost| cut = Some(cut.map_or(bound, |cut: EvictionCost| cut.min(bound)));
        match solve_set(&one, set_cost, scratch, left)? {
            // An alternative that needs no victim is preferred to all others.
            CoverResult::NotNeeded => {
                return Ok(AlternativesOutcome::Solved(AlternativeCover {
                    alternative: at,
                    victims: Vec::new(),
                    cost: EvictionCost::ZERO,
                    total_age_ms: 0,
                    optimal: true,
                    lower_bound: EvictionCost::ZERO,
                }));
            }
            CoverResult::Solved(solution) => {
                if !solution.optimal {
                    lower(solution.lower_bound);
                }
                let rank = rank(&solution);
                if !best.precedes(problem, rank, solution.victims) {
                    best.offer(problem, rank, solution.victims);
                    alternative = at;
                }
            }
            CoverResult::NotBetter => not_better = true,
            CoverResult::Infeasible(Infeasible::Budgets) => reason = Infeasible::Budgets,
            CoverResult::Infeasible(Infeasible::NotEnough) => {}
            CoverResult::Undecided { lower_bound } => lower(lower_bound),
        }
        spent += scratch.stats().nodes;
    }
    Ok(match (best.rank, cut) {
        (Some(rank), _) => {
            let cost = EvictionCost::from_micros(rank.micros);
            let cut = cut.filter(|cut| *cut <= cost);
            AlternativesOutcome::Solved(AlternativeCover {
                alternative,
                victims: best.victims,
                cost,
                total_age_ms: rank.age_ms,
                optimal: cut.is_none(),
                lower_bound: cut.unwrap_or(cost),
            })
        }
        (None, Some(cut)) => AlternativesOutcome::Undecided(cut),
        (None, None) if not_better => AlternativesOutcome::NotBetter,
        (None, None) => AlternativesOutcome::Infeasible(reason),
    })
}

fn rank(solution: &Solution<'_>) -> Rank {
    Rank {
        micros: solution.cost.micros(),
        count: u32::try_from(solution.victims.len()).unwrap_or(u32::MAX),
        age_ms: solution.total_age_ms,
    }
}
