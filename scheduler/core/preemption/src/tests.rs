//! A small world around the record: Placement, agents, a caller, and a scheduler that may die
//! between doing and writing.

mod deleted;
mod forged;
mod restored;
mod stored;
mod without_newcomers;

use super::{
    Holding, Newcomer, Preemption, PreemptionAction, PreemptionInput, PreemptionPolicy,
    PreemptionState, ReplyWhen, Victim, VictimState, WithdrawalReason,
};
use ebbtide_model::message::{Body, Draining, Evacuated, EvacuationEnd, EvacuationFailed, Spared};
use ebbtide_model::{
    EvacuationCause, EvacuationId, InterruptionBehaviour, Seconds, ServerId, Timestamp,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use uuid::Uuid;

fn holding() -> Holding {
    Holding {
        allocations: serde_json::json!({}),
        mappings: None,
        project_id: "p".to_owned(),
        user_id: "u".to_owned(),
        generation: None,
    }
}

fn record(victims: u8, reply_when: ReplyWhen) -> Preemption {
    let victim = |n: u8| Victim {
        server: ServerId(Uuid::from_u128(u128::from(n) + 100)),
        name: String::new(),
        cost: 0.0,
        evacuation: EvacuationId(Uuid::from_u128(u128::from(n) + 200)),
        host: "h".to_owned(),
        had: holding(),
        generation: 1,
        keeps: None,
        behaviour: InterruptionBehaviour::Terminate,
        grace: Seconds(30),
        flavor: "spot".to_owned(),
        launched_at: None,
        released: false,
        state: VictimState::Claimed,
    };
    Preemption {
        id: Uuid::from_u128(1),
        cause: EvacuationCause::Preemption,
        reclaim_owner: None,
        decision_id: None,
        request_id: "req-1".to_owned(),
        unique_id: "u".to_owned(),
        planned_at: Timestamp::from_millis(1_000_000),
        state: PreemptionState::Planned,
        answerer: None,
        reply_when,
        answered: false,
        in_doubt: false,
        unconfirmed: false,
        caller_seen: None,
        newcomers: vec![Newcomer {
            instance: Uuid::from_u128(50),
            host: "h".to_owned(),
            claim: holding(),
            before: None,
        }],
        victims: (0..victims).map(victim).collect(),
        result: serde_json::json!([]),
        reason: None,
        withdrawal: None,
        returned: false,
        give_back_at: None,
        give_back_refusals: 0,
    }
}

/// What an agent does with a victim.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Agent {
    Prompt,
    Silent,
    Fails,
}

#[derive(Debug, Clone)]
struct Plan {
    agents: Vec<Agent>,
    /// After how many steps the caller gives up.
    patience: Option<u32>,
    /// What Placement answers to swaps, in order; then it takes them.
    swaps: Vec<Swap>,
    /// After how many steps the newcomer is deleted, and with it its allocations.
    deleted: Option<u32>,
    /// At which steps the scheduler dies after doing and before writing.
    deaths: Vec<u32>,
    /// How many returns of allocations Placement refuses at first.
    refusals: u32,
    at_once: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Swap {
    Takes,
    Refuses,
    /// It takes it, and the answer is lost.
    TakesSilently,
    /// It never hears of it.
    Lost,
}

#[derive(Default)]
struct PlacementWorld {
    /// Placement: the swap is in force.
    swapped: bool,
    /// Placement: allocations were given back.
    given_back: bool,
    /// Placement: victims that hold nothing since the swap.
    bare: BTreeSet<usize>,
    /// Placement has the newcomer's claim.
    claimed: bool,
    /// Placement refuses the next returns of allocations.
    refuses: u32,
    notices: BTreeMap<usize, Timestamp>,
    gone: BTreeSet<usize>,
    draining: BTreeSet<usize>,
    inbox: VecDeque<Body>,
    told_while_unclaimed: bool,
    answers: Vec<bool>,
    /// What is told as soon as it is written.
    said: Option<bool>,
    usage: BTreeMap<usize, u32>,
    /// Transitions of victims that are none of the protocol.
    illegal: Vec<String>,
}

impl PlacementWorld {
    /// Notes what the protocol of one victim does not allow between two states of the record.
    fn note_transitions(&mut self, before: &Preemption, after: &Preemption) {
        for (was, is) in before.victims.iter().zip(&after.victims) {
            let (from, to) = (was.state.progress(), is.state.progress());
            if was.evacuation == is.evacuation && !from.may_become(to) {
                self.illegal.push(format!("{from:?} to {to:?}"));
            }
        }
    }
}

fn run(plan: &Plan) -> (Preemption, PlacementWorld) {
    let policy = PreemptionPolicy::default();
    let reply = if plan.at_once {
        ReplyWhen::AtOnce
    } else {
        ReplyWhen::RoomFree
    };
    let victims = u8::try_from(plan.agents.len()).unwrap();
    let mut stored = record(victims, reply);
    let mut world = PlacementWorld {
        refuses: plan.refusals,
        ..PlacementWorld::default()
    };
    let mut swaps: VecDeque<Swap> = plan.swaps.iter().copied().collect();
    let mut now = Timestamp::from_millis(1_000_000);
    for step in 0..4_000_u32 {
        let mut doc: Preemption =
            serde_json::from_str(&serde_json::to_string(&stored).unwrap()).unwrap();
        let waits = plan.patience.is_none_or(|patience| step < patience);
        let deleted = plan.deleted.is_some_and(|at| step >= at);
        world.claimed &= !deleted;
        if deleted
            && matches!(
                doc.state,
                PreemptionState::Claimed | PreemptionState::Evacuating
            )
        {
            doc.feed(&PreemptionInput::NewcomersGone, now, &policy);
        }
        let waits = waits && !deleted;
        let report = world.inbox.pop_front();
        match &report {
            Some(body) => doc.feed(&PreemptionInput::Report(body), now, &policy),
            None => doc.feed(&PreemptionInput::Tick, now, &policy),
        };
        if let Some(action) = doc.due(now, &policy).first().cloned() {
            perform(
                &action, &mut doc, &mut world, &mut swaps, waits, now, &policy,
            );
        } else {
            if doc.state.is_final() {
                return (doc, world);
            }
            now = now.plus(Seconds(1));
            agents(&doc, &mut world, plan, now);
        }
        world.note_transitions(&stored, &doc);
        let said = world.said.take();
        if plan.deaths.contains(&step) {
            // What was not written was not acknowledged: it comes again.
            world.inbox.extend(report);
        } else {
            stored = doc;
            world.answers.extend(said);
        }
    }
    panic!("it never ends: {stored:?}");
}

fn perform(
    action: &PreemptionAction,
    doc: &mut Preemption,
    world: &mut PlacementWorld,
    swaps: &mut VecDeque<Swap>,
    waits: bool,
    now: Timestamp,
    policy: &PreemptionPolicy,
) {
    match action {
        PreemptionAction::Swap => {
            let answer = if world.swapped {
                // The same swap a second time: the victims' generations are gone.
                Swap::Refuses
            } else {
                swaps.pop_front().unwrap_or(Swap::Takes)
            };
            if matches!(answer, Swap::Takes | Swap::TakesSilently) {
                world.swapped = true;
                world.claimed = true;
                world.bare = (0..doc.victims.len()).collect();
            }
            let input = match answer {
                Swap::Takes => PreemptionInput::Swapped,
                // The shell reads before it believes a refusal of a swap that may have been sent
                // before.
                Swap::Refuses if world.swapped => PreemptionInput::SwapUnknown,
                Swap::Refuses => PreemptionInput::SwapRefused { reason: "409" },
                Swap::TakesSilently | Swap::Lost => PreemptionInput::SwapUnknown,
            };
            doc.feed(&input, now, policy);
        }
        PreemptionAction::ReadSwap => {
            let in_force = world.swapped;
            doc.feed(&PreemptionInput::SwapRead { in_force }, now, policy);
        }
        PreemptionAction::AskCaller => {
            doc.feed(&PreemptionInput::Caller { waits }, now, policy);
        }
        PreemptionAction::Notify(order) => {
            world.told_while_unclaimed |=
                !world.swapped || doc.state != PreemptionState::Evacuating;
            world.notices.entry(order.victim).or_insert(now);
            let input = PreemptionInput::NoticePublished {
                victim: order.victim,
                attempt: order.attempt,
                begin_before: order.begin_before,
            };
            doc.feed(&input, now, policy);
        }
        PreemptionAction::Spare(victim) => {
            if world.notices.contains_key(victim) && !world.gone.contains(victim) {
                world.notices.remove(victim);
                world.inbox.push_back(Body::Spared(Spared {
                    evacuation_id: doc.victims[*victim].evacuation,
                    host: "h".to_owned(),
                    server_id: doc.victims[*victim].server,
                }));
            }
            doc.feed(
                &PreemptionInput::SparePublished { victim: *victim },
                now,
                policy,
            );
        }
        PreemptionAction::Answer | PreemptionAction::AnswerNoRoom => {
            world.said = Some(*action == PreemptionAction::Answer);
            doc.feed(&PreemptionInput::Answered, now, policy);
        }
        PreemptionAction::Release(_) => panic!("the swap has taken what they held"),
        PreemptionAction::Record(victim) => {
            *world.usage.entry(*victim).or_default() += 1;
            doc.feed(&PreemptionInput::Recorded { victim: *victim }, now, policy);
        }
        PreemptionAction::GiveBack => {
            assert!(world.swapped, "nothing was taken that could go back");
            if world.refuses > 0 {
                world.refuses -= 1;
                doc.feed(
                    &PreemptionInput::GiveBackFailed { reason: "409" },
                    now,
                    policy,
                );
                return;
            }
            world.given_back = true;
            world.claimed = false;
            world.bare.clear();
            doc.feed(&PreemptionInput::GivenBack, now, policy);
        }
    }
}

/// Agents answer notices: at once that the guest knows, 30 seconds later that it is gone.
fn agents(doc: &Preemption, world: &mut PlacementWorld, plan: &Plan, now: Timestamp) {
    for (place, since) in world.notices.clone() {
        let victim = &doc.victims[place];
        let (evacuation_id, server_id, host) =
            (victim.evacuation, victim.server, victim.host.clone());
        if world.gone.contains(&place) {
            continue;
        }
        match plan.agents[place] {
            Agent::Silent => {}
            Agent::Fails => {
                world.notices.remove(&place);
                world
                    .inbox
                    .push_back(Body::EvacuationFailed(EvacuationFailed {
                        evacuation_id,
                        host,
                        server_id,
                        reason: "it would not go".to_owned(),
                        still_running: true,
                        late_attempt: None,
                    }));
            }
            Agent::Prompt => {
                if now.millis_since(since) > 30_000 {
                    world.gone.insert(place);
                    world.inbox.push_back(Body::Evacuated(Evacuated {
                        evacuation_id,
                        host,
                        server_id,
                        how: EvacuationEnd::Terminated,
                        at: now,
                        unbilled_seconds: None,
                        storage: None,
                    }));
                } else if world.draining.insert(place) {
                    world.inbox.push_back(Body::Draining(Draining {
                        evacuation_id,
                        host,
                        server_id,
                        notified_at: since,
                        deadline_at: since.plus(Seconds(30)),
                    }));
                }
            }
        }
    }
}

fn plans() -> impl Strategy<Value = Plan> {
    let agent = prop_oneof![
        6 => Just(Agent::Prompt),
        1 => Just(Agent::Silent),
        1 => Just(Agent::Fails),
    ];
    let swap = prop_oneof![
        Just(Swap::Takes),
        Just(Swap::Refuses),
        Just(Swap::TakesSilently),
        Just(Swap::Lost),
    ];
    (
        prop::collection::vec(agent, 1..4),
        prop::option::of(0..200_u32),
        prop::option::of(0..100_u32),
        prop::collection::vec(swap, 0..3),
        prop::collection::vec(0..200_u32, 0..20),
        0..4_u32,
        any::<bool>(),
    )
        .prop_map(
            |(agents, patience, deleted, swaps, deaths, refusals, at_once)| Plan {
                // Once the caller has its answer a victim that never goes keeps the record open for
                // ever, as it should.
                agents: if at_once {
                    vec![Agent::Prompt; agents.len()]
                } else {
                    agents
                },
                patience,
                deleted,
                swaps,
                deaths,
                refusals,
                at_once,
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn no_victim_is_notified_before_placement_has_taken_the_swap(plan in plans()) {
        let (_, world) = run(&plan);
        prop_assert!(!world.told_while_unclaimed);
    }

    #[test]
    fn every_victim_follows_the_transitions_of_the_protocol(plan in plans()) {
        let (_, world) = run(&plan);
        prop_assert!(world.illegal.is_empty(), "{:?}", world.illegal);
    }

    #[test]
    fn it_ends_with_the_room_free_or_with_everything_given_back(plan in plans()) {
        let (doc, world) = run(&plan);
        match doc.state {
            PreemptionState::Done => {
                prop_assert!(world.swapped && !world.given_back);
                prop_assert_eq!(world.gone.len(), doc.victims.len());
            }
            PreemptionState::Withdrawn => {
                prop_assert!(world.given_back && !world.claimed);
                let bare: Vec<_> = world.bare.difference(&world.gone).collect();
                prop_assert!(bare.is_empty(), "{bare:?} run without allocations");
            }
            PreemptionState::Refused => prop_assert!(world.notices.is_empty() && !world.swapped),
            other => prop_assert!(false, "ended as {:?}", other),
        }
    }

    #[test]
    fn a_caller_that_waits_gets_one_kind_of_answer(plan in plans()) {
        let (doc, world) = run(&plan);
        let yes = world.answers.iter().any(|answer| *answer);
        let no = world.answers.iter().any(|answer| !answer);
        prop_assert!(!(yes && no), "{:?}", world.answers);
        // An early answer does not keep the newcomer from being deleted.
        let deleted = doc.withdrawal == Some(WithdrawalReason::NewcomersGone);
        prop_assert!(yes == (doc.state == PreemptionState::Done) || yes && deleted);
    }

    #[test]
    fn every_victim_that_is_gone_has_its_usage_recorded(plan in plans()) {
        let (doc, world) = run(&plan);
        for (place, victim) in doc.victims.iter().enumerate() {
            let gone = matches!(victim.state, VictimState::Evacuated { .. });
            prop_assert_eq!(gone, world.usage.contains_key(&place), "{:?}", victim);
        }
    }
}

#[test]
fn a_report_about_another_server_changes_nothing() {
    let policy = PreemptionPolicy::default();
    let mut doc = record(1, ReplyWhen::RoomFree);
    doc.state = PreemptionState::Evacuating;
    let now = Timestamp::from_millis(5);
    for (host, server) in [("other", 100), ("h", 7)] {
        let body = Body::Evacuated(Evacuated {
            evacuation_id: doc.victims[0].evacuation,
            host: host.to_owned(),
            server_id: ServerId(Uuid::from_u128(server)),
            how: EvacuationEnd::Terminated,
            at: now,
            unbilled_seconds: None,
            storage: None,
        });
        assert!(!doc.feed(&PreemptionInput::Report(&body), now, &policy));
    }
}

#[test]
fn a_victim_that_would_not_go_is_notified_again_once_the_newcomer_is_there() {
    let policy = PreemptionPolicy::default();
    let mut doc = record(1, ReplyWhen::AtOnce);
    doc.state = PreemptionState::Evacuating;
    doc.answered = true;
    let first = doc.victims[0].evacuation;
    let now = Timestamp::from_millis(5);
    doc.victims[0].state = VictimState::Failed {
        reason: "it would not go".to_owned(),
        again: now,
    };
    assert_eq!(doc.wake_at(&policy), Some(now));
    assert!(doc.feed(&PreemptionInput::Tick, now, &policy));
    assert_eq!(doc.victims[0].state, VictimState::Claimed);
    assert_ne!(doc.victims[0].evacuation, first, "it is another evacuation");
}

/// A record whose only victim is in a state, with its notices out.
fn evacuating(state: VictimState) -> Preemption {
    let mut doc = record(1, ReplyWhen::RoomFree);
    doc.state = PreemptionState::Evacuating;
    doc.planned_at = Timestamp::from_millis(1_990_000);
    doc.victims[0].state = state;
    doc
}

#[test]
fn a_victim_whose_agent_is_silent_gets_its_room_back_and_the_record_ends_once_it_was_asked_to_stay()
{
    let policy = PreemptionPolicy::default();
    let now = Timestamp::from_millis(2_000_000);
    let begin_before = now.plus(Seconds(5));
    for silent in [
        VictimState::Notified {
            attempt: policy.evacuation.notice_attempts,
            published: true,
            until: now,
            begin_before,
        },
        VictimState::Draining {
            deadline: now.minus(policy.evacuation.act_timeout),
        },
    ] {
        let mut doc = evacuating(silent);
        assert!(doc.feed(&PreemptionInput::Tick, now, &policy));
        assert_eq!(doc.state, PreemptionState::Withdrawing);
        assert_eq!(
            doc.due(now, &policy),
            [PreemptionAction::GiveBack, PreemptionAction::Spare(0)],
            "it may only be slow, or not be heard"
        );
        assert!(doc.feed(&PreemptionInput::GivenBack, now, &policy));
        // The broker is away for long: the record does not end before the agent can know.
        let later = now.plus(Seconds(100_000));
        assert!(!doc.feed(&PreemptionInput::Tick, later, &policy));
        assert_eq!(doc.due(later, &policy), [PreemptionAction::Spare(0)]);
        doc.feed(&PreemptionInput::SparePublished { victim: 0 }, now, &policy);
        assert_eq!(doc.due(now, &policy), []);
        let late = doc.wake_at(&policy).expect("it waits for the agent");
        doc.feed(&PreemptionInput::Tick, late, &policy);
        assert_eq!(doc.due(late, &policy), [PreemptionAction::GiveBack]);
    }
}

#[test]
fn a_victim_that_may_have_its_notice_is_spared() {
    let policy = PreemptionPolicy::default();
    let now = Timestamp::from_millis(2_000_000);
    let reason = "it is not needed";
    // The scheduler may have died between sending the notice and writing that.
    let why = WithdrawalReason::HostOverfull;
    let mut doc = evacuating(VictimState::Claimed);
    assert!(doc.feed(&PreemptionInput::Withdraw { why, reason }, now, &policy));
    assert_eq!(
        doc.due(now, &policy),
        [PreemptionAction::GiveBack, PreemptionAction::Spare(0)]
    );
    // In state Claimed no notice can have been sent.
    let mut doc = evacuating(VictimState::Claimed);
    doc.state = PreemptionState::Claimed;
    assert!(doc.feed(&PreemptionInput::Withdraw { why, reason }, now, &policy));
    assert_eq!(doc.due(now, &policy), [PreemptionAction::GiveBack]);
    assert!(doc.feed(&PreemptionInput::GivenBack, now, &policy));
    assert_eq!(doc.state, PreemptionState::Withdrawn);
}

#[test]
fn a_victim_that_could_not_be_told_is_asked_to_stay_because_a_later_attempt_may_be_on_its_way() {
    let policy = PreemptionPolicy::default();
    let now = Timestamp::from_millis(2_000_000);
    let mut doc = evacuating(VictimState::Notified {
        attempt: 2,
        published: true,
        until: now.plus(Seconds(5)),
        begin_before: now.plus(Seconds(15)),
    });
    let failed = Body::EvacuationFailed(EvacuationFailed {
        evacuation_id: doc.victims[0].evacuation,
        host: "h".to_owned(),
        server_id: doc.victims[0].server,
        reason: "the guest could not be told".to_owned(),
        still_running: true,
        late_attempt: None,
    });
    assert!(doc.feed(&PreemptionInput::Report(&failed), now, &policy));
    assert_eq!(
        doc.due(now, &policy),
        [PreemptionAction::GiveBack, PreemptionAction::Spare(0)]
    );
    doc.feed(&PreemptionInput::GivenBack, now, &policy);
    doc.feed(&PreemptionInput::SparePublished { victim: 0 }, now, &policy);
    // A repeated report about the first attempt says nothing about the second.
    assert!(!doc.feed(&PreemptionInput::Report(&failed), now, &policy));
    assert_eq!(doc.due(now, &policy), []);
    let spared = Body::Spared(Spared {
        evacuation_id: doc.victims[0].evacuation,
        host: "h".to_owned(),
        server_id: doc.victims[0].server,
    });
    assert!(doc.feed(&PreemptionInput::Report(&spared), now, &policy));
    assert_eq!(doc.due(now, &policy), [PreemptionAction::GiveBack]);
}
