//! Plain enumeration of counts, for the usual host: a handful of flavors, a small deficit.
//!
//! Depth first over the classes in canonical order, for each one 0, 1, 2, … members, with one
//! bound: what is still missing of a resource class times the cheapest price of a unit among the
//! classes to come. The last level needs no branching. It stops after a fixed number of nodes; the
//! branch and bound (`search`) then takes over with whatever was found.
//!
//! The bound is computed in floating point on the packed weight and cuts only where it exceeds the
//! best set by more than a relative 10^-9, far above the rounding of the few positive terms in it.
//! So no set that is as good as the best is ever cut, and equals are compared exactly, down to the
//! UUIDs.

#![allow(
    clippy::needless_range_loop,
    reason = "loops over a constant number of rows of several arrays are unrolled by the compiler"
)]

use crate::classes::Classes;

/// Most missing resource classes that this enumeration is compiled for.
pub(crate) const MAX_ROWS: usize = 8;
/// Beyond so many classes the enumeration nearly always runs out of nodes.
pub(crate) const MAX_CLASSES: usize = 24;

const SLACK: f64 = 1.0 + 1e-9;
/// Price of a resource class that no candidate offers. It is finite, so that zero times it is zero.
const UNAVAILABLE: f64 = 1e300;

/// Buffers of the enumeration and its best set.
#[derive(Debug, Default)]
pub(crate) struct Enumeration {
    /// Cheapest price and largest sum for each row among the classes from a position on.
    price: Vec<f64>,
    reach: Vec<i64>,
    counts: Vec<u32>,
    room: Vec<u32>,
    uuids: [Vec<u128>; 2],
    /// Members of each class in the best set. Meaningful if `found`.
    pub(crate) best: Vec<u32>,
    pub(crate) best_weight: u128,
    pub(crate) found: bool,
    pub(crate) nodes: u64,
}

impl Enumeration {
    /// Searches for the best set lighter than `below`. Says whether the search was exhausted, that
    /// is, whether `found` and `best` are the last word.
    pub(crate) fn run(
        &mut self,
        classes: &Classes,
        uuids: &[u128],
        below: u128,
        max_nodes: u32,
    ) -> bool {
        self.found = false;
        self.best_weight = below;
        self.nodes = 0;
        if classes.count() > MAX_CLASSES || max_nodes == 0 {
            return false;
        }
        match classes.row_count() {
            1 => self.run_rows::<1>(classes, uuids, max_nodes),
            2 => self.run_rows::<2>(classes, uuids, max_nodes),
            3 => self.run_rows::<3>(classes, uuids, max_nodes),
            4 => self.run_rows::<4>(classes, uuids, max_nodes),
            5 => self.run_rows::<5>(classes, uuids, max_nodes),
            6 => self.run_rows::<6>(classes, uuids, max_nodes),
            7 => self.run_rows::<7>(classes, uuids, max_nodes),
            MAX_ROWS => self.run_rows::<MAX_ROWS>(classes, uuids, max_nodes),
            _ => false,
        }
    }

    fn run_rows<const ROWS: usize>(
        &mut self,
        classes: &Classes,
        uuids: &[u128],
        max_nodes: u32,
    ) -> bool {
        let count = classes.count();
        self.counts.clear();
        self.counts.resize(count, 0);
        self.best.clear();
        self.best.resize(count, 0);
        self.room.clear();
        self.room.extend_from_slice(&classes.limits);
        self.price.clear();
        self.price.resize((count + 1) * ROWS, UNAVAILABLE);
        self.reach.clear();
        self.reach.resize((count + 1) * ROWS, 0);
        for class in (0..count).rev() {
            let members = classes.members(class);
            let cheapest = to_f64(members[0].weight);
            let amounts = classes.amounts_of(class);
            for row in 0..ROWS {
                let at = class * ROWS + row;
                let amount = amounts[row];
                let (mut price, mut reach) = (self.price[at + ROWS], self.reach[at + ROWS]);
                if amount > 0 {
                    price = price.min(cheapest / amount as f64);
                    reach = reach.saturating_add(amount.saturating_mul(members.len() as i64));
                }
                (self.price[at], self.reach[at]) = (price, reach);
            }
        }
        let mut deficit = [0; ROWS];
        deficit.copy_from_slice(&classes.deficit);
        let mut run = Run {
            classes,
            uuids,
            enumeration: self,
            limit: 0.0,
            max_nodes: u64::from(max_nodes),
        };
        run.limit = to_f64(run.enumeration.best_weight) * SLACK;
        run.uniform_sets(&deficit);
        run.descend::<ROWS>(0, deficit, 0);
        run.enumeration.nodes <= u64::from(max_nodes)
    }
}

struct Run<'a> {
    classes: &'a Classes,
    uuids: &'a [u128],
    enumeration: &'a mut Enumeration,
    /// Cut what is above.
    limit: f64,
    max_nodes: u64,
}

impl Run<'_> {
    /// First sets to compare with: for each class that covers everything alone, its prefix. The
    /// members were cut at just that number.
    fn uniform_sets(&mut self, deficit: &[i64]) {
        for class in 0..self.classes.count() {
            let members = self.classes.members(class);
            let covers = self
                .classes
                .amounts_of(class)
                .iter()
                .zip(deficit)
                .all(|(&amount, &deficit)| amount.saturating_mul(members.len() as i64) >= deficit);
            let budgets = self.classes.budgets_of(class);
            let fits =
                |&budget: &u32| self.enumeration.room[budget as usize] as usize >= members.len();
            if covers && budgets.iter().all(fits) {
                let weight = members.iter().map(|item| item.weight).sum();
                self.enumeration.counts[class] = members.len() as u32;
                self.accept(weight);
                self.enumeration.counts[class] = 0;
            }
        }
    }

    /// Tries all counts of the class at `position` and of those behind it.
    fn descend<const ROWS: usize>(&mut self, position: usize, missing: [i64; ROWS], weight: u128) {
        self.enumeration.nodes += 1;
        if self.enumeration.nodes > self.max_nodes {
            return;
        }
        let base = position * ROWS;
        let mut bound = 0.0f64;
        for row in 0..ROWS {
            if missing[row] > self.enumeration.reach[base + row] {
                return;
            }
            bound = bound.max(missing[row] as f64 * self.enumeration.price[base + row]);
        }
        if to_f64(weight) + bound > self.limit {
            return;
        }
        let last = position + 1 == self.classes.count();
        let amounts = self.classes.amounts_of(position);
        let members = self.classes.members(position);
        let (mut missing, mut weight, mut taken) = (missing, weight, 0);
        loop {
            if !last {
                self.enumeration.counts[position] = taken as u32;
                self.descend::<ROWS>(position + 1, missing, weight);
                if self.enumeration.nodes > self.max_nodes {
                    return;
                }
            }
            let Some(next) = members.get(taken) else {
                break;
            };
            weight += next.weight;
            if weight > self.enumeration.best_weight || !self.enter(position) {
                break;
            }
            taken += 1;
            let (mut helps, mut left) = (0, 0);
            for row in 0..ROWS {
                helps |= missing[row].min(amounts[row]);
                missing[row] = (missing[row] - amounts[row]).max(0);
                left |= missing[row];
            }
            if left == 0 {
                self.enumeration.counts[position] = taken as u32;
                self.accept(weight);
                break;
            }
            if helps == 0 {
                break;
            }
        }
        self.enumeration.counts[position] = 0;
        for &budget in self.classes.budgets_of(position) {
            self.enumeration.room[budget as usize] += taken as u32;
        }
    }

    /// Takes one place in each budget of the class, or none if one is full.
    fn enter(&mut self, class: usize) -> bool {
        let budgets = self.classes.budgets_of(class);
        if budgets
            .iter()
            .any(|&budget| self.enumeration.room[budget as usize] == 0)
        {
            return false;
        }
        for &budget in budgets {
            self.enumeration.room[budget as usize] -= 1;
        }
        true
    }

    /// `counts` is a sufficient set: keeps it if it ranks first.
    fn accept(&mut self, weight: u128) {
        let enumeration = &mut *self.enumeration;
        let better = weight < enumeration.best_weight
            || (weight == enumeration.best_weight && enumeration.found && {
                let [mine, best] = &mut enumeration.uuids;
                sorted_uuids(self.classes, self.uuids, &enumeration.counts, mine);
                sorted_uuids(self.classes, self.uuids, &enumeration.best, best);
                mine < best
            });
        if better {
            enumeration.best.copy_from_slice(&enumeration.counts);
            enumeration.best_weight = weight;
            enumeration.found = true;
            self.limit = to_f64(weight) * SLACK;
        }
    }
}

fn sorted_uuids(classes: &Classes, uuids: &[u128], counts: &[u32], out: &mut Vec<u128>) {
    out.clear();
    for (class, &count) in counts.iter().enumerate() {
        let members = &classes.members(class)[..count as usize];
        out.extend(members.iter().map(|item| uuids[item.candidate as usize]));
    }
    out.sort_unstable();
}

/// A packed weight, rounded; two short conversions instead of the library call for 128 bits.
fn to_f64(weight: u128) -> f64 {
    const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;
    // Weights are below 2^125 (`Problem::check`); only a missing cutoff is larger.
    (weight >> 64) as u64 as f64 * TWO_TO_64 + weight as u64 as f64
}
