//! Clocks that are set by an hour. When the service's own clock is set, it reads the region anew;
//! see `restore.rs`.

use super::checks::everything_is_over;
use super::world::{SimulatedRegion, normal, spot, with};
use ebbtide_model::{EvacuationState, HostHealth, ServerStatus, Timestamp};

const HOUR: i64 = 3_600_000;

/// Sets the scheduler's clock; the hosts' clocks continue as before.
fn set_clock(world: &mut SimulatedRegion, by_ms: i64) {
    world.now = Timestamp::from_millis(world.now.as_millis() + by_ms);
    for host in world.hosts.values_mut() {
        host.skew -= by_ms;
    }
    world.restart_scheduler();
}

fn health(world: &SimulatedRegion) -> HostHealth {
    world.region.host("host-a").unwrap().health
}

#[test]
fn a_schedulers_clock_that_is_set_fails_no_evacuation_and_takes_no_host_for_dead() {
    for by_ms in [HOUR, -HOUR] {
        let mut world = SimulatedRegion::new(&[("host-a", 4)]);
        let victim = world.create(&spot(4));
        world.run(60);
        let pet = world.create(&normal(4));
        world.run(10);
        assert_eq!(world.state(victim), EvacuationState::Draining);
        set_clock(&mut world, by_ms);
        world.tick();
        assert_eq!(health(&world), HostHealth::Up);
        world.run(15);
        assert_eq!(world.state(victim), EvacuationState::Draining);
        world.run(20);
        assert!(world.runs(pet), "set by {by_ms} ms");
        assert_eq!(world.hosts["host-a"].ended[&victim], 1);
        everything_is_over(&world);
    }
}

#[test]
fn after_a_clock_was_set_back_an_agent_that_is_dead_is_given_up_as_soon_as_before() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let victim = world.create(&with(&spot(4), &[("ebbtide:grace_seconds", "10")]));
    world.run(60);
    world.create(&normal(4));
    world.run(5);
    assert_eq!(world.state(victim), EvacuationState::Draining);
    world.host("host-a").crash();
    set_clock(&mut world, -HOUR);
    // The longest possible wait: three notices, the grace period, the time to act.
    world.run(30 + 10 + 60 + 1);
    assert_eq!(world.state(victim), EvacuationState::Failed);
    assert_eq!(health(&world), HostHealth::Down);
}

#[test]
fn a_server_that_is_lost_after_its_hosts_clock_was_set_back_is_noticed() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let server = world.create(&normal(2));
    world.run(30);
    assert_eq!(world.status(server), ServerStatus::Active);
    let host = world.host("host-a");
    host.skew = -HOUR;
    host.guests.remove(&server);
    world.run(30);
    assert_eq!(world.status(server), ServerStatus::Error);
}
