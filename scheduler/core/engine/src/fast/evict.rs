//! Victims where no host has free capacity: the policy `tiered` over all hosts, without pricing
//! every instance first.
//!
//! 1. Every host gets a lower bound of its eviction cost, eight hosts at a time (see
//!    [`bounds`](super::bounds)).
//! 2. In the order of these bounds, hosts get a second bound, computed from their own instances.
//! 3. The host with the lowest bound is solved next. The search ends when every remaining bound
//!    exceeds the cost of the last place that has to be exact.
//!
//! A bound only skips hosts that cannot be among the first, so the answer is the same as if every
//! host were solved.

use super::bounds::{Bounder, NEVER};
use super::phases::Clock;
use super::survey::CompactDemand;
use crate::eligible_hosts::NO_VICTIMS_SUFFICE;
use crate::plugins::DecideFailure;
use crate::ranking::{RankedCandidate, SolvedHosts, Tier, Tools};
use crate::state::DecisionState;
use crate::table::{BLOCK, HostIndex};
use crate::victims::{ShortageReason, VictimSearchResult};
use ebbtide_model::host_set::{HostSet, ones};
use ebbtide_solver::EvictionCost;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How many hosts are first put in order, for each place that has to be exact; then four times as
/// many, and so on.
const AHEAD: usize = 4;

/// Before more than so many further hosts are put in order, all bounds are raised.
const FEW: usize = 100;

/// A host with its bound, in units of the clock, and its rank.
type Bounded = (u32, u32, HostIndex);

/// Solves each host that could be among the first `exact` of `hosts`.
pub(super) fn evict(
    tools: &mut Tools<'_>,
    state: &DecisionState<'_>,
    hosts: &HostSet,
    wanted: &[CompactDemand<'_>],
    clock: &Clock,
    exact: usize,
) -> Result<(Vec<RankedCandidate>, SolvedHosts), DecideFailure> {
    tools.search.price_by_period(state, clock.period_ms());
    let bounder = Bounder::new(state, wanted, clock);
    let mut queue = Queue {
        hosts,
        bounds: bounder.all(hosts),
        ready: Vec::new(),
        many: exact.saturating_mul(AHEAD),
    };
    let mut refined: BinaryHeap<Reverse<Bounded>> = BinaryHeap::new();
    let (mut places, mut solved) = (Vec::new(), SolvedHosts::new(exact));
    loop {
        let limit = solved
            .cutoff()
            .map_or(NEVER - 1, |cutoff| clock.units(cutoff));
        if queue.is_to_be_filled() {
            if queue.many > FEW {
                let solved: Vec<HostIndex> = places
                    .iter()
                    .map(|place: &RankedCandidate| place.host)
                    .collect();
                bounder.raise(hosts, &mut queue.bounds, limit, &solved);
            }
            queue.fill(state, limit);
        }
        let first = queue.ready.last().copied().filter(|next| next.0 <= limit);
        let best = refined
            .peek()
            .map(|next| next.0)
            .filter(|next| next.0 <= limit);
        match (first, best) {
            (None, None) => break,
            (Some(first), best) if best.is_none_or(|best| first.0 <= best.0) => {
                queue.ready.pop();
                let bound = bounder.fractional(first.2, limit).max(first.0);
                if bound <= limit {
                    refined.push(Reverse((bound, first.1, first.2)));
                }
            }
            _ => {
                if let Some(Reverse((bound, _, host))) = refined.pop() {
                    let place = solve(tools, state, host, &mut solved, places.len())?;
                    debug_assert!(
                        place
                            .eviction
                            .as_ref()
                            .is_none_or(|found| bound <= clock.units(found.cost)),
                        "a bound of {bound} units on a host whose victims cost less: {place:?}"
                    );
                    places.push(place);
                }
            }
        }
    }
    Ok((places, solved))
}

/// A cost that room for one instance on each of `hosts` costs at least, in the order of
/// registration.
pub(super) fn lower_bounds(
    tools: &mut Tools<'_>,
    state: &DecisionState<'_>,
    hosts: &HostSet,
    wanted: &[CompactDemand<'_>],
    clock: &Clock,
) -> Vec<(HostIndex, EvictionCost)> {
    tools.search.price_by_period(state, clock.period_ms());
    let bounds = Bounder::new(state, wanted, clock).all(hosts);
    let bound = |host: HostIndex| (host, clock.at_least(bounds[host.at()]));
    state.table.in_order(hosts).into_iter().map(bound).collect()
}

/// Solves a host, which becomes the place at `position`.
fn solve(
    tools: &mut Tools<'_>,
    state: &DecisionState<'_>,
    host: HostIndex,
    solved: &mut SolvedHosts,
    position: usize,
) -> Result<RankedCandidate, DecideFailure> {
    let cutoff = solved.cutoff();
    let bundle = state.ask.bundle;
    let fewest = state.fewest().map(|fewest| fewest[host.at()]);
    let verdict = match fewest {
        Some(NO_VICTIMS_SUFFICE) => VictimSearchResult::Impossible(ShortageReason::NotEnough),
        _ => tools.search.solve(state, host, bundle, cutoff)?,
    };
    let mut place = RankedCandidate {
        host,
        tier: Tier::Evicts,
        eviction: None,
    };
    solved.take(&mut place, position, verdict);
    Ok(place)
}

/// All hosts in the order of their bounds, put in order a few at a time.
struct Queue<'a> {
    hosts: &'a HostSet,
    /// By slot; [`NEVER`] for who is in order already.
    bounds: Vec<u32>,
    /// Those that are in order, the lowest last.
    ready: Vec<Bounded>,
    /// How many are put in order next; zero if there are no more.
    many: usize,
}

impl Queue<'_> {
    fn is_to_be_filled(&self) -> bool {
        self.ready.is_empty() && self.many > 0
    }

    /// Puts the next few in order. Limits only ever fall, so who is above this one is never asked
    /// for again.
    fn fill(&mut self, state: &DecisionState<'_>, limit: u32) {
        self.ready = self.lowest(state, limit.min(NEVER - 1));
        for bounded in &self.ready {
            self.bounds[bounded.2.at()] = NEVER;
        }
        self.many = if self.ready.len() < self.many {
            0
        } else {
            self.many.saturating_mul(4)
        };
        self.ready.reverse();
    }

    /// The hosts with the lowest bounds that are not above the limit, in order.
    fn lowest(&self, state: &DecisionState<'_>, mut limit: u32) -> Vec<Bounded> {
        let mut best: Vec<Bounded> = Vec::new();
        for (block, &word) in self.hosts.words().iter().enumerate() {
            if word == 0 {
                continue;
            }
            let here = &self.bounds[block * BLOCK..(block + 1) * BLOCK];
            if here.iter().fold(NEVER, |least, &b| least.min(b)) > limit {
                continue;
            }
            for at in ones(word).filter(|&at| here[at] <= limit) {
                let host = HostIndex::new(block * BLOCK + at);
                best.push((here[at], state.table.rank(host), host));
            }
            if best.len() >= self.many.saturating_mul(2) {
                best.select_nth_unstable(self.many - 1);
                best.truncate(self.many);
                limit = best[self.many - 1].0;
            }
        }
        best.sort_unstable();
        best.truncate(self.many);
        best
    }
}
