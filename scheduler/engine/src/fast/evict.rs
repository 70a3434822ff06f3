//! Whom to evict, when nobody has room: the policy `tiered` over all hosts, without pricing everybody first.
//!
//! 1. Every host gets a lower bound of what room on it costs. At least *k* victims are needed where *k* times the largest amount that any of
//!    them frees first covers what is missing; so the *k* cheapest of the host bound the cost. For a cost module that
//!    counts a part of the billing period the phases of eight hosts are sorted side by side (see `Lanes`).
//! 2. The hosts with the lowest bounds are solved; what the last one that matters costs is the first cutoff.
//! 3. All hosts whose bound is not above the cutoff follow in the order of their bounds. Before one is solved, a fractional bound is
//!    worked out in each missing class, for which its own instances are looked at.
//!
//! A bound only ever skips a host that cannot be among the first, so the answer is that of solving every host.

use super::bits::{Bits, ones};
use super::phases::{Clock, smallest_sums};
use super::survey::Wanted;
use crate::plugins::Failure;
use crate::ranking::{Place, Solved, Tier, Tools};
use crate::state::State;
use crate::table::{BLOCK, HostIndex, OTHER_SHAPE, WIDE};
use ebbtide_solver::Cost;

/// The bound of a host that is not to be looked at.
const NEVER: u32 = u32::MAX;

/// Hosts that are solved before the others are compared with them, in units of those whose price has to be exact.
const AHEAD: usize = 2;

/// A host with its bound, in units of the clock.
type Bounded = (u32, u32, HostIndex);

/// Solves whoever could be among the first `exact` of `hosts`.
pub(super) fn evict(
    tools: &mut Tools<'_>,
    state: &State<'_>,
    hosts: &Bits,
    wanted: &[Wanted<'_>],
    clock: &Clock,
    exact: usize,
) -> Result<(Vec<Place>, Solved), Failure> {
    let mut run = Run {
        tools,
        state,
        wanted,
        clock,
        freed: freed(state, wanted),
        places: Vec::new(),
        solved: Solved::new(exact),
    };
    let mut bounds = run.bounds(hosts);
    let ahead = lowest(state, hosts, &bounds, exact.saturating_mul(AHEAD));
    for bounded in ahead {
        bounds[bounded.2.at()] = NEVER;
        run.solve(bounded)?;
    }
    let rest = run.not_above_cutoff(hosts, &bounds);
    for bounded in rest {
        run.solve(bounded)?;
    }
    Ok((run.places, run.solved))
}

/// A cost that room for one instance on each of `hosts` costs at least, in the order of registration.
pub(super) fn lower_bounds(
    tools: &mut Tools<'_>,
    state: &State<'_>,
    hosts: &Bits,
    wanted: &[Wanted<'_>],
    clock: &Clock,
) -> Vec<(HostIndex, Cost)> {
    let mut run = Run {
        tools,
        state,
        wanted,
        clock,
        freed: Vec::new(),
        places: Vec::new(),
        solved: Solved::new(1),
    };
    let bounds = run.bounds(hosts);
    let bound = |host: HostIndex| (host, clock.at_least(bounds[host.at()]));
    hosts.in_order(state.table).into_iter().map(bound).collect()
}

/// The `many` hosts with the lowest bounds, in order.
fn lowest(state: &State<'_>, hosts: &Bits, bounds: &[u32], many: usize) -> Vec<Bounded> {
    let mut best: Vec<Bounded> = Vec::with_capacity(2 * many);
    let mut limit = NEVER;
    for (block, &word) in hosts.words().iter().enumerate() {
        if word == 0 {
            continue;
        }
        let end = bounds.len().min((block + 1) * BLOCK);
        let here = &bounds[block * BLOCK..end];
        if here.iter().fold(NEVER, |least, &b| least.min(b)) > limit {
            continue;
        }
        for at in ones(word) {
            let bound = here[at];
            if bound <= limit && bound != NEVER {
                let host = HostIndex::new(block * BLOCK + at);
                best.push((bound, state.table.rank(host), host));
            }
        }
        if best.len() >= 2 * many {
            best.select_nth_unstable(many - 1);
            best.truncate(many);
            limit = best[many - 1].0;
        }
    }
    best.sort_unstable();
    best.truncate(many);
    best
}

struct Run<'r, 't, 's> {
    tools: &'r mut Tools<'t>,
    state: &'r State<'s>,
    wanted: &'r [Wanted<'s>],
    clock: &'r Clock,
    /// What a victim of each shape frees of each class that is asked for.
    freed: Vec<i32>,
    places: Vec<Place>,
    solved: Solved,
}

impl Run<'_, '_, '_> {
    /// A bound for each of `hosts`, by slot.
    fn bounds(&mut self, hosts: &Bits) -> Vec<u32> {
        let table = self.state.table;
        let lanes = table.lanes();
        let mut bounds = vec![NEVER; hosts.words().len() * BLOCK];
        for (block, &word) in hosts.words().iter().enumerate() {
            if word == 0 {
                continue;
            }
            let victims = self.fewest_victims(block);
            for part in 0..BLOCK / WIDE {
                let eight = block * (BLOCK / WIDE) + part;
                let mask = (word >> (part * WIDE)) & 0xff;
                if mask == 0 {
                    continue;
                }
                let start = eight * WIDE;
                let victims: &[u32; WIDE] = &victims.as_chunks::<WIDE>().0[part];
                let counts = table.counts().preemptible_of_eight(eight);
                let sums = smallest_sums(lanes.phases(eight), &counts, victims, self.clock.phase);
                let launched = lanes.eight_launched_by(eight, self.clock.now_ms);
                for lane in ones(mask) {
                    let host = HostIndex::new(start + lane);
                    let regular = launched || lanes.launched_by(host, self.clock.now_ms);
                    // Each phase may say one unit too much.
                    let sum = sums[lane].saturating_sub(victims[lane]);
                    bounds[host.at()] = if regular { sum.min(NEVER - 1) } else { 0 };
                }
            }
        }
        let touched: Vec<HostIndex> = self.state.touched().map(|(host, _)| host).collect();
        for host in touched {
            // What the columns say is not what this request has left of the host.
            if hosts.has(host) {
                bounds[host.at()] = 0;
            }
        }
        bounds
    }

    /// How many victims at least each host of a block needs: one, or as many as the largest would have to be.
    fn fewest_victims(&self, block: usize) -> [u32; BLOCK] {
        let mut most = [1.0_f32; BLOCK];
        for want in self.wanted {
            let (future, largest) = (
                want.class.future.block(block),
                want.class.largest.block(block),
            );
            for at in 0..BLOCK {
                let missing = (want.amount - future[at]) as f32;
                // Nothing to give at all is no bound here: the host is solved, or never looked at.
                let each = (largest[at] as f32).max(1e-3);
                // Less by more than what the roundings of both could have added.
                let count = missing / each * (1.0 - 1e-6);
                most[at] = if count > most[at] { count } else { most[at] };
            }
        }
        most.map(|count| {
            let whole = count as u32;
            whole + u32::from(count > whole as f32)
        })
    }

    /// All hosts whose bound is not above the cutoff, in order.
    fn not_above_cutoff(&self, hosts: &Bits, bounds: &[u32]) -> Vec<Bounded> {
        let cutoff = self.solved.cutoff();
        let limit = cutoff.map_or(NEVER - 1, |cutoff| self.clock.units(cutoff));
        let mut rest: Vec<Bounded> = Vec::new();
        for (block, &word) in hosts.words().iter().enumerate() {
            if word == 0 {
                continue;
            }
            let here = &bounds[block * BLOCK..(block + 1) * BLOCK];
            if here.iter().fold(NEVER, |least, &b| least.min(b)) > limit {
                continue;
            }
            for at in ones(word).filter(|&at| here[at] <= limit) {
                let host = HostIndex::new(block * BLOCK + at);
                rest.push((here[at], self.state.table.rank(host), host));
            }
        }
        rest.sort_unstable();
        rest
    }

    /// Solves a host, unless it cannot be among the first.
    fn solve(&mut self, (bound, _, host): Bounded) -> Result<(), Failure> {
        if let Some(cutoff) = self.solved.cutoff() {
            if bound > self.clock.units(cutoff) {
                return Ok(());
            }
            if self.fractional_bound(host) > self.clock.units(cutoff) as f32 {
                return Ok(());
            }
        }
        let tools = &mut *self.tools;
        let state = self.state;
        tools.search.learn(tools.engine, state, host)?;
        if let Some(cutoff) = self.solved.cutoff()
            && tools.search.bound(state, host) > cutoff
        {
            return Ok(());
        }
        let bundle = state.ask.bundle;
        let verdict = tools
            .search
            .solve(state, host, bundle, self.solved.cutoff())?;
        let position = self.places.len();
        let mut place = Place {
            host,
            tier: Tier::Evicts,
            eviction: None,
        };
        self.solved.take(&mut place, position, verdict);
        self.places.push(place);
        Ok(())
    }

    /// A bound from the host's own instances, in units of the clock: the class in which the cheapest instances by unit, the last
    /// of them in part, cost most.
    fn fractional_bound(&self, host: HostIndex) -> f32 {
        let table = self.state.table;
        let lanes = table.lanes();
        let count = table.counts().preemptible[host.at()];
        if self.state.pending(host).is_some() || !lanes.launched_by(host, self.clock.now_ms) {
            return 0.0;
        }
        let mut best = 0.0_f32;
        let mut offers: smallvec::SmallVec<[(f32, f32, f32); 64]> = smallvec::SmallVec::new();
        for (position, want) in self.wanted.iter().enumerate() {
            let missing = want.amount - want.class.future.get(host.at());
            if missing <= 0 {
                continue;
            }
            offers.clear();
            for (phase, shape) in lanes.of_host(host, count) {
                let amount = if shape == OTHER_SHAPE {
                    want.class.largest.get(host.at())
                } else {
                    self.freed[usize::from(shape) * self.wanted.len() + position]
                };
                let amount = amount.min(missing) as f32;
                if amount > 0.0 {
                    let cost = f32::from(self.clock.phase.wrapping_sub(phase).saturating_sub(1));
                    offers.push((cost / amount, cost, amount));
                }
            }
            offers.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
            let (mut left, mut sum) = (missing as f32, 0.0);
            for &(price, cost, amount) in &offers {
                if amount >= left {
                    sum += price * left;
                    break;
                }
                left -= amount;
                sum += cost;
            }
            best = best.max(sum);
        }
        // Less by more than what the roundings could have added.
        best * (1.0 - 1e-4)
    }
}

/// What a victim of each shape frees of each class that is asked for, shape after shape.
fn freed(state: &State<'_>, wanted: &[Wanted<'_>]) -> Vec<i32> {
    let shapes = state.table.shape_slots().min(usize::from(OTHER_SHAPE));
    (0..shapes)
        .flat_map(|shape| {
            wanted
                .iter()
                .map(move |want| state.table.shape_frees(shape, want.index))
        })
        .collect()
}

/// Any cost as the search sees it; see [`Clock::units`].
pub(super) fn units(cost: Cost, micros_per_unit: f64) -> u32 {
    let units = cost.micros() as f64 / micros_per_unit;
    // Rounded up, and one more: a bound is compared with it, and must not skip what is equal.
    if units < f64::from(NEVER - 2) {
        units as u32 + 2
    } else {
        NEVER - 1
    }
}
