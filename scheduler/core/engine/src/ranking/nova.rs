//! The policy `nova`: Nova's weights alone.
//!
//! A host that has to evict is ranked like any other; what that costs is a matter of the weighers.
//! So the exact cost of every such host has to be known before the first weigher runs. Hosts on
//! which nothing is sufficient are left out before.

use super::{RankedCandidate, Ranking, Tier, Tools, append_weighed};
use crate::plugins::DecideFailure;
use crate::state::DecisionState;
use crate::victims::{ShortageReason, VictimSearchResult};
use ebbtide_solver::EvictionCost;

/// See the module's text.
pub(super) fn rank(
    tools: &mut Tools<'_>,
    state: &DecisionState<'_>,
    places: Vec<RankedCandidate>,
) -> Result<Ranking, DecideFailure> {
    let mut ranking = Ranking {
        optimal: true,
        ..Ranking::default()
    };
    if places.iter().any(|place| place.tier == Tier::Evicts) {
        tools.learn_costs(state, &places)?;
    }
    let mut possible = Vec::with_capacity(places.len());
    for mut place in places {
        if place.tier == Tier::Evicts {
            match tools
                .search
                .solve(state, place.host, state.ask.bundle, None)?
            {
                VictimSearchResult::Found(eviction) => place.eviction = Some(eviction),
                VictimSearchResult::Impossible(why) => {
                    ranking.impossible.push((place.host, why));
                    continue;
                }
                VictimSearchResult::NotBetter | VictimSearchResult::Undecided(_) => {
                    ranking
                        .impossible
                        .push((place.host, ShortageReason::Unknown));
                    ranking.optimal = false;
                    continue;
                }
            }
        }
        possible.push(place);
    }
    ranking.ranked = possible.len();
    append_weighed(tools, state, &mut ranking, possible, true)?;
    let chosen = ranking
        .chosen
        .and_then(|at| ranking.places[at].place.eviction.as_ref());
    if let Some(eviction) = chosen {
        ranking.optimal &= eviction.optimal;
        let gap = eviction
            .cost
            .micros()
            .saturating_sub(eviction.lower_bound.micros());
        ranking.gap = EvictionCost::from_micros(gap);
    }
    Ok(ranking)
}
