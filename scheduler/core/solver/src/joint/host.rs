//! One point of one host's curve, under what the other hosts leave of the budgets and what the
//! lines charge.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::{HostProblem, Hosts};
use crate::bound::lower_bound;
use crate::cost::EvictionCost;
use crate::error::SolverError;
use crate::greedy::drop_idle;
use crate::grouped::NODES_PER_SOLVE;
use crate::outcome::{CoverResult, SearchLimits};
use crate::problem::{Budgets, NO_BUDGET, Problem};
use crate::set_cost::NO_GROUP;
use crate::solve::{Scratch, solve};
use crate::steps::SupportLine;

/// What couples hosts: a budget by its place in the limits, or a group that is charged by count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Budget(u32),
    Group(u32),
}

/// What holds at a node of the search.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeConstraints {
    /// How many victims of a key a host takes, at least and at most.
    pub(crate) ranges: BTreeMap<(usize, Key), (u32, u32)>,
    /// How many are set aside for hosts that take some at least.
    pub(crate) reserved: BTreeMap<Key, u32>,
    /// What members of a group are charged. Groups without a line are not in it.
    pub(crate) lines: BTreeMap<u32, SupportLine>,
}

impl NodeConstraints {
    /// The range of a key on a host; without an entry the full range.
    pub(crate) fn range(&self, host: usize, key: Key) -> (u32, u32) {
        self.ranges
            .get(&(host, key))
            .copied()
            .unwrap_or((0, u32::MAX))
    }

    /// How many victims of a budget a host may take.
    fn room(&self, host: usize, budget: u32, limit: u32) -> u32 {
        let key = Key::Budget(budget);
        let (low, high) = self.range(host, key);
        let others = self.reserved.get(&key).copied().unwrap_or(0) - low;
        limit.saturating_sub(others).min(high)
    }

    /// The hosts that have to take some.
    pub(crate) fn bound_to(&self) -> BTreeSet<usize> {
        (self.ranges.iter())
            .filter(|(_, (low, _))| *low > 0)
            .map(|((host, _), _)| *host)
            .collect()
    }
}

/// The cheapest set for a point.
#[derive(Debug)]
pub(crate) struct CheapestSet {
    pub(crate) victims: Vec<u32>,
    /// What they cost alone, and with what the lines charge.
    pub(crate) micros: u64,
    pub(crate) priced: u64,
    pub(crate) usage: Vec<(Key, u32)>,
    pub(crate) optimal: bool,
}

/// What is known of a point.
#[derive(Clone, Debug)]
pub(crate) enum SolvedPoint {
    Set(Rc<CheapestSet>),
    /// No set will do, nor for more instances.
    Never,
    /// The nodes ran out before any set was seen.
    Undecided,
}

/// Bounds of a host for one, two, … instances.
#[derive(Clone, Debug, Default)]
pub(crate) struct CountBounds {
    pub(crate) micros: Vec<u64>,
    /// It cannot take more than these.
    pub(crate) complete: bool,
}

/// A host, and what members of groups are charged where that is anything.
type Charged = (usize, Vec<(u32, u64)>);

/// A key as the solver gets it: at least, at most, charge. Only keys that differ from the original
/// problem.
type Extra = (Key, u32, u32, u64);

/// Solves points, and remembers them.
#[derive(Default)]
pub(crate) struct PointSolver {
    known: BTreeMap<(usize, u32, Vec<Extra>), SolvedPoint>,
    /// By host and charge, as far as the search has asked for them.
    bounds: BTreeMap<Charged, CountBounds>,
    scratch: Scratch,
    deficit: Vec<i64>,
    resources: Vec<i64>,
    costs: Vec<EvictionCost>,
    limits: Vec<u32>,
    keys: Vec<u32>,
    pub(crate) nodes: u64,
}

impl PointSolver {
    /// What one, two, … instances on a host cost at least with what the lines charge, for `most`
    /// instances or as many as it can take.
    pub(crate) fn bounds(
        &mut self,
        hosts: &mut dyn Hosts,
        host: usize,
        most: u32,
        terms: &NodeConstraints,
    ) -> Result<CountBounds, SolverError> {
        let charged = terms.lines.iter().map(|(group, line)| (*group, line.slope));
        let name = (host, charged.filter(|(_, slope)| *slope > 0).collect());
        let mut bounds = self.bounds.get(&name).cloned().unwrap_or_default();
        while bounds.micros.len() < most as usize && !bounds.complete {
            let count = bounds.micros.len() as u32 + 1;
            let Some(here) = hosts.load(host, count) else {
                bounds.complete = true;
                break;
            };
            check(&here)?;
            let charge = |(candidate, cost): (usize, &EvictionCost)| {
                let group = here.groups.get(candidate).copied().unwrap_or(NO_GROUP);
                let slope = terms.lines.get(&group).map_or(0, |line| line.slope);
                EvictionCost::from_micros(cost.micros() + slope)
            };
            self.costs.clear();
            self.costs
                .extend(here.problem.costs.iter().enumerate().map(charge));
            let bound = lower_bound(&Problem {
                costs: &self.costs,
                ..here.problem
            });
            if bound == EvictionCost::MAX {
                bounds.complete = true;
                break;
            }
            let before = bounds.micros.last().copied().unwrap_or(0);
            bounds.micros.push(bound.micros().max(before));
        }
        self.bounds.insert(name, bounds.clone());
        Ok(bounds)
    }

    /// The cheapest set for so many instances on a host.
    pub(crate) fn solve(
        &mut self,
        hosts: &mut dyn Hosts,
        host: usize,
        count: u32,
        terms: &NodeConstraints,
        limits: SearchLimits,
    ) -> Result<SolvedPoint, SolverError> {
        let Some(here) = hosts.load(host, count) else {
            return Ok(SolvedPoint::Never);
        };
        check(&here)?;
        let extras = extras(&here, host, terms);
        let name = (host, count, extras);
        if let Some(point) = self.known.get(&name) {
            return Ok(point.clone());
        }
        self.load(&here, &name.2);
        let problem = Problem {
            deficit: &self.deficit,
            resources: &self.resources,
            costs: &self.costs,
            budgets: Budgets {
                limits: &self.limits,
                keys_per_candidate: here.problem.budgets.keys_per_candidate + 1,
                keys: &self.keys,
            },
            cutoff: None,
            ..here.problem
        };
        let left = limits.max_nodes.saturating_sub(self.nodes).max(1);
        let outcome = solve(
            &problem,
            &mut self.scratch,
            SearchLimits {
                max_nodes: left,
                ..limits
            },
        )?;
        let point = match outcome {
            CoverResult::NotNeeded => SolvedPoint::Set(Rc::new(entry(&here, &[], 0, true))),
            CoverResult::Solved(solution) => {
                let priced = solution.cost.micros();
                SolvedPoint::Set(Rc::new(entry(
                    &here,
                    solution.victims,
                    priced,
                    solution.optimal,
                )))
            }
            CoverResult::Infeasible(_) | CoverResult::NotBetter => SolvedPoint::Never,
            CoverResult::Undecided { .. } => SolvedPoint::Undecided,
        };
        self.nodes += self.scratch.stats().nodes + NODES_PER_SOLVE;
        self.known.insert(name, point.clone());
        Ok(point)
    }

    /// Fills the columns of the additive problem.
    fn load(&mut self, here: &HostProblem<'_>, extras: &[Extra]) {
        let problem = &here.problem;
        let width = problem.deficit.len();
        let places = problem.budgets.keys_per_candidate;
        self.deficit.clear();
        self.deficit.extend_from_slice(problem.deficit);
        self.limits.clear();
        self.limits.extend_from_slice(problem.budgets.limits);
        let rows: Vec<Key> = extras
            .iter()
            .filter(|extra| extra.1 > 0)
            .map(|extra| extra.0)
            .collect();
        self.deficit.extend(
            extras
                .iter()
                .filter(|extra| extra.1 > 0)
                .map(|extra| i64::from(extra.1)),
        );
        let mut group_key: BTreeMap<u32, (u32, u64)> = BTreeMap::new();
        for &(key, _, high, charge) in extras {
            match key {
                Key::Budget(budget) => self.limits[budget as usize] = high,
                Key::Group(group) => {
                    group_key.insert(group, (self.limits.len() as u32, charge));
                    self.limits.push(high);
                }
            }
        }
        self.resources.clear();
        self.costs.clear();
        self.keys.clear();
        for candidate in 0..problem.candidates() {
            let row = &problem.resources[candidate * width..(candidate + 1) * width];
            self.resources.extend_from_slice(row);
            // A candidate that frees nothing missing must not serve to fill a lower end.
            let helps = row
                .iter()
                .zip(problem.deficit)
                .any(|(&amount, &deficit)| amount > 0 && deficit > 0);
            let group = here.groups.get(candidate).copied().unwrap_or(NO_GROUP);
            for row in &rows {
                let is_member = match *row {
                    Key::Budget(budget) => problem
                        .budgets
                        .of(candidate)
                        .any(|key| key == budget as usize),
                    Key::Group(of) => of == group,
                };
                self.resources.push(i64::from(helps && is_member));
            }
            self.keys.extend_from_slice(
                &problem.budgets.keys[candidate * places..(candidate + 1) * places],
            );
            let (key, charge) = group_key.get(&group).copied().unwrap_or((NO_BUDGET, 0));
            self.keys.push(key);
            self.costs.push(EvictionCost::from_micros(
                problem.costs[candidate].micros() + charge,
            ));
        }
    }
}

/// What the terms say about the keys of a host, beyond the problem as it is.
fn extras(here: &HostProblem<'_>, host: usize, terms: &NodeConstraints) -> Vec<Extra> {
    if *terms == NodeConstraints::default() {
        return Vec::new();
    }
    let mut keys: BTreeSet<Key> = BTreeSet::new();
    for candidate in 0..here.problem.candidates() {
        keys.extend(
            here.problem
                .budgets
                .of(candidate)
                .map(|key| Key::Budget(key as u32)),
        );
    }
    let groups = here.groups.iter().filter(|group| **group != NO_GROUP);
    keys.extend(groups.map(|&group| Key::Group(group)));
    // Keeps a key that has a lower end but no candidate on this host: it makes the point
    // impossible.
    keys.extend(
        terms
            .ranges
            .keys()
            .filter(|(at, _)| *at == host)
            .map(|(_, key)| *key),
    );
    let told = keys.into_iter().map(|key| {
        let (low, high) = terms.range(host, key);
        match key {
            Key::Budget(budget) => {
                let limit = here.problem.budgets.limits[budget as usize];
                (key, low, terms.room(host, budget, limit), 0)
            }
            Key::Group(group) => (
                key,
                low,
                high,
                terms.lines.get(&group).map_or(0, |line| line.slope),
            ),
        }
    });
    told.filter(|&(key, low, high, charge)| {
        let limit = match key {
            Key::Budget(budget) => here.problem.budgets.limits[budget as usize],
            Key::Group(_) => u32::MAX,
        };
        (low, high, charge) != (0, limit, 0)
    })
    .collect()
}

/// A set as the search wants it.
fn entry(here: &HostProblem<'_>, victims: &[u32], priced: u64, optimal: bool) -> CheapestSet {
    CheapestSet {
        victims: victims.to_vec(),
        micros: victims
            .iter()
            .map(|&v| here.problem.costs[v as usize].micros())
            .sum(),
        priced,
        usage: usage(here, victims),
        optimal,
    }
}

/// How many victims of each key a set has.
fn usage(here: &HostProblem<'_>, victims: &[u32]) -> Vec<(Key, u32)> {
    let mut usage: BTreeMap<Key, u32> = BTreeMap::new();
    for &victim in victims {
        let of: BTreeSet<usize> = here.problem.budgets.of(victim as usize).collect();
        for budget in of {
            *usage.entry(Key::Budget(budget as u32)).or_default() += 1;
        }
        let group = here
            .groups
            .get(victim as usize)
            .copied()
            .unwrap_or(NO_GROUP);
        if group != NO_GROUP {
            *usage.entry(Key::Group(group)).or_default() += 1;
        }
    }
    usage.into_iter().collect()
}

/// The same set without idle members; only a search that was cut can have any.
pub(crate) fn polished(
    hosts: &mut dyn Hosts,
    host: usize,
    count: u32,
    of: &CheapestSet,
) -> Rc<CheapestSet> {
    let mut victims = of.victims.clone();
    let Some(here) = hosts.load(host, count) else {
        return Rc::new(CheapestSet {
            victims,
            usage: of.usage.clone(),
            ..*of
        });
    };
    drop_idle(&here.problem, &mut victims);
    Rc::new(entry(&here, &victims, of.priced, of.optimal))
}

fn check(here: &HostProblem<'_>) -> Result<(), SolverError> {
    here.problem.check()?;
    let micros: u128 = here
        .problem
        .costs
        .iter()
        .map(|cost| u128::from(cost.micros()))
        .sum();
    if micros > u128::from(EvictionCost::TOTAL_LIMIT.micros() / 2) {
        return Err(SolverError::CostOverflow { micros });
    }
    let (found, expected) = (here.groups.len(), here.problem.candidates());
    if found != 0 && found != expected {
        return Err(SolverError::ColumnLength {
            column: "groups",
            expected,
            found,
        });
    }
    Ok(())
}
