//! The order of attempts: look, enumerate, relax, and first without budgets.
//!
//! Budgets split the classes by project and group, and rarely change the answer. So a problem whose
//! budgets could bind is solved without them first: if the best set happens to keep them it is the
//! answer, for every set that keeps them was among the ones it beat.

use crate::classes::{COST_SHIFT, Classes, Presolve, unpack};
use crate::cost::EvictionCost;
use crate::dominance::Dominance;
use crate::enumeration::Enumeration;
use crate::error::SolverError;
use crate::outcome::{CoverResult, Infeasible, SearchLimits, Solution, Stats};
use crate::problem::Problem;
use crate::search::{Search, SearchEnd, SearchGoal};
use crate::ties::Ties;

/// Memory that is kept from call to call. A call allocates only while its problem is larger than
/// any before it. One a thread; what was solved before has no influence on an answer.
#[derive(Debug, Default)]
pub struct Scratch {
    classes: Classes,
    enumeration: Enumeration,
    dominance: Dominance,
    search: Search,
    ties: Ties,
    counts: Vec<u32>,
    victims: Vec<u32>,
    used: Vec<u32>,
    stats: Stats,
}

impl Scratch {
    /// Empty; the first calls fill it.
    pub fn new() -> Self {
        Self::default()
    }

    /// The work of the last call.
    pub fn stats(&self) -> Stats {
        self.stats
    }
}

/// What one attempt proved. Its set is in `Scratch::counts`.
struct Attempt {
    found: bool,
    optimal: bool,
    lower_bound: EvictionCost,
}

/// Chooses the victims on one host: the set that covers the deficit in every resource class within
/// the budgets and is first by total cost, then by number, then by total age (younger first), then
/// by sorted UUIDs.
///
/// What is guaranteed of a [`Solution`] that is `optimal`: it suffices; no member can be left out;
/// it does not depend on the order of the candidates; a smaller deficit never costs more. The first
/// two hold also where the limits cut the search.
///
/// # Errors
///
/// A malformed problem, see [`Problem::check`].
pub fn solve<'s>(
    problem: &Problem<'_>,
    scratch: &'s mut Scratch,
    limits: SearchLimits,
) -> Result<CoverResult<'s>, SolverError> {
    problem.check()?;
    scratch.stats = Stats::default();
    let budgets = match scratch.classes.survey(problem) {
        Presolve::NotNeeded => return Ok(CoverResult::NotNeeded),
        Presolve::NotEnough => return Ok(CoverResult::Infeasible(Infeasible::NotEnough)),
        Presolve::OnlyProtected => return Ok(CoverResult::Infeasible(Infeasible::Budgets)),
        Presolve::Search { budgets } => budgets,
    };
    let mut attempt = scratch.attempt(problem, false, limits);
    let mut lower_bound = attempt.lower_bound;
    if budgets && (attempt.found || !attempt.optimal) {
        let keeps = attempt.found && scratch.keeps_budgets(problem);
        if !keeps {
            attempt = scratch.attempt(problem, true, limits);
            lower_bound = lower_bound.max(attempt.lower_bound);
        }
    }
    if !attempt.found {
        return Ok(match (attempt.optimal, problem.cutoff) {
            (true, Some(_)) => CoverResult::NotBetter,
            (true, None) => CoverResult::Infeasible(Infeasible::Budgets),
            (false, _) => CoverResult::Undecided { lower_bound },
        });
    }
    scratch.list_victims(problem);
    debug_assert!(scratch.victims_are_sound(problem));
    let weight: u128 = scratch.chosen().map(|item| item.weight).sum();
    let (micros, _, total_age_ms) = unpack(weight);
    let cost = EvictionCost::from_micros(micros);
    Ok(CoverResult::Solved(Solution {
        victims: &scratch.victims,
        cost,
        total_age_ms,
        optimal: attempt.optimal,
        lower_bound: if attempt.optimal {
            cost
        } else {
            lower_bound.min(cost)
        },
    }))
}

impl Scratch {
    fn attempt(
        &mut self,
        problem: &Problem<'_>,
        with_budgets: bool,
        limits: SearchLimits,
    ) -> Attempt {
        self.classes.build(problem, with_budgets);
        let cutoff = problem
            .cutoff
            .map(|cost| cost.min(EvictionCost::TOTAL_LIMIT).micros());
        let below = cutoff.map_or(u128::MAX, |micros| u128::from(micros + 1) << COST_SHIFT);
        let done = self
            .enumeration
            .run(&self.classes, problem.uuids, below, limits.quick_nodes);
        self.stats.quick_nodes += self.enumeration.nodes;
        if done {
            self.counts.clone_from(&self.enumeration.best);
            return Attempt {
                found: self.enumeration.found,
                optimal: true,
                lower_bound: EvictionCost::ZERO,
            };
        }
        self.dominance.cut(&mut self.classes, problem.uuids);
        // A set with members that were just cut is of no use: a better one exists.
        let known = self.enumeration.found
            && self
                .enumeration
                .best
                .iter()
                .zip(&self.classes.len)
                .all(|(count, len)| count <= len);
        let incumbent = known.then_some(&self.enumeration.best[..]);
        self.search.load(&self.classes, cutoff, incumbent);
        let max_nodes = self.search.nodes + limits.max_nodes.max(1);
        let end = self.search.run(SearchGoal::Lightest, max_nodes);
        let (mut optimal, mut bound) = (end == SearchEnd::Exhausted, self.search.best_weight);
        if let SearchEnd::OutOfNodes { bound: scaled } = end {
            self.search.polish();
            bound = self
                .search
                .best_weight
                .min(self.search.model.unscale(scaled));
        }
        let lower_bound = EvictionCost::from_micros(self.search.model.cost_floor(bound));
        let before = self.search.nodes;
        if optimal && self.search.found {
            let weight = self.search.model.scale(self.search.best_weight);
            if self.search.least_cut <= weight {
                optimal =
                    self.ties
                        .settle(&mut self.search, &self.classes, problem.uuids, max_nodes);
            }
        }
        self.stats.nodes += self.search.nodes;
        self.stats.tie_nodes += self.search.nodes - before;
        self.stats.pivots += self.search.relaxation.pivots;
        self.counts.clone_from(&self.search.best);
        Attempt {
            found: self.search.found,
            optimal,
            lower_bound,
        }
    }

    fn chosen(&self) -> impl Iterator<Item = &crate::classes::Item> {
        self.counts
            .iter()
            .enumerate()
            .flat_map(|(class, &count)| &self.classes.members(class)[..count as usize])
    }

    fn list_victims(&mut self, problem: &Problem<'_>) {
        let mut victims = std::mem::take(&mut self.victims);
        victims.clear();
        victims.extend(self.chosen().map(|item| item.candidate));
        victims.sort_unstable_by_key(|&candidate| (problem.uuids[candidate as usize], candidate));
        self.victims = victims;
    }

    /// Whether the victims suffice and keep the budgets, asked of the problem itself.
    fn victims_are_sound(&self, problem: &Problem<'_>) -> bool {
        let width = problem.deficit.len();
        let suffice = problem.deficit.iter().enumerate().all(|(class, &deficit)| {
            let amounts = self
                .victims
                .iter()
                .map(|&v| problem.resources[v as usize * width + class]);
            amounts.map(i128::from).sum::<i128>() >= i128::from(deficit)
        });
        suffice
            && problem
                .budgets
                .limits
                .iter()
                .enumerate()
                .all(|(key, &limit)| {
                    let members = self.victims.iter();
                    let members =
                        members.filter(|&&v| problem.budgets.of(v as usize).any(|k| k == key));
                    members.count() <= limit as usize
                })
    }

    /// Whether the set of an attempt without budgets keeps them all the same.
    fn keeps_budgets(&mut self, problem: &Problem<'_>) -> bool {
        self.list_victims(problem);
        self.used.clear();
        for &victim in &self.victims {
            let keys = problem.budgets.of(victim as usize);
            let before = self.used.len();
            for key in keys {
                if !self.used[before..].contains(&(key as u32)) {
                    self.used.push(key as u32);
                }
            }
        }
        self.used.sort_unstable();
        self.used
            .chunk_by(|left, right| left == right)
            .all(|same| same.len() <= problem.budgets.limits[same[0] as usize] as usize)
    }
}
