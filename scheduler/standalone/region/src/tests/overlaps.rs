//! Overlapping evacuations. The name of each test is the rule that it checks.

use super::checks::everything_is_over;
use super::world::{SimulatedRegion, normal, spot, with};
use crate::ReleaseServer;
use ebbtide_model::{DecisionOutcome, EvacuationState, Flavor, ServerStatus};

fn patient(vcpus: u32, seconds: &str) -> Flavor {
    with(&spot(vcpus), &[("ebbtide:grace_seconds", seconds)])
}

#[test]
fn the_room_of_a_draining_victim_can_be_promised_to_the_next_request_at_the_time_it_will_be_free() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let victim = world.create(&patient(4, "60"));
    let first = world.create(&normal(2));
    assert_eq!(world.state(victim), EvacuationState::Draining);
    world.run(20);
    let request = world.request(&normal(2), 1);
    let (servers, decision) = world.ask(request).expect("a right request");
    let DecisionOutcome::Placed(places) = &decision.outcome else {
        panic!("{decision:?}");
    };
    // No further victim is needed: it starts when the other request's victim has left.
    assert!(places[0].victims.is_empty() && places[0].waits_for_room);
    world.run(39);
    assert_eq!(world.status(servers[0].id), ServerStatus::Waiting);
    world.run(3);
    assert!(world.runs(first) && world.runs(servers[0].id));
    everything_is_over(&world);
}

#[test]
fn one_long_grace_period_never_blocks_others() {
    let mut world = SimulatedRegion::new(&[("host-a", 10)]);
    let slow = world.create(&patient(4, "600"));
    let specs = [
        ("ebbtide:grace_seconds", "5"),
        ("ebbtide:protected_seconds", "10"),
    ];
    let quick = world.create(&with(&spot(4), &specs));
    // It takes the two free processors and the slow victim's four, because the quick one is still
    // protected.
    let older = world.create(&normal(6));
    assert_eq!(world.evacuation(slow).preemptor_id, Some(older));
    world.run(15);
    let younger = world.create(&normal(4));
    assert_eq!(world.evacuation(quick).preemptor_id, Some(younger));
    world.run(8);
    // What the quick victim has freed would also suffice for the older request, but then the
    // younger one would have to wait for the slow victim.
    assert!(world.runs(younger));
    assert_eq!(world.status(older), ServerStatus::Waiting);
    world.run(600);
    assert!(world.runs(older));
    everything_is_over(&world);
}

#[test]
fn a_victim_chosen_twice_is_impossible() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let victim = world.create(&spot(4));
    let first = world.create(&normal(4));
    for _ in 0..3 {
        let next = world.create(&normal(4));
        assert_eq!(world.status(next), ServerStatus::Error);
        assert_eq!(world.evacuations(victim).len(), 1);
        world.run(5);
    }
    world.run(30);
    assert!(world.runs(first));
    everything_is_over(&world);
}

#[test]
fn a_preemptor_that_goes_away_spares_those_not_yet_gone() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let quick = world.create(&patient(2, "5"));
    let slow = world.create(&patient(2, "60"));
    let pet = world.create(&normal(4));
    world.run(10);
    assert_eq!(world.status(quick), ServerStatus::Preempted);
    world.delete(pet);
    world.run(2);
    assert_eq!(world.state(slow), EvacuationState::Spared);
    world.run(120);
    assert!(world.runs(slow));
    everything_is_over(&world);
}

#[test]
fn an_early_release_by_the_tenant_shortens_the_wait() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let victim = world.create(&patient(4, "600"));
    let pet = world.create(&normal(4));
    world.run(3);
    world.command(ReleaseServer(victim)).expect("it is leaving");
    world.run(2);
    assert!(world.runs(pet));
    everything_is_over(&world);
}

#[test]
fn a_preemptor_whose_victim_is_stuck_is_planned_anew_with_the_cheapest_next_set_after_a_deadline() {
    let mut world = SimulatedRegion::new(&[("host-a", 4), ("host-b", 8)]);
    world.create_on("host-a", &patient(4, "5"));
    let dear = world.create_on("host-b", &patient(6, "5"));
    let cheap = world.create_on("host-b", &patient(2, "5"));
    world.run(1);
    world.host("host-a").hanging.insert("terminate the server");
    world.host("host-b").hanging.insert("terminate the server");
    let pet = world.create(&normal(2));
    let first = world.place(pet).map(str::to_owned);
    // The grace period, then the agent's time to act.
    world.run(5 + 60 + 5);
    let second = world.place(pet).map(str::to_owned);
    assert_ne!(first, second, "it goes elsewhere");
    for host in ["host-a", "host-b"] {
        world.host(host).hanging.clear();
    }
    world.run(30);
    assert!(world.runs(pet));
    if second.as_deref() == Some("host-b") {
        assert!(world.runs(dear), "the larger one was not needed");
        assert_eq!(world.status(cheap), ServerStatus::Preempted);
    }
}
