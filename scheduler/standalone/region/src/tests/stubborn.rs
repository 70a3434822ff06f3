//! Victims that their hypervisor does not end: the preemptor is placed again, with the next
//! cheapest victims.

use super::checks::everything_is_over;
use super::host::Fate;
use super::world::{SimulatedRegion, normal, spot};
use ebbtide_model::{EvacuationState, Seconds, ServerId, ServerStatus};

/// One host, full with two preemptible servers; the next `failing` terminations fail. The request
/// takes one of them.
fn world(failing: usize) -> (SimulatedRegion, ServerId, ServerId, ServerId) {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let cattle = [
        world.create_on("host-a", &spot(2)),
        world.create_on("host-a", &spot(2)),
    ];
    world.run(2);
    let fates = std::iter::repeat_n(Fate::Fails, failing).collect();
    world
        .host("host-a")
        .fates
        .insert("terminate the server", fates);
    let pet = world.create(&normal(2));
    let [a, b] = cattle;
    let (first, other) = match world.status(a) {
        ServerStatus::Evacuating => (a, b),
        _ => (b, a),
    };
    (world, pet, first, other)
}

#[test]
fn a_victim_that_does_not_end_is_replaced_by_the_next_one_of_the_same_host() {
    let (mut world, pet, stubborn, other) = world(3);
    world.run(45);
    assert_eq!(world.state(stubborn), EvacuationState::Failed);
    assert_eq!(world.place(pet), Some("host-a"));
    assert_eq!(world.status(other), ServerStatus::Evacuating);
    world.run(45);
    assert!(world.runs(pet));
    assert!(world.runs(stubborn), "it is left alone");
    assert_eq!(world.status(other), ServerStatus::Preempted);
    everything_is_over(&world);
}

#[test]
fn a_host_that_has_failed_a_request_twice_is_not_tried_a_third_time() {
    let (mut world, pet, first, second) = world(6);
    world.run(100);
    for victim in [first, second] {
        assert_eq!(world.state(victim), EvacuationState::Failed);
        assert!(world.runs(victim));
    }
    assert_eq!(world.status(pet), ServerStatus::Error);
    assert_eq!(world.server(pet).refused_hosts, ["host-a", "host-a"]);
    everything_is_over(&world);
}

#[test]
fn the_figures_say_how_long_a_victim_overstays_and_that_it_runs_until_it_is_gone() {
    let (mut world, pet, _, _) = world(0);
    let (now, later) = (world.now, world.now.plus(Seconds(3600)));
    assert_eq!(world.region.figures(now).overtime_millis, 0);
    assert!(world.region.figures(later).overtime_millis > 3_000_000);
    assert_eq!(world.region.figures(now).running.values().sum::<u64>(), 2);
    world.run(90);
    assert!(world.runs(pet));
    assert_eq!(world.region.figures(later).overtime_millis, 0);
    assert_eq!(world.region.figures(later).running.values().sum::<u64>(), 1);
}
