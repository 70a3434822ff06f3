//! Servers that are kept on shared storage are resumed on another host when their own has no
//! capacity.

use super::host::{Fate, SharedStorage};
use super::world::{SimulatedRegion, normal, spot, with};
use crate::{DisableHost, EnableHost};
use ebbtide_model::message::{Body, Message};
use ebbtide_model::{DecisionOutcome, ServerId, ServerStatus};

/// Longer than the first wait before a resumption, which is 30 s.
const A_WHILE: u32 = 45;

fn enabled(world: &mut SimulatedRegion, name: &str, on: bool) {
    let name = name.to_owned();
    let done = match on {
        true => world.command(EnableHost(name)),
        false => world.command(DisableHost {
            name,
            reason: "for the story".to_owned(),
        }),
    };
    done.expect("it is there");
    world.flush();
}

/// Hosts of four processors with these storages; all but the first are disabled.
fn world(storages: &[Option<&str>]) -> SimulatedRegion {
    let names: Vec<String> = (0..storages.len()).map(|n| format!("host-{n}")).collect();
    let hosts: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 4)).collect();
    let mut world = SimulatedRegion::new(&hosts);
    let shared = SharedStorage::default();
    for (name, storage) in names.iter().zip(storages) {
        world.host(name).storage = storage.map(|s| (s.to_owned(), shared.clone()));
        world.heartbeat(name);
        world.flush();
    }
    for name in &names[1..] {
        enabled(&mut world, name, false);
    }
    world
}

/// A server that was kept for another server, which runs in its place on the first host.
fn kept(world: &mut SimulatedRegion, kind: &str) -> (ServerId, ServerId) {
    let sleeper = with(
        &spot(4),
        &[
            ("ebbtide:interruption", kind),
            ("ebbtide:grace_seconds", "5"),
        ],
    );
    let victim = world.create(&sleeper);
    let pet = world.create(&normal(4));
    world.run(10);
    assert!(world.server(victim).waits_to_come_back());
    assert!(world.runs(pet));
    (victim, pet)
}

fn runs_on(world: &SimulatedRegion, id: ServerId) -> Vec<&str> {
    let hosts = world.hosts.values().filter(|host| host.runs(id));
    hosts.map(|host| host.name.as_str()).collect()
}

#[test]
fn who_has_no_room_on_its_own_host_goes_on_on_another_with_the_same_storage() {
    for kind in ["hibernate", "stop"] {
        let mut world = world(&[Some("nfs-1"), None, Some("nfs-2"), Some("nfs-1")]);
        let (victim, _) = kept(&mut world, kind);
        let storage = world.server(victim).saved_storage();
        assert_eq!(storage.as_deref(), Some("nfs-1"));
        for other in ["host-1", "host-2"] {
            enabled(&mut world, other, true);
        }
        world.run(A_WHILE);
        assert!(world.server(victim).waits_to_come_back(), "{kind}");
        enabled(&mut world, "host-3", true);
        world.run(3);
        assert_eq!(runs_on(&world, victim), ["host-3"], "{kind}");
        let server = world.server(victim);
        assert_eq!(server.status, ServerStatus::Active);
        assert_eq!(server.host.as_deref(), Some("host-3"));
        let decision = server.decision_id.expect("it was decided");
        let decision = &world.database.decisions[&decision];
        assert!(
            matches!(&decision.outcome, DecisionOutcome::Placed(p) if p[0].host == "host-3" && p[0].victims.is_empty())
        );
        // Its former host has nothing of it any more, neither capacity nor disk.
        let before = world.region.table().usage("host-0").expect("it is there");
        assert!(
            before.classes.iter().all(|c| c.preemptible == 0),
            "{before:?}"
        );
        world.restart_scheduler();
        world.run(60);
        assert_eq!(runs_on(&world, victim), ["host-3"]);
    }
}

#[test]
fn its_own_host_comes_first_if_both_have_room() {
    let mut world = world(&[Some("nfs-1"), Some("nfs-1")]);
    let (victim, pet) = kept(&mut world, "hibernate");
    enabled(&mut world, "host-1", true);
    world.delete(pet);
    world.run(A_WHILE);
    assert_eq!(runs_on(&world, victim), ["host-0"]);
}

#[test]
fn a_host_that_is_down_or_disabled_is_left() {
    for down in [true, false] {
        let mut world = world(&[Some("nfs-1"), Some("nfs-1")]);
        let (victim, pet) = kept(&mut world, "hibernate");
        match down {
            true => world.host("host-0").crash(),
            false => {
                enabled(&mut world, "host-0", false);
                world.delete(pet);
            }
        }
        world.run(65);
        enabled(&mut world, "host-1", true);
        world.run(A_WHILE);
        assert_eq!(runs_on(&world, victim), ["host-1"], "down: {down}");
    }
}

#[test]
fn what_was_kept_on_a_hosts_own_disk_stays_there_whatever_storage_it_has_now() {
    let mut world = world(&[None, Some("nfs-1")]);
    let (victim, _) = kept(&mut world, "hibernate");
    assert_eq!(world.server(victim).saved_storage(), None);
    world.host("host-0").storage = Some(("nfs-1".to_owned(), SharedStorage::default()));
    enabled(&mut world, "host-1", true);
    world.run(300);
    assert!(world.server(victim).waits_to_come_back());
}

#[test]
fn who_does_not_begin_on_another_host_belongs_there_and_is_tried_again_anywhere() {
    let mut world = world(&[Some("nfs-1"), Some("nfs-1")]);
    let (victim, pet) = kept(&mut world, "hibernate");
    let fails = [Fate::NoRoom, Fate::NoRoom];
    let fates = world.host("host-1").fates.entry("start the server");
    fates.or_default().extend(fails);
    enabled(&mut world, "host-1", true);
    world.run(A_WHILE);
    let server = world.server(victim);
    assert!(server.waits_to_come_back());
    assert_eq!(server.host.as_deref(), Some("host-1"));
    let comeback = server.comeback.clone().expect("it was kept");
    assert_eq!(comeback.tries, 1);
    assert!(comeback.reason.is_some_and(|why| why.contains("room")));
    enabled(&mut world, "host-1", false);
    world.delete(pet);
    world.run(300);
    assert_eq!(runs_on(&world, victim), ["host-0"]);
}

#[test]
fn a_start_that_was_answered_is_not_followed_when_it_comes_once_more() {
    let mut world = world(&[Some("nfs-1"), Some("nfs-1")]);
    let (victim, pet) = kept(&mut world, "hibernate");
    let fates = world.host("host-1").fates.entry("start the server");
    fates.or_default().push_back(Fate::NoRoom);
    enabled(&mut world, "host-1", true);
    world.broker_up = false;
    world.run(35);
    let unsent = world.outbox.get("host-1").into_iter().flatten();
    let mut said = unsent.filter_map(|m| Message::from_bytes(&m.body).ok());
    let start = said.find(|m| matches!(&m.body, Body::Start(s) if s.resume));
    let start = start.expect("it was told to start");
    world.broker_up = true;
    world.run(5);
    assert!(world.server(victim).waits_to_come_back());
    enabled(&mut world, "host-1", false);
    world.delete(pet);
    world.run(100);
    assert_eq!(runs_on(&world, victim), ["host-0"]);
    // It runs on host-0 and is kept again. Then the old start request reaches the other host.
    world.create(&normal(4));
    world.run(20);
    assert!(world.server(victim).waits_to_come_back());
    world.host("host-1").queue.push_back(start);
    world.run(5);
    assert!(runs_on(&world, victim).is_empty());
}

#[test]
fn who_is_deleted_while_it_is_kept_is_cleared_from_the_storage() {
    let mut world = world(&[Some("nfs-1"), Some("nfs-1")]);
    let (victim, _) = kept(&mut world, "hibernate");
    world.delete(victim);
    let unsent = world.outbox.values().flatten();
    let said = unsent.filter_map(|m| Message::from_bytes(&m.body).ok());
    let mut storages = said.filter_map(|m| match m.body {
        Body::Delete(delete) => Some(delete.storage),
        _ => None,
    });
    assert_eq!(storages.next(), Some(Some("nfs-1".to_owned())));
}

#[test]
fn who_has_to_leave_again_before_it_was_started_elsewhere_is_still_kept() {
    let mut world = world(&[Some("nfs-1"), Some("nfs-1")]);
    let (victim, pet) = kept(&mut world, "hibernate");
    world.host("host-1").alive = false;
    enabled(&mut world, "host-1", true);
    world.run(35);
    assert_eq!(world.server(victim).status, ServerStatus::Building);
    let other = world.create(&normal(4));
    assert_eq!(world.server(victim).status, ServerStatus::Evacuating);
    world.run(2);
    // The broker delivers the notice before the start.
    let host = world.host("host-1");
    assert_eq!(host.queue.len(), 2);
    host.queue.swap(0, 1);
    let now = world.now;
    world.host("host-1").restart(now);
    world.run(60);
    assert!(world.runs(other));
    let server = world.server(victim);
    assert_eq!(server.status, ServerStatus::Hibernated);
    assert_eq!(server.saved_storage().as_deref(), Some("nfs-1"));
    assert_eq!(server.host.as_deref(), Some("host-1"));
    // Its former host reports the kept server and its present host does not: that is no finding.
    let found = world.region.examine(world.now, true).findings;
    assert_eq!(found, []);
    world.delete(pet);
    world.run(300);
    assert_eq!(runs_on(&world, victim), ["host-0"]);
}

#[test]
fn a_server_of_which_no_host_of_its_storage_has_anything_is_found_by_the_audit() {
    let mut world = world(&[Some("nfs-1"), Some("nfs-1")]);
    let (victim, _) = kept(&mut world, "hibernate");
    let host = world.host("host-0");
    let (_, shared) = host.storage.clone().expect("it has one");
    shared.borrow_mut().remove(&victim);
    world.run(120);
    let found = world.region.examine(world.now, true).findings;
    let codes: Vec<_> = found.iter().map(|f| (f.code, f.subject.clone())).collect();
    assert_eq!(codes, [("EB-AUDIT-106", format!("server {victim}"))]);
}
