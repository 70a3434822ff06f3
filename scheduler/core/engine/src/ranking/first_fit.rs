//! The policy `first-fit`: the first host with room, in the order of registration; if none has, the
//! first whose room is becoming free; if there is none either, the first that can evict enough,
//! with its own cheapest victims. Nothing is weighed.

use super::{RankedCandidate, RankedPlace, Ranking, Tier, Tools, append_plain};
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
        ranked: places.len(),
        ..Ranking::default()
    };
    let Some(best) = places.iter().map(|place| place.tier).min() else {
        return Ok(ranking);
    };
    let mut rest = places.into_iter();
    if best == Tier::Evicts {
        let left: Vec<RankedCandidate> = rest.collect();
        tools.learn_costs(state, &left)?;
        rest = left.into_iter();
    }
    while let Some(mut place) = rest.next() {
        if place.tier != best {
            continue;
        }
        if best == Tier::Evicts {
            match tools
                .search
                .solve(state, place.host, state.ask.bundle, None)?
            {
                VictimSearchResult::Found(eviction) => {
                    ranking.optimal &= eviction.optimal;
                    let gap = eviction
                        .cost
                        .micros()
                        .saturating_sub(eviction.lower_bound.micros());
                    ranking.gap = EvictionCost::from_micros(gap);
                    place.eviction = Some(eviction);
                }
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
        ranking.chosen = Some(0);
        ranking.places.push(RankedPlace {
            place,
            total: 0.0,
            weights: Vec::new(),
        });
        append_plain(tools, &mut ranking, rest.filter(|p| p.tier == best));
        break;
    }
    ranking.ranked -= ranking.impossible.len();
    Ok(ranking)
}
