//! Reports that are late, repeated, or wrong.

use super::world::{SimulatedRegion, normal, spot};
use ebbtide_model::message::{
    Body, Deleted, Draining, Evacuated, EvacuationEnd, EvacuationFailed, Spared, StartFailed,
    Started,
};
use ebbtide_model::{EvacuationId, EvacuationState, ServerId, ServerStatus};
use uuid::Uuid;

fn says(world: &mut SimulatedRegion, host: &str, body: Body) {
    let report = world.report(host, body);
    world.reports.push_back(report);
    world.flush();
}

/// Every report of an agent about an evacuation.
fn all_about(
    evacuation_id: EvacuationId,
    server_id: ServerId,
    host: &str,
    world: &SimulatedRegion,
) -> Vec<Body> {
    let host = host.to_owned();
    let at = world.now;
    vec![
        Body::Draining(Draining {
            evacuation_id,
            host: host.clone(),
            server_id,
            notified_at: at,
            deadline_at: at,
        }),
        Body::Evacuated(Evacuated {
            evacuation_id,
            host: host.clone(),
            server_id,
            how: EvacuationEnd::Terminated,
            at,
            unbilled_seconds: None,
            storage: None,
        }),
        Body::EvacuationFailed(EvacuationFailed {
            evacuation_id,
            host: host.clone(),
            server_id,
            reason: "no".to_owned(),
            still_running: true,
            late_attempt: None,
        }),
        Body::Spared(Spared {
            evacuation_id,
            host,
            server_id,
        }),
    ]
}

#[test]
fn a_report_about_an_evacuation_that_never_was_changes_nothing() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let cattle = world.create(&spot(4));
    let never = EvacuationId(Uuid::from_u128(0xdead));
    let before = world.database.clone();
    for body in all_about(never, cattle, "host-a", &world) {
        let draining = matches!(body, Body::Draining(_));
        let report = world.report("host-a", body);
        world.reports.push_back(report);
        world.read_one();
        // No claim needs that capacity, so the scheduler spares the draining victim.
        assert_eq!(world.unsent("spare"), usize::from(draining));
        world.flush();
    }
    assert_eq!(world.database, before);
    assert!(world.runs(cattle));
    assert!(
        world
            .ignored()
            .iter()
            .any(|why| why.contains("is not known"))
    );
}

#[test]
fn a_report_of_another_host_or_about_another_server_is_not_followed() {
    let mut world = SimulatedRegion::new(&[("host-a", 4), ("host-b", 2)]);
    let victim = world.create_on("host-a", &spot(4));
    world.create(&normal(4));
    let evacuation = world.evacuation(victim).clone();
    let before = world.database.clone();
    for body in all_about(evacuation.id, victim, "host-b", &world) {
        says(&mut world, "host-b", body);
    }
    for body in all_about(
        evacuation.id,
        ServerId(Uuid::from_u128(5)),
        "host-a",
        &world,
    ) {
        says(&mut world, "host-a", body);
    }
    assert_eq!(world.database, before);
    assert_eq!(world.ignored().len(), 8);
    let pet = evacuation.preemptor_id.expect("it is a preemption");
    let at = world.now;
    says(
        &mut world,
        "host-b",
        Body::Started(Started {
            server_id: pet,
            host: "host-b".to_owned(),
            at,
            attempt: 0,
        }),
    );
    says(
        &mut world,
        "host-b",
        Body::Deleted(Deleted {
            server_id: victim,
            host: "host-b".to_owned(),
        }),
    );
    let failed = StartFailed {
        server_id: pet,
        host: "host-b".to_owned(),
        reason: "no".to_owned(),
        attempt: 0,
        may_run: false,
    };
    says(&mut world, "host-b", Body::StartFailed(failed));
    assert_eq!(world.database, before);
}

#[test]
fn every_report_twice_has_the_effect_of_once() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let victim = world.create(&spot(4));
    let pet = world.create(&normal(4));
    for second in 0..50 {
        world.run(1);
        let _ = second;
    }
    assert!(world.runs(pet));
    let before = world.database.clone();
    let evacuation = world.evacuation(victim).id;
    let started = Started {
        server_id: pet,
        host: "host-a".to_owned(),
        at: world.now,
        attempt: 0,
    };
    for body in all_about(evacuation, victim, "host-a", &world) {
        says(&mut world, "host-a", body);
    }
    says(&mut world, "host-a", Body::Started(started));
    assert_eq!(world.database, before);
}

#[test]
fn a_repeated_draining_does_not_lengthen_the_patience() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let victim = world.create(&spot(4));
    world.create(&normal(4));
    let first = world.evacuation(victim).clone();
    assert_eq!(first.state, EvacuationState::Draining);
    world.run(20);
    let again = Draining {
        evacuation_id: first.id,
        host: "host-a".to_owned(),
        server_id: victim,
        notified_at: first.draining_at.unwrap(),
        deadline_at: first.deadline_at.unwrap(),
    };
    says(&mut world, "host-a", Body::Draining(again));
    assert_eq!(
        world.region.evacuation(first.id).unwrap().give_up_at,
        first.give_up_at
    );
}

#[test]
fn a_clock_that_is_wrong_by_a_year_does_not_keep_a_victim_for_a_year() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    world.host("host-a").skew = -3 * 1000;
    let victim = world.create(&spot(4));
    let pet = world.create(&normal(4));
    let e = world.evacuation(victim).clone();
    let absurd = Draining {
        evacuation_id: e.id,
        host: "host-a".to_owned(),
        server_id: victim,
        notified_at: world.now,
        deadline_at: world.now.plus(ebbtide_model::Seconds(365 * 24 * 3600)),
    };
    says(&mut world, "host-a", Body::Draining(absurd));
    world.host("host-a").crash();
    world.delete(pet);
    world.run(130);
    assert!(world.state(victim).is_final());
}

#[test]
fn an_agent_that_spares_without_being_asked_sends_the_preemptor_elsewhere() {
    let mut world = SimulatedRegion::new(&[("host-a", 4), ("host-b", 4)]);
    let victim = world.create_on("host-a", &spot(4));
    let blocker = world.create_on("host-b", &normal(4));
    let pet = world.create(&normal(4));
    world.delete(blocker);
    world.flush();
    let spared = Spared {
        evacuation_id: world.evacuation(victim).id,
        host: "host-a".to_owned(),
        server_id: victim,
    };
    says(&mut world, "host-a", Body::Spared(spared));
    assert_eq!(world.state(victim), EvacuationState::Failed);
    assert_eq!(world.place(pet), Some("host-b"));
    world.run(60);
    assert!(world.runs(victim) && world.runs(pet));
}

#[test]
fn what_is_said_to_agents_is_not_followed_by_the_scheduler() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let pet = world.create(&normal(4));
    let before = world.database.clone();
    says(
        &mut world,
        "host-a",
        Body::Delete(ebbtide_model::message::Delete {
            server_id: pet,
            storage: None,
        }),
    );
    assert_eq!(world.database, before);
    assert!(world.ignored()[0].contains("is for an agent"));
    assert_eq!(world.status(pet), ServerStatus::Active);
}
