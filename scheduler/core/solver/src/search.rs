//! Branch and bound over the counts of the classes.
//!
//! A node is a range for each class's count. Each node is propagated (which victims every set
//! contains, which budgets are full), relaxed (`relax`), bounded exactly, rounded to a sufficient
//! set, thinned by reduced costs, and split at the class that is most fractional.
//!
//! *Proof of the bound.* For any prices `p ≥ 0` of rows and budgets, every set `S` of the node has
//! `w(S) ≥ p·deficit − p·room + Σ_classes min_k (prefix weight of k − k · value)`, because it
//! covers the rows and keeps the budgets. The right side is computed in integers (`node`) from
//! prices rounded down, hence no rounding of the simplex method can cut a set that belongs to the
//! answer.
//!
//! *Equals.* The search for the weight (`SearchGoal::Lightest`) cuts whatever cannot be lighter
//! than the
//! best set, and remembers the smallest bound it has cut. If that is above the best weight, the
//! best set is the only one of its weight; otherwise `ties` decides by UUID.

use crate::classes::Classes;
use crate::model::{Model, Objective};
use crate::relax::{ClassBounds, Relaxation};
use crate::tail::Tail;

/// The limit of nodes is a limit of time: a node with more open classes than this counts as
/// several.
const CLASSES_PER_NODE: u64 = 64;
/// Nodes with so many combinations of counts are enumerated. Measured on 40 distinct vectors: from
/// 2^10 to 2^16 the time falls by a third, easy problems do not mind.
const SMALL_NODE: u64 = 1 << 14;
/// Budgets get rows in the relaxation only when its solution exceeds them, and at most so many.
pub(crate) const MAX_BUDGET_ROWS: usize = 32;
/// Closer to a whole number is whole.
pub(crate) const WHOLE: f64 = 1e-7;

/// What to look for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SearchGoal {
    /// The lightest set.
    Lightest,
    /// Any set that weighs no more than the best one.
    AnyAsGood,
}

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SearchEnd {
    /// Everything was looked at (or, for `AnyAsGood`, one was found).
    Exhausted,
    /// Out of nodes. No set that was not looked at has a smaller scaled weight.
    OutOfNodes { bound: i128 },
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    trail: u32,
    class: u32,
    /// Range of the second child.
    low: u32,
    high: u32,
    bound: i128,
    second: bool,
}

enum Step {
    Pruned,
    Found,
    Split {
        class: u32,
        at: u32,
        upper_first: bool,
        bound: i128,
    },
}

/// State of the branch and bound; reused from call to call.
#[derive(Debug, Default)]
pub(crate) struct Search {
    pub(crate) model: Model,
    pub(crate) relaxation: Relaxation,
    /// Range of each class's count at the current node.
    pub(crate) low: Vec<u32>,
    pub(crate) high: Vec<u32>,
    /// Classes that were open when the relaxation was loaded; rows and budgets reduced by the
    /// others, amounts cut at what is then missing.
    pub(crate) open: Vec<u32>,
    pub(crate) amounts: Vec<i64>,
    pub(crate) missing: Vec<i64>,
    pub(crate) room: Vec<u32>,
    /// The fixed classes alone exceed a budget.
    pub(crate) overfull: bool,
    pub(crate) fixed_weight: u128,
    pub(crate) fixed_scaled: i128,
    pub(crate) price: Vec<i128>,
    pub(crate) value: Vec<i128>,
    trail: Vec<(u32, u32, u32)>,
    stack: Vec<Frame>,
    /// The best set so far, if `found`; only sets below `best_weight` are better.
    pub(crate) best: Vec<u32>,
    pub(crate) best_weight: u128,
    pub(crate) found: bool,
    pub(crate) goal: Option<SearchGoal>,
    /// Whether the last run of `AnyAsGood` found a set.
    pub(crate) hit: bool,
    /// Smallest scaled bound of anything that was cut.
    pub(crate) least_cut: i128,
    pub(crate) nodes: u64,
    pub(crate) sums: Vec<i128>,
    pub(crate) used: Vec<u32>,
    pub(crate) trial: Vec<u32>,
    pub(crate) tail: Tail,
    pub(crate) removable: Vec<(i128, u32)>,
}

impl Search {
    /// Takes over the classes. Only sets of cost up to `cutoff` are of interest; `incumbent` is one
    /// that is known. Also computes how many victims it takes and makes that a row.
    pub(crate) fn load(
        &mut self,
        classes: &Classes,
        cutoff: Option<u64>,
        incumbent: Option<&[u32]>,
    ) {
        self.relaxation.pivots = 0;
        self.nodes = 0;
        self.relaxation.budget_rows.clear();
        self.model.build(classes, Objective::Count, 0);
        self.start(None, None);
        let victims = self.victims_needed();
        self.relaxation.budget_rows.clear();
        self.model.build(
            classes,
            Objective::Rank,
            if victims > 1 { victims } else { 0 },
        );
        self.start(cutoff, incumbent);
    }

    fn start(&mut self, cutoff: Option<u64>, incumbent: Option<&[u32]>) {
        self.low.clear();
        self.low.resize(self.model.classes(), 0);
        self.high.clone_from(&self.model.len);
        self.best.clear();
        self.found = incumbent.is_some();
        self.best_weight = match (incumbent, cutoff) {
            (Some(counts), _) => {
                self.best.extend_from_slice(counts);
                self.model.set_weight(counts)
            }
            (None, Some(micros)) => self.model.weight_above(micros),
            (None, None) => self.model.total + 1,
        };
        self.least_cut = i128::MAX;
        self.goal = Some(SearchGoal::Lightest);
    }

    /// A lower bound for the number of victims, from the relaxation that counts them.
    fn victims_needed(&mut self) -> u32 {
        self.activate();
        let bounds = ClassBounds {
            low: &self.low,
            high: &self.high,
        };
        let limit = 2.0 * self.ceiling() as f64;
        self.relaxation.solve(&self.model, bounds, limit);
        let bound = self.exact_bound();
        u32::try_from(self.model.unscale(bound)).unwrap_or(0)
    }

    /// Folds the classes whose count is fixed into what is missing, and reloads the relaxation with
    /// the others.
    pub(crate) fn activate(&mut self) {
        let (model, rows) = (&self.model, self.model.rows);
        self.open.clear();
        self.missing.clone_from(&model.deficit);
        self.room.clone_from(&model.limits);
        (self.fixed_weight, self.fixed_scaled) = (0, 0);
        self.overfull = false;
        for class in 0..model.classes() {
            let count = self.low[class];
            if count < self.high[class] {
                self.open.push(class as u32);
                continue;
            }
            if count == 0 {
                continue;
            }
            self.fixed_weight += model.weight(class, count);
            self.fixed_scaled += model.scaled_weight(class, count);
            for (missing, &amount) in self.missing.iter_mut().zip(model.amounts_of(class)) {
                *missing = (*missing - amount.saturating_mul(i64::from(count))).max(0);
            }
            for &budget in model.budgets_of(class) {
                let room = &mut self.room[budget as usize];
                self.overfull |= *room < count;
                *room = room.saturating_sub(count);
            }
        }
        self.amounts.clear();
        self.amounts.extend_from_slice(&model.amounts);
        for &class in &self.open {
            let start = class as usize * rows;
            for (amount, &missing) in self.amounts[start..start + rows]
                .iter_mut()
                .zip(&self.missing)
            {
                *amount = (*amount).min(missing);
            }
        }
        self.relaxation
            .load(model, &self.open, &self.amounts, &self.missing, &self.room);
    }

    /// Searches the ranges `low..=high`, which it narrows. What it finds is in `best`.
    pub(crate) fn run(&mut self, goal: SearchGoal, max_nodes: u64) -> SearchEnd {
        self.goal = Some(goal);
        self.hit = false;
        self.stack.clear();
        self.trail.clear();
        let mut step = self.root();
        loop {
            match step {
                Step::Found => return SearchEnd::Exhausted,
                Step::Split {
                    class,
                    at,
                    upper_first,
                    bound,
                } => {
                    let (low, high) = (self.low[class as usize], self.high[class as usize]);
                    let (first, second) = if upper_first {
                        ((at + 1, high), (low, at))
                    } else {
                        ((low, at), (at + 1, high))
                    };
                    let trail = self.trail.len() as u32;
                    let (low, high) = second;
                    self.stack.push(Frame {
                        trail,
                        class,
                        low,
                        high,
                        bound,
                        second: false,
                    });
                    self.narrow(class, first.0, first.1);
                }
                Step::Pruned => {
                    if !self.backtrack() {
                        return SearchEnd::Exhausted;
                    }
                }
            }
            if self.nodes >= max_nodes {
                return SearchEnd::OutOfNodes {
                    bound: self.open_bound(),
                };
            }
            step = self.node();
        }
    }

    /// The first node, again and again while it fixes much: with the fixed classes gone the rest is
    /// cut at what is still missing, which tightens the relaxation.
    fn root(&mut self) -> Step {
        loop {
            self.activate();
            let before = self.open.len();
            let mut step = self.node();
            while matches!(step, Step::Split { .. }) && self.add_budget_rows() {
                self.activate();
                step = self.node();
            }
            let after = self
                .open
                .iter()
                .filter(|&&class| self.is_open(class))
                .count();
            // What the root has cut stays cut.
            self.trail.clear();
            if !matches!(step, Step::Split { .. }) || 4 * after > 3 * before {
                return step;
            }
        }
    }

    /// Whether plain enumeration of the node is in order.
    fn is_small(&self) -> bool {
        let mut sets = 1u64;
        for &class in &self.open {
            let c = class as usize;
            sets = sets.saturating_mul(u64::from(self.high[c] - self.low[c]) + 1);
        }
        sets <= SMALL_NODE
    }

    fn is_open(&self, class: u32) -> bool {
        self.low[class as usize] < self.high[class as usize]
    }

    /// Goes to the next node that was left aside. False if there is none.
    fn backtrack(&mut self) -> bool {
        while let Some(frame) = self.stack.last_mut() {
            for (class, low, high) in self.trail.drain(frame.trail as usize..).rev() {
                self.low[class as usize] = low;
                self.high[class as usize] = high;
            }
            if !frame.second {
                frame.second = true;
                let Frame {
                    class, low, high, ..
                } = *frame;
                self.narrow(class, low, high);
                return true;
            }
            self.stack.pop();
        }
        false
    }

    /// No set that is still to be looked at has a smaller scaled weight.
    fn open_bound(&self) -> i128 {
        let aside = self
            .stack
            .iter()
            .filter(|frame| !frame.second)
            .map(|frame| frame.bound);
        let here = self.stack.last().map_or(0, |frame| frame.bound);
        aside.fold(here, i128::min)
    }

    pub(crate) fn narrow(&mut self, class: u32, low: u32, high: u32) {
        let c = class as usize;
        self.trail.push((class, self.low[c], self.high[c]));
        (self.low[c], self.high[c]) = (low, high);
    }

    /// Nothing above this scaled weight is of interest.
    pub(crate) fn ceiling(&self) -> i128 {
        match self.goal {
            Some(SearchGoal::AnyAsGood) => self.model.scale(self.best_weight),
            _ => self.model.scale(self.best_weight.saturating_sub(1)),
        }
    }

    fn node(&mut self) -> Step {
        self.nodes += 1 + self.open.len() as u64 / CLASSES_PER_NODE;
        if self.best_weight == 0 || !self.propagate() {
            return Step::Pruned;
        }
        if self.covered_by_low() {
            // Whatever comes on top only makes it heavier.
            return if self.offer() {
                Step::Found
            } else {
                Step::Pruned
            };
        }
        let limit = (self.ceiling() - self.fixed_scaled) as f64;
        let bounds = ClassBounds {
            low: &self.low,
            high: &self.high,
        };
        self.relaxation
            .solve(&self.model, bounds, limit * (1.0 + 1e-9));
        let mut bound = self.exact_bound();
        if bound > self.ceiling() {
            self.least_cut = self.least_cut.min(bound);
            return Step::Pruned;
        }
        if self.round() {
            if self.offer() {
                return Step::Found;
            }
            if bound > self.ceiling() {
                self.least_cut = self.least_cut.min(bound);
                return Step::Pruned;
            }
        }
        self.thin(bound);
        if self.is_small() {
            return if self.enumerate(bound) {
                Step::Found
            } else {
                Step::Pruned
            };
        }
        if let Some(frame) = self.stack.last() {
            bound = bound.max(frame.bound);
        }
        self.choose(bound)
    }

    /// Splits at the most fractional class, else at the first that is still open, beside the
    /// relaxation's solution.
    fn choose(&mut self, bound: i128) -> Step {
        let bounds = ClassBounds {
            low: &self.low,
            high: &self.high,
        };
        let mut split = None;
        let mut most = WHOLE;
        let mut any = None;
        for (position, &class) in self.open.iter().enumerate() {
            let c = class as usize;
            if self.low[c] == self.high[c] {
                continue;
            }
            let fraction = self.relaxation.fraction(position, bounds);
            any = any.or(Some((class, fraction.member)));
            let distance = fraction.taken.min(1.0 - fraction.taken);
            if distance > most {
                most = distance;
                split = Some((class, fraction.member, fraction.taken > 0.5));
            }
        }
        if let Some((class, at, upper_first)) = split {
            return Step::Split {
                class,
                at,
                upper_first,
                bound,
            };
        }
        match any {
            Some((class, count)) => {
                let (low, high) = (self.low[class as usize], self.high[class as usize]);
                let at = count.clamp(low, high - 1);
                Step::Split {
                    class,
                    at,
                    upper_first: count > at,
                    bound,
                }
            }
            // Every count is fixed: the node is one set.
            None if self.covered_by_low() && self.trial_within_budgets() => {
                if self.offer() {
                    Step::Found
                } else {
                    Step::Pruned
                }
            }
            None => Step::Pruned,
        }
    }
}
