//! Victims for a need that no sum can say: another component judges each set (in OpenStack mode
//! Nova's filters for NUMA cells and PCI devices).
//!
//! Nothing is assumed of the judge, not even that a larger set is accepted where a smaller one is.
//! The deficits are what every accepted set covers at least one of. The first set that covers one
//! is judged. If it is refused, the sets that are left are split into parts, by members that have
//! to be in and members that have to be out, and the first set of each part comes into a queue. The
//! queue is taken in the total order of [`solve`](crate::solve), so the first set that is accepted
//! is the first of all that would be (Murty's ranking of solutions).

use crate::EvictionCost;
use crate::alternatives::{AlternativeCover, AlternativesOutcome, solve_any};
use crate::error::SolverError;
use crate::outcome::{Infeasible, SearchLimits};
use crate::problem::{Budgets, Problem};
use crate::set_cost::{Groups, SetCost, SetScratch};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What a judgement counts against the limits: about as long as so many nodes.
const JUDGEMENT_NODES: u64 = 20;

/// Columns that say which members are in: all that have to be, and one more.
const EXTRA_COLUMNS: usize = 2;

/// Chooses the victims that are first in the order of [`solve`](crate::solve) among the sets that
/// cover at least one of several deficits, as in [`solve_any`], and that `judge` accepts. `judge`
/// gets positions of candidates by ascending UUID. If it refuses the set of all candidates, no set
/// is looked at. Also returns how many nodes the search has spent.
///
/// # Errors
///
/// As [`solve_any`].
pub fn solve_judged(
    problem: &Problem<'_>,
    deficits: &[&[i64]],
    set_cost: &SetCost<'_>,
    scratch: &mut SetScratch,
    limits: SearchLimits,
    judge: &mut dyn FnMut(&[u32]) -> bool,
) -> Result<(AlternativesOutcome, u64), SolverError> {
    problem.check()?;
    let mut all: Vec<u32> = (0..).take(problem.candidates()).collect();
    all.sort_unstable_by_key(|at| problem.uuids[*at as usize]);
    let mut search = JudgedSearch {
        problem,
        deficits,
        set_cost,
        scratch,
        limits,
        all,
        parts: BinaryHeap::new(),
        spent: JUDGEMENT_NODES,
        cut: None,
        not_better: false,
        reason: Infeasible::NotEnough,
    };
    if !judge(&search.all) {
        let refused = AlternativesOutcome::Infeasible(Infeasible::NotEnough);
        return Ok((refused, search.spent));
    }
    let outcome = search.run(judge)?;
    Ok((outcome, search.spent))
}

/// Sets that have some members, lack others, and the first of these sets.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    micros: u64,
    count: usize,
    age_ms: u64,
    uuids: Vec<u128>,
    /// The first set, by ascending UUID.
    set: Vec<u32>,
    alternative: usize,
    inside: Vec<u32>,
    outside: Vec<u32>,
    /// The set of just `inside` was refused.
    more: bool,
}

struct JudgedSearch<'a, 'p> {
    problem: &'a Problem<'p>,
    deficits: &'a [&'a [i64]],
    set_cost: &'a SetCost<'a>,
    scratch: &'a mut SetScratch,
    limits: SearchLimits,
    all: Vec<u32>,
    parts: BinaryHeap<Reverse<Part>>,
    spent: u64,
    /// Of parts that were not searched to the end: no set costs less.
    cut: Option<EvictionCost>,
    not_better: bool,
    reason: Infeasible,
}

impl JudgedSearch<'_, '_> {
    fn run(
        &mut self,
        judge: &mut dyn FnMut(&[u32]) -> bool,
    ) -> Result<AlternativesOutcome, SolverError> {
        self.add(Vec::new(), Vec::new(), false)?;
        while let Some(Reverse(part)) = self.parts.pop() {
            self.spent += JUDGEMENT_NODES;
            if judge(&part.set) {
                return Ok(self.solved(part));
            }
            if self.spent >= self.limits.max_nodes {
                let bound = EvictionCost::from_micros(part.micros);
                self.cut_at(bound);
                return self.any_accepted(judge);
            }
            self.split(part)?;
        }
        Ok(match self.cut {
            Some(cut) => AlternativesOutcome::Undecided(cut),
            None if self.not_better => AlternativesOutcome::NotBetter,
            None => AlternativesOutcome::Infeasible(self.reason),
        })
    }

    fn solved(&self, part: Part) -> AlternativesOutcome {
        let cost = EvictionCost::from_micros(part.micros);
        let cut = self.cut.filter(|cut| *cut <= cost);
        AlternativesOutcome::Solved(AlternativeCover {
            alternative: part.alternative,
            victims: part.set,
            cost,
            total_age_ms: part.age_ms,
            optimal: cut.is_none(),
            lower_bound: cut.unwrap_or(cost),
        })
    }

    fn cut_at(&mut self, bound: EvictionCost) {
        self.cut = Some(self.cut.map_or(bound, |cut| cut.min(bound)));
    }

    /// All sets of a part but its first one.
    fn split(&mut self, part: Part) -> Result<(), SolverError> {
        let mut inside = part.inside;
        let mut more = part.more;
        for member in part.set {
            if inside.contains(&member) {
                continue;
            }
            let mut outside = part.outside.clone();
            outside.push(member);
            self.add(inside.clone(), outside, more)?;
            inside.push(member);
            more = false;
        }
        self.add(inside, part.outside, true)
    }

    /// Queues a part, if it has a set.
    fn add(&mut self, inside: Vec<u32>, outside: Vec<u32>, more: bool) -> Result<(), SolverError> {
        match self.first(&inside, &outside, more)? {
            AlternativesOutcome::Solved(cover) => {
                if !cover.optimal {
                    self.cut_at(cover.lower_bound);
                }
                let uuids = cover.victims.iter();
                self.parts.push(Reverse(Part {
                    micros: cover.cost.micros(),
                    count: cover.victims.len(),
                    age_ms: cover.total_age_ms,
                    uuids: uuids.map(|at| self.problem.uuids[*at as usize]).collect(),
                    set: cover.victims,
                    alternative: cover.alternative,
                    inside,
                    outside,
                    more,
                }));
            }
            AlternativesOutcome::NotBetter => self.not_better = true,
            AlternativesOutcome::Infeasible(Infeasible::Budgets) => {
                self.reason = Infeasible::Budgets;
            }
            AlternativesOutcome::Infeasible(Infeasible::NotEnough) => {}
            AlternativesOutcome::Undecided(bound) => self.cut_at(bound),
        }
        Ok(())
    }

    /// The first set of a part, unjudged.
    fn first(
        &mut self,
        inside: &[u32],
        outside: &[u32],
        more: bool,
    ) -> Result<AlternativesOutcome, SolverError> {
        let problem = self.problem;
        let kept: Vec<u32> = (0..)
            .take(problem.candidates())
            .filter(|at| !outside.contains(at))
            .collect();
        let width = problem.deficit.len();
        let keys = problem.budgets.keys_per_candidate;
        let mut resources = Vec::with_capacity(kept.len() * (width + EXTRA_COLUMNS));
        let mut budget_keys = Vec::with_capacity(kept.len() * keys);
        for &at in &kept {
            let row = at as usize;
            resources.extend_from_slice(&problem.resources[row * width..(row + 1) * width]);
            let is_in = inside.contains(&at);
            resources.extend([i64::from(is_in), i64::from(!is_in)]);
            budget_keys.extend_from_slice(&problem.budgets.keys[row * keys..(row + 1) * keys]);
        }
        let wanted = [
            i64::try_from(inside.len()).unwrap_or(i64::MAX),
            i64::from(more),
        ];
        let deficits: Vec<Vec<i64>> = self
            .deficits
            .iter()
            .map(|deficit| deficit.iter().copied().chain(wanted).collect())
            .collect();
        let deficits: Vec<&[i64]> = deficits.iter().map(Vec::as_slice).collect();
        let own = vec![0; width + EXTRA_COLUMNS];
        let costs: Vec<EvictionCost> = pick(problem.costs, &kept);
        let ages_ms: Vec<u64> = pick(problem.ages_ms, &kept);
        let uuids: Vec<u128> = pick(problem.uuids, &kept);
        let part = Problem {
            deficit: &own,
            resources: &resources,
            costs: &costs,
            ages_ms: &ages_ms,
            uuids: &uuids,
            budgets: Budgets {
                keys: &budget_keys,
                ..problem.budgets
            },
            cutoff: problem.cutoff,
        };
        let left = SearchLimits {
            max_nodes: self.limits.max_nodes.saturating_sub(self.spent).max(1),
            ..self.limits
        };
        let scratch = &mut *self.scratch;
        let solved = match self.set_cost {
            SetCost::Additive => solve_any(&part, &deficits, &SetCost::Additive, scratch, left),
            SetCost::Groups(groups) => {
                let of: Vec<u32> = pick(groups.of, &kept);
                let groups = Groups {
                    of: &of,
                    steps: groups.steps,
                };
                solve_any(&part, &deficits, &SetCost::Groups(groups), scratch, left)
            }
            SetCost::Monotone(surcharge) => {
                let of_set = |set: &[u32]| surcharge(&pick(&kept, set));
                solve_any(&part, &deficits, &SetCost::Monotone(&of_set), scratch, left)
            }
        };
        self.spent += self.scratch.stats().nodes;
        let mut outcome = solved?;
        if let AlternativesOutcome::Solved(cover) = &mut outcome {
            cover.victims = pick(&kept, &cover.victims);
        }
        Ok(outcome)
    }

    /// A set that is accepted, after the limit was reached: all candidates but those, the dearest
    /// first, without which the rest is accepted, too.
    fn any_accepted(
        &mut self,
        judge: &mut dyn FnMut(&[u32]) -> bool,
    ) -> Result<AlternativesOutcome, SolverError> {
        let undecided = AlternativesOutcome::Undecided(self.cut.unwrap_or(EvictionCost::ZERO));
        if !self.problem.budgets.limits.is_empty() || !self.covers(&self.all) {
            return Ok(undecided);
        }
        let mut dearest = self.all.clone();
        dearest.sort_by_key(|at| {
            let at = *at as usize;
            Reverse((self.problem.costs[at], self.problem.ages_ms[at]))
        });
        let mut set = self.all.clone();
        for member in dearest {
            let rest: Vec<u32> = set.iter().copied().filter(|at| *at != member).collect();
            if self.covers(&rest) && judge(&rest) {
                set = rest;
            }
        }
        let outside = self.all.iter().copied();
        let outside: Vec<u32> = outside.filter(|at| !set.contains(at)).collect();
        Ok(match self.first(&set, &outside, false)? {
            AlternativesOutcome::Solved(cover) => {
                let lower_bound = self.cut.unwrap_or(EvictionCost::ZERO).min(cover.cost);
                AlternativesOutcome::Solved(AlternativeCover {
                    optimal: false,
                    lower_bound,
                    ..cover
                })
            }
            // The set at hand costs too much, which proves nothing about others.
            _ => undecided,
        })
    }

    /// Whether a set covers one of the deficits.
    fn covers(&self, set: &[u32]) -> bool {
        let width = self.problem.deficit.len();
        self.deficits.iter().any(|deficit| {
            deficit.iter().enumerate().all(|(class, missing)| {
                let freed = set.iter();
                let freed = freed.map(|at| self.problem.resources[*at as usize * width + class]);
                freed.fold(0, i64::saturating_add) >= *missing
            })
        })
    }
}

fn pick<T: Copy>(column: &[T], positions: &[u32]) -> Vec<T> {
    positions.iter().map(|at| column[*at as usize]).collect()
}
