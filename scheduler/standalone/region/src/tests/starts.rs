//! Servers that do not start, and deletions that take long.

use super::checks::everything_is_over;
use super::host::Fate;
use super::world::{SimulatedRegion, normal, spot};
use crate::RegionConfig;
use ebbtide_model::message::{Body, Evacuated, EvacuationEnd};
use ebbtide_model::{EvacuationState, Seconds, ServerStatus, Timestamp};

#[test]
fn a_start_that_the_broker_has_not_taken_does_not_time_out() {
    let mut world = SimulatedRegion::new(&[("host-a", 4), ("host-b", 4)]);
    world.broker_up = false;
    let pet = world.create(&normal(4));
    let host = world.place(pet).unwrap().to_owned();
    world.run(100);
    world.restart_scheduler();
    world.run(700);
    assert_eq!(world.status(pet), ServerStatus::Building);
    world.broker_up = true;
    world.run(1);
    assert_eq!(world.place(pet), Some(host.as_str()));
    assert!(world.runs(pet));
}

#[test]
fn a_server_that_does_not_start_is_tried_elsewhere_and_its_room_stays_taken_until_nothing_is_left()
{
    let mut world = SimulatedRegion::new(&[("host-a", 4), ("host-b", 4)]);
    for name in ["host-a", "host-b"] {
        world.host(name).hanging.insert("start the server");
    }
    let pet = world.create(&normal(4));
    let first = world.place(pet).unwrap().to_owned();
    world.run(605);
    let second = world.place(pet).unwrap().to_owned();
    assert_ne!(first, second);
    let orphan = world
        .database
        .servers
        .values()
        .find(|s| s.id != pet)
        .cloned()
        .unwrap();
    assert_eq!(orphan.status, ServerStatus::Deleting);
    assert_eq!(orphan.host.as_ref(), Some(&first));
    assert_eq!(orphan.fault.as_ref().unwrap().code, "EB-FAULT-004");
    let next = world.create(&normal(4));
    assert_eq!(
        world.status(next),
        ServerStatus::Error,
        "the first start may still come true"
    );
    world.host(&second).hanging.clear();
    world.flush();
    assert!(world.runs(pet));
    // It comes up late, and is deleted.
    world.host(&first).hanging.clear();
    world.flush();
    assert!(!world.hosts[&first].runs(pet));
    assert_eq!(world.status(orphan.id), ServerStatus::Deleted);
    let next = world.create(&normal(4));
    assert!(world.runs(next));
    everything_is_over(&world);
}

/// Otherwise it would be ended and created again on another host, and the owner's work on it would
/// be lost.
#[test]
fn a_server_that_runs_stays_where_it_is_although_the_report_of_its_start_is_lost() {
    let mut world = SimulatedRegion::new(&[("host-a", 4), ("host-b", 4)]);
    world.broker_up = false;
    let pet = world.create(&normal(4));
    let host = world.place(pet).unwrap().to_owned();
    world.broker_up = true;
    world.send_one(&host);
    let now = world.now;
    world.host(&host).deliver(now);
    world.host(&host).complete_all(now);
    // The test purges the queue of reports.
    while world.confirm_one(&host) {}
    world.reports.clear();
    assert!(world.hosts[&host].runs(pet));
    world.run(590);
    assert_eq!(world.status(pet), ServerStatus::Building);
    world.run(20);
    assert_eq!(world.status(pet), ServerStatus::Active);
    assert_eq!(world.place(pet), Some(host.as_str()));
    assert!(world.hosts[&host].runs(pet));
    assert_eq!(world.database.servers.len(), 1, "nothing was given up");
    everything_is_over(&world);
}

#[test]
fn remains_outlive_the_server_and_the_scheduler() {
    let mut world = SimulatedRegion::new(&[("host-a", 4), ("host-b", 4)]);
    world.host("host-a").hanging.insert("start the server");
    let first = world.create_on("host-a", &normal(4));
    world.host("host-a").crash();
    world.run(605);
    assert_eq!(
        world.status(first),
        ServerStatus::Error,
        "it was forced there"
    );
    world.delete(first);
    assert_eq!(world.status(first), ServerStatus::Deleted);
    world.restart_scheduler();
    let request = world.request(&normal(4), 2);
    let (servers, _) = world.ask(request).unwrap();
    assert!(
        servers.iter().all(|s| s.status == ServerStatus::Error),
        "one of two has no room"
    );
    let now = world.now;
    world.host("host-a").restart(now);
    world.host("host-a").hanging.clear();
    world.run(12);
    let request = world.request(&normal(4), 2);
    let (servers, _) = world.ask(request).unwrap();
    world.flush();
    assert!(servers.iter().all(|s| world.runs(s.id)));
    everything_is_over(&world);
}

#[test]
fn a_hypervisor_that_says_no_sends_the_server_to_the_next_host_until_the_attempts_are_used_up() {
    let names = ["host-a", "host-b", "host-c", "host-d"];
    let mut world = SimulatedRegion::new(&names.map(|n| (n, 4)));
    for name in names {
        let fates = std::iter::repeat_n(Fate::NoRoom, 9).collect();
        world.host(name).fates.insert("start the server", fates);
    }
    let pet = world.create(&normal(2));
    let server = world.server(pet);
    assert_eq!(server.status, ServerStatus::Error);
    assert_eq!(server.refused_hosts.len(), 3, "max_attempts");
    let fault = server.fault.as_ref().unwrap();
    assert_eq!(fault.code, "EB-FAULT-001");
    assert!(
        fault.message.contains("not enough room"),
        "{}",
        fault.message
    );
    world.delete(pet);
    assert_eq!(world.status(pet), ServerStatus::Deleted);
    everything_is_over(&world);
}

#[test]
fn a_deletion_that_got_lost_is_asked_for_again() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let pet = world.create(&normal(4));
    world.delete(pet);
    world.broker_up = true;
    world.send_one("host-a");
    world.host("host-a").queue.clear();
    world.run(300);
    assert_eq!(world.status(pet), ServerStatus::Deleting);
    world.run(310);
    assert_eq!(world.status(pet), ServerStatus::Deleted);
    everything_is_over(&world);
}

#[test]
fn a_dead_agent_does_not_get_more_and_more_messages() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let pet = world.create(&normal(4));
    world.host("host-a").crash();
    world.delete(pet);
    world.run(6000);
    assert_eq!(world.hosts["host-a"].queue.len(), 1);
    let now = world.now;
    world.host("host-a").restart(now);
    world.run(30);
    assert_eq!(world.status(pet), ServerStatus::Deleted);
}

#[test]
fn a_start_that_is_late_in_the_same_moment_in_which_it_becomes_a_victim_is_not_deleted() {
    let mut world = SimulatedRegion::new(&[("host-a", 4), ("host-b", 2)]);
    for name in ["host-a", "host-b"] {
        world.host(name).hanging.insert("start the server");
    }
    // Both starts are late in the same tick: the pet's is handled first, and the pet takes the
    // other server's capacity.
    let pet = world.create_on("host-b", &normal(2));
    let cattle = world.create_on("host-a", &spot(4));
    let mut anywhere = world.server(pet).clone();
    anywhere.force_hosts.clear();
    world.database.servers.insert(pet, anywhere);
    world.restart_scheduler();
    world.run(601);
    assert_eq!(world.place(pet), Some("host-a"));
    assert_eq!(world.status(cattle), ServerStatus::Evacuating);
    world.host("host-a").hanging.clear();
    world.host("host-b").hanging.clear();
    world.run(60);
    assert!(world.runs(pet));
    assert_eq!(
        world.status(cattle),
        ServerStatus::Preempted,
        "not deleted: no request for that was made"
    );
    everything_is_over(&world);
}

#[test]
fn what_a_former_host_says_late_does_not_end_a_server_that_runs_elsewhere() {
    let config = RegionConfig {
        start_timeout_seconds: Seconds(60),
        ..RegionConfig::default()
    };
    let mut world = SimulatedRegion::with_config(&[("host-a", 4), ("host-b", 4)], config);
    world.host("host-a").hanging.insert("start the server");
    let cattle = world.create_on("host-a", &spot(4));
    let mut anywhere = world.server(cattle).clone();
    anywhere.force_hosts.clear();
    world.database.servers.insert(cattle, anywhere);
    world.restart_scheduler();
    let pet = world.create_on("host-a", &normal(4));
    let evacuation_id = world.evacuation(cattle).id;
    world.host("host-a").crash();
    world.delete(pet);
    world.run(200);
    assert_eq!(
        world.place(cattle),
        Some("host-b"),
        "spared, and then not started in time"
    );
    assert!(world.runs(cattle));
    let gone = Body::Evacuated(Evacuated {
        evacuation_id,
        host: "host-a".to_owned(),
        server_id: cattle,
        how: EvacuationEnd::AlreadyGone,
        at: world.now,
        unbilled_seconds: None,
        storage: None,
    });
    let report = world.report("host-a", gone);
    world.reports.push_back(report);
    world.flush();
    assert_eq!(
        world.state(cattle),
        EvacuationState::Evacuated,
        "it is known, and it is true"
    );
    assert_eq!(world.status(cattle), ServerStatus::Active);
}

#[test]
fn a_deletion_is_said_later_than_the_start_that_it_overtakes_although_the_clock_was_set_back() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let pet = world.claim(&normal(4));
    assert!(world.send_one("host-a"), "the start");
    world.now = Timestamp::from_millis(world.now.as_millis() - 1500);
    // Another scheduler, which knows only what is in the database.
    world.restart_scheduler();
    world.delete(pet);
    assert!(world.send_one("host-a"), "the deletion");
    world.host("host-a").queue.swap(0, 1);
    world.flush();
    assert!(!world.hosts["host-a"].runs(pet));
    let next = world.create(&normal(4));
    world.flush();
    assert!(world.runs(next));
}
