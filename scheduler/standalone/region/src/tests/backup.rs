//! Regions whose database was restored from a backup, while the hosts are where they are.

use super::database::Database;
use super::world::{SimulatedRegion, normal, spot, with};
use crate::{CreateFlavor, ReconcileAction, ReconcileRegion, Reconciliation, RegionError};
use ebbtide_model::record::RestoreMark;
use ebbtide_model::{EvacuationState, Flavor, ServerId, ServerStatus};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn flavors() -> Vec<Flavor> {
    // Longer than a scheduler listens before it may reconcile.
    let long = ("ebbtide:grace_seconds", "90");
    vec![
        normal(2),
        normal(4),
        spot(2),
        with(&spot(2), &[long]),
        with(&spot(2), &[("ebbtide:interruption", "stop")]),
        with(&spot(4), &[("ebbtide:interruption", "hibernate"), long]),
    ]
}

/// Three hosts, and a region that has all flavors.
fn world() -> SimulatedRegion {
    let mut world = SimulatedRegion::new(&[("host-a", 4), ("host-b", 4), ("host-c", 8)]);
    for flavor in flavors() {
        world.command(CreateFlavor(flavor)).unwrap();
    }
    world
}

/// Puts a backup in place of the database, and starts a scheduler on it that has listened for a
/// while.
fn restore(world: &mut SimulatedRegion, backup: Database) {
    world.database = backup;
    world.database.restored = Some(RestoreMark {
        at: world.now,
        backup_at: None,
    });
    world.restart_scheduler();
    world.run(35);
}

fn plan(world: &SimulatedRegion) -> Reconciliation {
    world.region.reconciliation(world.now, &BTreeSet::new())
}

fn apply(world: &mut SimulatedRegion) -> Result<Reconciliation, RegionError> {
    world.command(ReconcileRegion {
        without_hosts: BTreeSet::new(),
    })
}

fn running(world: &SimulatedRegion) -> BTreeSet<ServerId> {
    let hosts = world.hosts.values();
    let running = hosts.flat_map(|host| host.guests.keys().filter(|id| host.runs(**id)));
    running.copied().collect()
}

fn actions(plan: &Reconciliation) -> Vec<(ReconcileAction, String)> {
    let steps = plan.steps.iter();
    steps
        .map(|step| (step.action, step.subject.clone()))
        .collect()
}

#[test]
fn a_held_region_decides_nothing_and_says_so() {
    let mut world = world();
    world.create(&spot(4));
    let victim = world.create_on("host-a", &spot(4));
    world.run(5);
    let backup = world.database.clone();
    restore(&mut world, backup);
    let request = world.request(&normal(2), 1);
    assert_eq!(world.ask(request).unwrap_err().code(), "EB-REGION-011");
    let codes: Vec<_> = world.region.examine(world.now, true).findings;
    assert_eq!(codes[0].code, "EB-AUDIT-109");
    assert_eq!(plan(&world).steps, []);
    assert!(apply(&mut world).unwrap().mark.is_some());
    assert!(world.runs(victim));
    // Now it does, also after a restart.
    world.restart_scheduler();
    let pet = world.create(&normal(2));
    assert!(world.runs(pet));
    assert_eq!(apply(&mut world).unwrap(), plan(&world), "nothing to do");
}

#[test]
fn a_notice_of_the_backup_ends_no_victim() {
    let mut world = world();
    let victim = world.create_on("host-a", &spot(4));
    for host in ["host-b", "host-c"] {
        world.create_on(host, &normal(4));
    }
    world.create_on("host-c", &normal(4));
    world.run(5);
    // The claim is durable and its notice is not sent.
    world.broker_up = false;
    let pet = world.claim(&normal(4));
    assert_eq!(world.unsent("notice"), 1);
    let backup = world.database.clone();
    // The preemptor goes away, and its victim is spared.
    world.broker_up = true;
    world.delete(pet);
    world.run(60);
    assert_eq!(world.status(victim), ServerStatus::Active);
    restore(&mut world, backup);
    let planned: BTreeSet<_> = plan(&world).steps.iter().map(|s| s.action).collect();
    let expected = [
        ReconcileAction::Close,
        ReconcileAction::Spare,
        ReconcileAction::Discard,
    ];
    assert_eq!(planned, BTreeSet::from(expected));
    apply(&mut world).unwrap();
    world.run(120);
    assert!(world.runs(victim));
    assert_eq!(world.status(victim), ServerStatus::Active);
    assert_eq!(world.state(victim), EvacuationState::Spared);
    assert_eq!(world.status(pet), ServerStatus::Error);
    assert_eq!(
        world.server(pet).fault.as_ref().unwrap().code,
        "EB-FAULT-005"
    );
}

#[test]
fn a_silent_agent_is_an_obstacle_unless_its_host_is_lost() {
    let mut world = world();
    let server = world.create_on("host-a", &normal(4));
    world.run(5);
    let backup = world.database.clone();
    world.host("host-a").crash();
    restore(&mut world, backup);
    let error = apply(&mut world).unwrap_err();
    assert_eq!(error.code(), "EB-REGION-012");
    assert!(error.to_string().contains("EB-AUDIT-103"), "{error}");
    let lost = ReconcileRegion {
        without_hosts: BTreeSet::from(["host-a".to_owned()]),
    };
    world.command(lost).unwrap();
    assert_eq!(
        world.status(server),
        ServerStatus::Active,
        "as the backup has it"
    );
}

#[test]
fn a_server_of_a_flavor_that_is_younger_than_the_backup_waits_for_the_flavor() {
    let mut world = world();
    let backup = world.database.clone();
    world.command(CreateFlavor(normal(1))).unwrap();
    let server = world.create(&normal(1));
    world.run(5);
    restore(&mut world, backup);
    let looks = actions(&plan(&world));
    let host = world.hosts.values().find(|host| host.runs(server)).unwrap();
    let expected = vec![
        (ReconcileAction::Disable, format!("host {}", host.name)),
        (ReconcileAction::Look, format!("server {server}")),
    ];
    assert_eq!(looks, expected);
    world.command(CreateFlavor(normal(1))).unwrap();
    let adopts = (ReconcileAction::Adopt, format!("server {server}"));
    assert_eq!(actions(&plan(&world)), vec![adopts]);
    apply(&mut world).unwrap();
    assert_eq!(world.status(server), ServerStatus::Active);
}

/// What tenants do, by numbers.
fn live(world: &mut SimulatedRegion, servers: &mut Vec<ServerId>, deeds: &[(u8, u8)]) {
    for (what, which) in deeds {
        match what % 4 {
            0 | 1 => {
                let all = flavors();
                let flavor = &all[usize::from(*which) % all.len()];
                servers.push(world.create(flavor));
            }
            2 if !servers.is_empty() => {
                let id = servers[usize::from(*which) % servers.len()];
                if world.region.server(id).is_some() {
                    world.delete(id);
                }
            }
            _ => world.run(u32::from(*which) % 40),
        }
    }
}

fn deeds(most: usize) -> impl Strategy<Value = Vec<(u8, u8)>> {
    proptest::collection::vec((any::<u8>(), any::<u8>()), 0..most)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_reconciled_region_agrees_with_its_hosts_and_has_ended_nothing(
        before in deeds(14),
        after in deeds(14),
        forgets in any::<bool>(),
    ) {
        let mut world = world();
        let mut servers = Vec::new();
        live(&mut world, &mut servers, &before);
        let backup = world.database.clone();
        live(&mut world, &mut servers, &after);
        if forgets {
            // Longer than anything is remembered.
            world.run(700);
        }
        restore(&mut world, backup);
        let planned = plan(&world);
        prop_assert_eq!(&planned.obstacles, &vec![]);
        let deletes: BTreeSet<String> = planned
            .steps
            .iter()
            .filter(|step| step.action == ReconcileAction::Delete)
            .map(|step| step.subject.clone())
            .collect();
        let ran = running(&world);
        prop_assert_eq!(&apply(&mut world).unwrap().steps, &planned.steps);
        prop_assert!(!world.region.is_held());
        world.run(150);
        let runs = running(&world);
        let ended: Vec<&ServerId> = ran
            .iter()
            .filter(|id| !runs.contains(id) && !deletes.contains(&format!("server {id}")))
            .collect();
        prop_assert_eq!(ended, Vec::<&ServerId>::new());
        prop_assert_eq!(world.region.examine(world.now, true).findings, vec![]);
        // It preempts as ever.
        let pet = world.create(&normal(4));
        world.run(120);
        prop_assert!(matches!(
            world.status(pet),
            ServerStatus::Active | ServerStatus::Error
        ));
        prop_assert_eq!(world.region.examine(world.now, true).findings, vec![]);
    }
}
