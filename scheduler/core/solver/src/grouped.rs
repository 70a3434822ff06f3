//! The exact search for a surcharge by group, as a branch and bound over additive problems.
//!
//! Let `F(n)` be the surcharge of a group with `n` victims. It is convex, so for every `t` the line
//! `F(t) + (n − t) · (F(t+1) − F(t))` lies nowhere above it. With such a line for each group the
//! problem is additive: each member costs a slope more. `solve` finds its first set `S` in the full
//! order. For every set `T` the line's cost is a lower bound and number, age and UUIDs are the same
//! in both orders; hence if `S` with the line's cost does not come before the best set at hand, no
//! set of the node does. And if the lines are exact at `S`, then `S` is the first of the node.
//!
//! Otherwise the node is split at the group whose line errs most: at most so many of it, or more.
//! The upper ends become budgets of the additive problem, the lower ends further resource classes.
//! Lines are moved towards the counts that were found before a node is given up to splitting, which
//! is a step up the Lagrangian dual.
//!
//! Best first: when the nodes run out, the least bound of those that are left is the proven one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::cost::EvictionCost;
use crate::error::SolverError;
use crate::greedy::{drop_idle, fair_set};
use crate::outcome::{CoverResult, Infeasible, SearchLimits};
use crate::problem::{Budgets, NO_BUDGET, Problem};
use crate::set_cost::{Best, Groups, NO_GROUP, Rank};
use crate::solve::{Scratch, solve};
use crate::steps::{ONE, StepCurve, SupportLine, towards};

/// What one additive problem counts as in the limit of nodes, beside its own: it takes some ten
/// microseconds.
pub(crate) const NODES_PER_SOLVE: u64 = 4;
/// So often lines are moved at one node before it is split, and at the first, whose bound is the
/// one that is proven when there are too many sets to search.
const MOVES: u64 = 3;
const ROOT_MOVES: u64 = 24;
/// Moving lines is worth so many nodes of the additive search: enough for most hosts, and with
/// thousands of candidates a good bound from many lines is better than the best set of one.
const NODES_PER_LINE: u64 = 500;
/// State of the search; reused from call to call.
#[derive(Debug, Default)]
pub(crate) struct GroupedSearch {
    pub(crate) best: Best,
    /// How many candidates of each group help at all.
    members: Vec<u32>,
    /// Local group of each candidate, or `NO_GROUP`.
    of: Vec<u32>,
    steps: StepCurve,
    heap: BinaryHeap<Reverse<Node>>,
    made: u64,
    deficit: Vec<i64>,
    resources: Vec<i64>,
    costs: Vec<EvictionCost>,
    limits: Vec<u32>,
    keys: Vec<u32>,
    /// Where the lines of the node at hand have moved to, in fractions.
    mean: Vec<u64>,
    polished: Vec<u32>,
    order: Vec<u32>,
    counts: Vec<u32>,
    seen: Vec<u32>,
}

/// A range for the number of victims of each group, and its line.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Node {
    bound: u64,
    made: u64,
    low: Vec<u32>,
    high: Vec<u32>,
    lines: Vec<SupportLine>,
}

/// What solving one additive problem said.
enum Answer {
    /// No set of the node is better than the best.
    Nothing,
    /// A bound for the node, and the set that shows it, which is in `seen`, if any was found.
    Bound {
        micros: u64,
        found: bool,
        proven: bool,
    },
}

impl GroupedSearch {
    /// `Ok(None)` if `best` is the answer, `Ok(Some(bound))` if the nodes ran out; an outcome if no
    /// set will do at all.
    pub(crate) fn run<'s>(
        &mut self,
        problem: &Problem<'_>,
        groups: &Groups<'_>,
        inner: &mut Scratch,
        nodes: &mut u64,
        limits: SearchLimits,
    ) -> Result<Result<Option<u64>, CoverResult<'s>>, SolverError> {
        self.best.clear();
        self.heap.clear();
        self.made = 0;
        self.survey(problem, groups);
        let root = Node {
            low: vec![0; self.members.len()],
            high: self.members.clone(),
            lines: vec![self.steps.line(0); self.members.len()],
            ..Node::default()
        };
        let mut cut: Option<u64> = None;
        let mut first = true;
        self.heap.push(Reverse(root));
        while let Some(Reverse(mut node)) = self.heap.pop() {
            let least = self.best.rank.map_or(u64::MAX, |rank| rank.micros);
            if node.bound > least {
                break;
            }
            if *nodes >= limits.max_nodes.max(1) && !first {
                cut = Some(cut.map_or(node.bound, |cut| cut.min(node.bound)));
                break;
            }
            let answer = match self.relax(problem, &mut node, inner, nodes, limits, first)? {
                Ok(answer) => answer,
                Err(outcome) if first => return Ok(Err(outcome)),
                Err(_) => Answer::Nothing,
            };
            if first && matches!(answer, Answer::Bound { .. }) {
                let set = fair_set(problem, &self.of, |count| self.steps.next(count));
                if let Some(set) = set {
                    let kept = std::mem::replace(&mut self.seen, set);
                    self.offer_polished(problem);
                    self.seen = kept;
                    self.count_seen();
                }
            }
            first = false;
            let Answer::Bound {
                micros,
                found,
                proven,
            } = answer
            else {
                continue;
            };
            node.bound = node.bound.max(micros);
            let mut split = if found { self.choose(&node) } else { None };
            let mut proven = proven;
            if split.is_none() && !proven {
                // It was cut early for the sake of more lines: now in earnest.
                match self.solve_node(problem, &node, inner, nodes, limits)? {
                    Ok(Answer::Bound {
                        micros,
                        found,
                        proven: now,
                    }) => {
                        node.bound = node.bound.max(micros);
                        split = if found { self.choose(&node) } else { None };
                        proven = now;
                    }
                    Ok(Answer::Nothing) | Err(_) => continue,
                }
            }
            match split {
                Some((group, at)) => self.split(&node, group, at),
                None if !proven => cut = Some(cut.map_or(node.bound, |cut| cut.min(node.bound))),
                None => {}
            }
        }
        // What is above the best set leaves nothing open; what is as good leaves the order of
        // equals open.
        Ok(Ok(cut.filter(|&cut| {
            self.best.rank.is_none_or(|best| cut <= best.micros)
        })))
    }

    /// Solves a node, and again with lines nearer to what was found. What gave the best bound is in
    /// `seen` and the node.
    fn relax<'s>(
        &mut self,
        problem: &Problem<'_>,
        node: &mut Node,
        inner: &mut Scratch,
        nodes: &mut u64,
        limits: SearchLimits,
        root: bool,
    ) -> Result<Result<Answer, CoverResult<'s>>, SolverError> {
        let mut best = match self.solve_node(problem, node, inner, nodes, limits)? {
            Ok(answer) => answer,
            Err(outcome) => return Ok(Err(outcome)),
        };
        let mut lines = node.lines.clone();
        let mut seen = self.seen.clone();
        self.mean.clear();
        self.mean
            .extend(node.lines.iter().map(|line| u64::from(line.touch) * ONE));
        for made in 0..if root { ROOT_MOVES } else { MOVES } {
            let Answer::Bound {
                micros,
                found: true,
                ..
            } = best
            else {
                break;
            };
            if *nodes >= limits.max_nodes || !self.move_lines(node, made) {
                break;
            }
            let short = SearchLimits {
                max_nodes: limits.max_nodes.min(*nodes + NODES_PER_LINE),
                ..limits
            };
            match self.solve_node(problem, node, inner, nodes, short)? {
                Ok(Answer::Bound {
                    micros: now,
                    found: true,
                    proven,
                }) => {
                    if now >= micros {
                        best = Answer::Bound {
                            micros: now,
                            found: true,
                            proven,
                        };
                        lines.clone_from(&node.lines);
                        seen.clone_from(&self.seen);
                    }
                }
                Ok(Answer::Bound { .. }) => break,
                Ok(Answer::Nothing) | Err(_) => return Ok(Ok(Answer::Nothing)),
            }
        }
        node.lines = lines;
        self.seen = seen;
        self.count_seen();
        Ok(Ok(best))
    }

    /// Which groups there are, and their steps.
    fn survey(&mut self, problem: &Problem<'_>, groups: &Groups<'_>) {
        let width = problem.deficit.len();
        let useful = |candidate: usize| {
            (problem.resources[candidate * width..(candidate + 1) * width].iter())
                .zip(problem.deficit)
                .any(|(&amount, &deficit)| amount > 0 && deficit > 0)
        };
        self.order.clear();
        self.of.clear();
        for (candidate, &group) in groups.of.iter().enumerate() {
            let group = if useful(candidate) { group } else { NO_GROUP };
            self.of.push(group);
            if group != NO_GROUP {
                self.order.push(group);
            }
        }
        self.order.sort_unstable();
        self.order.dedup();
        self.members.clear();
        self.members.resize(self.order.len(), 0);
        for group in &mut self.of {
            if let Ok(local) = self.order.binary_search(group) {
                *group = local as u32;
                self.members[local] += 1;
            }
        }
        let most = self.members.iter().copied().max().unwrap_or(0);
        let cap = (EvictionCost::TOTAL_LIMIT.micros() / 4) / (problem.candidates().max(1) as u64);
        self.steps.load(groups.steps, cap, most);
    }

    /// Solves the additive problem of a node; offers what it finds.
    fn solve_node<'s>(
        &mut self,
        problem: &Problem<'_>,
        node: &Node,
        inner: &mut Scratch,
        nodes: &mut u64,
        limits: SearchLimits,
    ) -> Result<Result<Answer, CoverResult<'s>>, SolverError> {
        let offset = self.load(problem, node);
        let interest = match (
            self.best.rank.map(|rank| rank.micros),
            problem.cutoff.map(EvictionCost::micros),
        ) {
            (Some(best), Some(cutoff)) => Some(best.min(cutoff)),
            (best, cutoff) => best.or(cutoff),
        };
        // Lines begin at or below zero, so nothing is ever cut by the subtraction going negative.
        let cutoff = interest.map(|interest| {
            EvictionCost::from_micros(u64::try_from(i128::from(interest) - offset).unwrap_or(0))
        });
        let lines = Problem {
            deficit: &self.deficit,
            resources: &self.resources,
            costs: &self.costs,
            ages_ms: problem.ages_ms,
            uuids: problem.uuids,
            budgets: Budgets {
                limits: &self.limits,
                keys_per_candidate: problem.budgets.keys_per_candidate + 1,
                keys: &self.keys,
            },
            cutoff,
        };
        let left = SearchLimits {
            max_nodes: limits.max_nodes.saturating_sub(*nodes).max(1),
            ..limits
        };
        let outcome = solve(&lines, inner, left)?;
        let total = |cost: EvictionCost| {
            u64::try_from((i128::from(cost.micros()) + offset).max(0)).unwrap_or(u64::MAX)
        };
        let answer = match outcome {
            CoverResult::Solved(solution) => {
                self.seen.clear();
                self.seen.extend_from_slice(solution.victims);
                let bound = if solution.optimal {
                    solution.cost
                } else {
                    solution.lower_bound
                };
                let (micros, proven) = (total(bound), solution.optimal);
                let rank = Rank {
                    micros,
                    count: solution.victims.len() as u32,
                    age_ms: solution.total_age_ms,
                };
                if proven && self.best.precedes(problem, rank, &self.seen) {
                    Ok(Answer::Nothing)
                } else {
                    self.offer_polished(problem);
                    self.count_seen();
                    Ok(Answer::Bound {
                        micros,
                        found: true,
                        proven,
                    })
                }
            }
            CoverResult::Undecided { lower_bound } => Ok(Answer::Bound {
                micros: total(lower_bound),
                found: false,
                proven: false,
            }),
            CoverResult::NotNeeded => Err(CoverResult::NotNeeded),
            CoverResult::NotBetter => Err(CoverResult::NotBetter),
            CoverResult::Infeasible(Infeasible::NotEnough) => {
                Err(CoverResult::Infeasible(Infeasible::NotEnough))
            }
            CoverResult::Infeasible(Infeasible::Budgets) => {
                Err(CoverResult::Infeasible(Infeasible::Budgets))
            }
        };
        *nodes += inner.stats().nodes + NODES_PER_SOLVE;
        Ok(answer)
    }

    /// Fills the columns of the additive problem; answers the part of the lines that is the same
    /// for all sets.
    fn load(&mut self, problem: &Problem<'_>, node: &Node) -> i128 {
        let width = problem.deficit.len();
        self.deficit.clear();
        self.deficit.extend_from_slice(problem.deficit);
        let rows: Vec<u32> = (0..node.low.len() as u32)
            .filter(|&group| node.low[group as usize] > 0)
            .collect();
        self.deficit.extend(
            rows.iter()
                .map(|&group| i64::from(node.low[group as usize])),
        );
        self.limits.clear();
        self.limits.extend_from_slice(problem.budgets.limits);
        let first = self.limits.len();
        self.limits.extend_from_slice(&node.high);
        self.resources.clear();
        self.costs.clear();
        self.keys.clear();
        let places = problem.budgets.keys_per_candidate;
        for candidate in 0..problem.candidates() {
            self.resources
                .extend_from_slice(&problem.resources[candidate * width..(candidate + 1) * width]);
            let group = self.of[candidate];
            self.resources
                .extend(rows.iter().map(|&row| i64::from(row == group)));
            self.keys.extend_from_slice(
                &problem.budgets.keys[candidate * places..(candidate + 1) * places],
            );
            let (slope, key) = match node.lines.get(group as usize) {
                Some(line) => (line.slope, (first + group as usize) as u32),
                None => (0, NO_BUDGET),
            };
            self.keys.push(key);
            self.costs.push(EvictionCost::from_micros(
                problem.costs[candidate].micros() + slope,
            ));
        }
        let starts = node.lines.iter().map(|&line| self.steps.start(line));
        starts.sum()
    }

    /// How many victims of each group the set has that was seen last.
    fn count_seen(&mut self) {
        self.counts.clear();
        self.counts.resize(self.members.len(), 0);
        for &victim in &self.seen {
            if let Some(count) = self.counts.get_mut(self.of[victim as usize] as usize) {
                *count += 1;
            }
        }
    }

    /// Moves the lines towards what was seen last. False if all are exact there.
    fn move_lines(&mut self, node: &mut Node, made: u64) -> bool {
        let mut errs = false;
        for group in 0..node.lines.len() {
            let count = self.counts[group];
            errs |= self.steps.error(node.lines[group], count) > 0;
            self.mean[group] = towards(self.mean[group], count, made);
            let line = self.steps.line(self.mean[group]);
            node.lines[group] = self.steps.within(line, node.low[group], node.high[group]);
        }
        errs
    }

    /// The group to split, and the largest count of its first half; `None` if the lines are exact
    /// at what was seen.
    fn choose(&self, node: &Node) -> Option<(usize, u32)> {
        let (_, Reverse(group)) = (0..node.lines.len())
            .map(|group| {
                (
                    self.steps.error(node.lines[group], self.counts[group]),
                    Reverse(group),
                )
            })
            .max()
            .filter(|(error, _)| *error > 0)?;
        let (touch, count) = (node.lines[group].touch, self.counts[group]);
        let at = (touch + count) / 2;
        (node.low[group] < node.high[group])
            .then(|| (group, at.clamp(node.low[group], node.high[group] - 1)))
    }

    fn split(&mut self, node: &Node, group: usize, at: u32) {
        for (low, high) in [(node.low[group], at), (at + 1, node.high[group])] {
            self.made += 1;
            let mut child = Node {
                made: self.made,
                ..node.clone()
            };
            (child.low[group], child.high[group]) = (low, high);
            child.lines[group] = self.steps.within(child.lines[group], low, high);
            self.heap.push(Reverse(child));
        }
    }

    /// Offers the set that was seen last, without its idle members: the ends of a node's ranges may
    /// have forced some in.
    fn offer_polished(&mut self, problem: &Problem<'_>) {
        self.polished.clone_from(&self.seen);
        drop_idle(problem, &mut self.polished);
        let mut rank = Rank {
            count: self.polished.len() as u32,
            ..Rank::default()
        };
        self.counts.clear();
        self.counts.resize(self.members.len(), 0);
        for &victim in &self.polished {
            rank.micros += problem.costs[victim as usize].micros();
            rank.age_ms += problem.ages_ms[victim as usize];
            if let Some(count) = self.counts.get_mut(self.of[victim as usize] as usize) {
                rank.micros += self.steps.next(*count);
                *count += 1;
            }
        }
        self.best.offer(problem, rank, &self.polished);
    }
}
