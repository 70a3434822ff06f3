//! The transitions, each as a statement.

use super::*;
use EvacuationState::{Claimed, Draining, Evacuated, Failed, Notified, Spared};
use proptest::prelude::*;

const OPEN: [EvacuationState; 3] = [Claimed, Notified, Draining];
const FINAL: [EvacuationState; 3] = [Evacuated, Spared, Failed];
const STILL_RUNS: EvacuationEvent = EvacuationEvent::Failed {
    still_running: true,
};
const STOPPED: EvacuationEvent = EvacuationEvent::Failed {
    still_running: false,
};

fn spare_requested(state: EvacuationState) -> Progress {
    Progress {
        state,
        spare_requested: true,
    }
}

/// The state after an event, in a cloud that fails at once.
fn state(from: Progress, event: EvacuationEvent) -> Option<EvacuationState> {
    from.after(event, AfterFailure::Fail).map(|p| p.state)
}

#[test]
fn a_claimed_victim_is_notified_when_the_broker_has_its_notice() {
    let published = EvacuationEvent::NoticePublished;
    assert_eq!(state(Progress::CLAIMED, published), Some(Notified));
    assert_eq!(state(Progress::new(Notified), published), None);
    assert_eq!(state(Progress::new(Draining), published), None);
}

#[test]
fn a_victim_drains_when_its_agent_says_so_also_before_the_broker_has_confirmed_the_notice() {
    for from in [Claimed, Notified] {
        let after = state(Progress::new(from), EvacuationEvent::Draining);
        assert_eq!(after, Some(Draining));
    }
    let repeated = state(Progress::new(Draining), EvacuationEvent::Draining);
    assert_eq!(repeated, None);
}

#[test]
fn a_victim_that_is_gone_is_evacuated_whatever_was_said_before() {
    for strategy in AfterFailure::ALL {
        for from in [Claimed, Notified, Draining, Spared, Failed] {
            for spare_requested in [false, true] {
                let from = Progress {
                    state: from,
                    spare_requested,
                };
                let after = from.after(EvacuationEvent::Evacuated, strategy);
                assert_eq!(after.map(|p| p.state), Some(Evacuated));
            }
        }
    }
}

#[test]
fn nothing_follows_the_end_of_a_victim() {
    for event in EvacuationEvent::ALL {
        for strategy in AfterFailure::ALL {
            assert_eq!(Progress::new(Evacuated).after(event, strategy), None);
        }
    }
}

#[test]
fn a_spare_is_a_request_that_only_the_agents_answer_ends() {
    for from in OPEN {
        let asked = Progress::new(from).after(EvacuationEvent::SpareRequested, AfterFailure::Fail);
        assert_eq!(asked, Some(spare_requested(from)));
        let asked = spare_requested(from);
        assert_eq!(state(asked, EvacuationEvent::SpareRequested), None);
        assert_eq!(state(asked, EvacuationEvent::Spared), Some(Spared));
        assert_eq!(state(asked, EvacuationEvent::Evacuated), Some(Evacuated));
    }
}

#[test]
fn a_victim_that_was_asked_to_stay_may_still_be_notified_and_drain() {
    let fail = AfterFailure::Fail;
    let notified = spare_requested(Claimed).after(EvacuationEvent::NoticePublished, fail);
    assert_eq!(notified, Some(spare_requested(Notified)));
    let draining = spare_requested(Notified).after(EvacuationEvent::Draining, fail);
    assert_eq!(draining, Some(spare_requested(Draining)));
}

#[test]
fn an_agent_that_spares_unasked_has_failed_where_the_preemptor_goes_elsewhere() {
    for from in OPEN {
        let after = state(Progress::new(from), EvacuationEvent::Spared);
        assert_eq!(after, Some(Failed));
    }
}

#[test]
fn an_agent_that_spares_unasked_has_spared_where_the_capacity_was_swapped() {
    for strategy in [AfterFailure::Spare, AfterFailure::Repeat] {
        for from in [Notified, Draining] {
            let after = Progress::new(from).after(EvacuationEvent::Spared, strategy);
            assert_eq!(after, Some(Progress::new(Spared)));
        }
    }
}

#[test]
fn a_victim_without_any_notice_stays_as_it_is() {
    let after = |event| Progress::CLAIMED.after(event, AfterFailure::Spare);
    assert_eq!(
        after(EvacuationEvent::Withdrawn),
        Some(Progress::new(Spared))
    );
    let notified = Progress::new(Notified);
    let withdrawn = notified.after(EvacuationEvent::Withdrawn, AfterFailure::Spare);
    assert_eq!(withdrawn, None, "its agent has to be asked");
    for event in [EvacuationEvent::Spared, STILL_RUNS, STOPPED] {
        assert_eq!(after(event), None, "{event:?} answers another notice");
    }
}

#[test]
fn a_failure_ends_the_evacuation_where_the_victim_held_its_capacity() {
    for event in [STILL_RUNS, STOPPED, EvacuationEvent::GivenUp] {
        for from in OPEN {
            assert_eq!(state(Progress::new(from), event), Some(Failed));
            assert_eq!(state(spare_requested(from), event), Some(Failed));
        }
    }
}

#[test]
fn a_victim_that_may_act_later_is_asked_to_stay_where_its_capacity_goes_back() {
    for from in [Notified, Draining] {
        for event in [STILL_RUNS, EvacuationEvent::GivenUp] {
            let after = Progress::new(from).after(event, AfterFailure::Spare);
            assert_eq!(after, Some(spare_requested(from)));
        }
        let stopped = Progress::new(from).after(STOPPED, AfterFailure::Spare);
        assert_eq!(stopped, Some(Progress::new(Failed)));
    }
}

#[test]
fn a_victim_that_must_leave_has_failed_until_the_next_evacuation() {
    for event in [STILL_RUNS, STOPPED, EvacuationEvent::GivenUp] {
        let after = Progress::new(Draining).after(event, AfterFailure::Repeat);
        assert_eq!(after, Some(Progress::new(Failed)));
    }
}

#[test]
fn a_failed_attempt_says_nothing_about_a_later_one_once_the_agent_was_asked_to_spare() {
    for strategy in [AfterFailure::Spare, AfterFailure::Repeat] {
        let asked = spare_requested(Notified);
        assert_eq!(asked.after(STILL_RUNS, strategy), None);
        let given_up = asked.after(EvacuationEvent::GivenUp, strategy);
        assert_eq!(given_up.map(|p| p.state), Some(Failed));
    }
}

#[test]
fn a_failed_victim_of_a_swap_can_still_be_asked_to_stay() {
    let asked = EvacuationEvent::SpareRequested;
    let failed = Progress::new(Failed);
    let after = failed.after(asked, AfterFailure::Repeat);
    assert_eq!(after, Some(spare_requested(Notified)));
    assert_eq!(failed.after(asked, AfterFailure::Fail), None);
}

#[test]
fn no_event_leads_from_an_end_or_a_spare_request_back_to_the_way_out() {
    let ways_out = OPEN.map(Progress::new);
    for to in ways_out {
        for from in FINAL {
            assert!(!Progress::new(from).may_become(to), "{from} to {to:?}");
        }
        for from in OPEN {
            assert!(!spare_requested(from).may_become(to), "{from} to {to:?}");
        }
    }
    assert!(!Progress::new(Draining).may_become(Progress::new(Notified)));
    assert!(Progress::new(Draining).may_become(spare_requested(Notified)));
}

fn any_progress() -> impl Strategy<Value = Progress> {
    let states = prop::sample::select(EvacuationState::ALL.to_vec());
    (states, any::<bool>()).prop_map(|(state, spare_requested)| Progress {
        state,
        spare_requested,
    })
}

fn any_event() -> impl Strategy<Value = EvacuationEvent> {
    prop::sample::select(EvacuationEvent::ALL.to_vec())
}

proptest! {
    #[test]
    fn an_event_that_is_repeated_changes_nothing(
        from in any_progress(),
        event in any_event(),
        strategy in prop::sample::select(AfterFailure::ALL.to_vec()),
    ) {
        let Some(once) = from.after(event, strategy) else {
            return Ok(());
        };
        let twice = once.after(event, strategy);
        // A limit that passes twice is two events: the agent gets a new limit between them.
        if event != EvacuationEvent::GivenUp {
            prop_assert_eq!(twice, None);
        }
        prop_assert!(twice.is_none_or(|twice| once.may_become(twice)));
    }

    #[test]
    fn no_victim_goes_back_to_an_earlier_state_unless_it_had_failed(
        from in any_progress(),
        event in any_event(),
        strategy in prop::sample::select(AfterFailure::ALL.to_vec()),
    ) {
        let rank = |p: Progress| match p.state {
            Claimed => 0,
            Notified => 1,
            Draining => 2,
            Spared | Failed => 3,
            Evacuated => 4,
        };
        if let Some(next) = from.after(event, strategy) {
            prop_assert!(rank(next) >= rank(from) || from.state == Failed);
        }
    }

    #[test]
    fn every_open_victim_comes_to_an_end_when_its_agent_is_silent(
        from in any_progress(),
        strategy in prop::sample::select(AfterFailure::ALL.to_vec()),
    ) {
        let mut progress = from;
        for _ in 0..2 {
            progress = progress
                .after(EvacuationEvent::GivenUp, strategy)
                .unwrap_or(progress);
        }
        prop_assert!(FINAL.contains(&progress.state));
    }
}
