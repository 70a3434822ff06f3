//! The newcomer is deleted while room is made for it.

use super::*;

#[test]
fn allocations_go_back_first_when_the_newcomer_is_deleted_however_far_the_victims_are() {
    let policy = PreemptionPolicy::default();
    let now = Timestamp::from_millis(2_000_000);
    let later = now.plus(Seconds(5));
    for state in [
        VictimState::Claimed,
        VictimState::Notified {
            attempt: 1,
            published: true,
            until: later,
            begin_before: later,
        },
        VictimState::Draining { deadline: later },
    ] {
        for answered in [false, true] {
            let mut doc = evacuating(state.clone());
            doc.answered = answered;
            assert!(doc.feed(&PreemptionInput::NewcomersGone, now, &policy));
            assert_eq!(doc.withdrawal, Some(WithdrawalReason::NewcomersGone));
            assert_eq!(
                doc.due(now, &policy),
                [PreemptionAction::GiveBack, PreemptionAction::Spare(0)],
                "{state:?}, answered: {answered}"
            );
            doc.feed(&PreemptionInput::GivenBack, now, &policy);
            assert_eq!(
                doc.state,
                PreemptionState::Withdrawing,
                "the agent may act all the same"
            );
            assert_eq!(doc.due(now, &policy), [PreemptionAction::Spare(0)]);
        }
    }
}

#[test]
fn a_victim_that_leaves_after_it_was_given_back_its_room_is_looked_at_once_more() {
    let policy = PreemptionPolicy::default();
    let now = Timestamp::from_millis(2_000_000);
    let mut doc = evacuating(VictimState::Draining { deadline: now });
    doc.feed(&PreemptionInput::NewcomersGone, now, &policy);
    doc.feed(&PreemptionInput::GivenBack, now, &policy);
    doc.feed(&PreemptionInput::SparePublished { victim: 0 }, now, &policy);
    let gone = Body::Evacuated(Evacuated {
        evacuation_id: doc.victims[0].evacuation,
        host: "h".to_owned(),
        server_id: doc.victims[0].server,
        how: EvacuationEnd::Terminated,
        at: now,
        unbilled_seconds: None,
        storage: None,
    });
    assert!(doc.feed(&PreemptionInput::Report(&gone), now, &policy));
    assert_eq!(
        doc.due(now, &policy),
        [PreemptionAction::Record(0), PreemptionAction::GiveBack],
        "what was given back may have come after Nova took it"
    );
    doc.feed(&PreemptionInput::GivenBack, now, &policy);
    assert_eq!(doc.state, PreemptionState::Withdrawn);
}

#[test]
fn a_return_that_is_refused_is_tried_again_after_a_tenth_of_a_second_and_then_less_often() {
    let policy = PreemptionPolicy::default();
    let mut now = Timestamp::from_millis(2_000_000);
    let mut doc = evacuating(VictimState::Draining { deadline: now });
    doc.feed(&PreemptionInput::NewcomersGone, now, &policy);
    let mut rests = Vec::new();
    for _ in 0..8 {
        doc.feed(
            &PreemptionInput::GiveBackFailed { reason: "409" },
            now,
            &policy,
        );
        let at = doc.give_back_at.expect("it is tried again");
        assert!(!doc.due(now, &policy).contains(&PreemptionAction::GiveBack));
        assert_eq!(doc.wake_at(&policy), Some(at));
        rests.push(at.millis_since(now));
        now = at;
        assert!(doc.due(now, &policy).contains(&PreemptionAction::GiveBack));
    }
    assert_eq!(rests, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
}

#[test]
fn a_request_whose_server_was_deleted_needs_no_other_plan() {
    let policy = PreemptionPolicy::default();
    let now = Timestamp::from_millis(2_000_000);
    let reason = "it is too full";
    let why = WithdrawalReason::HostOverfull;
    let mut doc = evacuating(VictimState::Claimed);
    doc.feed(&PreemptionInput::Withdraw { why, reason }, now, &policy);
    assert!(doc.withdrawal.is_some_and(WithdrawalReason::room_is_wanted));
    doc.feed(&PreemptionInput::NewcomersGone, now, &policy);
    assert!(!doc.withdrawal.is_some_and(WithdrawalReason::room_is_wanted));
    let mut doc = evacuating(VictimState::Claimed);
    doc.feed(&PreemptionInput::Caller { waits: false }, now, &policy);
    assert_eq!(doc.withdrawal, Some(WithdrawalReason::CallerLeft));
    assert!(!doc.withdrawal.is_some_and(WithdrawalReason::room_is_wanted));
}

#[test]
fn a_deletion_after_all_victims_are_gone_calls_nothing_off() {
    let policy = PreemptionPolicy::default();
    let now = Timestamp::from_millis(2_000_000);
    let mut doc = evacuating(VictimState::Evacuated {
        how: EvacuationEnd::Terminated,
        at: now,
        unbilled: None,
        recorded: true,
    });
    assert!(!doc.feed(&PreemptionInput::NewcomersGone, now, &policy));
}
