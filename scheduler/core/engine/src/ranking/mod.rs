//! Ranking: which of the hosts that passed is the best, and what that means for those on it.
//!
//! One policy a file. Each gets the places that the filters left, in the order of their
//! registration, and answers with a
//! [`Ranking`]: the best places, best first, and which of them is taken.

mod choice;
mod columns;
pub(crate) mod facts;
mod filter_batch;
mod first_fit;
mod nova;
mod tiered;
mod weights;

pub(crate) use choice::DecisionRng;
pub(crate) use columns::Batch;
pub(crate) use filter_batch::FilterBatch;
pub(crate) use tiered::{SolvedHosts, exact_places, rank_solved};
pub(crate) use weights::{HostWeights, has_own_multipliers, request_view, weigh};

use crate::plugins::{DecideFailure, FailedPlugins};
use crate::state::DecisionState;
use crate::table::HostIndex;
use crate::victims::{Eviction, ShortageReason, VictimSearch};
use crate::{Engine, RankingPolicy};
use ebbtide_model::ServerId;
use ebbtide_model::decision::Weight;
use ebbtide_solver::EvictionCost;

/// What taking a host means for those on it. The order is that of preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tier {
    /// The request fits into h_f: no instance has to leave, and the request does not wait.
    Room,
    /// The request fits once the instances that are leaving already are gone.
    Waits,
    /// At least one more instance has to leave.
    Evicts,
}

/// A host that passed the filters.
#[derive(Debug, Clone)]
pub(crate) struct RankedCandidate {
    pub(crate) host: HostIndex,
    pub(crate) tier: Tier,
    /// The cheapest sufficient victim set, where one is needed and known.
    pub(crate) eviction: Option<Eviction>,
}

impl RankedCandidate {
    /// Looks what a host means for the next instance, or the next bundle.
    pub(crate) fn new(state: &DecisionState<'_>, host: HostIndex) -> Self {
        let count = state.ask.bundle;
        let room = state
            .ask
            .needs
            .iter()
            .all(|n| state.free_full(host, n) >= n.amount * count);
        let fits = |gone: &[ServerId]| {
            let needs = state.needs_on(host, count);
            needs.is_none_or(|needs| needs.fits(gone))
        };
        let tier = if room && fits(&[]) {
            Tier::Room
        } else if state
            .deficit(host, count)
            .iter()
            .all(|missing| *missing <= 0)
            && fits(&state.leaving_for_placed(host))
        {
            Tier::Waits
        } else {
            Tier::Evicts
        };
        Self {
            host,
            tier,
            eviction: None,
        }
    }

    /// What the policy `tiered` compares first, and how many victims there are.
    fn price(&self) -> (EvictionCost, usize) {
        self.eviction
            .as_ref()
            .map_or((EvictionCost::ZERO, 0), |e| (e.cost, e.victims.len()))
    }
}

/// A place with its weights.
#[derive(Debug, Clone)]
pub(crate) struct RankedPlace {
    pub(crate) place: RankedCandidate,
    pub(crate) total: f64,
    pub(crate) weights: Vec<Weight>,
}

/// The answer of a policy.
#[derive(Debug, Default)]
pub(crate) struct Ranking {
    /// The best places, best first, as many as explanations list; the chosen one is always among
    /// them.
    pub(crate) places: Vec<RankedPlace>,
    /// Which of them is taken; `None` if there is none.
    pub(crate) chosen: Option<usize>,
    /// How many places there were to choose from.
    pub(crate) ranked: usize,
    /// Hosts on which no victim set is sufficient, as far as that was looked at.
    pub(crate) impossible: Vec<(HostIndex, ShortageReason)>,
    /// No limit has cut a search that mattered.
    pub(crate) optimal: bool,
    /// How much cheaper the victims could be at most.
    pub(crate) gap: EvictionCost,
}

/// What the policies work with during one attempt to decide.
pub(crate) struct Tools<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) broken: &'a FailedPlugins,
    pub(crate) search: VictimSearch,
    pub(crate) chance: DecisionRng,
    /// False to look at every host: slower, and the same answer.
    pub(crate) fast: bool,
}

impl Tools<'_> {
    /// Ranks places by the configured policy.
    pub(crate) fn rank(
        &mut self,
        state: &DecisionState<'_>,
        places: Vec<RankedCandidate>,
    ) -> Result<Ranking, DecideFailure> {
        match self.engine.config().policy {
            RankingPolicy::Tiered => tiered::rank(self, state, places),
            RankingPolicy::Nova => nova::rank(self, state, places),
            RankingPolicy::FirstFit => first_fit::rank(self, state, places),
        }
    }

    /// How many hosts an explanation lists.
    pub(crate) fn listed(&self) -> usize {
        self.engine.config().explain_hosts as usize
    }

    /// Learns the costs of all candidates on these places.
    fn learn_costs(
        &mut self,
        state: &DecisionState<'_>,
        places: &[RankedCandidate],
    ) -> Result<(), DecideFailure> {
        let hosts = places.iter().map(|p| p.host);
        self.search.prepare(self.engine, self.broken, state, hosts)
    }
}

/// Weighs places that are equal in everything else and appends them to the ranking, best first. If
/// `choose`, one of them is chosen.
pub(crate) fn append_weighed(
    tools: &mut Tools<'_>,
    state: &DecisionState<'_>,
    ranking: &mut Ranking,
    places: Vec<RankedCandidate>,
    choose: bool,
) -> Result<(), DecideFailure> {
    let weighed = weigh(tools.engine, tools.broken, state, &places)?;
    let mut order = weighed.order.clone();
    let chosen = choose
        .then(|| {
            tools
                .chance
                .choose(&mut order, &weighed.totals, tools.engine.config())
        })
        .flatten();
    let room = tools.listed().saturating_sub(ranking.places.len());
    for (rank, &position) in order.iter().enumerate() {
        if rank >= room && chosen.is_none_or(|c| rank > c) {
            break;
        }
        if rank >= room && chosen != Some(rank) {
            continue;
        }
        if chosen == Some(rank) {
            ranking.chosen = Some(ranking.places.len());
        }
        ranking.places.push(RankedPlace {
            place: places[position].clone(),
            total: weighed.totals[position],
            weights: weighed.weights(position),
        });
    }
    Ok(())
}

/// Appends places without weighing them, as many as an explanation still has room for.
fn append_plain(
    tools: &Tools<'_>,
    ranking: &mut Ranking,
    places: impl Iterator<Item = RankedCandidate>,
) {
    let room = tools.listed().saturating_sub(ranking.places.len());
    let plain = |place| RankedPlace {
        place,
        total: 0.0,
        weights: Vec::new(),
    };
    ranking.places.extend(places.take(room).map(plain));
}
