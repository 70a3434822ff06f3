//! The search for a surcharge of which nothing is known but that it never falls when a victim is
//! added.
//!
//! Depth first over the candidates, cheapest first, by the next one to take. What is chosen costs
//! its sum and its surcharge, and both only grow; what is still missing costs at least its cheapest
//! price per unit. So this is exact for a dozen or two of candidates. When the nodes run out, the
//! proven bound is that of the additive problem, which is solved first.

use crate::cost::EvictionCost;
use crate::error::SolverError;
use crate::greedy::drop_idle;
use crate::grouped::NODES_PER_SOLVE;
use crate::outcome::{CoverResult, SearchLimits};
use crate::problem::Problem;
use crate::set_cost::{Best, Rank};
use crate::solve::{Scratch, solve};

/// Cut only what is above the best by more than any rounding of the few terms of the bound.
const SLACK: f64 = 1.0 + 1e-9;

/// State of the search; reused from call to call.
#[derive(Debug, Default)]
pub(crate) struct Monotone {
    pub(crate) best: Best,
    /// Useful candidates, cheapest first.
    order: Vec<u32>,
    /// By place in `order` and missing class: the cheapest price of a unit from there on, and all
    /// that there is.
    price: Vec<f64>,
    reach: Vec<i128>,
    /// Places in `order` of what is chosen, what was missing before each, and what all before it
    /// cost together.
    chosen: Vec<usize>,
    missing: Vec<i64>,
    costs: Vec<u64>,
    used: Vec<u32>,
    set: Vec<u32>,
}

impl Monotone {
    /// As [`GroupedSearch::run`](crate::grouped::GroupedSearch::run).
    pub(crate) fn run<'s>(
        &mut self,
        problem: &Problem<'_>,
        surcharge: &dyn Fn(&[u32]) -> EvictionCost,
        inner: &mut Scratch,
        nodes: &mut u64,
        limits: SearchLimits,
    ) -> Result<Result<Option<u64>, CoverResult<'s>>, SolverError> {
        self.best.clear();
        let outcome = solve(problem, inner, limits)?;
        let CoverResult::Solved(solution) = outcome else {
            return Ok(Err(outcome.without_set()));
        };
        let floor = solution.lower_bound.micros();
        let proven = solution.optimal;
        self.set.clear();
        self.set.extend_from_slice(solution.victims);
        *nodes += inner.stats().nodes + NODES_PER_SOLVE;
        let rank = self.offer(problem, surcharge);
        if proven && rank.micros == floor {
            return Ok(Ok(None));
        }
        Ok(Ok(
            if self.search(problem, surcharge, nodes, limits.max_nodes) {
                None
            } else {
                Some(floor)
            },
        ))
    }

    /// True if everything was looked at.
    fn search(
        &mut self,
        problem: &Problem<'_>,
        surcharge: &dyn Fn(&[u32]) -> EvictionCost,
        nodes: &mut u64,
        max_nodes: u64,
    ) -> bool {
        let width = problem.deficit.len();
        self.prepare(problem);
        let mut next = 0;
        loop {
            if self.is_worth_going_on(problem, surcharge, next) && self.take_from(problem, next) {
                *nodes += 1;
                if *nodes > max_nodes {
                    return false;
                }
                next = self.chosen.last().map_or(0, |&place| place + 1);
                let now = self.chosen.len() * width;
                if self.missing[now..now + width]
                    .iter()
                    .all(|&missing| missing <= 0)
                {
                    // More victims only make it dearer.
                    self.list();
                    self.offer(problem, surcharge);
                    next = self.order.len();
                }
            } else {
                let Some(place) = self.chosen.pop() else {
                    return true;
                };
                self.costs.truncate(self.chosen.len() + 1);
                self.missing.truncate((self.chosen.len() + 1) * width);
                for key in keys(problem, self.order[place]) {
                    self.used[key] -= 1;
                }
                next = place + 1;
            }
        }
    }

    fn prepare(&mut self, problem: &Problem<'_>) {
        let width = problem.deficit.len();
        self.order.clear();
        self.order
            .extend((0..problem.candidates() as u32).filter(|&candidate| {
                let row = &problem.resources
                    [candidate as usize * width..(candidate as usize + 1) * width];
                row.iter()
                    .zip(problem.deficit)
                    .any(|(&amount, &deficit)| amount > 0 && deficit > 0)
            }));
        self.order.sort_unstable_by_key(|&candidate| {
            let c = candidate as usize;
            (problem.costs[c], problem.ages_ms[c], problem.uuids[c])
        });
        let n = self.order.len();
        self.price.clear();
        self.price.resize((n + 1) * width, f64::INFINITY);
        self.reach.clear();
        self.reach.resize((n + 1) * width, 0);
        for place in (0..n).rev() {
            let c = self.order[place] as usize;
            for row in 0..width {
                let amount = problem.resources[c * width + row].min(problem.deficit[row]);
                let (at, behind) = (place * width + row, (place + 1) * width + row);
                (self.price[at], self.reach[at]) = (self.price[behind], self.reach[behind]);
                if amount > 0 {
                    self.price[at] =
                        self.price[at].min(problem.costs[c].micros() as f64 / amount as f64);
                    self.reach[at] += i128::from(amount);
                }
            }
        }
        self.chosen.clear();
        self.missing.clear();
        self.missing.extend_from_slice(problem.deficit);
        self.costs.clear();
        self.costs.push(0);
        self.used.clear();
        self.used.resize(problem.budgets.limits.len(), 0);
    }

    /// Whether what is chosen, with some from `next` on, can be better than the best set.
    fn is_worth_going_on(
        &mut self,
        problem: &Problem<'_>,
        surcharge: &dyn Fn(&[u32]) -> EvictionCost,
        next: usize,
    ) -> bool {
        let width = problem.deficit.len();
        if next >= self.order.len() {
            return false;
        }
        let now = self.chosen.len() * width;
        let mut rest = 0.0f64;
        for row in 0..width {
            let missing = self.missing[now + row];
            if missing > 0 {
                if i128::from(missing) > self.reach[next * width + row] {
                    return false;
                }
                rest = rest.max(missing as f64 * self.price[next * width + row]);
            }
        }
        let limit = match (self.best.rank, problem.cutoff) {
            (Some(best), _) => best.micros,
            (None, Some(cutoff)) => cutoff.micros(),
            (None, None) => return true,
        };
        let sum = self.costs.last().copied().unwrap_or(0);
        if sum as f64 + rest > limit as f64 * SLACK {
            return false;
        }
        self.list();
        let here = sum.saturating_add(surcharge(&self.set).micros());
        let count = self.chosen.len() as u32 + 1;
        here as f64 + rest <= limit as f64 * SLACK
            && (here, count) <= (limit, self.best.rank.map_or(u32::MAX, |best| best.count))
    }

    /// Takes the first candidate from `next` on that frees something missing and whose budgets are
    /// not used up. False if there is none.
    fn take_from(&mut self, problem: &Problem<'_>, next: usize) -> bool {
        let width = problem.deficit.len();
        let now = self.chosen.len() * width;
        let found = (next..self.order.len()).find(|&place| {
            let candidate = self.order[place];
            let row =
                &problem.resources[candidate as usize * width..(candidate as usize + 1) * width];
            row.iter()
                .zip(&self.missing[now..])
                .any(|(&amount, &missing)| amount > 0 && missing > 0)
                && keys(problem, candidate).all(|key| self.used[key] < problem.budgets.limits[key])
        });
        let Some(place) = found else {
            return false;
        };
        let c = self.order[place] as usize;
        for row in 0..width {
            self.missing
                .push(self.missing[now + row].saturating_sub(problem.resources[c * width + row]));
        }
        for key in keys(problem, self.order[place]) {
            self.used[key] += 1;
        }
        let sum = self.costs.last().copied().unwrap_or(0);
        self.costs.push(sum + problem.costs[c].micros());
        self.chosen.push(place);
        true
    }

    /// Puts what is chosen into `set`, by position.
    fn list(&mut self) {
        self.set.clear();
        self.set
            .extend(self.chosen.iter().map(|&place| self.order[place]));
        self.set.sort_unstable();
    }

    /// Offers `set`, without idle members.
    fn offer(&mut self, problem: &Problem<'_>, surcharge: &dyn Fn(&[u32]) -> EvictionCost) -> Rank {
        drop_idle(problem, &mut self.set);
        self.set.sort_unstable();
        let mut rank = Rank {
            micros: surcharge(&self.set).micros(),
            count: self.set.len() as u32,
            age_ms: 0,
        };
        for &victim in &self.set {
            rank.micros = rank
                .micros
                .saturating_add(problem.costs[victim as usize].micros());
            rank.age_ms += problem.ages_ms[victim as usize];
        }
        self.set
            .sort_unstable_by_key(|&victim| (problem.uuids[victim as usize], victim));
        self.best.offer(problem, rank, &self.set);
        rank
    }
}

/// The budgets of a candidate, each once.
fn keys<'a>(problem: &'a Problem<'_>, candidate: u32) -> impl Iterator<Item = usize> + 'a {
    let candidate = candidate as usize;
    problem
        .budgets
        .of(candidate)
        .enumerate()
        .filter(move |&(place, key)| {
            problem
                .budgets
                .of(candidate)
                .take(place)
                .all(|before| before != key)
        })
        .map(|(_, key)| key)
}
