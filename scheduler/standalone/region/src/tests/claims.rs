//! Waiting claims: which claim may use which capacity.

use super::checks::everything_is_over;
use super::world::{SimulatedRegion, normal, spot, with};
use crate::{CreateServers, CreatedServers};
use ebbtide_model::{DecisionOutcome, EvacuationState, ServerStatus};

#[test]
fn a_second_preemptor_takes_the_room_that_a_leaving_victim_has_left_over() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let victim = world.create(&spot(4));
    let first = world.create(&normal(2));
    let second = world.create(&normal(2));
    assert_eq!(
        world.database.evacuations.len(),
        1,
        "one victim gives room for both"
    );
    assert_eq!(world.evacuation(victim).preemptor_id, Some(first));
    assert_eq!(world.status(second), ServerStatus::Waiting);
    world.run(35);
    assert!(world.runs(first) && world.runs(second));
    everything_is_over(&world);
}

#[test]
fn a_victim_whose_room_is_promised_to_another_is_not_spared_but_handed_over() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let victim = world.create(&spot(4));
    let first = world.create(&normal(2));
    let second = world.create(&normal(2));
    world.delete(first);
    world.flush();
    let evacuation = world.evacuation(victim);
    assert!(
        !evacuation.spare_requested,
        "its room is promised to the second"
    );
    assert_eq!(
        evacuation.preemptor_id,
        Some(second),
        "and it is written down for whom it leaves"
    );
    world.delete(second);
    world.flush();
    assert_eq!(
        world.state(victim),
        EvacuationState::Spared,
        "no request needs the capacity any more"
    );
    assert_eq!(world.status(victim), ServerStatus::Active);
    world.run(120);
    assert!(world.runs(victim));
    everything_is_over(&world);
}

#[test]
fn a_claim_that_starts_in_room_that_became_free_otherwise_spares_its_victims() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let other = world.create(&normal(2));
    let victim = world.create(&spot(2));
    let pet = world.create(&normal(2));
    assert_eq!(world.state(victim), EvacuationState::Draining);
    world.delete(other);
    world.flush();
    assert_eq!(world.status(pet), ServerStatus::Active);
    assert_eq!(world.state(victim), EvacuationState::Spared);
    world.run(60);
    assert!(world.runs(victim) && world.runs(pet));
    everything_is_over(&world);
}

#[test]
fn of_two_victims_the_one_that_is_not_needed_any_more_is_spared() {
    let mut world = SimulatedRegion::new(&[("host-a", 6)]);
    let other = world.create(&normal(2));
    let victims = [world.create(&spot(2)), world.create(&spot(2))];
    let pet = world.create(&normal(4));
    assert_eq!(world.status(pet), ServerStatus::Waiting);
    world.delete(other);
    world.flush();
    let spared = victims
        .iter()
        .filter(|v| world.state(**v) == EvacuationState::Spared)
        .count();
    assert_eq!(spared, 1, "half of the room came from elsewhere");
    world.run(60);
    assert!(world.runs(pet));
    assert_eq!(victims.iter().filter(|v| world.runs(**v)).count(), 1);
    everything_is_over(&world);
}

#[test]
fn small_requests_do_not_keep_a_large_one_waiting() {
    let mut world = SimulatedRegion::new(&[("host-a", 8)]);
    let slow = with(&spot(4), &[("ebbtide:grace_seconds", "200")]);
    world.create(&spot(4));
    world.create(&slow);
    // It needs both victims; the quick one is gone after 30 s.
    let large = world.create(&normal(6));
    world.run(40);
    assert_eq!(world.status(large), ServerStatus::Waiting);
    let mut small = Vec::new();
    for _ in 0..3 {
        let request = world.request(&normal(2), 1);
        let (servers, _) = world.ask(request).unwrap();
        small.push(servers[0].id);
        world.run(10);
    }
    let started = small
        .iter()
        .filter(|id| world.status(**id) == ServerStatus::Active)
        .count();
    // Four processors are free. The slow victim will free four of the six that the large request
    // needs; the other two are reserved for it.
    assert_eq!(
        started, 1,
        "what the one that was there first needs is kept for it"
    );
    world.run(140);
    assert!(world.runs(large));
    world.run(60);
    everything_is_over(&world);
}

#[test]
fn several_servers_are_placed_all_or_none() {
    let mut world = SimulatedRegion::new(&[("host-a", 4), ("host-b", 4)]);
    let request = world.request(&normal(3), 3);
    let (servers, decision) = world.ask(request).unwrap();
    assert!(matches!(decision.outcome, DecisionOutcome::NoValidHost(_)));
    assert!(
        servers
            .iter()
            .all(|s| s.status == ServerStatus::Error && s.host.is_none())
    );
    let codes: Vec<&str> = servers
        .iter()
        .filter_map(|s| s.fault.as_ref())
        .map(|f| f.code.as_str())
        .collect();
    assert_eq!(codes, ["EB-FAULT-001"], "one for the whole request");
    assert_eq!(world.database.servers.len(), 1);
    assert!(world.database.outbox.is_empty(), "no message was sent");
    let request = world.request(&normal(3), 2);
    let (servers, _) = world.ask(request).unwrap();
    assert_eq!([&servers[0].name, &servers[1].name], ["vm-1", "vm-2"]);
    world.flush();
    assert!(servers.iter().all(|s| world.runs(s.id)));
}

#[test]
fn several_servers_with_victims_start_as_their_room_becomes_free() {
    let mut world = SimulatedRegion::new(&[("host-a", 4), ("host-b", 4)]);
    let victims = [
        world.create_on("host-a", &spot(4)),
        world.create_on("host-b", &spot(4)),
    ];
    let request = world.request(&normal(2), 4);
    let (servers, _) = world.ask(request).unwrap();
    world.flush();
    assert_eq!(world.database.evacuations.len(), 2);
    world.run(40);
    assert!(servers.iter().all(|s| world.runs(s.id)));
    assert!(
        victims
            .iter()
            .all(|v| world.status(*v) == ServerStatus::Preempted)
    );
    everything_is_over(&world);
}

#[test]
fn a_claim_that_waits_for_a_deletion_only_goes_elsewhere_after_a_while() {
    let mut world = SimulatedRegion::new(&[("host-a", 4), ("host-b", 2)]);
    let other = world.create_on("host-b", &normal(2));
    let cattle = world.create_on("host-a", &spot(4));
    world.host("host-a").hanging.insert("delete the server");
    world.delete(cattle);
    world.flush();
    let pet = world.create(&normal(2));
    assert_eq!(world.place(pet), Some("host-a"));
    assert_eq!(
        world.status(pet),
        ServerStatus::Waiting,
        "it waits without any victim of its own"
    );
    world.delete(other);
    world.run(59);
    assert_eq!(world.place(pet), Some("host-a"));
    world.run(3);
    assert_eq!(world.place(pet), Some("host-b"));
    assert!(world.runs(pet));
    assert_eq!(
        world.status(cattle),
        ServerStatus::Deleting,
        "its room stays taken"
    );
}

#[test]
fn a_place_that_was_reserved_for_others_to_start_waits_for_its_room_like_any_other() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let victim = world.create(&spot(4));
    let request = world.request(&normal(4), 1);
    let id = request.server_ids[0];
    let create = CreateServers {
        quota: None,
        max_price: None,
        name: "ext".to_owned(),
        request,
        external: true,
    };
    let CreatedServers::New { servers, .. } = world.command(create.clone()).unwrap() else {
        panic!()
    };
    assert_eq!(servers[0].status, ServerStatus::Waiting);
    let CreatedServers::Repeated(again) = world.command(create.clone()).unwrap() else {
        panic!()
    };
    assert_eq!(again[0].id, id);
    world.flush();
    world.run(40);
    assert_eq!(
        world.status(id),
        ServerStatus::Reserved,
        "the room is free, the caller starts it"
    );
    assert_eq!(world.status(victim), ServerStatus::Preempted);
    assert_eq!(world.unsent("start"), 0);
    world.run(60);
    assert_eq!(
        world.status(id),
        ServerStatus::Reserved,
        "heartbeats say nothing about it"
    );
    world.delete(id);
    assert_eq!(
        world.status(id),
        ServerStatus::Deleted,
        "given back at once"
    );
    let CreatedServers::New { servers, .. } = world.command(create).unwrap() else {
        panic!("a place may be asked for again")
    };
    assert_eq!(servers[0].status, ServerStatus::Reserved);
}

#[test]
fn who_starts_servers_itself_gets_none_in_error() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let request = world.request(&normal(5), 1);
    let create = CreateServers {
        quota: None,
        max_price: None,
        name: "ext".to_owned(),
        request,
        external: true,
    };
    let CreatedServers::New { servers, decision } = world.command(create).unwrap() else {
        panic!()
    };
    assert!(servers.is_empty());
    assert!(matches!(decision.outcome, DecisionOutcome::NoValidHost(_)));
    assert!(world.database.servers.is_empty());
    assert_eq!(world.database.decisions.len(), 1);
}
