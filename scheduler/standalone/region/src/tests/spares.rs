//! No unnecessary eviction: preemptors that go away.

use super::checks::everything_is_over;
use super::world::{SimulatedRegion, normal, spot, with};
use crate::ReleaseServer;
use ebbtide_model::{EvacuationState, ServerStatus};

#[test]
fn when_the_preemptor_is_deleted_while_it_waits_all_victims_live() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let victims = [world.create(&spot(2)), world.create(&spot(2))];
    let pet = world.create(&normal(4));
    world.run(10);
    world.delete(pet);
    assert_eq!(world.status(pet), ServerStatus::Deleted);
    world.flush();
    for victim in victims {
        assert_eq!(world.state(victim), EvacuationState::Spared);
        assert_eq!(world.status(victim), ServerStatus::Active);
        let why = world.evacuation(victim).reason.as_deref();
        assert_eq!(why, Some("the server that needed the capacity was deleted"));
    }
    world.run(120);
    assert!(victims.iter().all(|v| world.runs(*v)));
    everything_is_over(&world);
}

#[test]
fn victims_whose_notice_was_never_sent_live_without_having_heard_of_it() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let victim = world.create(&spot(4));
    world.broker_up = false;
    let pet = world.create(&normal(4));
    world.run(25);
    world.delete(pet);
    assert_eq!(world.unsent("notice"), 0, "the notice is taken back");
    assert_eq!(world.unsent("spare"), 1);
    world.broker_up = true;
    world.flush();
    assert_eq!(
        world.state(victim),
        EvacuationState::Spared,
        "the agent answers at once"
    );
    world.run(120);
    assert!(world.runs(victim));
    assert!(world.hosts["host-a"].ended.is_empty());
    everything_is_over(&world);
}

#[test]
fn a_notice_that_was_in_the_senders_hands_is_called_off_by_the_spare_behind_it() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let victim = world.create(&spot(4));
    let pet = world.claim(&normal(4));
    // The publisher has the notice, and the broker gets it although the row is deleted.
    let notice = world.outbox["host-a"].front().cloned().unwrap();
    let notice = ebbtide_model::message::Message::from_bytes(&notice.body).unwrap();
    world.delete(pet);
    world.host("host-a").queue.push_back(notice);
    world.flush();
    assert_eq!(world.state(victim), EvacuationState::Spared);
    world.run(120);
    assert!(world.runs(victim));
}

#[test]
fn a_spare_that_comes_too_late_leaves_the_room_to_others() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let victim = world.create(&spot(4));
    let pet = world.create(&normal(4));
    world.run(28);
    world.host("host-a").hanging.insert("terminate the server");
    world.run(3);
    // The agent has begun to act.
    world.delete(pet);
    world.flush();
    assert!(world.evacuation(victim).spare_requested);
    assert_eq!(world.state(victim), EvacuationState::Draining);
    world.host("host-a").hanging.clear();
    world.flush();
    assert_eq!(
        world.state(victim),
        EvacuationState::Evacuated,
        "what is true is written down"
    );
    assert_eq!(world.status(victim), ServerStatus::Preempted);
    let next = world.create(&normal(4));
    assert_eq!(
        world.status(next),
        ServerStatus::Active,
        "the capacity is free for the next request"
    );
    everything_is_over(&world);
}

#[test]
fn no_claim_uses_the_capacity_of_a_victim_that_is_being_spared() {
    let mut world = SimulatedRegion::new(&[("host-a", 4), ("host-b", 2)]);
    let victim = world.create_on("host-a", &spot(4));
    let first = world.create(&normal(4));
    assert_eq!(world.place(first), Some("host-a"));
    world.host("host-a").crash();
    world.delete(first);
    world.flush();
    // The spare is sent, the answer has not arrived.
    assert!(world.evacuation(victim).spare_requested);
    let usage = world.region.table().usage("host-a").unwrap();
    assert_eq!(usage.classes[0].leaving, 0);
    let second = world.create(&normal(2));
    assert_eq!(
        world.place(second),
        Some("host-b"),
        "it is not made to wait for a victim that stays"
    );
    let third = world.create(&normal(2));
    assert_eq!(
        world.status(third),
        ServerStatus::Error,
        "nor chosen anew before it has answered"
    );
    let now = world.now;
    world.host("host-a").restart(now);
    world.flush();
    assert_eq!(world.state(victim), EvacuationState::Spared);
    let fourth = world.create(&normal(2));
    assert_eq!(
        world.place(fourth),
        Some("host-a"),
        "afterwards it is a candidate like any other"
    );
    assert_eq!(world.evacuations(victim).len(), 2);
    world.run(60);
    assert!(world.runs(fourth));
    everything_is_over(&world);
}

#[test]
fn a_victim_that_its_owner_deletes_meanwhile_gives_its_room_at_once() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let victim = world.create(&with(&spot(4), &[("ebbtide:grace_seconds", "600")]));
    let pet = world.create(&normal(4));
    world.run(5);
    world.delete(victim);
    world.flush();
    assert_eq!(world.status(victim), ServerStatus::Deleted);
    assert_eq!(world.state(victim), EvacuationState::Evacuated);
    assert!(world.runs(pet), "the grace period is of no use to anybody");
    world.run(60);
    assert_eq!(world.status(victim), ServerStatus::Deleted);
    everything_is_over(&world);
}

#[test]
fn a_victim_that_its_owner_releases_leaves_at_once() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let victim = world.create(&with(&spot(4), &[("ebbtide:grace_seconds", "600")]));
    let stranger = world.create(&normal(4));
    world.run(5);
    world.command(ReleaseServer(victim)).unwrap();
    world.flush();
    assert_eq!(world.status(victim), ServerStatus::Preempted);
    assert!(world.runs(stranger));
    let error = world.command(ReleaseServer(stranger)).unwrap_err();
    assert_eq!(error.code(), "EB-REGION-005");
    assert!(
        error.to_string().contains("is not being evacuated"),
        "{error}"
    );
    let error = world.command(ReleaseServer(victim)).unwrap_err();
    assert_eq!(error.code(), "EB-REGION-002");
}

#[test]
fn a_victim_that_is_being_spared_cannot_be_released() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let victim = world.create(&spot(4));
    let pet = world.create(&normal(4));
    world.host("host-a").crash();
    world.delete(pet);
    assert!(world.evacuation(victim).spare_requested);
    let error = world.command(ReleaseServer(victim)).unwrap_err();
    assert_eq!(error.code(), "EB-REGION-005");
}

#[test]
fn a_victim_that_was_spared_before_it_had_started_goes_on_starting() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    world.host("host-a").hanging.insert("start the server");
    let victim = world.create(&spot(4));
    assert_eq!(world.status(victim), ServerStatus::Building);
    let pet = world.create(&normal(4));
    assert_eq!(world.status(victim), ServerStatus::Evacuating);
    world.delete(pet);
    world.run(25);
    assert_eq!(
        world.status(victim),
        ServerStatus::Building,
        "it is not called lost by heartbeats"
    );
    world.host("host-a").hanging.clear();
    world.run(5);
    assert_eq!(world.status(victim), ServerStatus::Active);
    assert!(world.server(victim).launched_at.is_some());
    everything_is_over(&world);
}

#[test]
fn a_victim_that_starts_while_its_notice_is_under_way_is_a_victim_all_the_same() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    world.host("host-a").hanging.insert("start the server");
    let victim = world.create(&spot(4));
    let pet = world.create(&normal(4));
    world.host("host-a").hanging.clear();
    world.flush();
    assert_eq!(world.status(victim), ServerStatus::Evacuating);
    assert!(world.server(victim).launched_at.is_some());
    world.run(40);
    assert!(world.runs(pet) && !world.runs(victim));
    everything_is_over(&world);
}
