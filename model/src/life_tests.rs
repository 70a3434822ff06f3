use super::*;
use crate::EvacuationCause;
use crate::server::ServerFailure;
use crate::{
    Comeback, DecisionId, EvacuationId, Flavor, FlavorId, InterruptionBehaviour, SavedState,
    Seconds, ServerId,
};
use std::collections::BTreeMap;
use uuid::Uuid;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

fn server(status: ServerStatus) -> Server {
    Server {
        id: ServerId(Uuid::from_u128(1)),
        name: "worker".to_owned(),
        project_id: "lab".to_owned(),
        flavor: Flavor {
            id: FlavorId(Uuid::from_u128(2)),
            name: "spot".to_owned(),
            vcpus: 1,
            ram_mb: 1,
            disk_gb: 0,
            extra_specs: BTreeMap::new(),
        },
        group_id: None,
        availability_zone: None,
        host: Some("host-a".to_owned()),
        status,
        external: false,
        decision_id: None,
        evacuation_id: None,
        created_at: at(10),
        launched_at: Some(at(20)),
        ended_at: Some(at(50)),
        fault: Some(ServerFailure {
            code: "EB-FAULT-003".to_owned(),
            message: "preempted: a normal request needed its capacity".to_owned(),
            at: at(50),
        }),
        ignore_hosts: Vec::new(),
        force_hosts: Vec::new(),
        refused_hosts: Vec::new(),
        max_price: None,
        left_hosts: BTreeMap::new(),
        last_message_at: Some(at(15)),
        reported_at: None,
        starts: 1,
        comeback: None,
    }
}

fn kept() -> Server {
    Server {
        comeback: Some(Comeback {
            saved_state: SavedState::Hibernated,
            since: at(50),
            not_before: at(80),
            preempted: 1,
            tries: 0,
            reason: None,
            resumed_at: None,
            storage: None,
        }),
        ..server(ServerStatus::Hibernated)
    }
}

fn evacuation(state: EvacuationState) -> Evacuation {
    Evacuation {
        id: EvacuationId(Uuid::from_u128(3)),
        victim_id: ServerId(Uuid::from_u128(1)),
        victim_name: String::new(),
        victim_project_id: "lab".to_owned(),
        victim_group_id: None,
        victim_starts: 1,
        host: "host-a".to_owned(),
        cause: EvacuationCause::Preemption,
        reclaim_owner: None,
        preemptor_id: Some(ServerId(Uuid::from_u128(9))),
        decision_id: Some(DecisionId(Uuid::from_u128(4))),
        behaviour: InterruptionBehaviour::Hibernate,
        grace: Seconds(30),
        cost: 1.0,
        state,
        attempts: 1,
        give_up_at: at(100),
        spare_requested: false,
        reason: None,
        claimed_at: at(30),
        notified_at: Some(at(31)),
        draining_at: Some(at(32)),
        deadline_at: Some(at(62)),
        ended_at: None,
    }
}

fn told(
    server: &Server,
    evacuation: Option<&Evacuation>,
    now: i64,
) -> (LifeState, i64, i64, String) {
    let life = LifeInterval::of(server, evacuation, at(now));
    let seconds = |t: Option<Timestamp>| t.map_or(0, |t| t.as_millis() / 1000);
    (
        life.state,
        seconds(life.since),
        seconds(life.until),
        life.reason,
    )
}

#[test]
fn a_victim_is_warned_then_draining_until_its_deadline() {
    let victim = server(ServerStatus::Evacuating);
    let needs = "a normal request needs its capacity (hibernate, 30 s grace)".to_owned();
    let warned = evacuation(EvacuationState::Notified);
    let is = told(&victim, Some(&warned), 31);
    assert_eq!(is, (LifeState::Warned, 30, 0, needs.clone()));
    let draining = evacuation(EvacuationState::Draining);
    let is = told(&victim, Some(&draining), 33);
    assert_eq!(is, (LifeState::Draining, 32, 62, needs));
    for (cause, words) in [
        (
            EvacuationCause::MaxLifetime,
            "it has lived as long as its flavor allows",
        ),
        (
            EvacuationCause::OutOfBid,
            "the price is above the most that it pays",
        ),
        (
            EvacuationCause::Headroom,
            "its capacity is kept free for normal requests",
        ),
    ] {
        let other = Evacuation {
            cause,
            ..draining.clone()
        };
        let (_, _, _, why) = told(&victim, Some(&other), 33);
        assert_eq!(why, format!("{words} (hibernate, 30 s grace)"));
    }
    let spared = Evacuation {
        spare_requested: true,
        reason: Some("other capacity became free".to_owned()),
        ..draining
    };
    let (_, _, _, why) = told(&victim, Some(&spared), 33);
    assert_eq!(
        why,
        "it may stay if it is not too late: other capacity became free"
    );
}

#[test]
fn a_hibernated_one_says_when_it_is_tried_again_and_then_what_it_waits_for() {
    let mut server = kept();
    let why = "preempted: a normal request needed its capacity".to_owned();
    assert_eq!(
        told(&server, None, 60),
        (LifeState::Hibernated, 50, 80, why)
    );
    let room = "hibernated; waits for capacity on host-a".to_owned();
    assert_eq!(told(&server, None, 80), (LifeState::Waiting, 50, 0, room));
    if let Some(comeback) = &mut server.comeback {
        comeback.not_before = at(120);
        comeback.reason = Some("not enough memory".to_owned());
    }
    let why = "it could not go on: not enough memory".to_owned();
    assert_eq!(
        told(&server, None, 90),
        (LifeState::Hibernated, 50, 120, why)
    );
    let both =
        "hibernated; waits for capacity on host-a; the last attempt: not enough memory".to_owned();
    assert_eq!(told(&server, None, 121), (LifeState::Waiting, 50, 0, both));
}

#[test]
fn who_goes_on_is_returning_and_who_is_new_is_starting() {
    let mut server = kept();
    server.status = ServerStatus::Building;
    if let Some(comeback) = &mut server.comeback {
        comeback.resumed_at = Some(at(90));
    }
    assert_eq!(told(&server, None, 91).0, LifeState::Returning);
    assert_eq!(told(&server, None, 91).1, 90);
    server.comeback = None;
    assert_eq!(told(&server, None, 91).0, LifeState::Starting);
}

#[test]
fn every_status_has_a_word_and_who_is_gone_hears_why() {
    for status in ServerStatus::ALL {
        let life = LifeInterval::of(&server(status), None, at(100));
        assert!(!life.state.as_str().is_empty());
    }
    let gone = LifeInterval::of(&server(ServerStatus::Preempted), None, at(100));
    assert_eq!((gone.state, gone.since), (LifeState::Gone, Some(at(50))));
    assert!(gone.reason.starts_with("preempted"), "{}", gone.reason);
}
