//! Records of earlier versions: their names for states and fields still load.

use super::*;
use serde_json::json;

/// A record as it is stored now, with its only victim in this state.
fn stored(state: VictimState) -> serde_json::Value {
    serde_json::to_value(evacuating(state)).unwrap()
}

/// Loads a record in which the victim's state has another name.
fn with_state_name(mut record: serde_json::Value, name: &str) -> VictimState {
    record["victims"][0]["state"]["is"] = json!(name);
    let record: Preemption = serde_json::from_value(record).unwrap();
    record.victims[0].state.clone()
}

#[test]
fn a_victim_that_was_waiting_is_claimed() {
    let state = VictimState::Claimed;
    assert_eq!(with_state_name(stored(state.clone()), "waiting"), state);
}

#[test]
fn a_victim_that_was_noticed_is_notified() {
    let at = Timestamp::from_millis(2_000_000);
    let state = VictimState::Notified {
        attempt: 2,
        published: true,
        until: at,
        begin_before: at,
    };
    assert_eq!(with_state_name(stored(state.clone()), "noticed"), state);
}

#[test]
fn a_victim_that_was_gone_is_evacuated() {
    let state = VictimState::Evacuated {
        how: EvacuationEnd::Terminated,
        at: Timestamp::from_millis(2_000_000),
        unbilled: Some(Seconds(7)),
        recorded: false,
    };
    assert_eq!(with_state_name(stored(state.clone()), "gone"), state);
}

#[test]
fn a_victim_that_was_sparing_has_its_spare_requested() {
    let state = VictimState::SpareRequested {
        published: false,
        until: Timestamp::from_millis(2_000_000),
    };
    assert_eq!(with_state_name(stored(state.clone()), "sparing"), state);
}

#[test]
fn a_reason_stored_as_called_off_is_the_withdrawal() {
    let mut record = stored(VictimState::Spared);
    let fields = record.as_object_mut().unwrap();
    fields.remove("withdrawal");
    fields.insert("called_off".to_owned(), json!("victims_stay"));
    let record: Preemption = serde_json::from_value(record).unwrap();
    assert_eq!(record.withdrawal, Some(WithdrawalReason::VictimsStay));
}

#[test]
fn states_are_stored_under_the_names_of_the_protocol() {
    let name = |state| stored(state)["victims"][0]["state"]["is"].clone();
    assert_eq!(name(VictimState::Claimed), json!("claimed"));
    assert_eq!(name(VictimState::Spared), json!("spared"));
    for (state, as_protocol) in [
        (VictimState::Claimed, "claimed"),
        (VictimState::Spared, "spared"),
        (
            VictimState::Draining {
                deadline: Timestamp::from_millis(1),
            },
            "draining",
        ),
    ] {
        assert_eq!(state.progress().state.as_str(), as_protocol);
        assert_eq!(name(state), json!(as_protocol));
    }
}
