//! Records of a ledger that was restored from a backup.

use super::*;
use crate::{RestoredEnd, VictimFate};

const RUNS: VictimFate = VictimFate::Runs { allocated: false };
const HOLDS: VictimFate = VictimFate::Runs { allocated: true };

fn now() -> Timestamp {
    Timestamp::from_millis(2_000_000)
}

fn gone() -> VictimFate {
    VictimFate::Gone {
        how: EvacuationEnd::Terminated,
        at: Timestamp::from_millis(1_995_000),
    }
}

/// Every state that an open record can have at the time of a backup.
fn open_records() -> Vec<Preemption> {
    let later = now().plus(Seconds(5));
    let notified = VictimState::Notified {
        attempt: 1,
        published: true,
        until: later,
        begin_before: later,
    };
    let failed = VictimState::Failed {
        reason: "silent".to_owned(),
        again: later,
    };
    let mut all = vec![
        evacuating(VictimState::Claimed),
        evacuating(notified),
        evacuating(VictimState::Draining { deadline: later }),
        evacuating(failed),
    ];
    for state in [PreemptionState::Planned, PreemptionState::Claimed] {
        let mut doc = evacuating(VictimState::Claimed);
        doc.state = state;
        doc.in_doubt = state == PreemptionState::Planned;
        doc.unconfirmed = true;
        all.push(doc);
    }
    all
}

fn reconciled(doc: &Preemption, fate: VictimFate, came: bool) -> (Preemption, RestoredEnd) {
    let mut doc = doc.clone();
    let end = doc.reconcile_restored(&[fate], came, now(), &PreemptionPolicy::default());
    (doc, end)
}

#[test]
fn a_preemption_that_is_over_only_owes_the_usage_record_of_its_victim() {
    for before in open_records() {
        let (doc, end) = reconciled(&before, gone(), true);
        assert_eq!((end, doc.state), (RestoredEnd::Done, PreemptionState::Done));
        assert_eq!(
            doc.due(now(), &PreemptionPolicy::default()),
            [PreemptionAction::Record(0)]
        );
    }
}

#[test]
fn a_victim_that_runs_where_no_newcomer_has_come_stays_and_has_its_room_back_first() {
    for before in open_records() {
        for fate in [RUNS, HOLDS] {
            let (doc, end) = reconciled(&before, fate, false);
            assert_eq!(end, RestoredEnd::Withdrawn);
            assert_eq!(
                doc.due(now(), &PreemptionPolicy::default()),
                [PreemptionAction::GiveBack, PreemptionAction::Spare(0)],
                "{:?}",
                before.victims[0].state
            );
            assert!(doc.withdrawal.is_some_and(WithdrawalReason::room_is_wanted));
        }
    }
}

#[test]
fn a_victim_that_runs_in_the_room_of_a_newcomer_that_is_there_has_to_leave() {
    let policy = PreemptionPolicy::default();
    for before in open_records() {
        let (mut doc, end) = reconciled(&before, RUNS, true);
        assert_eq!(end, RestoredEnd::Continued);
        assert_eq!(doc.state, PreemptionState::Evacuating);
        assert!(doc.answered, "no caller waits for what is placed");
        // Whatever was sent before the backup: in the end its agent has a notice again.
        let mut at = now();
        let notified = (0..50).any(|_| {
            at = at.plus(Seconds(60));
            doc.feed(&PreemptionInput::Tick, at, &policy);
            let due = doc.due(at, &policy);
            due.iter()
                .any(|action| matches!(action, PreemptionAction::Notify(_)))
        });
        assert!(notified, "{:?}", before.victims[0].state);
    }
}

#[test]
fn a_victim_that_holds_its_room_stays_although_the_newcomer_is_there() {
    for before in open_records() {
        let (doc, end) = reconciled(&before, HOLDS, true);
        assert_eq!(end, RestoredEnd::Withdrawn);
        assert_eq!(doc.state, PreemptionState::Withdrawing);
    }
}

#[test]
fn a_claim_whose_victims_are_gone_and_whose_newcomer_is_not_there_goes_back() {
    let policy = PreemptionPolicy::default();
    for before in open_records() {
        let (mut doc, end) = reconciled(&before, gone(), false);
        assert_eq!(end, RestoredEnd::Withdrawn);
        doc.feed(&PreemptionInput::GivenBack, now(), &policy);
        assert_eq!(doc.state, PreemptionState::Withdrawn);
    }
}

#[test]
fn a_withdrawal_under_way_goes_on_and_learns_which_victims_are_gone() {
    let policy = PreemptionPolicy::default();
    let mut before = evacuating(VictimState::Draining { deadline: now() });
    before.feed(&PreemptionInput::NewcomersGone, now(), &policy);
    let (doc, end) = reconciled(&before, gone(), true);
    assert_eq!(end, RestoredEnd::Withdrawn);
    assert_eq!(doc.state, PreemptionState::Withdrawing);
    assert!(doc.room_is_free());
    let (doc, _) = reconciled(&before, HOLDS, true);
    assert_eq!(doc, before);
}

#[test]
fn the_end_of_a_server_for_no_newcomer_is_done_or_called_off() {
    let mut before = evacuating(VictimState::Claimed);
    before.newcomers.clear();
    before.answered = true;
    assert_eq!(reconciled(&before, gone(), false).1, RestoredEnd::Done);
    for fate in [RUNS, HOLDS] {
        assert_eq!(reconciled(&before, fate, false).1, RestoredEnd::Withdrawn);
    }
}

#[test]
fn an_end_in_the_future_of_this_clock_is_now() {
    let fate = VictimFate::Gone {
        how: EvacuationEnd::Stopped,
        at: now().plus(Seconds(9)),
    };
    let (doc, _) = reconciled(&evacuating(VictimState::Claimed), fate, true);
    let VictimState::Evacuated { how, at, .. } = doc.victims[0].state else {
        panic!("{:?}", doc.victims[0].state)
    };
    assert_eq!((how, at), (EvacuationEnd::Stopped, now()));
}
