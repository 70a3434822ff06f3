//! The audit of a region: no findings in a consistent region, and one code for each kind of
//! disagreement.

use super::world::{SimulatedRegion, normal, spot, with};
use ebbtide_model::message::HostedState;
use ebbtide_model::record::Change;
use ebbtide_model::{ServerId, ServerStatus};

fn codes(world: &SimulatedRegion) -> Vec<&'static str> {
    let report = world.region.examine(world.now, true);
    report.findings.iter().map(|found| found.code).collect()
}

/// A hibernated victim on a host where a normal server runs in its place.
fn after_a_preemption() -> (SimulatedRegion, ServerId, ServerId) {
    let mut world = SimulatedRegion::new(&[("host-a", 4), ("host-b", 1)]);
    let hibernates = with(&spot(4), &[("ebbtide:interruption", "hibernate")]);
    let cattle = world.create(&hibernates);
    let pet = world.create(&normal(4));
    world.run(120);
    assert!(world.runs(pet));
    assert_eq!(world.status(cattle), ServerStatus::Hibernated);
    (world, cattle, pet)
}

#[test]
fn a_region_in_which_all_is_well_has_no_findings() {
    let (world, ..) = after_a_preemption();
    let report = world.region.examine(world.now, true);
    assert_eq!(report.findings, []);
    assert_eq!((report.hosts, report.compared_hosts), (2, 2));
    assert_eq!((report.servers, report.evacuations), (2, 0));
    assert!(world.region.differs(&world.database.snapshot()).is_empty());
    // A scheduler that does not hear the agents compares nothing.
    let report = world.region.examine(world.now, false);
    assert_eq!((report.compared_hosts, report.findings.len()), (0, 0));
}

#[test]
fn an_unknown_server_is_found_on_its_host() {
    let (mut world, _, pet) = after_a_preemption();
    let stray = ServerId(world.next_uuid());
    let host = world.host("host-b");
    let guest = host.guests.get(&pet).cloned();
    assert!(guest.is_none());
    let guest = world.host("host-a").guests[&pet].clone();
    world.host("host-b").guests.insert(stray, guest);
    world.heartbeat("host-b");
    world.flush();
    assert_eq!(codes(&world), ["EB-AUDIT-104"]);
}

#[test]
fn a_hibernated_server_that_runs_all_the_same_is_found() {
    let (mut world, cattle, _) = after_a_preemption();
    let guest = world.host("host-a").guests.get_mut(&cattle);
    guest.expect("its disk is there").state = HostedState::Running;
    world.heartbeat("host-a");
    world.flush();
    assert_eq!(codes(&world), ["EB-AUDIT-105"]);
}

#[test]
fn a_hibernated_server_whose_host_has_nothing_of_it_is_found() {
    let (mut world, cattle, pet) = after_a_preemption();
    world.host("host-a").guests.remove(&cattle);
    world.heartbeat("host-a");
    world.flush();
    assert_eq!(codes(&world), ["EB-AUDIT-106"]);
    // A server that should run is a finding after the first heartbeat, and in error after the
    // second.
    world.host("host-a").guests.remove(&pet);
    world.heartbeat("host-a");
    world.flush();
    assert_eq!(codes(&world), ["EB-AUDIT-106", "EB-AUDIT-106"]);
    world.run(11);
    assert_eq!(world.status(pet), ServerStatus::Error);
    // The other server fits now, but its agent finds nothing to resume: it waits, and the reason is
    // recorded.
    assert_eq!(world.status(cattle), ServerStatus::Hibernated);
}

#[test]
fn a_host_that_fell_silent_with_its_servers_is_found() {
    let (mut world, ..) = after_a_preemption();
    world.host("host-a").crash();
    world.host("host-b").crash();
    world.run(100);
    // host-b has no servers.
    assert_eq!(codes(&world), ["EB-AUDIT-103"]);
}

#[test]
fn a_record_that_was_changed_in_the_database_is_found() {
    let (mut world, cattle, pet) = after_a_preemption();
    let mut changed = world.database.servers[&pet].clone();
    changed.name = "renamed by hand".to_owned();
    world
        .database
        .apply(&[Change::PutServer(Box::new(changed))]);
    world.database.servers.remove(&cattle);
    let differs = world.region.differs(&world.database.snapshot());
    let expected = [format!("server {cattle}"), format!("server {pet}")];
    assert!(differs.iter().eq(expected.iter()), "{differs:?}");
}
