//! The policy `tiered`: hosts with free capacity come before hosts on which the request waits, and
//! these before hosts that evict. Then the cost of the cheapest sufficient victim set decides, then
//! the number of victims. Among equals Nova's weights decide, then the order of registration.
//!
//! *The ranking is exact although not every host is solved.* For each host that would have to
//! evict, one pass over its instances gives a lower bound of the cost. Hosts are solved in the
//! order of their bounds, until the next bound exceeds the costs of the hosts that an explanation
//! lists; the hosts behind it cannot be among the listed ones. All listed hosts are exact in this
//! way, and at least the first two, because an explanation names the runner-up.
//!
//! Hosts without any sufficient victim set are distinguished only if no other host exists: a host
//! behind the listed ones is never checked for whether it could free enough at a higher price.

use super::{RankedCandidate, Ranking, Tier, Tools, append_plain, append_weighed};
use crate::plugins::DecideFailure;
use crate::state::DecisionState;
use crate::victims::{ShortageReason, VictimSearchResult};
use ebbtide_solver::EvictionCost;

/// How many places are exact at least: the winner and the runner-up.
const EXACT: usize = 2;

/// How many places are exact: all that an explanation lists.
pub(crate) fn exact_places(tools: &Tools<'_>) -> usize {
    tools.listed().max(EXACT)
}

/// See the module's text.
pub(super) fn rank(
    tools: &mut Tools<'_>,
    state: &DecisionState<'_>,
    places: Vec<RankedCandidate>,
) -> Result<Ranking, DecideFailure> {
    let Some(best) = places.iter().map(|place| place.tier).min() else {
        return Ok(Ranking {
            optimal: true,
            ..Ranking::default()
        });
    };
    if best == Tier::Evicts {
        return evict(tools, state, places);
    }
    let mut ranking = Ranking {
        optimal: true,
        ranked: places.len(),
        ..Ranking::default()
    };
    let (equals, rest): (Vec<RankedCandidate>, Vec<RankedCandidate>) =
        places.into_iter().partition(|place| place.tier == best);
    append_weighed(tools, state, &mut ranking, equals, true)?;
    let (waiting, evicting): (Vec<RankedCandidate>, Vec<RankedCandidate>) = rest
        .into_iter()
        .partition(|place| place.tier == Tier::Waits);
    append_plain(tools, &mut ranking, waiting.into_iter().chain(evicting));
    Ok(ranking)
}

/// Hosts that have been solved.
pub(crate) struct SolvedHosts {
    /// How many places are exact.
    exact: usize,
    /// Positions of the places with a victim set.
    found: Vec<usize>,
    impossible: Vec<(usize, ShortageReason)>,
    /// The smallest lower bound of a host whose search was cut.
    cut: Option<EvictionCost>,
    /// The lowest costs so far, ascending, `exact` at most.
    lowest: Vec<EvictionCost>,
}

impl SolvedHosts {
    /// No host is solved yet.
    pub(crate) fn new(exact: usize) -> Self {
        Self {
            exact,
            found: Vec::new(),
            impossible: Vec::new(),
            cut: None,
            lowest: Vec::with_capacity(exact + 1),
        }
    }

    /// What a host must not exceed to matter.
    pub(crate) fn cutoff(&self) -> Option<EvictionCost> {
        self.lowest.get(self.exact - 1).copied()
    }

    /// Notes what was found out about the place at a position.
    pub(crate) fn take(
        &mut self,
        place: &mut RankedCandidate,
        position: usize,
        verdict: VictimSearchResult,
    ) {
        match verdict {
            VictimSearchResult::Found(eviction) => {
                if !eviction.optimal {
                    self.cut_at(eviction.lower_bound);
                }
                let at = self.lowest.partition_point(|cost| *cost <= eviction.cost);
                self.lowest.insert(at, eviction.cost);
                self.lowest.truncate(self.exact);
                self.found.push(position);
                place.eviction = Some(eviction);
            }
            VictimSearchResult::NotBetter => {}
            VictimSearchResult::Impossible(why) => self.impossible.push((position, why)),
            VictimSearchResult::Undecided(bound) => {
                self.cut_at(bound);
                self.impossible.push((position, ShortageReason::Unknown));
            }
        }
    }

    fn cut_at(&mut self, bound: EvictionCost) {
        self.cut = Some(self.cut.map_or(bound, |before| before.min(bound)));
    }
}

/// Ranks hosts when none has free capacity, not even after the instances that are leaving are gone.
fn evict(
    tools: &mut Tools<'_>,
    state: &DecisionState<'_>,
    mut places: Vec<RankedCandidate>,
) -> Result<Ranking, DecideFailure> {
    tools.learn_costs(state, &places)?;
    let bundle = state.ask.bundle;
    let mut bounds: Vec<(EvictionCost, usize)> = places
        .iter()
        .enumerate()
        .map(|(position, place)| (tools.search.bound(state, place.host), position))
        .collect();
    bounds.sort_unstable();
    let mut solved = SolvedHosts::new(exact_places(tools));
    for &(bound, position) in &bounds {
        if solved.cutoff().is_some_and(|cutoff| bound > cutoff) {
            break;
        }
        let place = &mut places[position];
        let verdict = tools
            .search
            .solve(state, place.host, bundle, solved.cutoff())?;
        solved.take(place, position, verdict);
    }
    let passed = places.len();
    rank_solved(tools, state, &places, solved, passed)
}

/// Puts solved places in order and weighs the equals among them. `passed` is how many hosts there
/// were to choose from.
pub(crate) fn rank_solved(
    tools: &mut Tools<'_>,
    state: &DecisionState<'_>,
    places: &[RankedCandidate],
    mut solved: SolvedHosts,
    passed: usize,
) -> Result<Ranking, DecideFailure> {
    if !solved.found.is_empty() {
        solved.impossible.clear();
    }
    let order = |at: usize| state.table.rank(places[at].host);
    solved
        .impossible
        .sort_unstable_by_key(|&(position, _)| order(position));
    let mut ranking = Ranking {
        optimal: true,
        ranked: passed - solved.impossible.len(),
        impossible: solved
            .impossible
            .iter()
            .map(|&(at, why)| (places[at].host, why))
            .collect(),
        ..Ranking::default()
    };
    solved
        .found
        .sort_by_key(|&position| (places[position].price(), order(position)));
    let mut rest = solved.found.as_slice();
    while let Some(&first) = rest.first() {
        let price = places[first].price();
        let equals = rest
            .iter()
            .take_while(|&&at| places[at].price() == price)
            .count();
        let group = rest[..equals]
            .iter()
            .map(|&at| places[at].clone())
            .collect();
        let is_best = rest.len() == solved.found.len();
        if is_best || ranking.places.len() < tools.listed() {
            append_weighed(tools, state, &mut ranking, group, is_best)?;
        }
        rest = &rest[equals..];
    }
    if let (Some(&lowest), Some(cut)) = (solved.lowest.first(), solved.cut) {
        ranking.optimal = cut > lowest;
        ranking.gap = EvictionCost::from_micros(lowest.micros().saturating_sub(cut.micros()));
    } else if solved.cut.is_some() {
        ranking.optimal = false;
    }
    Ok(ranking)
}
