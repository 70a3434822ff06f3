//! Hosts that operators remove for good.

use super::checks::everything_is_over;
use super::world::{SimulatedRegion, normal, spot};
use crate::{ReadmitHost, RegionError, RemoveHost};
use ebbtide_model::{CloudEvent, HostHealth, ServerStatus};

fn remove(world: &mut SimulatedRegion, host: &str) -> Result<(), RegionError> {
    world.command(RemoveHost(host.to_owned()))
}

/// The reason of a refusal with the code of hosts in use.
fn refusal(world: &mut SimulatedRegion, host: &str) -> String {
    let error = remove(world, host).unwrap_err();
    assert_eq!(error.code(), "EB-REGION-009", "{error}");
    error.to_string()
}

fn refused_agents(world: &SimulatedRegion) -> usize {
    let is_refusal = |event: &&CloudEvent| {
        matches!(
            event,
            CloudEvent::Alarm {
                code: "EB-REGION-010",
                ..
            }
        )
    };
    world.events.iter().filter(is_refusal).count()
}

/// What an operator's audit finds now.
fn audit_codes(world: &SimulatedRegion) -> Vec<&'static str> {
    let examined = world.region.examine(world.now, true);
    examined.findings.iter().map(|found| found.code).collect()
}

#[test]
fn a_host_with_servers_evacuations_or_a_live_agent_stays() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let pet = world.create(&normal(2));
    world.run(5);
    assert!(refusal(&mut world, "host-a").contains("servers on it: 1"));
    world.delete(pet);
    world.run(5);
    assert!(refusal(&mut world, "host-a").contains("its agent still reports"));
    world.create(&spot(4));
    world.run(5);
    world.create(&normal(4));
    assert!(refusal(&mut world, "host-a").contains("evacuations under way: 1"));
    let error = remove(&mut world, "host-z").unwrap_err();
    assert_eq!(error.code(), "EB-REGION-002");
}

#[test]
fn a_lost_host_goes_with_the_servers_that_were_deleted_since() {
    let mut world = SimulatedRegion::new(&[("host-a", 4), ("host-b", 4)]);
    let lost = world.create(&normal(4));
    let other = world.create(&normal(4));
    world.run(5);
    let on = |world: &SimulatedRegion, id| world.region.server(id).unwrap().host.clone().unwrap();
    let (host, stays) = (on(&world, lost), on(&world, other));
    world.host(&host).crash();
    world.run(100);
    assert!(refusal(&mut world, &host).contains("servers on it: 1"));
    // The broker is away, so the request to delete the server is still in the outbox.
    world.broker_up = false;
    world.delete(lost);
    assert_eq!(world.status(lost), ServerStatus::Deleting);
    remove(&mut world, &host).unwrap();
    let is_removal = |event: &&CloudEvent| {
        let CloudEvent::Host(removed, _) = event else {
            return false;
        };
        removed.name == host && removed.removed_at.is_some()
    };
    assert_eq!(world.events.iter().filter(is_removal).count(), 1);
    assert!(world.region.server(lost).is_none(), "it went with its host");
    assert!(world.region.host(&host).is_none());
    world.broker_up = true;
    world.run(5);
    assert!(
        world.hosts[&host].queue.is_empty(),
        "nothing is sent to a host that is gone"
    );
    world.restart_scheduler();
    assert!(world.region.host(&host).is_none(), "it is written down");
    assert!(world.region.host(&stays).is_some());
    assert!(world.runs(other));
    remove(&mut world, &host).expect("repeating it is safe");
    // The machine is lost, with what it ran.
    world.hosts.remove(&host);
    everything_is_over(&world);
}

#[test]
fn an_agent_of_a_removed_host_is_refused_until_the_host_is_readmitted() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    world.host("host-a").crash();
    world.run(100);
    remove(&mut world, "host-a").unwrap();
    let now = world.now;
    world.host("host-a").restart(now);
    world.run(60);
    assert!(world.region.host("host-a").is_none());
    assert_eq!(refused_agents(&world), 1, "once, not with every heartbeat");
    assert_eq!(audit_codes(&world), ["EB-AUDIT-111"]);
    let refused = world.create(&normal(1));
    assert_eq!(world.status(refused), ServerStatus::Error);
    // Another session is another attempt.
    let now = world.now;
    world.host("host-a").restart(now);
    world.run(30);
    assert_eq!(refused_agents(&world), 2);
    world.command(ReadmitHost("host-a".to_owned())).unwrap();
    world.run(30);
    assert!(audit_codes(&world).is_empty());
    assert_eq!(
        world.region.host("host-a").unwrap().health,
        HostHealth::Up,
        "neither disabled nor removed"
    );
    let served = world.create(&normal(4));
    assert!(world.runs(served));
    world.restart_scheduler();
    assert!(world.region.host("host-a").is_some());
    let error = world.command(ReadmitHost("host-z".to_owned())).unwrap_err();
    assert_eq!(error.code(), "EB-REGION-002");
    everything_is_over(&world);
}
