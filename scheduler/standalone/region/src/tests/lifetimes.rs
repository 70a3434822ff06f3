//! Servers of flavors with a maximum lifetime.

use super::world::{SimulatedRegion, normal, spot, with};
use crate::{CreateFlavor, DisableHost, RegionConfig};
use ebbtide_model::{EvacuationCause, EvacuationState, Flavor, Seconds, ServerId, ServerStatus};

const LIFETIME: u32 = 300;
const GRACE: u32 = 20;

fn mortal(vcpus: u32, ending: &str) -> Flavor {
    let specs = [
        ("ebbtide:interruption", ending),
        ("ebbtide:grace_seconds", "20"),
        ("ebbtide:max_lifetime_seconds", "300"),
    ];
    with(&spot(vcpus), &specs)
}

fn launched(world: &SimulatedRegion, id: ServerId) -> ebbtide_model::Timestamp {
    world.server(id).launched_at.expect("it runs")
}

#[test]
fn it_has_its_notice_a_grace_period_before_the_end_and_ends_in_time() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let id = world.create(&mortal(4, "terminate"));
    world.run(5);
    let end = launched(&world, id).plus(Seconds(LIFETIME));
    let until_notice = end.minus(Seconds(GRACE)).millis_since(world.now) / 1000;
    world.run(u32::try_from(until_notice - 2).expect("it is later"));
    assert_eq!(world.status(id), ServerStatus::Active);
    world.run(4);
    assert_eq!(world.status(id), ServerStatus::Evacuating);
    let evacuation = world.evacuation(id);
    assert_eq!(evacuation.cause, EvacuationCause::MaxLifetime);
    assert_eq!(
        (evacuation.preemptor_id, evacuation.decision_id),
        (None, None)
    );
    world.run(GRACE + 5);
    assert_eq!(world.status(id), ServerStatus::Preempted);
    assert_eq!(world.state(id), EvacuationState::Evacuated);
    let fault = world.server(id).fault.as_ref().expect("it says why");
    assert!(
        fault.message.contains("as long as its flavor allows"),
        "{fault:?}"
    );
    let late = world
        .evacuation(id)
        .ended_at
        .expect("it ended")
        .millis_since(end);
    assert!(late.abs() < 5000, "it ended {late} ms after its time");
}

#[test]
fn capacity_promised_meanwhile_is_given_and_a_deletion_spares_no_victim() {
    for deleted in [false, true] {
        let mut world = SimulatedRegion::new(&[("host-a", 4)]);
        let id = world.create(&mortal(4, "terminate"));
        world.run(5);
        world.run(LIFETIME - GRACE);
        assert_eq!(world.status(id), ServerStatus::Evacuating);
        let pet = world.create(&normal(4));
        assert_eq!(world.status(pet), ServerStatus::Waiting);
        if deleted {
            world.delete(pet);
        }
        world.run(GRACE + 5);
        assert_eq!(world.status(id), ServerStatus::Preempted);
        assert_eq!(world.evacuations(id).len(), 1);
        assert_eq!(world.runs(pet), !deleted);
    }
}

#[test]
fn one_that_is_kept_begins_a_new_life() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let id = world.create(&mortal(4, "stop"));
    world.run(LIFETIME + 10);
    assert!(world.server(id).waits_to_come_back());
    world.run(60);
    assert_eq!(world.status(id), ServerStatus::Active);
    world.run(LIFETIME);
    assert_eq!(world.evacuations(id).len(), 2);
}

#[test]
fn the_end_of_a_lifetime_outlives_a_restart_of_the_scheduler() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let id = world.create(&mortal(4, "terminate"));
    world.run(5);
    world.restart_scheduler();
    world.run(LIFETIME);
    assert_eq!(world.status(id), ServerStatus::Preempted);
}

#[test]
fn one_that_is_not_longer_than_the_grace_period_of_the_region_is_refused() {
    let config = RegionConfig {
        default_grace_seconds: Seconds(600),
        ..RegionConfig::default()
    };
    let mut world = SimulatedRegion::with_config(&[("host-a", 4)], config);
    let create = |flavor: Flavor| CreateFlavor(flavor);
    let of_region = with(&spot(4), &[("ebbtide:max_lifetime_seconds", "600")]);
    let refused = world.command(create(of_region)).expect_err("too short");
    assert!(
        refused.to_string().contains("600 s in this region"),
        "{refused}"
    );
    world
        .command(create(mortal(4, "stop")))
        .expect("it has a grace period of its own");
}

#[test]
fn on_a_host_that_is_disabled_a_lifetime_ends_all_the_same() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let id = world.create(&mortal(4, "terminate"));
    world.run(5);
    let disabled = world.command(DisableHost {
        name: "host-a".to_owned(),
        reason: "its fan is to be changed".to_owned(),
    });
    disabled.expect("it is there");
    world.run(LIFETIME + 10);
    assert_eq!(world.status(id), ServerStatus::Preempted);
    assert_eq!(world.evacuation(id).cause, EvacuationCause::MaxLifetime);
}
