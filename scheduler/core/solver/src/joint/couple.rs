//! The branch and bound over what couples the hosts.
//!
//! A node says how many victims of a project (or other key) some hosts take at least and at most.
//! Its relaxation lets every host use what the others do not take at least, and charges members of
//! a group by a line below the surcharge; so its plan is a lower bound for the node. If the plan
//! keeps the budgets and the lines are exact at its counts, it is the best of the node. Otherwise
//! the node is split at the host that takes most of the key that errs most: fewer than that, or at
//! least that many.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::curves::{CountPlan, NodeRelaxation, relax};
use super::host::{Key, NodeConstraints, PointSolver, SolvedPoint, polished};
use super::{CoverCost, HostShare, Hosts, JointOutcome, JointProblem, JointSolution};
use crate::cost::EvictionCost;
use crate::error::SolverError;
use crate::outcome::SearchLimits;
use crate::problem::MAX_CANDIDATES;
use crate::steps::{ONE, StepCurve, SupportLine, towards};

/// So often lines are moved at the first node. Each costs a run over all hosts.
const ROOT_MOVES: u64 = 12;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Node {
    bound: CoverCost,
    made: u64,
    terms: NodeConstraints,
}

struct Search<'a, 'h> {
    problem: &'a JointProblem<'a>,
    hosts: &'h mut dyn Hosts,
    limits: SearchLimits,
    points: PointSolver,
    steps: StepCurve,
    base: Vec<(u64, usize)>,
    best: Option<(CoverCost, CountPlan)>,
    heap: BinaryHeap<Reverse<Node>>,
    made: u64,
}

/// See the module comment. Answers the number of nodes, too.
pub(super) fn run(
    problem: &JointProblem<'_>,
    hosts: &mut dyn Hosts,
    limits: SearchLimits,
) -> Result<(JointOutcome, u64), SolverError> {
    let mut base: Vec<(u64, usize)> = (0..hosts.count())
        .map(|host| (hosts.bound(host).micros(), host))
        .collect();
    base.retain(|(micros, _)| *micros != EvictionCost::MAX.micros());
    base.sort_unstable();
    let mut steps = StepCurve::default();
    // A quarter of what the costs of a host may be: the others are half of it.
    steps.load(
        problem.steps,
        EvictionCost::TOTAL_LIMIT.micros() / 4 / MAX_CANDIDATES as u64,
        1,
    );
    let mut search = Search {
        problem,
        hosts,
        limits,
        points: PointSolver::default(),
        steps,
        base,
        best: None,
        heap: BinaryHeap::new(),
        made: 0,
    };
    let cut = search.search()?;
    let outcome = search.outcome(cut);
    Ok((outcome, search.points.nodes))
}

impl Search<'_, '_> {
    /// The least bound of what was not looked at; `None` if that is nothing.
    fn search(&mut self) -> Result<Option<CoverCost>, SolverError> {
        let mut cut: Option<CoverCost> = None;
        let mut lower =
            |price: CoverCost| cut = Some(cut.map_or(price, |cut: CoverCost| cut.min(price)));
        self.heap.push(Reverse(Node {
            bound: CoverCost::new(0, 0),
            made: 0,
            terms: NodeConstraints::default(),
        }));
        let mut root = true;
        while let Some(Reverse(mut node)) = self.heap.pop() {
            if self
                .best
                .as_ref()
                .is_some_and(|(best, _)| node.bound >= *best)
            {
                break;
            }
            if !root && self.points.nodes >= self.limits.max_nodes {
                lower(node.bound);
                break;
            }
            let relaxed = self.relax(&node.terms, root)?;
            let relaxed = if root {
                self.move_lines(&mut node.terms, relaxed)?
            } else {
                relaxed
            };
            root = false;
            let plan = match relaxed {
                NodeRelaxation::Infeasible => continue,
                NodeRelaxation::Open(price) => {
                    lower(self.total(&node.terms, price).max(node.bound));
                    continue;
                }
                NodeRelaxation::Plan(plan) => plan,
            };
            let floor = self.total(&node.terms, plan.floor);
            node.bound = node.bound.max(floor);
            let erring = self.erring(&node.terms, &plan);
            self.offer(&plan);
            if plan.floor < plan.price {
                lower(node.bound);
            }
            let Some(key) = erring else {
                continue;
            };
            self.repair(&plan)?;
            if self
                .best
                .as_ref()
                .is_some_and(|(best, _)| node.bound >= *best)
            {
                continue;
            }
            self.split(node, key, &plan);
        }
        Ok(cut.filter(|cut| self.best.as_ref().is_none_or(|(best, _)| cut < best)))
    }

    fn relax(
        &mut self,
        terms: &NodeConstraints,
        root: bool,
    ) -> Result<NodeRelaxation, SolverError> {
        relax(
            self.problem.count,
            &self.base,
            self.hosts,
            &mut self.points,
            terms,
            self.limits,
            root,
        )
    }

    /// Lines for the groups that err, moved a step up the Lagrangian dual again and again; keeps
    /// the best.
    fn move_lines(
        &mut self,
        terms: &mut NodeConstraints,
        first: NodeRelaxation,
    ) -> Result<NodeRelaxation, SolverError> {
        let mut best = first;
        let mut best_terms = terms.clone();
        if self.steps.are_zero() {
            return Ok(best);
        }
        let NodeRelaxation::Plan(mut plan) = (match &best {
            NodeRelaxation::Plan(plan) => NodeRelaxation::Plan(plan.clone()),
            _ => return Ok(best),
        }) else {
            return Ok(best);
        };
        let mut means: BTreeMap<u32, u64> = BTreeMap::new();
        for made in 0..ROOT_MOVES {
            self.offer(&plan);
            if self.erring(terms, &plan).is_none() || self.points.nodes >= self.limits.max_nodes {
                break;
            }
            let counts = counts(&plan);
            for key in counts.keys() {
                if let Key::Group(group) = key {
                    means.entry(*group).or_insert(0);
                }
            }
            for (&group, mean) in &mut means {
                let count = counts.get(&Key::Group(group)).copied().unwrap_or(0);
                *mean = towards(*mean, count, made);
                self.steps.reach((*mean / ONE) as u32 + 1);
                terms.lines.insert(group, self.steps.line(*mean));
            }
            let NodeRelaxation::Plan(moved) = self.relax(terms, true)? else {
                break;
            };
            let is_better = match &best {
                NodeRelaxation::Plan(before) => {
                    self.total(terms, moved.floor) > self.total(&best_terms, before.floor)
                }
                _ => true,
            };
            if is_better {
                best = NodeRelaxation::Plan(moved.clone());
                best_terms.clone_from(terms);
            }
            plan = moved;
        }
        self.offer(&plan);
        *terms = best_terms;
        Ok(best)
    }

    /// A price under the lines as a price of the whole.
    fn total(&self, terms: &NodeConstraints, price: CoverCost) -> CoverCost {
        let starts = terms.lines.values().map(|&line| self.steps.start(line));
        price.plus(CoverCost::new(starts.sum(), 0))
    }

    /// What all victims of a plan cost besides their own costs.
    fn surcharge(&mut self, counts: &BTreeMap<Key, u32>) -> u64 {
        let mut sum = 0u64;
        for (key, &count) in counts {
            if matches!(key, Key::Group(_)) {
                self.steps.reach(count);
                sum = sum.saturating_add(self.steps.total(count));
            }
        }
        sum
    }

    fn keeps_budgets(&self, counts: &BTreeMap<Key, u32>) -> bool {
        counts.iter().all(|(key, &count)| match key {
            Key::Budget(budget) => self
                .problem
                .limits
                .get(*budget as usize)
                .is_none_or(|&limit| count <= limit),
            Key::Group(_) => true,
        })
    }

    /// Keeps a plan if it is within the budgets and better than the best.
    fn offer(&mut self, plan: &CountPlan) {
        let counts = counts(plan);
        if !self.keeps_budgets(&counts) {
            return;
        }
        let own: i128 = plan
            .shares
            .iter()
            .map(|(_, _, entry)| i128::from(entry.micros))
            .sum();
        let victims = plan
            .shares
            .iter()
            .map(|(_, _, entry)| entry.victims.len())
            .sum();
        let price = CoverCost::new(own + i128::from(self.surcharge(&counts)), victims);
        if self.best.as_ref().is_none_or(|(best, _)| price < *best) {
            self.best = Some((price, plan.clone()));
        }
    }

    /// The key for which a plan is not what the node believes; budgets first.
    fn erring(&mut self, terms: &NodeConstraints, plan: &CountPlan) -> Option<Key> {
        let counts = counts(plan);
        let excess = |(key, &count): (&Key, &u32)| match key {
            Key::Budget(budget) => {
                let limit = self
                    .problem
                    .limits
                    .get(*budget as usize)
                    .copied()
                    .unwrap_or(u32::MAX);
                (count > limit).then(|| (count - limit, Reverse(*key)))
            }
            Key::Group(_) => None,
        };
        if let Some((_, Reverse(key))) = counts.iter().filter_map(excess).max() {
            return Some(key);
        }
        if self.steps.are_zero() {
            return None;
        }
        let mut worst: Option<(u64, Reverse<Key>)> = None;
        let groups = terms
            .lines
            .keys()
            .map(|&group| Key::Group(group))
            .chain(counts.keys().copied());
        for key in groups {
            if let Key::Group(group) = key {
                let count = counts.get(&key).copied().unwrap_or(0);
                self.steps.reach(count);
                // A group without a line is charged nothing.
                let line = terms.lines.get(&group).copied().unwrap_or_default();
                let error = self.steps.error(line, count);
                worst = worst.max((error > 0).then_some((error, Reverse(key))));
            }
        }
        worst.map(|(_, Reverse(key))| key)
    }

    /// Solves the hosts of a plan one after another, each with what those before it have left.
    fn repair(&mut self, plan: &CountPlan) -> Result<(), SolverError> {
        let mut terms = NodeConstraints::default();
        let mut shares = Vec::new();
        for (host, count, _) in &plan.shares {
            match self
                .points
                .solve(self.hosts, *host, *count, &terms, self.limits)?
            {
                SolvedPoint::Set(entry) => {
                    for &(key, used) in &entry.usage {
                        let reserved = terms.reserved.entry(key).or_default();
                        *reserved += used;
                        if let Key::Group(group) = key {
                            let touch = *reserved;
                            self.steps.reach(touch + 1);
                            terms.lines.insert(
                                group,
                                SupportLine {
                                    touch,
                                    slope: self.steps.next(touch),
                                },
                            );
                        }
                    }
                    shares.push((*host, *count, entry));
                }
                SolvedPoint::Never | SolvedPoint::Undecided => return Ok(()),
            }
        }
        let plan = CountPlan {
            shares,
            ..plan.clone()
        };
        self.offer(&plan);
        Ok(())
    }

    fn split(&mut self, node: Node, key: Key, plan: &CountPlan) {
        // The host that takes most beyond what it has to; the most preferred of equals.
        let takes = plan.shares.iter().filter_map(|(host, _, entry)| {
            let used = entry
                .usage
                .iter()
                .find(|(of, _)| *of == key)
                .map_or(0, |(_, used)| *used);
            let (low, high) = node.terms.range(*host, key);
            (used > low && low < high).then_some((used - low, Reverse(*host), used))
        });
        let Some((_, Reverse(host), used)) = takes.max() else {
            // All hosts take what they have to and the line is not exact there: now it will be.
            if let Key::Group(group) = key {
                let touch = node.terms.reserved.get(&key).copied().unwrap_or(0);
                self.steps.reach(touch + 1);
                let line = SupportLine {
                    touch,
                    slope: self.steps.next(touch),
                };
                self.push(node, |terms| {
                    terms.lines.insert(group, line);
                });
            }
            return;
        };
        let (low, high) = node.terms.range(host, key);
        self.push(node.clone(), |terms| {
            terms.ranges.insert((host, key), (low, used - 1));
        });
        let limit = match key {
            Key::Budget(budget) => self
                .problem
                .limits
                .get(budget as usize)
                .copied()
                .unwrap_or(u32::MAX),
            Key::Group(_) => u32::MAX,
        };
        let reserved = node.terms.reserved.get(&key).copied().unwrap_or(0) + used - low;
        if reserved <= limit {
            let line = match key {
                Key::Group(group) => {
                    let touch = node.terms.lines.get(&group).map_or(0, |line| line.touch);
                    (touch < reserved).then_some(group)
                }
                Key::Budget(_) => None,
            };
            self.steps.reach(reserved + 1);
            let raised = SupportLine {
                touch: reserved,
                slope: self.steps.next(reserved),
            };
            self.push(node, |terms| {
                terms.ranges.insert((host, key), (used, high));
                terms.reserved.insert(key, reserved);
                if let Some(group) = line {
                    terms.lines.insert(group, raised);
                }
            });
        }
    }

    fn push(&mut self, node: Node, change: impl FnOnce(&mut NodeConstraints)) {
        self.made += 1;
        let mut node = Node {
            made: self.made,
            ..node
        };
        change(&mut node.terms);
        self.heap.push(Reverse(node));
    }

    fn outcome(&mut self, cut: Option<CoverCost>) -> JointOutcome {
        let Some((price, plan)) = self.best.take() else {
            return match cut {
                Some(cut) => JointOutcome::Undecided {
                    lower_bound: EvictionCost::from_micros(cut.micros()),
                },
                None => JointOutcome::Infeasible,
            };
        };
        let mut plan = plan;
        if cut.is_some() {
            for (host, count, entry) in &mut plan.shares {
                *entry = polished(self.hosts, *host, *count, entry);
            }
        }
        let surcharge = self.surcharge(&counts(&plan));
        let own: u64 = plan
            .shares
            .iter()
            .map(|(_, _, entry)| entry.micros)
            .fold(0, u64::saturating_add);
        let cost = own.saturating_add(surcharge);
        debug_assert!(cut.is_some() || cost == price.micros());
        let lower_bound = cut.map_or(cost, |cut| cut.micros().min(cost));
        let share = |(host, count, entry): &(usize, u32, std::rc::Rc<super::host::CheapestSet>)| {
            HostShare {
                host: *host,
                count: *count,
                victims: entry.victims.clone(),
            }
        };
        JointOutcome::Solved(JointSolution {
            shares: plan.shares.iter().map(share).collect(),
            cost: EvictionCost::from_micros(cost),
            surcharge: EvictionCost::from_micros(surcharge),
            optimal: cut.is_none(),
            lower_bound: EvictionCost::from_micros(lower_bound),
        })
    }
}

/// How many victims of each key a plan has.
fn counts(plan: &CountPlan) -> BTreeMap<Key, u32> {
    let mut counts = BTreeMap::new();
    for (_, _, entry) in &plan.shares {
        for &(key, used) in &entry.usage {
            *counts.entry(key).or_default() += used;
        }
    }
    counts
}
