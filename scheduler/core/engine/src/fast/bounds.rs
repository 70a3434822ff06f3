//! Lower bounds of the eviction cost of a host, from cheap and coarse to expensive and fine.
//!
//! All three bounds use launch phases (see `PhaseTable`) and the amounts of the requested classes
//! that shapes free. None of them checks which instances may not leave: such instances only make
//! sets more expensive.
//!
//! # Why no bound exceeds a true cost, for any number of instances
//! - *Units.* The phases of now and of a launch are both rounded down, so their difference `used`
//!   exceeds the part of the period that the instance has really used by less than one unit. The
//!   integer `used - 1`, which may be -1, is below the cost.
//! - *Sums* are sums of integers. They are exact or they saturate, and each saturates on the side
//!   that makes its bound lower. No sum is in floating point, so no rounding grows with the number
//!   of instances.
//! - *Floating point* is left in two places, where each result comes from a fixed number of
//!   roundings: how many victims are needed at least ([`Bounder::fewest_victims`]), and the two
//!   products by which a price becomes integers ([`Bounder::raise`]). Both give away more than
//!   these roundings could have added.

use super::phases::{Clock, smallest_sums};
use super::survey::CompactDemand;
use crate::eligible_hosts::NO_VICTIMS_SUFFICE;
use crate::state::DecisionState;
use crate::table::{BLOCK, HostIndex, OTHER_SHAPE, WIDE};
use ebbtide_model::host_set::{HostSet, ones};
use smallvec::SmallVec;
use std::cmp::Ordering;

/// The bound of a host that is not to be looked at.
pub(super) const NEVER: u32 = u32::MAX;

/// How much dearer than the average unit the last unit of a cheap set is, about: where prices rise
/// evenly, up to twice as dear.
const MARGINAL: f32 = 1.6;

/// What bounds are worked out from.
pub(super) struct Bounder<'r, 's> {
    state: &'r DecisionState<'s>,
    wanted: &'r [CompactDemand<'s>],
    clock: &'r Clock,
    /// For each class that is asked for, what a victim of each shape frees of it.
    freed: Vec<Vec<i32>>,
}

impl<'r, 's> Bounder<'r, 's> {
    pub(super) fn new(
        state: &'r DecisionState<'s>,
        wanted: &'r [CompactDemand<'s>],
        clock: &'r Clock,
    ) -> Self {
        let shapes = state.table.shape_slots().min(usize::from(OTHER_SHAPE));
        let freed = |want: &CompactDemand<'_>| {
            let all = (0..shapes).map(|shape| state.table.shape_frees(shape, want.index));
            all.collect()
        };
        Self {
            state,
            wanted,
            clock,
            freed: wanted.iter().map(freed).collect(),
        }
    }

    /// A bound for each of `hosts`, by slot, in units of the clock: at least as many victims are
    /// needed as would be of the largest there is, and so many of the cheapest cost as much.
    pub(super) fn all(&self, hosts: &HostSet) -> Vec<u32> {
        let table = self.state.table;
        let phase_table = table.phase_table();
        let mut all = vec![NEVER; hosts.words().len() * BLOCK];
        for (block, &word) in hosts.words().iter().enumerate() {
            if word == 0 {
                continue;
            }
            let mut victims = self.fewest_victims(block);
            let impossible = self.demand_fewest(block, &mut victims);
            let bounds = &mut all[block * BLOCK..(block + 1) * BLOCK];
            for (part, bounds) in bounds.as_chunks_mut::<WIDE>().0.iter_mut().enumerate() {
                let eight = block * (BLOCK / WIDE) + part;
                let mask = (word >> (part * WIDE)) & 0xff;
                if mask == 0 {
                    continue;
                }
                let victims: &[u32; WIDE] = &victims.as_chunks::<WIDE>().0[part];
                let counts = table.counts().preemptible_of_eight(eight);
                let sums = smallest_sums(
                    phase_table.phases(eight),
                    &counts,
                    victims,
                    self.clock.phase,
                );
                for lane in 0..WIDE {
                    let bound = sums[lane].saturating_sub(victims[lane]).min(NEVER - 1);
                    let skipped = if mask >> lane & 1 == 1 { 0 } else { NEVER };
                    bounds[lane] = bound | skipped;
                }
                if phase_table.eight_launched_by(eight, self.clock.now_ms) {
                    continue;
                }
                for lane in ones(mask) {
                    let host = HostIndex::new(eight * WIDE + lane);
                    if !phase_table.launched_by(host, self.clock.now_ms) {
                        bounds[lane] = 0;
                    }
                }
            }
            for lane in ones(impossible & word) {
                // Solved only if nothing else is left, to tell why.
                bounds[lane] = NEVER - 1;
            }
        }
        for (host, _) in self.state.touched() {
            // What the columns say is not what this request has left of the host.
            if hosts.has(host.at()) {
                all[host.at()] = 0;
            }
        }
        all
    }

    /// Raises the numbers of victims to those that the judge of the request demands. Returns the
    /// hosts of the block on which none suffice, as bits.
    fn demand_fewest(&self, block: usize, victims: &mut [u32; BLOCK]) -> u64 {
        let Some(fewest) = self.state.fewest() else {
            return 0;
        };
        let start = block * BLOCK;
        let here = &fewest[start.min(fewest.len())..fewest.len().min(start + BLOCK)];
        let mut impossible = 0;
        for (at, (&fewest, victims)) in here.iter().zip(victims).enumerate() {
            if fewest == NO_VICTIMS_SUFFICE {
                impossible |= 1 << at;
            } else {
                *victims = fewest.max(*victims);
            }
        }
        impossible
    }

    /// How many victims at least each host of a block needs: one, or as many as the largest would
    /// have to be.
    fn fewest_victims(&self, block: usize) -> [u32; BLOCK] {
        let mut most = [1.0_f32; BLOCK];
        for want in self.wanted {
            let future = want.class.future.block(block);
            let largest = want.class.largest.block(block);
            for at in 0..BLOCK {
                let missing = (want.amount - future[at]) as f32;
                // Nothing to give at all is no bound here: the host is solved, or never looked at.
                let each = if largest[at] > 0 {
                    largest[at] as f32
                } else {
                    1e-3
                };
                // Three roundings by 2^-24 each, of both numbers and of the quotient, and one of
                // the product: less by more than these could have added, and from a million on by
                // more than the rounding in `whole`.
                let count = missing / each * (1.0 - 1e-6);
                most[at] = if count > most[at] { count } else { most[at] };
            }
        }
        most.map(whole)
    }

    /// A bound from the host's own instances, in units of the clock: in the scarcest class the
    /// cheapest by unit, the last of them in part; in the others, too, if that is not above the
    /// limit.
    pub(super) fn fractional(&self, host: HostIndex, limit: u32) -> u32 {
        let regular = self.state.pending(host).is_none()
            && self
                .state
                .table
                .phase_table()
                .launched_by(host, self.clock.now_ms);
        if !regular {
            return 0;
        }
        let mut classes: SmallVec<[(f32, usize); 4]> = SmallVec::new();
        for (position, want) in self.wanted.iter().enumerate() {
            let missing = want.amount - want.class.future.get(host.at());
            if missing > 0 {
                let largest = want.class.largest.get(host.at()).max(1);
                classes.push((missing as f32 / largest as f32, position));
            }
        }
        classes.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        let mut best = 0;
        for &(_, position) in &classes {
            best = best.max(self.fractional_of(host, position));
            if best > limit {
                break;
            }
        }
        best
    }

    /// The fractional knapsack: the cheapest by unit are taken whole, the last one in part. All in
    /// integers, the order included, which compares `cost / amount` crosswise: below 2^16 times
    /// below 2^31.
    fn fractional_of(&self, host: HostIndex, position: usize) -> u32 {
        let table = self.state.table;
        let want = &self.wanted[position];
        let missing = want.amount - want.class.future.get(host.at());
        let mut offers: SmallVec<[Offer; 64]> = SmallVec::new();
        let count = table.counts().preemptible[host.at()];
        for (phase, shape) in table.phase_table().of_host(host, count) {
            let amount = if shape == OTHER_SHAPE {
                want.class.largest.get(host.at())
            } else {
                self.freed[position][usize::from(shape)]
            };
            let amount = u32::try_from(amount.min(missing)).unwrap_or(0);
            if amount > 0 {
                let cost = self.clock.phase.wrapping_sub(phase).saturating_sub(1);
                offers.push(Offer {
                    cost: u32::from(cost),
                    amount,
                });
            }
        }
        offers.sort_unstable_by(Offer::by_price);
        let (mut left, mut sum) = (u32::try_from(missing).unwrap_or(0), 0_u64);
        for offer in &offers {
            if offer.amount >= left {
                // The part of the last one, rounded down.
                sum += u64::from(offer.cost) * u64::from(left) / u64::from(offer.amount);
                break;
            }
            sum += u64::from(offer.cost);
            left -= offer.amount;
        }
        u32::try_from(sum).unwrap_or(NEVER).min(NEVER - 1)
    }

    /// Raises the bounds that are not above the limit, where prices say so: with any price of a
    /// unit of a class, no set covers what is missing for less than the price of it, less what each
    /// instance would be sold below that price (Lagrange). The price is a little more than what the
    /// last of the best hosts, which are among `solved`, pays.
    ///
    /// In integers: let `all` be at most what the missing amount is worth at this price, and let
    /// the worth of an instance be at least what the part of its amount that is missing is worth,
    /// or `all`. Then the worths of every sufficient set add up to `all` at least, and its cost is
    /// at least `all` minus the sum of worth minus cost, wherever that is positive, over all
    /// instances of the host.
    pub(super) fn raise(
        &self,
        hosts: &HostSet,
        bounds: &mut [u32],
        limit: u32,
        solved: &[HostIndex],
    ) {
        let Some((position, price)) = self.price(limit, solved) else {
            return;
        };
        let class = self.wanted[position].class;
        let worth = self.freed[position].iter();
        let worth: Vec<i32> = worth.map(|&freed| worth_at_least(freed, price)).collect();
        for (block, &word) in hosts.words().iter().enumerate() {
            if word == 0 {
                continue;
            }
            let future = class.future.block(block).as_chunks::<WIDE>().0;
            let largest = class.largest.block(block).as_chunks::<WIDE>().0;
            let bounds = &mut bounds[block * BLOCK..(block + 1) * BLOCK];
            for (part, bounds) in bounds.as_chunks_mut::<WIDE>().0.iter_mut().enumerate() {
                if bounds.iter().all(|bound| *bound > limit) {
                    continue;
                }
                let all = future[part]
                    .map(|free| worth_at_most((self.wanted[position].amount - free).max(0), price));
                let others = largest[part].map(|largest| worth_at_least(largest, price));
                let raised = self.unsaved(block * (BLOCK / WIDE) + part, &worth, &others, &all);
                for lane in 0..WIDE {
                    let raised = raised[lane].unsigned_abs();
                    let bound = &mut bounds[lane];
                    // Zero may mean that nothing is known.
                    if *bound != 0 && *bound <= limit && raised > *bound {
                        *bound = raised;
                    }
                }
            }
        }
    }

    /// What is left of `all`, on each of eight hosts, after the instances that are sold below their
    /// worth have saved the difference; not below zero. No number here is beyond ±(2^30 + 1), so no
    /// step overflows.
    fn unsaved(
        &self,
        eight: usize,
        worth: &[i32],
        others: &[i32; WIDE],
        all: &[i32; WIDE],
    ) -> [i32; WIDE] {
        let table = self.state.table;
        let counts = table.counts().preemptible_of_eight(eight);
        let mut left = *all;
        for (row, (phases, shapes)) in (0_u32..).zip(table.phase_table().rows(eight)) {
            let known = |lane: usize| worth.get(usize::from(shapes[lane]));
            let worth: [i32; WIDE] =
                std::array::from_fn(|lane| known(lane).copied().unwrap_or(others[lane]));
            for lane in 0..WIDE {
                let worth = if worth[lane] < all[lane] {
                    worth[lane]
                } else {
                    all[lane]
                };
                let cost = i32::from(self.clock.phase.wrapping_sub(phases[lane])) - 1;
                let saves = worth - cost;
                let counts = row < counts[lane] && saves > 0;
                let rest = left[lane] - if counts { saves } else { 0 };
                left[lane] = if rest > 0 { rest } else { 0 };
            }
        }
        left
    }

    /// The scarcest class on the hosts that are solved, and a price for it. Any class and any price
    /// give bounds that hold; these give high ones.
    fn price(&self, limit: u32, solved: &[HostIndex]) -> Option<(usize, f64)> {
        if limit >= NEVER - 1 {
            return None;
        }
        let scarce = |want: &CompactDemand<'_>| -> (f32, f32) {
            let missing = solved.iter().map(|host| {
                let missing = (want.amount - want.class.future.get(host.at())).max(0) as f32;
                let largest = want.class.largest.get(host.at()).max(1) as f32;
                (missing / largest, missing)
            });
            missing.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
        };
        let sums = self.wanted.iter().map(scarce).enumerate();
        let (position, (_, missing)) = sums.max_by(|a, b| a.1.0.total_cmp(&b.1.0))?;
        let each = missing / solved.len() as f32;
        (each > 0.0).then(|| (position, f64::from(MARGINAL * limit as f32 / each)))
    }
}

/// What an instance frees of the class that is looked at, and what it costs at least, in units of
/// the clock.
#[derive(Clone, Copy)]
struct Offer {
    cost: u32,
    amount: u32,
}

impl Offer {
    /// The cheaper by unit first.
    fn by_price(&self, other: &Self) -> Ordering {
        let here = u64::from(self.cost) * u64::from(other.amount);
        here.cmp(&(u64::from(other.cost) * u64::from(self.amount)))
    }
}

/// Worths are held below this, so that the difference of two, and of one and a phase, is a 32-bit
/// number. Less than all that is missing is worth proves less, and an instance that is worth that
/// much counts as worth all of it.
const MOST_WORTH: f64 = 1_073_741_824.0;

/// A product of an amount and a price differs from the true one by a factor of 1 ± 2^-53 at most,
/// and so does the product with this.
const ROUNDINGS: f64 = 1e-15;

/// At most the price of an amount.
fn worth_at_most(amount: i32, price: f64) -> i32 {
    (f64::from(amount) * price * (1.0 - ROUNDINGS)).min(MOST_WORTH) as i32
}

/// At least the price of an amount, or the most that a worth can be.
fn worth_at_least(amount: i32, price: f64) -> i32 {
    let worth = f64::from(amount) * price * (1.0 + ROUNDINGS);
    worth.ceil().min(MOST_WORTH) as i32
}

/// A number not above the next whole one, and below it by a hair at most: small numbers are rounded
/// up. Adding 2^23 leaves no digits behind the point of a short float, and its last bits are then
/// the number.
///
/// The first sum is rounded by 2^-24 of it at most, the second by a half. Below 1,600 that makes
/// less than one; above, less than one and the margin of 10^-6 that was taken off.
fn whole(count: f32) -> u32 {
    const SHIFT: f32 = 8_388_608.0;
    const MOST: f32 = 4_000_000.0;
    let count = if count < MOST { count } else { MOST };
    (count + 0.4999 + SHIFT).to_bits() - SHIFT.to_bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_up_but_for_a_hair() {
        for n in 1..1000_u16 {
            let exact = f32::from(n);
            assert_eq!(whole(exact * (1.0 - 1e-6)), u32::from(n));
            assert_eq!(whole(exact), u32::from(n));
            assert_eq!(whole(exact + 0.01), u32::from(n) + 1);
            assert_eq!(whole(exact + 0.99), u32::from(n) + 1);
        }
        assert_eq!(whole(f32::INFINITY), 4_000_000);
    }
}
