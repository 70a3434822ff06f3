//! The newcomer is deleted while room is made for it.

use super::*;

#[test]
fn allocations_go_back_first_when_the_newcomer_is_deleted_however_far_the_victims_are() {
    let policy = Policy::default();
    let now = Timestamp::from_millis(2_000_000);
    let later = now.plus(Seconds(5));
    for state in [
        VictimState::Waiting,
        VictimState::Noticed {
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
            assert!(doc.feed(&Input::NewcomersGone, now, &policy));
            assert_eq!(doc.called_off, Some(CalledOff::NewcomersGone));
            assert_eq!(
                doc.due(now, &policy),
                [Action::GiveBack, Action::Spare(0)],
                "{state:?}, answered: {answered}"
            );
            doc.feed(&Input::GivenBack, now, &policy);
            assert_eq!(
                doc.state,
                State::Withdrawing,
                "the agent may act all the same"
            );
            assert_eq!(doc.due(now, &policy), [Action::Spare(0)]);
        }
    }
}

#[test]
fn a_victim_that_leaves_after_it_was_given_back_its_room_is_looked_at_once_more() {
    let policy = Policy::default();
    let now = Timestamp::from_millis(2_000_000);
    let mut doc = evacuating(VictimState::Draining { deadline: now });
    doc.feed(&Input::NewcomersGone, now, &policy);
    doc.feed(&Input::GivenBack, now, &policy);
    doc.feed(&Input::SparePublished { victim: 0 }, now, &policy);
    let gone = Body::Evacuated(Evacuated {
        evacuation_id: doc.victims[0].evacuation,
        host: "h".to_owned(),
        server_id: doc.victims[0].server,
        how: EvacuatedHow::Terminated,
        at: now,
        unbilled_seconds: None,
        storage: None,
    });
    assert!(doc.feed(&Input::Report(&gone), now, &policy));
    assert_eq!(
        doc.due(now, &policy),
        [Action::Record(0), Action::GiveBack],
        "what was given back may have come after Nova took it"
    );
    doc.feed(&Input::GivenBack, now, &policy);
    assert_eq!(doc.state, State::Withdrawn);
}

#[test]
fn a_return_that_is_refused_is_tried_again_after_a_tenth_of_a_second_and_then_less_often() {
    let policy = Policy::default();
    let mut now = Timestamp::from_millis(2_000_000);
    let mut doc = evacuating(VictimState::Draining { deadline: now });
    doc.feed(&Input::NewcomersGone, now, &policy);
    let mut rests = Vec::new();
    for _ in 0..8 {
        doc.feed(&Input::GiveBackFailed { reason: "409" }, now, &policy);
        let at = doc.give_back_at.expect("it is tried again");
        assert!(!doc.due(now, &policy).contains(&Action::GiveBack));
        assert_eq!(doc.wake_at(&policy), Some(at));
        rests.push(at.millis_since(now));
        now = at;
        assert!(doc.due(now, &policy).contains(&Action::GiveBack));
    }
    assert_eq!(rests, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
}

#[test]
fn who_deletes_what_room_is_made_for_wants_no_other_plan() {
    let policy = Policy::default();
    let now = Timestamp::from_millis(2_000_000);
    let reason = "it is too full";
    let why = CalledOff::HostOverfull;
    let mut doc = evacuating(VictimState::Waiting);
    doc.feed(&Input::Withdraw { why, reason }, now, &policy);
    assert!(doc.called_off.is_some_and(CalledOff::room_is_wanted));
    doc.feed(&Input::NewcomersGone, now, &policy);
    assert!(!doc.called_off.is_some_and(CalledOff::room_is_wanted));
    let mut doc = evacuating(VictimState::Waiting);
    doc.feed(&Input::Caller { waits: false }, now, &policy);
    assert_eq!(doc.called_off, Some(CalledOff::CallerLeft));
    assert!(!doc.called_off.is_some_and(CalledOff::room_is_wanted));
}

#[test]
fn a_deletion_after_all_victims_are_gone_calls_nothing_off() {
    let policy = Policy::default();
    let now = Timestamp::from_millis(2_000_000);
    let mut doc = evacuating(VictimState::Gone {
        how: EvacuatedHow::Terminated,
        at: now,
        unbilled: None,
        recorded: true,
    });
    assert!(!doc.feed(&Input::NewcomersGone, now, &policy));
}
