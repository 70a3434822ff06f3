//! The promises of the protocol, each as a sentence, over random worlds: messages twice, late, in
//! any order; calls of the driver that fail with and without effect; guests that release, power off
//! or vanish; crashes after any effect.

use super::world::{Fate, SimulatedHost, server};
use crate::AgentPolicy;
use ebbtide_model::InterruptionBehaviour;
use ebbtide_model::message::{Body, HostedState};
use proptest::prelude::*;
use std::collections::BTreeSet;

#[derive(Debug, Clone)]
enum Op {
    Notice { e: u8, stop: u8, attempt: u32 },
    Spare(u8),
    Release(u8),
    Start(u8),
    Resume(u8),
    Delete(u8),
    Repeat(usize),
    Deliver(usize),
    Complete(usize, Fate),
    Confirm,
    Advance(i64),
    Observe,
    GuestReleases(u8),
    GuestPowersOff(u8),
    Lose(u8),
    Crash { after: usize, unheard: bool },
}

/// Evacuations 0, 1 and 2 are about servers 0, 1 and 2; evacuation 3 is a second one about server
/// 1.
fn victim(e: u8) -> u8 {
    if e == 3 { 1 } else { e }
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        6 => Just(Fate::Works),
        2 => Just(Fate::Fails),
        1 => Just(Fate::WorksButFails),
        1 => Just(Fate::OnlyClaims),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (0u8..4, 0u8..4, 1u32..3).prop_map(|(e, stop, attempt)| Op::Notice { e, stop, attempt }),
        2 => (0u8..4).prop_map(Op::Spare),
        2 => (0u8..4).prop_map(Op::Release),
        2 => (0u8..5).prop_map(Op::Start),
        2 => (0u8..5).prop_map(Op::Resume),
        1 => (0u8..5).prop_map(Op::Delete),
        3 => any::<usize>().prop_map(Op::Repeat),
        14 => any::<usize>().prop_map(Op::Deliver),
        16 => (any::<usize>(), fate()).prop_map(|(n, f)| Op::Complete(n, f)),
        8 => Just(Op::Confirm),
        8 => prop_oneof![Just(1i64), Just(1_000), Just(15_000), Just(30_000), Just(70_000)]
            .prop_map(Op::Advance),
        3 => Just(Op::Observe),
        1 => (0u8..4).prop_map(Op::GuestReleases),
        1 => (0u8..3).prop_map(Op::GuestPowersOff),
        1 => (0u8..3).prop_map(Op::Lose),
        3 => (0usize..6, any::<bool>()).prop_map(|(after, unheard)| Op::Crash { after, unheard }),
    ]
}

fn behaviour(n: u8) -> InterruptionBehaviour {
    match n {
        0 => InterruptionBehaviour::Terminate,
        1 => InterruptionBehaviour::Stop,
        2 => InterruptionBehaviour::Hibernate,
        _ => InterruptionBehaviour::LiveMigrate,
    }
}

fn play(ops: &[Op], policy: AgentPolicy) -> SimulatedHost {
    let mut world = SimulatedHost::new(policy);
    for op in ops {
        match *op {
            Op::Notice { e, stop, attempt } => {
                world.notice_with(e, victim(e), behaviour(stop), attempt);
            }
            Op::Spare(e) => {
                world.spare(e, victim(e));
            }
            Op::Release(e) => {
                world.release(e, victim(e));
            }
            Op::Start(s) => {
                world.start(s);
            }
            Op::Resume(s) => {
                let attempt = u32::try_from(world.sent.len()).unwrap();
                world.resume(s, attempt);
            }
            Op::Delete(s) => {
                world.delete(s);
            }
            Op::Repeat(n) => {
                if let Some(message) = world.sent.get(n % world.sent.len().max(1)).cloned() {
                    world.queue.push(message);
                }
            }
            Op::Deliver(n) => world.deliver(n),
            Op::Complete(n, fate) => world.complete(n, fate),
            Op::Confirm => world.confirm(),
            Op::Advance(millis) => world.advance(millis),
            Op::Observe => world.observe(),
            Op::GuestReleases(e) => world.guest_releases(e, victim(e)),
            Op::GuestPowersOff(s) => world.guest_powers_off(s),
            Op::Lose(s) => world.lose(s),
            Op::Crash { after, unheard } => {
                if unheard {
                    world.take_effect_unheard(after);
                }
                if after == 0 {
                    world.crash();
                } else {
                    world.crash_in = Some(after);
                }
            }
        }
    }
    world
}

fn kept(world: &SimulatedHost, promise: &str) -> Result<(), TestCaseError> {
    let broken: Vec<_> = world.broken.iter().filter(|(p, _)| *p == promise).collect();
    prop_assert!(broken.is_empty(), "{broken:?}");
    Ok(())
}

fn policy() -> impl Strategy<Value = AgentPolicy> {
    (any::<bool>(), 1u32..4, 0u32..3).prop_map(|(escalate_to_terminate, act_tries, fence_tries)| {
        AgentPolicy {
            escalate_to_terminate,
            act_tries,
            fence_tries,
            ..AgentPolicy::default()
        }
    })
}

fn story() -> impl Strategy<Value = (Vec<Op>, AgentPolicy)> {
    (prop::collection::vec(op(), 1..120), policy())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_victim_is_never_ended_before_its_grace_period_is_over_unless_released((ops, policy) in story()) {
        let mut world = play(&ops, policy);
        kept(&world, "grace")?;
        let _ = world.come_to_rest();
        kept(&world, "grace")?;
    }

    #[test]
    fn a_spared_victim_is_never_ended((ops, policy) in story()) {
        let mut world = play(&ops, policy);
        let _ = world.come_to_rest();
        kept(&world, "spared")?;
        // If the driver has failed or lied, the agent may have asked it in vain before the attempt
        // failed and the victim was spared. Otherwise the agent has not asked it since the newest
        // attempt, however many there were before.
        let in_vain = ops
            .iter()
            .any(|op| matches!(op, Op::Complete(_, fate) if *fate != Fate::Works));
        if !in_vain {
            for (id, asked) in &world.spared_after {
                prop_assert_eq!(*asked, 0, "{} was spared after its victim was to be ended", id);
            }
        }
    }

    #[test]
    fn the_point_of_no_return_is_durable_before_the_driver_is_asked((ops, policy) in story()) {
        let mut world = play(&ops, policy);
        let _ = world.come_to_rest();
        kept(&world, "durable")?;
    }

    #[test]
    fn a_server_is_asked_about_one_thing_at_a_time((ops, policy) in story()) {
        let mut world = play(&ops, policy);
        let _ = world.come_to_rest();
        kept(&world, "lane")?;
    }

    #[test]
    fn a_delivery_is_acknowledged_once_and_only_when_it_is_answered((ops, policy) in story()) {
        let mut world = play(&ops, policy);
        let _ = world.come_to_rest();
        kept(&world, "ack")?;
    }

    #[test]
    fn a_server_ends_at_most_once_for_each_time_it_was_started((ops, policy) in story()) {
        let mut world = play(&ops, policy);
        let _ = world.come_to_rest();
        for (server_id, ended) in &world.ended {
            let ran_at_first = u32::from((0..3).any(|n| server(n) == *server_id));
            let begun = ran_at_first + world.starts.get(server_id).copied().unwrap_or(0);
            prop_assert!(*ended <= begun, "{server_id}: {ended} ends, {begun} starts");
        }
    }

    #[test]
    fn every_command_is_answered_in_the_end_and_every_notice_has_its_verdict((ops, policy) in story()) {
        let mut world = play(&ops, policy);
        prop_assert_eq!(world.come_to_rest(), Ok(()));
        prop_assert!(world.unsettled.is_empty(), "not settled: {:?}", world.unsettled);
        prop_assert!(world.core.is_idle());
        let noticed: BTreeSet<_> = world.sent.iter().filter_map(|m| match &m.body {
            Body::Notice(n) => Some(n.evacuation_id),
            _ => None,
        }).collect();
        for id in noticed {
            prop_assert!(world.verdicts(id).next().is_some(), "{id} has no verdict");
        }
        let started: BTreeSet<_> = world.sent.iter().filter_map(|m| match &m.body {
            Body::Start(s) => Some(s.server_id),
            _ => None,
        }).collect();
        for id in started {
            let answered = world.reports.iter().any(|m| match &m.body {
                Body::Started(s) => s.server_id == id,
                Body::StartFailed(s) => s.server_id == id,
                _ => false,
            });
            prop_assert!(answered, "start of {id} has no answer");
        }
    }

    #[test]
    fn a_victim_that_was_reported_as_evacuated_does_not_run_unless_it_was_started_again(
        (ops, policy) in story()
    ) {
        let mut world = play(&ops, policy);
        let _ = world.come_to_rest();
        let evacuated: Vec<_> = world.reports.iter().filter_map(|m| match &m.body {
            Body::Evacuated(m) => Some(m.server_id),
            _ => None,
        }).collect();
        for id in evacuated {
            if !world.starts.contains_key(&id) {
                let runs = world.guests.get(&id).is_some_and(|g| g.state == HostedState::Running);
                prop_assert!(!runs, "{id} runs");
            }
        }
    }

    #[test]
    fn a_deleted_server_never_comes_back_by_an_older_start(
        order in any::<[usize; 8]>(), crash in 0usize..9,
    ) {
        let mut world = SimulatedHost::new(AgentPolicy::default());
        world.start(3);
        world.advance(1);
        world.delete(3);
        let (start, delete) = (world.sent[0].clone(), world.sent[1].clone());
        world.queue.extend([start, delete]);
        for (step, n) in order.into_iter().enumerate() {
            if step == crash {
                world.crash();
            }
            world.deliver(n);
            world.complete(n / 7, Fate::Works);
            world.confirm();
        }
        prop_assert_eq!(world.come_to_rest(), Ok(()));
        prop_assert!(!world.guests.contains_key(&server(3)), "it is back");
    }

    #[test]
    fn what_is_remembered_is_bounded(rounds in 20usize..120) {
        let policy = AgentPolicy { remember: 16, ..AgentPolicy::default() };
        let mut world = SimulatedHost::new(policy);
        for round in 0..rounds {
            let n = u8::try_from(round).unwrap();
            world.spare(n, 7);
            world.delete(n);
            prop_assert_eq!(world.come_to_rest(), Ok(()));
        }
        world.crash();
        prop_assert!(world.core.records().len() <= 2 * 18 + 2, "{} records", world.core.records().len());
    }
}
