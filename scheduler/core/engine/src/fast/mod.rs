//! One step of a decision over a large cloud: the same answer as filtering, ranking and solving
//! host by host, without looking at every host.
//!
//! Sets of hosts are bits; free amounts, what weighers compare, and launch times are columns of
//! small numbers with the range of each 64 hosts beside them. What cannot be done so (a policy that
//! prices every host, a weigher or a cost module that says nothing about itself, chance) is done by
//! the simple modules, [`filters`](crate::filters) and [`ranking`](crate::ranking), on what is
//! left. They are also the reference: tests compare whole decisions.

mod bounds;
mod evict;
mod phases;
mod survey;
mod weigh;

use crate::filters::{FilterPlugins, FilterResult, FilteredHosts, Pipeline, count};
use crate::plugins::DecideFailure;
use crate::ranking::{
    RankedCandidate, RankedPlace, Ranking, Tier, Tools, append_weighed, exact_places, rank_solved,
};
use crate::state::DecisionState;
use crate::table::HostIndex;
use crate::{RankingPolicy, ranking};
use ebbtide_model::decision::FilterStep;
use ebbtide_model::host_set::HostSet;
use ebbtide_solver::EvictionCost;
use phases::Clock;
use survey::CompactDemand;

/// What one step has found.
pub(crate) struct PlacementStep {
    /// What each filter left.
    pub(crate) filters: Vec<FilterStep>,
    /// How many hosts passed them.
    pub(crate) passed: u32,
    pub(crate) ranking: Ranking,
}

/// Filters and ranks the hosts for the next instance, or the next bundle.
pub(crate) fn step(
    tools: &mut Tools<'_>,
    state: &DecisionState<'_>,
    pipeline: &Pipeline,
) -> Result<PlacementStep, DecideFailure> {
    let usable = tools.fast && tools.engine.config().policy == RankingPolicy::Tiered;
    let wanted = survey::wanted(state).filter(|_| usable && is_bounded(state));
    match wanted {
        Some(wanted) => tiered(tools, state, pipeline, &wanted),
        None => simple(tools, state, pipeline),
    }
}

/// Whether something is known of every host without asking it: a request for amounts, or one that a
/// judge decides of which is known how many victims each host needs.
fn is_bounded(state: &DecisionState<'_>) -> bool {
    state.host_needs().is_none() || state.fewest().is_some()
}

/// Host by host.
fn simple(
    tools: &mut Tools<'_>,
    state: &DecisionState<'_>,
    pipeline: &Pipeline,
) -> Result<PlacementStep, DecideFailure> {
    let FilterResult { hosts, steps } = pipeline.next(plugins(tools), state)?;
    let passed = count(&hosts);
    let ranking = tools.rank(state, places(state, hosts))?;
    Ok(PlacementStep {
        filters: steps,
        passed,
        ranking,
    })
}

/// The operator's filters of this attempt.
pub(crate) fn plugins<'e>(tools: &Tools<'e>) -> FilterPlugins<'e> {
    FilterPlugins::new(tools.engine, tools.broken)
}

fn places(state: &DecisionState<'_>, hosts: Vec<HostIndex>) -> Vec<RankedCandidate> {
    let hosts = hosts.into_iter();
    hosts
        .map(|host| RankedCandidate::new(state, host))
        .collect()
}

/// The policy `tiered`.
fn tiered(
    tools: &mut Tools<'_>,
    state: &DecisionState<'_>,
    pipeline: &Pipeline,
    wanted: &[CompactDemand<'_>],
) -> Result<PlacementStep, DecideFailure> {
    let mut room = None;
    let FilteredHosts { hosts, steps } = pipeline.next_set(plugins(tools), state, |hosts| {
        let fits = fitting(hosts, wanted, state, survey::FULL, Tier::Room);
        let passed = if state.ask.preemptible() {
            fits.clone()
        } else {
            with_capacity(hosts, wanted, state)
        };
        room = Some(fits);
        passed
    })?;
    let done = |ranking| {
        let passed = u32::try_from(hosts.count()).unwrap_or(u32::MAX);
        Ok(PlacementStep {
            filters: steps,
            passed,
            ranking,
        })
    };
    let Some(mut room) = room.filter(|_| !hosts.is_empty()) else {
        return done(Ranking {
            optimal: true,
            ..Ranking::default()
        });
    };
    room.keep(&hosts);
    let best = if room.is_empty() {
        let waits = fitting(&hosts, wanted, state, survey::FUTURE, Tier::Waits);
        if waits.is_empty() {
            return done(evict(tools, state, &hosts, wanted)?);
        }
        waits
    } else {
        room.clone()
    };
    let mut ranking = Ranking {
        optimal: true,
        ranked: hosts.count(),
        ..Ranking::default()
    };
    let tier = if room.is_empty() {
        Tier::Waits
    } else {
        Tier::Room
    };
    append(tools, state, &mut ranking, &best, tier)?;
    // Behind them those that wait, behind those the ones that evict, as many as are still listed.
    let missing = tools.listed().saturating_sub(ranking.places.len());
    if missing > 0 && best.count() < hosts.count() {
        let rest = hosts.without(&best);
        let waits = fitting(&rest, wanted, state, survey::FUTURE, Tier::Waits);
        for (set, tier) in [(&waits, Tier::Waits), (&rest.without(&waits), Tier::Evicts)] {
            let missing = tools.listed().saturating_sub(ranking.places.len());
            let plain = |host| plain(host, tier);
            let first = state.table.first_of(set, missing);
            ranking.places.extend(first.into_iter().map(plain));
        }
    }
    done(ranking)
}

fn plain(host: HostIndex, tier: Tier) -> RankedPlace {
    RankedPlace {
        place: RankedCandidate {
            host,
            tier,
            eviction: None,
        },
        total: 0.0,
        weights: Vec::new(),
    }
}

/// Those of `hosts` that are in a tier or in a better one.
fn fitting(
    hosts: &HostSet,
    wanted: &[CompactDemand<'_>],
    state: &DecisionState<'_>,
    which: survey::StateColumn,
    tier: Tier,
) -> HostSet {
    let mut fit = survey::fitting(hosts, wanted, which);
    if let Some(fewest) = state.fewest() {
        // Amounts suffice; where devices may, too, the judge has to say so.
        for at in fit.iter().collect::<Vec<_>>() {
            let fits = || RankedCandidate::new(state, HostIndex::new(at)).tier <= tier;
            fit.put(at, fewest[at] == 0 && fits());
        }
    }
    survey::amend(&mut fit, hosts, state, |host| {
        RankedCandidate::new(state, host).tier <= tier
    });
    fit
}

/// Weighs hosts of one tier in which no instance has to leave, and appends the best. The best of
/// all is chosen.
fn append(
    tools: &mut Tools<'_>,
    state: &DecisionState<'_>,
    ranking: &mut Ranking,
    hosts: &HostSet,
    tier: Tier,
) -> Result<(), DecideFailure> {
    let config = tools.engine.config();
    let chance = config.shuffle_best_same_weighed_hosts || config.host_subset_size > 1;
    let many = tools.listed().max(1);
    let best = if chance {
        None
    } else {
        weigh::best(tools.engine, tools.broken, state, hosts, tier, many)
    };
    match best {
        Some(best) => {
            ranking.chosen = Some(ranking.places.len());
            ranking.places.extend(best);
            Ok(())
        }
        None => {
            let places = places(state, state.table.in_order(hosts));
            append_weighed(tools, state, ranking, places, true)
        }
    }
}

/// Ranks hosts when none has free capacity, not even after the instances that are leaving are gone.
fn evict(
    tools: &mut Tools<'_>,
    state: &DecisionState<'_>,
    hosts: &HostSet,
    wanted: &[CompactDemand<'_>],
) -> Result<Ranking, DecideFailure> {
    let Some(clock) = Clock::new(tools.engine, tools.broken, state) else {
        let places = places(state, state.table.in_order(hosts));
        return tools.rank(state, places);
    };
    let exact = exact_places(tools);
    let (places, solved) = evict::evict(tools, state, hosts, wanted, &clock, exact)?;
    rank_solved(tools, state, &places, solved, hosts.count())
}

/// The hosts that may take one more instance, each with a lower bound of its eviction cost. `None`
/// if that requires pricing every instance.
///
/// # Errors
/// The failure of a plugin.
pub(crate) fn lower_bounds(
    tools: &mut Tools<'_>,
    state: &DecisionState<'_>,
    pipeline: &Pipeline,
) -> Result<Option<Vec<(HostIndex, EvictionCost)>>, DecideFailure> {
    let Some(wanted) = survey::wanted(state).filter(|_| tools.fast) else {
        return Ok(None);
    };
    let Some(clock) = Clock::new(tools.engine, tools.broken, state) else {
        return Ok(None);
    };
    let capacity = |hosts: &HostSet| with_capacity(hosts, &wanted, state);
    let passed = pipeline.next_set(plugins(tools), state, capacity)?;
    let bounds = evict::lower_bounds(tools, state, &passed.hosts, &wanted, &clock);
    Ok(Some(bounds))
}

/// Those of `hosts` that hold the request in h_n.
fn with_capacity(
    hosts: &HostSet,
    wanted: &[CompactDemand<'_>],
    state: &DecisionState<'_>,
) -> HostSet {
    let mut passed = survey::fitting(hosts, wanted, survey::NORMAL);
    survey::amend(&mut passed, hosts, state, |host| {
        let mut needs = state.ask.needs.iter();
        needs.all(|n| state.free_normal(host, n) >= n.amount * state.ask.bundle)
    });
    passed
}

/// The best `many` of the hosts that have room, none of those in `taken`.
pub(crate) fn alternates(
    tools: &Tools<'_>,
    state: &DecisionState<'_>,
    pipeline: &Pipeline,
    taken: &[HostIndex],
    many: usize,
) -> Result<Vec<HostIndex>, DecideFailure> {
    let wanted = survey::wanted(state).filter(|_| tools.fast && is_bounded(state));
    let mut hosts = match wanted {
        Some(wanted) => {
            let full = |hosts: &HostSet| fitting(hosts, &wanted, state, survey::FULL, Tier::Room);
            pipeline.next_set(plugins(tools), state, full)?.hosts
        }
        None => {
            let places = places(state, pipeline.next(plugins(tools), state)?.hosts);
            let mut hosts = state.table.known().none_like();
            for place in places.iter().filter(|place| place.tier == Tier::Room) {
                hosts.set(place.host.at());
            }
            hosts
        }
    };
    taken.iter().for_each(|host| hosts.clear(host.at()));
    if tools.engine.config().policy == RankingPolicy::FirstFit {
        return Ok(state.table.first_of(&hosts, many));
    }
    if tools.fast
        && let Some(best) = weigh::best(tools.engine, tools.broken, state, &hosts, Tier::Room, many)
    {
        return Ok(best.into_iter().map(|ranked| ranked.place.host).collect());
    }
    let places = places(state, state.table.in_order(&hosts));
    let weighed = ranking::weigh(tools.engine, tools.broken, state, &places)?;
    let order = weighed.order.iter().take(many);
    Ok(order.map(|&at| places[at].host).collect())
}
