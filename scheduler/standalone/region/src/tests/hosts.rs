//! Hosts: up, down, disabled; and what their hypervisors run.

use super::checks::everything_is_over;
use super::world::{HEARTBEAT, SimulatedRegion, normal, spot};
use crate::{DisableHost, EnableHost};
use ebbtide_model::message::{Body, Message};
use ebbtide_model::{
    CloudEvent, HostHealth, Inventory, MessageId, ResourceClass, ServerStatus, Timestamp,
};
use uuid::Uuid;

fn health(world: &SimulatedRegion, host: &str) -> HostHealth {
    let view = world.region.host(host).unwrap();
    assert_eq!(view.health, view.usage.health, "the table says the same");
    view.health
}

#[test]
fn a_silent_host_is_down_after_a_minute_and_up_with_its_next_heartbeat() {
    let mut world = SimulatedRegion::new(&[("host-a", 4), ("host-b", 2)]);
    world.run(5);
    world.host("host-a").crash();
    world.run(60);
    assert_eq!(health(&world, "host-a"), HostHealth::Down);
    assert_eq!(health(&world, "host-b"), HostHealth::Up);
    let pet = world.create(&normal(4));
    assert_eq!(world.status(pet), ServerStatus::Error);
    let now = world.now;
    world.host("host-a").restart(now);
    world.run(HEARTBEAT.0 + 1);
    assert_eq!(health(&world, "host-a"), HostHealth::Up);
    let pet = world.create(&normal(4));
    assert!(world.runs(pet));
    let told = world
        .events
        .iter()
        .filter(|e| matches!(e, CloudEvent::Host(h, _) if h.name == "host-a"));
    assert_eq!(
        told.count(),
        3,
        "registered, down, up: not every heartbeat is news"
    );
}

#[test]
fn a_disabled_host_gets_nothing_new_whatever_its_agent_says_and_keeps_what_it_has() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let pet = world.create(&normal(2));
    let disable = |reason: &str| DisableHost {
        name: "host-a".to_owned(),
        reason: reason.to_owned(),
    };
    world.command(disable("new disks")).unwrap();
    world.run(30);
    assert_eq!(health(&world, "host-a"), HostHealth::Disabled);
    let refused = world.create(&normal(2));
    assert_eq!(world.status(refused), ServerStatus::Error);
    assert!(world.runs(pet));
    world.restart_scheduler();
    assert_eq!(
        health(&world, "host-a"),
        HostHealth::Disabled,
        "it is written down"
    );
    world.host("host-a").crash();
    world.run(100);
    world.command(EnableHost("host-a".to_owned())).unwrap();
    assert_eq!(
        health(&world, "host-a"),
        HostHealth::Down,
        "enabled, but no agent reports"
    );
    let now = world.now;
    world.host("host-a").restart(now);
    world.run(11);
    assert_eq!(health(&world, "host-a"), HostHealth::Up);
    let error = world.command(disable("")).unwrap_err();
    assert_eq!(error.code(), "EB-MODEL-004", "{error}");
    let error = world.command(EnableHost("host-z".to_owned())).unwrap_err();
    assert_eq!(error.code(), "EB-REGION-002");
}

#[test]
fn claims_and_evacuations_go_on_while_their_host_is_disabled() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    world.create(&spot(4));
    let pet = world.create(&normal(4));
    let disable = DisableHost {
        name: "host-a".to_owned(),
        reason: "new disks".to_owned(),
    };
    world.command(disable).unwrap();
    world.run(40);
    assert!(world.runs(pet));
}

#[test]
fn a_server_that_its_host_lost_is_in_error_after_two_heartbeats_and_its_room_is_free() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let pet = world.create(&normal(4));
    world.run(5);
    assert_eq!(world.status(pet), ServerStatus::Active);
    world.host("host-a").guests.remove(&pet);
    world.run(11);
    assert_eq!(
        world.status(pet),
        ServerStatus::Active,
        "one heartbeat may be old news"
    );
    world.run(10);
    assert_eq!(world.status(pet), ServerStatus::Error);
    assert_eq!(
        world.server(pet).fault.as_ref().unwrap().code,
        "EB-FAULT-002"
    );
    let next = world.create(&normal(4));
    assert!(world.runs(next));
    world.delete(pet);
    assert_eq!(world.status(pet), ServerStatus::Deleting);
    let usage = world.region.table().usage("host-a").unwrap();
    assert!(
        usage.classes.iter().all(|c| c.free_full >= 0),
        "it holds no room: {usage:?}"
    );
    world.flush();
    assert_eq!(world.status(pet), ServerStatus::Deleted);
    assert!(world.runs(next));
    everything_is_over(&world);
}

#[test]
fn a_lost_server_that_is_found_again_is_active() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let pet = world.create(&normal(2));
    let guest = world.host("host-a").guests.remove(&pet).unwrap();
    world.run(30);
    assert_eq!(world.status(pet), ServerStatus::Error);
    world.host("host-a").guests.insert(pet, guest);
    world.run(11);
    let server = world.server(pet);
    assert_eq!(
        (server.status, server.fault.as_ref(), server.ended_at),
        (ServerStatus::Active, None, None)
    );
    everything_is_over(&world);
}

#[test]
fn an_agent_that_comes_back_with_an_empty_hypervisor_has_lost_everything() {
    let mut world = SimulatedRegion::new(&[("host-a", 8), ("host-b", 2)]);
    let cattle = world.create_on("host-a", &spot(4));
    let doomed = world.create_on("host-a", &spot(4));
    world.run(5);
    let pet = world.create_on("host-a", &normal(4));
    let (victim, other) = if world.evacuations(cattle).is_empty() {
        (doomed, cattle)
    } else {
        (cattle, doomed)
    };
    world.host("host-a").crash();
    world.host("host-a").guests.clear();
    let now = world.now;
    world.host("host-a").restart(now);
    world.run(60);
    assert_eq!(world.status(other), ServerStatus::Error, "lost");
    assert_eq!(
        world.status(victim),
        ServerStatus::Preempted,
        "its agent says that it is gone already"
    );
    assert!(world.runs(pet));
    everything_is_over(&world);
}

/// A heartbeat of another machine with this host's name: its own session, nothing of the host's
/// servers.
fn beat_of_a_clone(world: &mut SimulatedRegion, host: &str, sequence: u64) {
    let mut message = beat(world, host);
    message.id = MessageId(Uuid::from_u128(0xC10E_0000 + u128::from(sequence)));
    let Body::Heartbeat(heartbeat) = &mut message.body else {
        panic!("no heartbeat: {message:?}");
    };
    (heartbeat.session, heartbeat.sequence) = (Uuid::from_u128(0xC10E), sequence);
    heartbeat.servers.clear();
    heartbeat.inventory.clear();
    world.reports.push_back(message);
    world.flush();
}

#[test]
fn two_agents_with_one_name_raise_an_alarm_and_give_nothing_away() {
    let mut world = SimulatedRegion::new(&[("host-a", 8)]);
    let pet = world.create(&normal(4));
    world.run(20);
    for round in 0..20 {
        world.run(4);
        beat_of_a_clone(&mut world, "host-a", 3 * round + 1);
        world.run(1);
        beat_of_a_clone(&mut world, "host-a", 3 * round + 2);
        world.run(1);
        beat_of_a_clone(&mut world, "host-a", 3 * round + 3);
        world.run(4);
        assert!(world.runs(pet), "round {round}");
        assert_eq!(world.status(pet), ServerStatus::Active, "round {round}");
    }
    let alarms = world.events.iter();
    let alarms = alarms.filter(|e| {
        matches!(
            e,
            CloudEvent::Alarm {
                code: "EB-REGION-007",
                ..
            }
        )
    });
    assert_eq!(alarms.count(), 1, "once, not with every heartbeat");
    assert_eq!(world.region.summary().contested, 1);
    assert_eq!(health(&world, "host-a"), HostHealth::Down);
    let refused = world.create(&normal(4));
    assert_eq!(world.status(refused), ServerStatus::Error);
    // The other machine gets another name.
    world.run(150);
    assert_eq!(world.region.summary().contested, 0);
    assert_eq!(health(&world, "host-a"), HostHealth::Up);
    let second = world.create(&normal(4));
    assert!(world.runs(second) && world.runs(pet));
    everything_is_over(&world);
}

#[test]
fn an_agent_that_starts_again_and_again_is_not_two_agents() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let pet = world.create(&normal(4));
    for _ in 0..30 {
        world.run(3);
        let now = world.now;
        world.host("host-a").restart(now);
    }
    assert_eq!(world.region.summary().contested, 0);
    assert!(world.runs(pet));
}

/// The heartbeat that the host would send now.
fn beat(world: &mut SimulatedRegion, host: &str) -> Message {
    let now = world.now;
    world.host(host).heartbeat(now).unwrap()
}

#[test]
fn a_heartbeat_that_was_written_before_a_server_started_says_nothing_about_it() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    world.run(15);
    let old = [beat(&mut world, "host-a"), beat(&mut world, "host-a")];
    world.now = Timestamp::from_millis(world.now.as_millis() + 200);
    let pet = world.create(&normal(4));
    assert_eq!(world.status(pet), ServerStatus::Active);
    world.reports.extend(old.clone());
    world.flush();
    assert_eq!(world.status(pet), ServerStatus::Active);
    world.restart_scheduler();
    world.reports.extend(old);
    world.flush();
    assert_eq!(
        world.status(pet),
        ServerStatus::Active,
        "not even after a restart"
    );
}

#[test]
fn old_heartbeats_of_the_same_and_of_a_former_session_are_not_looked_at() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let pet = world.create(&normal(4));
    let before = beat(&mut world, "host-a");
    world.delete(pet);
    world.flush();
    world.run(11);
    let seen = world.region.host("host-a").unwrap().host.last_seen;
    world.reports.push_back(before.clone());
    world.flush();
    // The host may restart any number of times, and the scheduler, too.
    for _ in 0..12 {
        let now = world.now;
        world.host("host-a").restart(now);
        world.run(12);
    }
    for again in [false, true] {
        if again {
            world.restart_scheduler();
        }
        let session = world.region.host("host-a").unwrap().host.agent_session;
        world.reports.push_back(before.clone());
        world.flush();
        let host = world.region.host("host-a").unwrap().host;
        assert_eq!(
            host.agent_session, session,
            "a former agent does not come back"
        );
        assert!(host.last_seen > seen);
    }
}

#[test]
fn a_living_agent_is_not_shut_out_by_a_late_word_of_its_former_session() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    world.run(3);
    let late = beat(&mut world, "host-a");
    world.run(8);
    let now = world.now;
    world.host("host-a").restart(now);
    world.run(12);
    // A scheduler that has just restarted does not know that this session has ended.
    world.restart_scheduler();
    world.reports.push_back(late);
    world.flush();
    let pet = world.create(&normal(4));
    world.run(12);
    world.host("host-a").guests.clear();
    world.run(25);
    assert_eq!(world.status(pet), ServerStatus::Error, "the agent is heard");
    assert_eq!(health(&world, "host-a"), HostHealth::Up);
}

#[test]
fn a_host_that_shrinks_sends_those_away_who_wait_for_room_that_is_not_there_any_more() {
    let mut world = SimulatedRegion::new(&[("host-a", 8), ("host-b", 4)]);
    let keeper = world.create_on("host-a", &normal(4));
    let victim = world.create_on("host-a", &spot(4));
    let blocker = world.create_on("host-b", &normal(4));
    let pet = world.create(&normal(4));
    assert_eq!(
        (world.place(pet), world.status(pet)),
        (Some("host-a"), ServerStatus::Waiting)
    );
    world.delete(blocker);
    world.flush();
    let small = Inventory::of(6);
    world
        .host("host-a")
        .inventory
        .insert(ResourceClass::vcpu(), small);
    world.run(11);
    assert_eq!(world.place(pet), Some("host-b"));
    assert!(world.runs(pet) && world.runs(keeper));
    world.run(60);
    assert!(
        world.runs(victim),
        "it was spared: who needed its capacity is elsewhere"
    );
    everything_is_over(&world);
}

#[test]
fn a_host_that_grows_serves_those_who_wait() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let victim = world.create(&spot(4));
    let pet = world.create(&normal(4));
    for (class, amount) in [
        (ResourceClass::vcpu(), 8),
        (ResourceClass::memory_mb(), 8000),
    ] {
        world
            .host("host-a")
            .inventory
            .insert(class, Inventory::of(amount));
    }
    world.run(11);
    assert!(world.runs(pet));
    world.run(60);
    assert!(world.runs(victim), "no server ends for nothing");
    everything_is_over(&world);
}

#[test]
fn an_absurd_heartbeat_changes_nothing() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let mut report = beat(&mut world, "host-a");
    if let ebbtide_model::message::Body::Heartbeat(m) = &mut report.body {
        let mut absurd = Inventory::of(4);
        absurd.allocation_ratio = f64::NAN;
        m.inventory.insert(ResourceClass::vcpu(), absurd);
    }
    let before = world.database.clone();
    world.reports.push_back(report);
    world.flush();
    assert_eq!(world.database, before);
    assert!(
        world
            .ignored()
            .iter()
            .any(|why| why.starts_with("heartbeat of host-a"))
    );
}

#[test]
fn heartbeats_are_written_as_often_as_a_restarted_scheduler_needs_them() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    for _ in 0..600 {
        world.run(1);
        let seen = world.database.hosts["host-a"].last_seen.unwrap();
        assert!(world.now.millis_since(seen) <= 30_000, "it grew old");
    }
}
