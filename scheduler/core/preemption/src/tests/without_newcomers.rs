//! Records without newcomers: a server ends by its lifetime.

use super::{Agent, record};
use crate::{
    Preemption, PreemptionAction, PreemptionInput, PreemptionPolicy, PreemptionState, ReplyWhen,
    VictimState, WithdrawalReason,
};
use ebbtide_model::message::{Body, Draining, Evacuated, EvacuationEnd, EvacuationFailed, Spared};
use ebbtide_model::{EvacuationCause, EvacuationId, Seconds, Timestamp};
use proptest::prelude::*;
use proptest::sample::select;
use uuid::Uuid;

fn alone() -> Preemption {
    let victim = record(1, ReplyWhen::RoomFree).victims.remove(0);
    Preemption::without_newcomers(
        Uuid::from_u128(1),
        EvacuationCause::MaxLifetime,
        victim,
        Timestamp::from_millis(7),
        Timestamp::from_millis(1_000_000),
    )
}

fn gone(record: &Preemption, how: EvacuationEnd, at: Timestamp) -> Body {
    Body::Evacuated(Evacuated {
        evacuation_id: record.victims[0].evacuation,
        host: "h".to_owned(),
        server_id: record.victims[0].server,
        how,
        at,
        unbilled_seconds: None,
        storage: None,
    })
}

#[test]
fn one_life_on_one_host_has_one_key() {
    let (record, same) = (alone(), alone());
    assert_eq!(record.unique_id, same.unique_id);
    assert!(record.unique_id.starts_with("max-lifetime "), "{record:?}");
    assert!(record.unique_id.ends_with(" h 7"), "{record:?}");
    assert!(record.unique_id.len() < 255);
}

#[test]
fn nothing_withdraws_it() {
    let policy = PreemptionPolicy::default();
    let mut record = alone();
    let late = Timestamp::from_millis(900_000_000);
    let why = WithdrawalReason::VictimsStay;
    for input in [
        PreemptionInput::NewcomersGone,
        PreemptionInput::HostReturned,
        PreemptionInput::Caller { waits: false },
        PreemptionInput::Withdraw { why, reason: "no" },
        PreemptionInput::SwapAbandoned,
        PreemptionInput::Tick,
    ] {
        record.feed(&input, late, &policy);
        assert_eq!(record.state, PreemptionState::Evacuating, "{input:?}");
        let victims = &record.victims;
        assert_eq!(victims[0].state, VictimState::Claimed, "{input:?}");
    }
}

fn reclaimed() -> Preemption {
    let victim = record(1, ReplyWhen::RoomFree).victims.remove(0);
    let (since, now) = (Timestamp::from_millis(7), Timestamp::from_millis(1_000_000));
    let owner = "slurm:1".to_owned();
    Preemption::of_reclaim(Uuid::from_u128(1), owner, victim, since, now)
}

#[test]
fn a_host_that_is_returned_spares_its_victim_whatever_it_was_told() {
    let policy = PreemptionPolicy::default();
    let now = Timestamp::from_millis(1_005_000);
    let published = PreemptionInput::NoticePublished {
        victim: 0,
        attempt: 1,
        begin_before: now.plus(Seconds(30)),
    };
    let failed = Body::EvacuationFailed(EvacuationFailed {
        evacuation_id: reclaimed().victims[0].evacuation,
        host: "h".to_owned(),
        server_id: reclaimed().victims[0].server,
        reason: "stuck".to_owned(),
        still_running: true,
        late_attempt: None,
    });
    let failed = PreemptionInput::Report(&failed);
    for before in [vec![], vec![published.clone()], vec![published, failed]] {
        let mut record = reclaimed();
        for input in &before {
            assert!(record.feed(input, now, &policy), "{input:?}");
        }
        assert!(record.feed(&PreemptionInput::HostReturned, now, &policy));
        assert_eq!(record.state, PreemptionState::Withdrawing, "{before:?}");
        let due = record.due(now, &policy);
        assert_eq!(
            due,
            [PreemptionAction::GiveBack, PreemptionAction::Spare(0)]
        );
        record.feed(&PreemptionInput::GivenBack, now, &policy);
        record.feed(&PreemptionInput::SparePublished { victim: 0 }, now, &policy);
        let spared = Body::Spared(Spared {
            evacuation_id: record.victims[0].evacuation,
            host: "h".to_owned(),
            server_id: record.victims[0].server,
        });
        record.feed(&PreemptionInput::Report(&spared), now, &policy);
        record.feed(&PreemptionInput::GivenBack, now, &policy);
        assert_eq!(record.state, PreemptionState::Withdrawn, "{before:?}");
        assert_eq!(record.withdrawal, Some(WithdrawalReason::HostReturned));
        assert_eq!(record.due(now, &policy), []);
    }
}

#[test]
fn a_victim_that_is_gone_before_the_host_is_returned_is_gone() {
    let (now, policy) = (
        Timestamp::from_millis(1_005_000),
        PreemptionPolicy::default(),
    );
    let mut record = reclaimed();
    let body = gone(&record, EvacuationEnd::Terminated, now);
    record.feed(&PreemptionInput::Report(&body), now, &policy);
    assert!(!record.feed(&PreemptionInput::HostReturned, now, &policy));
    assert_eq!(record.state, PreemptionState::Done);
}

#[test]
fn a_stopped_server_loses_its_room_before_its_bill_and_others_owe_none() {
    let (now, policy) = (
        Timestamp::from_millis(1_005_000),
        PreemptionPolicy::default(),
    );
    for how in [EvacuationEnd::Stopped, EvacuationEnd::Terminated] {
        let mut record = alone();
        let body = gone(&record, how, now);
        record.feed(&PreemptionInput::Report(&body), now, &policy);
        assert_eq!(record.state, PreemptionState::Done);
        if how == EvacuationEnd::Stopped {
            assert_eq!(record.due(now, &policy), [PreemptionAction::Release(0)]);
            record.feed(&PreemptionInput::Released { victim: 0 }, now, &policy);
        }
        assert_eq!(record.due(now, &policy), [PreemptionAction::Record(0)]);
        record.feed(&PreemptionInput::Recorded { victim: 0 }, now, &policy);
        assert_eq!(record.due(now, &policy), []);
    }
}

#[test]
fn a_notice_of_an_earlier_record_is_told_from_one_that_was_repeated() {
    let policy = PreemptionPolicy::default();
    let mut record = alone();
    let draining = |evacuation_id| {
        Body::Draining(Draining {
            evacuation_id,
            host: "h".to_owned(),
            server_id: record.victims[0].server,
            notified_at: Timestamp::from_millis(1_000_000),
            deadline_at: Timestamp::from_millis(1_030_000),
        })
    };
    let (own, other) = (
        draining(record.victims[0].evacuation),
        draining(EvacuationId(Uuid::from_u128(9))),
    );
    for minute in 0..30 {
        assert!(!record.is_about_earlier_record(&own), "{minute}");
        assert!(record.is_about_earlier_record(&other), "{minute}");
        let now = Timestamp::from_millis(1_000_000).plus(Seconds(minute * 120));
        let published = PreemptionInput::NoticePublished {
            victim: 0,
            attempt: 1,
            begin_before: now.plus(Seconds(30)),
        };
        record.feed(&published, now, &policy);
        let begun = record.victims[0].evacuation;
        let failed = Body::EvacuationFailed(EvacuationFailed {
            evacuation_id: begun,
            host: "h".to_owned(),
            server_id: record.victims[0].server,
            reason: "stuck".to_owned(),
            still_running: true,
            late_attempt: None,
        });
        record.feed(&PreemptionInput::Report(&failed), now, &policy);
        record.feed(&PreemptionInput::Tick, now.plus(Seconds(100)), &policy);
        assert_ne!(record.victims[0].evacuation, begun);
    }
}

#[test]
fn a_victim_of_a_swap_owes_no_room() {
    let (now, policy) = (
        Timestamp::from_millis(1_005_000),
        PreemptionPolicy::default(),
    );
    let mut record = record(1, ReplyWhen::RoomFree);
    record.feed(&PreemptionInput::Swapped, now, &policy);
    record.feed(&PreemptionInput::Caller { waits: true }, now, &policy);
    let body = gone(&record, EvacuationEnd::Stopped, now);
    record.feed(&PreemptionInput::Report(&body), now, &policy);
    let due = record.due(now, &policy);
    assert!(due.contains(&PreemptionAction::Record(0)), "{due:?}");
    assert!(!due.contains(&PreemptionAction::Release(0)), "{due:?}");
}

proptest! {
    /// An agent that fails or is silent for so many notices, and a scheduler that dies between
    /// an action and its write.
    #[test]
    fn it_ends_once_whatever_its_agent_and_its_scheduler_do(
        moods in prop::collection::vec(select(vec![Agent::Prompt, Agent::Silent, Agent::Fails]), 0..6),
        deaths in prop::collection::btree_set(0_u32..40, 0..8),
        stops in any::<bool>(),
    ) {
        let policy = PreemptionPolicy::default();
        let mut written = alone();
        let mut now = Timestamp::from_millis(1_000_000);
        let mut moods = moods.into_iter();
        let (mut releases, mut ended, mut step) = (0, false, 0_u32);
        for _ in 0..400 {
            let mut record = written.clone();
            record.feed(&PreemptionInput::Tick, now, &policy);
            prop_assert!(record.state.as_str() == "evacuating" || record.state.as_str() == "done");
            let Some(action) = record.due(now, &policy).into_iter().next() else {
                if record.state.is_final() {
                    written = record;
                    break;
                }
                written = record;
                now = written.wake_at(&policy).unwrap_or(now).max(now.plus(Seconds(1)));
                continue;
            };
            let mut reports = Vec::new();
            let input = match &action {
                PreemptionAction::Notify(order) => {
                    let mood = if ended { Agent::Prompt } else { moods.next().unwrap_or(Agent::Prompt) };
                    let victim = &record.victims[0];
                    match mood {
                        Agent::Silent => {}
                        Agent::Fails => reports.push(Body::EvacuationFailed(EvacuationFailed {
                            evacuation_id: victim.evacuation,
                            host: "h".to_owned(),
                            server_id: victim.server,
                            reason: "stuck".to_owned(),
                            still_running: true,
                            late_attempt: None,
                        })),
                        Agent::Prompt => {
                            ended = true;
                            let how = if stops { EvacuationEnd::Stopped } else { EvacuationEnd::Terminated };
                            reports.push(gone(&record, how, now));
                        }
                    }
                    PreemptionInput::NoticePublished {
                        victim: order.victim,
                        attempt: order.attempt,
                        begin_before: order.begin_before,
                    }
                }
                PreemptionAction::Release(_) => {
                    prop_assert!(ended, "the room was taken while it ran");
                    releases += 1;
                    PreemptionInput::Released { victim: 0 }
                }
                PreemptionAction::Record(_) => PreemptionInput::Recorded { victim: 0 },
                other => return Err(TestCaseError::fail(format!("{other:?} is due"))),
            };
            step += 1;
            if deaths.contains(&step) {
                // The broker delivers the reports to the next owner of the row.
                written.adopt(None);
            } else {
                record.feed(&input, now, &policy);
                written = record;
            }
            for body in &reports {
                written.feed(&PreemptionInput::Report(body), now, &policy);
            }
        }
        prop_assert_eq!(written.state, PreemptionState::Done);
        prop_assert!(ended);
        let recorded = matches!(written.victims[0].state, VictimState::Evacuated { recorded: true, .. });
        prop_assert!(recorded);
        prop_assert_eq!(releases > 0, stops);
    }
}
