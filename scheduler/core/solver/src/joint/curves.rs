//! The cheapest counts where nothing couples the hosts: a dynamic program over points that are
//! solved only when they matter.
//!
//! Every point `(host, instances)` has a lower bound for its price, at first the host's bound for
//! one instance. The program finds the counts of least total; if all its points are solved, no
//! other choice is cheaper, because the others are at least as dear as their bounds. If not, hosts
//! that were chosen by an older bound get better ones, the other points are solved, and the program
//! runs again. So hosts that cannot win are never looked at.
//!
//! *Few points are enough.* Of the points for `j` instances a best choice uses one among the `n − j
//! +
//! 1` first by (bound, preference), besides hosts that have to take part: at most `n − j` other
//! hosts are in use, so if it used a later one, one of those first would be free to take its place,
//! at no higher price and preferred.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::host::{CheapestSet, CountBounds, NodeConstraints, PointSolver, SolvedPoint};
use super::{CoverCost, Hosts};
use crate::error::SolverError;
use crate::outcome::SearchLimits;

/// A choice of counts, and what it costs under the lines.
#[derive(Debug, Clone)]
pub(crate) struct CountPlan {
    pub(crate) price: CoverCost,
    /// No choice of the node costs less; below the price only where a search was cut.
    pub(crate) floor: CoverCost,
    pub(crate) shares: Vec<(usize, u32, Rc<CheapestSet>)>,
}

/// What the relaxation of a node says.
#[derive(Debug)]
pub(crate) enum NodeRelaxation {
    Plan(CountPlan),
    Infeasible,
    /// Out of nodes, or no set was seen where one may be.
    Open(CoverCost),
}

#[derive(Clone, Debug)]
enum State {
    Bounded,
    Solved(Rc<CheapestSet>),
    Gone,
}

/// The points of one node.
struct Curves<'a> {
    count: u32,
    /// Hosts by their bound for one instance, then by preference.
    base: &'a [(u64, usize)],
    points: BTreeMap<(u32, usize), (CoverCost, State)>,
    /// Points that were examined and are still possible, by count, in order.
    order: Vec<BTreeSet<(CoverCost, usize)>>,
    /// From so many instances on a host is of no use.
    never: BTreeMap<usize, u32>,
    bound_to: BTreeSet<usize>,
    /// By host: for how many instances it has bounds of its own. Hosts without any are where `base`
    /// says.
    bounded: Vec<u32>,
}

/// Finds the cheapest counts under the terms of a node. `patient` finishes however many nodes it
/// takes.
pub(crate) fn relax(
    count: u32,
    base: &[(u64, usize)],
    hosts: &mut dyn Hosts,
    points: &mut PointSolver,
    terms: &NodeConstraints,
    limits: SearchLimits,
    patient: bool,
) -> Result<NodeRelaxation, SolverError> {
    let mut curves = Curves {
        count,
        base,
        points: BTreeMap::new(),
        order: vec![BTreeSet::new(); count as usize + 1],
        never: BTreeMap::new(),
        bound_to: terms.bound_to(),
        bounded: vec![0; hosts.count()],
    };
    let mut floor: Option<CoverCost> = None;
    loop {
        points.nodes += 1;
        let Some((price, choice)) = curves.cheapest() else {
            return Ok(floor.map_or(NodeRelaxation::Infeasible, NodeRelaxation::Open));
        };
        if !patient && points.nodes >= limits.max_nodes {
            return Ok(NodeRelaxation::Open(
                floor.map_or(price, |floor| floor.min(price)),
            ));
        }
        let open: Vec<(u32, usize)> = (choice.iter().copied())
            .filter(|name| !curves.is_solved(*name))
            .collect();
        if open.is_empty() {
            let shares = choice.iter().filter_map(|&(count, host)| {
                match &curves.points.get(&(count, host))?.1 {
                    State::Solved(entry) => Some((host, count, entry.clone())),
                    State::Bounded | State::Gone => None,
                }
            });
            let shares = shares.collect();
            return Ok(NodeRelaxation::Plan(CountPlan {
                price,
                floor: floor.map_or(price, |floor| floor.min(price)),
                shares,
            }));
        }
        for (count, host) in open {
            if curves.is_never(host, count) {
                continue;
            }
            if count > curves.bounded[host] {
                // A host that begins to matter is bounded for few instances, later for twice as
                // many: most never matter more.
                let most = (2 * curves.bounded[host]).clamp(2, curves.count.max(2));
                let bounds = points.bounds(hosts, host, most.min(curves.count), terms)?;
                curves.bound(host, most, &bounds);
                continue;
            }
            match points.solve(hosts, host, count, terms, limits)? {
                SolvedPoint::Set(entry) => {
                    if !entry.optimal {
                        floor = Some(floor.map_or(price, |floor| floor.min(price)));
                    }
                    let priced = CoverCost::new(i128::from(entry.priced), entry.victims.len());
                    if entry.optimal {
                        curves.raise(count, host, priced);
                    }
                    curves.set(count, host, priced, State::Solved(entry));
                }
                SolvedPoint::Never => curves.kill(count, host),
                SolvedPoint::Undecided => {
                    floor = Some(floor.map_or(price, |floor| floor.min(price)));
                    curves.set(count, host, price, State::Gone);
                }
            }
        }
    }
}

impl Curves<'_> {
    fn is_solved(&self, name: (u32, usize)) -> bool {
        matches!(self.points.get(&name), Some((_, State::Solved(_))))
    }

    fn is_never(&self, host: usize, count: u32) -> bool {
        self.never.get(&host).is_some_and(|&from| count >= from)
    }

    fn set(&mut self, count: u32, host: usize, price: CoverCost, state: State) {
        let order = &mut self.order[count as usize];
        if let Some((before, _)) = self.points.get(&(count, host)) {
            order.remove(&(*before, host));
        }
        if !matches!(state, State::Gone) {
            order.insert((price, host));
        }
        self.points.insert((count, host), (price, state));
    }

    /// Takes over the bounds of a host for one, two, … up to `most` instances; there are none for
    /// what it cannot take.
    fn bound(&mut self, host: usize, most: u32, bounds: &CountBounds) {
        for (before, &micros) in (0..).zip(&bounds.micros) {
            self.raise(before, host, CoverCost::new(i128::from(micros), 0));
        }
        self.bounded[host] = most;
        let known = bounds.micros.len() as u32;
        if bounds.complete && known < self.count {
            self.kill(known + 1, host);
        }
    }

    /// More instances on a host are no cheaper than so many.
    fn raise(&mut self, count: u32, host: usize, price: CoverCost) {
        for more in count + 1..=self.count {
            let is_lower = match self.points.get(&(more, host)) {
                None => true,
                Some((before, State::Bounded)) => *before < price,
                Some((_, State::Solved(_) | State::Gone)) => false,
            };
            if is_lower && !self.is_never(host, more) {
                self.set(more, host, price, State::Bounded);
            }
        }
    }

    /// No set for so many on a host, and hence none for more.
    fn kill(&mut self, count: u32, host: usize) {
        let from = self.never.entry(host).or_insert(count);
        *from = count.min(*from);
        for more in count..=self.count {
            if let Some((price, _)) = self.points.remove(&(more, host)) {
                self.order[more as usize].remove(&(price, host));
            }
        }
    }

    /// The points that a best choice may use, by host.
    fn listed(&self) -> BTreeMap<usize, Vec<(u32, CoverCost)>> {
        let mut listed: BTreeMap<usize, Vec<(u32, CoverCost)>> = BTreeMap::new();
        let unseen = self
            .base
            .iter()
            .filter(|(_, host)| self.bounded[*host] == 0);
        let unseen: Vec<(u64, usize)> = unseen.take(self.count as usize).copied().collect();
        for count in 1..=self.count {
            let places = (self.count - count + 1) as usize;
            let touched = self.order[count as usize].iter().copied();
            let fresh = unseen
                .iter()
                .map(|&(micros, host)| (CoverCost::new(i128::from(micros), 0), host));
            let (mut touched, mut fresh) = (touched.peekable(), fresh.peekable());
            let merged = std::iter::from_fn(|| match (touched.peek(), fresh.peek()) {
                (Some(left), Some(right)) if left <= right => touched.next(),
                (Some(_), None) => touched.next(),
                _ => fresh.next(),
            });
            for (price, host) in merged.take(places) {
                listed.entry(host).or_default().push((count, price));
            }
            for &host in &self.bound_to {
                let known = listed.entry(host).or_default();
                if known.last().is_none_or(|last| last.0 != count) && !self.is_never(host, count) {
                    match self.points.get(&(count, host)) {
                        Some((_, State::Gone)) => {}
                        Some((price, _)) => known.push((count, *price)),
                        None => known.push((count, CoverCost::new(0, 0))),
                    }
                }
            }
        }
        listed
    }

    /// The cheapest choice at what is known, as points; `None` if there is none.
    fn cheapest(&self) -> Option<(CoverCost, Vec<(u32, usize)>)> {
        let listed: Vec<(usize, Vec<(u32, CoverCost)>)> = self.listed().into_iter().collect();
        let width = self.count as usize + 1;
        // By host, least preferred first: the least price of placing so many on it and those behind
        // it.
        let mut best: Vec<Option<CoverCost>> = vec![None; (listed.len() + 1) * width];
        best[listed.len() * width] = Some(CoverCost::new(0, 0));
        for (at, (host, points)) in listed.iter().enumerate().rev() {
            for placed in 0..width {
                let without =
                    best[(at + 1) * width + placed].filter(|_| !self.bound_to.contains(host));
                let with = (points.iter()).filter_map(|&(count, price)| {
                    let rest = best[(at + 1) * width + placed.checked_sub(count as usize)?]?;
                    Some(rest.plus(price))
                });
                best[at * width + placed] = with.chain(without).min();
            }
        }
        let price = best[width - 1]?;
        let mut choice = Vec::new();
        let mut left = self.count as usize;
        for (at, (host, points)) in listed.iter().enumerate() {
            let wanted = best[at * width + left]?;
            // The largest count first: the preferred host gets as many as possible.
            let taken = points.iter().rev().find(|&&(count, price)| {
                let rest = (left.checked_sub(count as usize))
                    .and_then(|left| best[(at + 1) * width + left]);
                rest.is_some_and(|rest| rest.plus(price) == wanted)
            });
            if let Some(&(count, _)) = taken {
                choice.push((count, *host));
                left -= count as usize;
            }
        }
        Some((price, choice))
    }
}
