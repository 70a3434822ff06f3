//! Victim sets whose cost is more than the sum of its members: fairness over projects, for example.
//!
//! The cost of a set is the sum of its members' costs plus a **surcharge** of the whole set that is
//! never negative and never falls when a victim is added. Hence the sum stays a lower bound
//! ([`lower_bound`](crate::lower_bound) included), and a set with an idle member is never better
//! than without it. The total order is the one of [`solve`](crate::solve) with this cost.
//!
//! Two forms: [`SetCost::Groups`], which is searched with bounds that know the surcharge (see
//! `grouped`), and [`SetCost::Monotone`], any function, which is exact for few candidates and
//! otherwise bounded by the sum alone (see `monotone`).

use crate::cost::EvictionCost;
use crate::error::SolverError;
use crate::grouped::GroupedSearch;
use crate::monotone::Monotone;
use crate::outcome::{CoverResult, SearchLimits, Solution, Stats};
use crate::problem::Problem;
use crate::solve::{Scratch, solve};

/// A candidate in no group: it is never charged more than its own cost.
pub const NO_GROUP: u32 = u32::MAX;

/// A surcharge that depends on how many victims each group (a project, say) has, and grows ever
/// faster with each.
#[derive(Clone, Copy, Debug)]
pub struct Groups<'a> {
    /// The group of each candidate, any number, or [`NO_GROUP`].
    pub of: &'a [u32],
    /// What the first, the second, … victim of a group costs more than alone. Must never fall; the
    /// last holds for all that follow. A step above 2^58 micro-units divided by the number of
    /// candidates counts as that.
    pub steps: &'a [EvictionCost],
}

/// What a set costs beyond the sum of its members.
#[derive(Clone, Copy)]
pub enum SetCost<'a> {
    /// Nothing.
    Additive,
    /// By the number of victims in each group.
    Groups(Groups<'a>),
    /// Whatever this says of a set, given as ascending positions of candidates. It must be
    /// monotone: never less for a set than for a part of it. If it is not, the answer is sufficient
    /// but not proven to be the cheapest.
    Monotone(&'a dyn Fn(&[u32]) -> EvictionCost),
}

impl std::fmt::Debug for SetCost<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SetCost::Additive => f.write_str("Additive"),
            SetCost::Groups(groups) => f.debug_tuple("Groups").field(groups).finish(),
            SetCost::Monotone(_) => f.write_str("Monotone(..)"),
        }
    }
}

/// Memory that is kept from call to call, for [`solve_set`].
#[derive(Debug, Default)]
pub struct SetScratch {
    pub(crate) inner: Scratch,
    pub(crate) nodes: u64,
    grouped: GroupedSearch,
    monotone: Monotone,
    victims: Vec<u32>,
}

impl SetScratch {
    /// Empty; the first calls fill it.
    pub fn new() -> Self {
        Self::default()
    }

    /// The work of the last call. Every additive problem that was solved on the way counts as some
    /// nodes besides its own.
    pub fn stats(&self) -> Stats {
        Stats {
            nodes: self.nodes,
            ..self.inner.stats()
        }
    }
}

/// Cost, number and age of a set: what is compared before the UUIDs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    pub(crate) micros: u64,
    pub(crate) count: u32,
    pub(crate) age_ms: u64,
}

/// The best set so far.
#[derive(Debug, Default)]
pub(crate) struct Best {
    pub(crate) rank: Option<Rank>,
    pub(crate) uuids: Vec<u128>,
    pub(crate) victims: Vec<u32>,
}

impl Best {
    pub(crate) fn clear(&mut self) {
        self.rank = None;
        self.victims.clear();
    }

    /// Keeps the set if it comes before the one at hand. `victims` are ordered by UUID.
    pub(crate) fn offer(&mut self, problem: &Problem<'_>, rank: Rank, victims: &[u32]) {
        if problem
            .cutoff
            .is_some_and(|cutoff| rank.micros > cutoff.micros())
            || self.precedes(problem, rank, victims)
        {
            return;
        }
        self.rank = Some(rank);
        self.victims.clear();
        self.victims.extend_from_slice(victims);
        self.uuids.clear();
        self.uuids
            .extend(victims.iter().map(|&v| problem.uuids[v as usize]));
    }

    /// Whether the best set comes before (or is) one of this rank.
    pub(crate) fn precedes(&self, problem: &Problem<'_>, rank: Rank, victims: &[u32]) -> bool {
        self.rank.is_some_and(|best| {
            best.cmp(&rank).then_with(|| {
                let theirs = victims.iter().map(|&v| problem.uuids[v as usize]);
                self.uuids.iter().copied().cmp(theirs)
            }) != std::cmp::Ordering::Greater
        })
    }
}

/// Chooses the victims on one host by a set cost; like [`solve`](crate::solve), with `cost` and
/// `lower_bound` of the answer (and the problem's cutoff) including the surcharge.
///
/// # Errors
///
/// A malformed problem, see [`Problem::check`]; costs above half of [`EvictionCost::TOTAL_LIMIT`]
/// together, groups of another length than the candidates, or steps that fall.
pub fn solve_set<'s>(
    problem: &Problem<'_>,
    set_cost: &SetCost<'_>,
    scratch: &'s mut SetScratch,
    limits: SearchLimits,
) -> Result<CoverResult<'s>, SolverError> {
    scratch.nodes = 0;
    let (rank, cut) = match set_cost {
        SetCost::Additive => {
            let outcome = solve(problem, &mut scratch.inner, limits)?;
            // The borrow of `inner` ends with its victims copied.
            return Ok(match outcome {
                CoverResult::Solved(solution) => {
                    scratch.victims.clear();
                    scratch.victims.extend_from_slice(solution.victims);
                    let (cost, total_age_ms) = (solution.cost, solution.total_age_ms);
                    let (optimal, lower_bound) = (solution.optimal, solution.lower_bound);
                    scratch.nodes = scratch.inner.stats().nodes;
                    CoverResult::Solved(Solution {
                        victims: &scratch.victims,
                        cost,
                        total_age_ms,
                        optimal,
                        lower_bound,
                    })
                }
                other => other.without_set(),
            });
        }
        SetCost::Groups(groups) => {
            check(problem)?;
            check_groups(problem, groups)?;
            let SetScratch {
                inner,
                nodes,
                grouped,
                ..
            } = scratch;
            match grouped.run(problem, groups, inner, nodes, limits)? {
                Ok(cut) => (grouped.best.rank, cut),
                Err(outcome) => return Ok(outcome),
            }
        }
        SetCost::Monotone(surcharge) => {
            check(problem)?;
            let SetScratch {
                inner,
                nodes,
                monotone,
                ..
            } = scratch;
            match monotone.run(problem, *surcharge, inner, nodes, limits)? {
                Ok(cut) => (monotone.best.rank, cut),
                Err(outcome) => return Ok(outcome),
            }
        }
    };
    let best = match set_cost {
        SetCost::Monotone(_) => &scratch.monotone.best,
        _ => &scratch.grouped.best,
    };
    Ok(match (rank, cut) {
        (Some(rank), _) => CoverResult::Solved(Solution {
            victims: &best.victims,
            cost: EvictionCost::from_micros(rank.micros),
            total_age_ms: rank.age_ms,
            optimal: cut.is_none(),
            lower_bound: EvictionCost::from_micros(
                cut.map_or(rank.micros, |cut| cut.min(rank.micros)),
            ),
        }),
        (None, Some(cut)) => CoverResult::Undecided {
            lower_bound: EvictionCost::from_micros(cut),
        },
        (None, None) => CoverResult::NotBetter,
    })
}

fn check(problem: &Problem<'_>) -> Result<(), SolverError> {
    problem.check()?;
    let micros: u128 = problem
        .costs
        .iter()
        .map(|cost| u128::from(cost.micros()))
        .sum();
    if micros > u128::from(EvictionCost::TOTAL_LIMIT.micros() / 2) {
        return Err(SolverError::CostOverflow { micros });
    }
    Ok(())
}

fn check_groups(problem: &Problem<'_>, groups: &Groups<'_>) -> Result<(), SolverError> {
    let (found, expected) = (groups.of.len(), problem.candidates());
    if found != expected {
        return Err(SolverError::ColumnLength {
            column: "groups.of",
            expected,
            found,
        });
    }
    match groups.steps.windows(2).position(|pair| pair[0] > pair[1]) {
        Some(at) => Err(SolverError::FallingStep { step: at + 2 }),
        None => Ok(()),
    }
}
