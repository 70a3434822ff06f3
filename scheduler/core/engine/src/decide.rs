//! One attempt to decide: filters, ranking, victims, for one instance after another.

use crate::checked_request::CheckedRequest;
use crate::explain;
use crate::fast;
use crate::filters::{Pipeline, count};
use crate::joint::{self, JointPlacement, JointShare};
use crate::plugins::{DecideFailure, FailedPlugins};
use crate::ranking::{DecisionRng, Ranking, Tier, Tools};
use crate::share::share_out;
use crate::state::DecisionState;
use crate::table::{HostIndex, Slot};
use crate::victims::{VictimSearch, VictimSearchResult};
use crate::{Budgets, Engine, HostTable};
use ebbtide_model::decision::{FilterCount, FilterStep, InstanceExplanation, RankedHost};
use ebbtide_model::{DecisionOutcome, Explanation, NoValidHost, Placement, Timestamp};
use ebbtide_solver::EvictionCost;
use std::collections::BTreeMap;

/// Instances of one request whose explanation lists as many hosts as configured. The others are
/// like them; of each the host taken and the next best are listed.
const FULLY_EXPLAINED: usize = 16;

/// What one step has taken.
struct Taken {
    host: HostIndex,
    tier: Tier,
    victims: Vec<(Slot, EvictionCost)>,
}

/// Tries to decide, without the plugins that are broken.
pub(crate) fn attempt<'a>(
    engine: &Engine,
    broken: &FailedPlugins,
    table: &'a HostTable,
    budgets: &Budgets,
    ask: &'a CheckedRequest<'a>,
    now: Timestamp,
    seed: u64,
) -> Result<(DecisionOutcome, Explanation), DecideFailure> {
    let config = engine.config();
    let mut tools = Tools {
        engine,
        broken,
        search: VictimSearch::new(config.max_solver_nodes),
        chance: DecisionRng::new(seed),
        fast: engine.fast,
    };
    let mut state = DecisionState::new(table, ask, budgets, now);
    let sample = config.explain_dropped as usize;
    let pipeline = if engine.fast {
        Pipeline::new(&state, sample)
    } else {
        Pipeline::simple(&state, sample)
    };
    let mut explanation = Explanation {
        policy: config.policy.as_str().to_owned(),
        cost_module: engine.cost_module.name().to_owned(),
        filtered_on: ask.state_name().to_owned(),
        seed,
        optimal: true,
        warnings: broken.warnings(),
        ..Explanation::default()
    };
    let mut gap = EvictionCost::ZERO;
    // What the victims of the request cost at least, where that was asked for all of them together.
    let mut least: Option<EvictionCost> = None;
    let mut together = false;
    let mut taken: Vec<Taken> = Vec::new();
    for step in 0..ask.steps() {
        let mut found = fast::step(&mut tools, &state, &pipeline)?;
        let filters = std::mem::take(&mut found.filters);
        let (passed, ranking) = (found.passed, found.ranking);
        explanation.optimal &= ranking.optimal;
        gap = gap.checked_add(ranking.gap).unwrap_or(EvictionCost::MAX);
        let mut told = explain_step(&mut tools, &state, filters, passed, &ranking);
        if step >= FULLY_EXPLAINED {
            told.ranking.truncate(2);
        }
        let chosen = ranking.chosen.and_then(|at| ranking.places.get(at));
        let tier = chosen.map(|ranked| ranked.place.tier);
        let left = ask.steps() - step;
        if least.is_none() && tier.is_some_and(|tier| joint::applies(&tools, &state, left, tier)) {
            match joint::place_together(&mut tools, &state, &pipeline, left)? {
                JointPlacement::Placed {
                    shares,
                    optimal,
                    lower_bound,
                } => {
                    explanation.optimal = optimal;
                    least = Some(lower_bound);
                    together = true;
                    for share in shares {
                        take_share(
                            &mut state,
                            &mut taken,
                            &mut explanation.instances,
                            &told,
                            &share,
                        );
                    }
                    break;
                }
                JointPlacement::Open(lower_bound) => least = Some(lower_bound),
                // One after another says which one has no place.
                JointPlacement::Impossible => least = Some(EvictionCost::ZERO),
            }
        }
        let Some(chosen) = chosen.map(|ranked| &ranked.place) else {
            let answer = refusal(ask, table, step, &told);
            explanation.instances.push(told);
            explanation.gap = 0.0;
            return Ok((DecisionOutcome::NoValidHost(answer), explanation));
        };
        explanation.instances.push(told);
        let victims = chosen
            .eviction
            .as_ref()
            .map_or_else(Vec::new, |e| e.victims.clone());
        let slots: Vec<Slot> = victims.iter().map(|(slot, _)| *slot).collect();
        state.place(chosen.host, ask.bundle, &slots);
        taken.push(Taken {
            host: chosen.host,
            tier: chosen.tier,
            victims,
        });
    }
    if !together {
        join_victims(&mut tools, &mut state, &mut taken)?;
    }
    let victims = || taken.iter().flat_map(|taken| &taken.victims);
    let slots: Vec<Slot> = victims().map(|(slot, _)| *slot).collect();
    let surcharge = tools.search.surcharge_of(&state, &slots)?;
    explanation.surcharge = surcharge.to_units();
    if least.is_none() && state.host_needs().is_some() && ask.steps() > 1 {
        // Each has the cheapest victims after those before it; all together may have cheaper ones.
        least = Some(EvictionCost::ZERO);
    }
    if let Some(least) = least {
        let sum = victims().fold(surcharge.micros(), |sum, (_, cost)| {
            sum.saturating_add(cost.micros())
        });
        gap = EvictionCost::from_micros(sum.saturating_sub(least.micros()));
        explanation.optimal &= together && gap == EvictionCost::ZERO;
    }
    explanation.gap = gap.to_units();
    let alternates = alternates(&mut tools, &state, &pipeline, &taken)?;
    let placements = placements(&state, &taken, &alternates);
    Ok((DecisionOutcome::Placed(placements), explanation))
}

/// Records what the joint search has chosen for one host. Each instance gets a copy of `first`, the
/// explanation of the first instance that found no free capacity, with its own host at the top of
/// the ranking.
fn take_share(
    state: &mut DecisionState<'_>,
    taken: &mut Vec<Taken>,
    instances: &mut Vec<InstanceExplanation>,
    first: &InstanceExplanation,
    share: &JointShare,
) {
    let before = taken.iter().filter(|t| t.host == share.host).count();
    let slots: Vec<Slot> = share.victims.iter().map(|(slot, _)| *slot).collect();
    let count = i64::try_from(share.count).unwrap_or(i64::MAX);
    state.place(share.host, count, &slots);
    // Those that were placed here before have found room, so their parts are empty.
    let parts = share_out(state, share.host, before + share.count, &share.victims);
    for victims in parts.into_iter().skip(before) {
        let listed = first.ranking.len().max(1);
        let listed = if taken.len() < FULLY_EXPLAINED {
            listed
        } else {
            listed.min(2)
        };
        let mut told = first.clone();
        let cost = victims
            .iter()
            .map(|(_, cost)| cost.micros())
            .fold(0, u64::saturating_add);
        let name = state.table.host_name(share.host);
        told.ranking.retain(|other| other.host != name);
        told.ranking
            .iter_mut()
            .for_each(|other| other.chosen = false);
        told.ranking.insert(
            0,
            RankedHost {
                host: name.to_owned(),
                chosen: true,
                eviction_cost: Some(EvictionCost::from_micros(cost).to_units()),
                victims: victims
                    .iter()
                    .map(|&(slot, cost)| explain::victim(state, slot, cost))
                    .collect(),
                weight: share.total,
                weights: share.weights.clone(),
            },
        );
        told.ranking.truncate(listed);
        instances.push(told);
        taken.push(Taken {
            host: share.host,
            tier: Tier::Evicts,
            victims,
        });
    }
}

/// The explanation of one step. Hosts without a sufficient victim set appear in the form of a
/// filter step.
fn explain_step(
    tools: &mut Tools<'_>,
    state: &DecisionState<'_>,
    mut filters: Vec<FilterStep>,
    passed: u32,
    ranking: &Ranking,
) -> InstanceExplanation {
    if !ranking.impossible.is_empty() {
        let sample = tools.engine.config().explain_dropped as usize;
        let dropped = ranking
            .impossible
            .iter()
            .take(sample)
            .map(|&(host, why)| (host, tools.search.reason(state, host, why)))
            .collect();
        let lost = count(&ranking.impossible);
        filters.push(explain::victims_step(state, passed, lost, dropped));
    }
    let chosen = ranking.chosen;
    InstanceExplanation {
        filters,
        ranking: ranking
            .places
            .iter()
            .enumerate()
            .map(|(at, ranked)| explain::ranked_host(state, ranked, chosen == Some(at)))
            .collect(),
        ranked: u32::try_from(ranking.ranked).unwrap_or(u32::MAX),
    }
}

fn refusal(
    ask: &CheckedRequest<'_>,
    table: &HostTable,
    placed_before: usize,
    told: &InstanceExplanation,
) -> NoValidHost {
    let dropped = told
        .filters
        .iter()
        .map(|s| FilterCount {
            filter: s.filter.clone(),
            dropped: s.before - s.after,
        })
        .collect();
    NoValidHost {
        reason: explain::no_valid_host(ask, placed_before, &told.filters),
        placed_before: u32::try_from(placed_before).unwrap_or(u32::MAX),
        dropped,
        hosts: count(table.order()),
    }
}

/// Solves each host again on which several instances of the request have chosen victims one after
/// another. All these instances together may need fewer or cheaper victims, because a later victim
/// can make an earlier one superfluous. The second solution spares each instance that can stay.
fn join_victims(
    tools: &mut Tools<'_>,
    state: &mut DecisionState<'_>,
    taken: &mut [Taken],
) -> Result<(), DecideFailure> {
    let mut of_host: BTreeMap<HostIndex, Vec<usize>> = BTreeMap::new();
    for (step, taken) in taken.iter().enumerate() {
        of_host.entry(taken.host).or_default().push(step);
    }
    for (host, steps) in of_host {
        let before: Vec<(Slot, EvictionCost)> = steps
            .iter()
            .flat_map(|&step| taken[step].victims.iter().copied())
            .collect();
        if steps.len() < 2 || before.is_empty() {
            continue;
        }
        state.drop_victims(host);
        // The instances are counted as placed already: what is missing for none more is what is
        // missing for them.
        let verdict = tools.search.solve(state, host, 0, None)?;
        let slots: Vec<Slot> = before.iter().map(|(slot, _)| *slot).collect();
        let surcharge = tools.search.surcharge_of(state, &slots)?.micros();
        let cost = before.iter().map(|(_, cost)| cost.micros()).sum::<u64>() + surcharge;
        let joint = match verdict {
            VictimSearchResult::Found(e)
                if (e.cost.micros(), e.victims.len()) < (cost, before.len()) =>
            {
                e
            }
            _ => {
                let slots: Vec<Slot> = before.iter().map(|(slot, _)| *slot).collect();
                state.replace_victims(host, &slots);
                continue;
            }
        };
        let shares = share_out(state, host, steps.len(), &joint.victims);
        state.replace_victims(host, &joint.slots());
        for (&step, share) in steps.iter().zip(shares) {
            taken[step].victims = share;
        }
    }
    Ok(())
}

/// Other hosts with room, best first, as Nova does it: one list after everything is placed, for all
/// instances.
fn alternates(
    tools: &mut Tools<'_>,
    state: &DecisionState<'_>,
    pipeline: &Pipeline,
    taken: &[Taken],
) -> Result<Vec<String>, DecideFailure> {
    let wanted = state.ask.alternates as usize;
    if wanted == 0 {
        return Ok(Vec::new());
    }
    let selected: Vec<HostIndex> = taken.iter().map(|taken| taken.host).collect();
    let best = fast::alternates(tools, state, pipeline, &selected, wanted)?;
    let name = |host: &HostIndex| state.table.host_name(*host).to_owned();
    Ok(best.iter().map(name).collect())
}

/// One placement for each instance, in the order of the request.
fn placements(state: &DecisionState<'_>, taken: &[Taken], alternates: &[String]) -> Vec<Placement> {
    let ids = state.ask.server_ids.iter().copied();
    let placement = |server_id, host, victims: &[(Slot, EvictionCost)], waits| Placement {
        server_id,
        host: state.table.host_name(host).to_owned(),
        victims: victims
            .iter()
            .map(|&(slot, cost)| explain::victim(state, slot, cost))
            .collect(),
        waits_for_room: waits,
        alternates: alternates.to_vec(),
    };
    match taken {
        [all] if state.ask.bundle > 1 => {
            // One step has placed them all; the room that is there goes to the first.
            let shares = share_out(state, all.host, ids.len(), &all.victims);
            ids.zip(shares)
                .enumerate()
                .map(|(rank, (id, share))| {
                    let waits = !crate::share::fits_now(state, all.host, rank + 1);
                    placement(id, all.host, &share, waits)
                })
                .collect()
        }
        _ => ids
            .zip(taken)
            .map(|(id, t)| placement(id, t.host, &t.victims, t.tier != Tier::Room))
            .collect(),
    }
}
