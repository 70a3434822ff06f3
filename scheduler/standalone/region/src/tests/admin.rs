//! Flavors, aggregates, server groups.

use super::world::{SimulatedRegion, normal, spot, with};
use crate::{
    CreateFlavor, CreateGroup, DeleteAggregate, DeleteFlavor, DeleteGroup, PutAggregate, PutBudget,
    RegionInput,
};
use ebbtide_model::{
    Aggregate, AggregateId, BudgetScope, DisruptionBudget, Flavor, FlavorId, GroupId, GroupPolicy,
    Inventory, ResourceClass, Seconds, ServerGroup, ServerStatus,
};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

fn code(world: &mut SimulatedRegion, command: impl RegionInput) -> &'static str {
    world.command(command).unwrap_err().code()
}

fn aggregate(id: u128, name: &str, zone: Option<&str>, hosts: &[&str]) -> Aggregate {
    let zone = zone.map(|z| ("availability_zone".to_owned(), z.to_owned()));
    Aggregate {
        id: AggregateId(Uuid::from_u128(id)),
        name: name.to_owned(),
        hosts: hosts
            .iter()
            .map(|h| (*h).to_owned())
            .collect::<BTreeSet<_>>(),
        metadata: zone.into_iter().collect::<BTreeMap<_, _>>(),
    }
}

#[test]
fn a_flavor_never_changes_and_servers_keep_their_copy() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let small = normal(1);
    world.command(CreateFlavor(small.clone())).unwrap();
    let before = world.database.clone();
    let same = Flavor {
        id: FlavorId(Uuid::from_u128(99)),
        ..small.clone()
    };
    let known = world.command(CreateFlavor(same)).unwrap();
    assert_eq!(known.id, small.id, "the same flavor twice is one flavor");
    assert_eq!(world.database, before);
    let other = Flavor {
        vcpus: 2,
        ..small.clone()
    };
    assert_eq!(code(&mut world, CreateFlavor(other)), "EB-REGION-003");
    let bad = with(&normal(2), &[("ebbtide:preemptible", "perhaps")]);
    assert!(code(&mut world, CreateFlavor(bad)).starts_with("EB-MODEL"));
    let pet = world.create(&small);
    world.command(DeleteFlavor("n1".to_owned())).unwrap();
    assert_eq!(
        code(&mut world, DeleteFlavor("n1".to_owned())),
        "EB-REGION-002"
    );
    assert_eq!(world.server(pet).flavor, small);
    assert!(world.database.flavors.is_empty());
}

#[test]
fn aggregates_are_replaced_by_name_and_a_host_is_in_one_zone_only() {
    let mut world = SimulatedRegion::new(&[("host-a", 4), ("host-b", 4)]);
    let put = PutAggregate;
    world
        .command(put(aggregate(1, "rack-1", Some("zone-1"), &["host-a"])))
        .unwrap();
    let same = world
        .command(put(aggregate(2, "rack-1", Some("zone-1"), &["host-a"])))
        .unwrap();
    assert_eq!(same.id, AggregateId(Uuid::from_u128(1)));
    assert_eq!(world.database.aggregates.len(), 1);
    let second_zone = aggregate(3, "rack-2", Some("zone-2"), &["host-a"]);
    assert_eq!(code(&mut world, put(second_zone)), "EB-REGION-005");
    let stolen_id = aggregate(1, "rack-3", None, &[]);
    assert_eq!(code(&mut world, put(stolen_id)), "EB-REGION-003");
    let mut request = world.request(&normal(1), 1);
    request.availability_zone = Some("zone-1".to_owned());
    let (servers, _) = world.ask(request.clone()).unwrap();
    assert_eq!(servers[0].host.as_deref(), Some("host-a"));
    world.restart_scheduler();
    request.server_ids = vec![world.new_id()];
    let (servers, _) = world.ask(request.clone()).unwrap();
    assert_eq!(
        servers[0].host.as_deref(),
        Some("host-a"),
        "zones outlive the scheduler"
    );
    world.command(DeleteAggregate("rack-1".to_owned())).unwrap();
    assert_eq!(
        code(&mut world, DeleteAggregate("rack-1".to_owned())),
        "EB-REGION-002"
    );
    request.server_ids = vec![world.new_id()];
    let (servers, _) = world.ask(request).unwrap();
    assert_eq!(servers[0].status, ServerStatus::Error);
}

#[test]
fn groups_keep_their_members_apart_also_after_a_restart() {
    let mut world = SimulatedRegion::new(&[("host-a", 4), ("host-b", 4)]);
    let id = GroupId(Uuid::from_u128(7));
    let group = ServerGroup {
        id,
        name: "apart".to_owned(),
        project_id: "pets".to_owned(),
        policy: GroupPolicy::AntiAffinity,
        max_server_per_host: 1,
    };
    world
        .command(CreateGroup {
            group: group.clone(),
            quota: None,
        })
        .unwrap();
    world
        .command(CreateGroup {
            group: group.clone(),
            quota: None,
        })
        .unwrap();
    let changed = ServerGroup {
        max_server_per_host: 2,
        ..group.clone()
    };
    assert_eq!(
        code(
            &mut world,
            CreateGroup {
                group: changed,
                quota: None
            }
        ),
        "EB-REGION-003"
    );
    let nonsense = ServerGroup {
        id: GroupId(Uuid::from_u128(8)),
        max_server_per_host: 0,
        ..group
    };
    assert_eq!(
        code(
            &mut world,
            CreateGroup {
                group: nonsense,
                quota: None
            }
        ),
        "EB-MODEL-003"
    );
    let mut request = world.request(&normal(1), 2);
    request.group_id = Some(id);
    let (servers, _) = world.ask(request.clone()).unwrap();
    assert_ne!(servers[0].host, servers[1].host);
    world.restart_scheduler();
    request.server_ids = vec![world.new_id()];
    let (third, _) = world.ask(request.clone()).unwrap();
    assert_eq!(third[0].status, ServerStatus::Error);
    world.command(DeleteGroup("apart".to_owned())).unwrap();
    request.server_ids = vec![world.new_id()];
    let error = world.ask(request).unwrap_err();
    assert!(error.code().starts_with("EB-ENGINE"), "{error}");
}

#[test]
fn two_groups_of_one_name_are_told_apart_by_id() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    for n in [1, 2] {
        let group = ServerGroup {
            id: GroupId(Uuid::from_u128(n)),
            name: "twins".to_owned(),
            project_id: "pets".to_owned(),
            policy: GroupPolicy::SoftAffinity,
            max_server_per_host: 1,
        };
        world.command(CreateGroup { group, quota: None }).unwrap();
    }
    assert_eq!(
        code(&mut world, DeleteGroup("twins".to_owned())),
        "EB-REGION-004"
    );
    let id = Uuid::from_u128(1).to_string();
    world.command(DeleteGroup(id)).unwrap();
    world.command(DeleteGroup("twins".to_owned())).unwrap();
    assert!(world.region.groups().is_empty());
}

#[test]
fn budgets_are_for_those_who_exist_and_for_windows_that_are_remembered() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let budget = |scope, window| {
        PutBudget(DisruptionBudget {
            scope,
            max_victims: 1,
            window: Seconds(window),
        })
    };
    let unknown_group = BudgetScope::Group(GroupId(Uuid::from_u128(3)));
    assert_eq!(code(&mut world, budget(unknown_group, 60)), "EB-REGION-002");
    let empty = BudgetScope::Project(String::new());
    assert!(code(&mut world, budget(empty, 60)).starts_with("EB-MODEL"));
    let cattle = BudgetScope::Project("cattle".to_owned());
    let too_long = 32 * 24 * 3600;
    assert_eq!(
        code(&mut world, budget(cattle.clone(), too_long)),
        "EB-MODEL-003"
    );
    world.command(budget(cattle.clone(), 60)).unwrap();
    world.command(budget(cattle, 90)).unwrap();
    assert_eq!(world.region.budgets().len(), 1);
    assert_eq!(world.region.budgets()[0].window, Seconds(90));
}

#[test]
fn what_is_shown_of_a_region_adds_up() {
    let mut world = SimulatedRegion::new(&[("host-a", 4), ("host-b", 4)]);
    world.create_on("host-a", &spot(4));
    let pet = world.create_on("host-a", &normal(2));
    let summary = world.region.summary();
    assert_eq!(summary.hosts["up"], 2);
    assert_eq!(summary.servers["evacuating"], 1);
    assert_eq!(summary.servers["waiting"], 1);
    assert_eq!(summary.evacuations, 1);
    let host = world.region.host("host-a").unwrap();
    assert_eq!((host.normal_servers, host.preemptible_servers), (1, 1));
    assert_eq!(world.region.servers_on("host-a").count(), 2);
    assert_eq!(world.region.server(pet).unwrap().id, pet);
    let vcpu = &host
        .usage
        .classes
        .iter()
        .find(|c| c.class.as_str() == "VCPU")
        .unwrap();
    assert_eq!((vcpu.free_full, vcpu.leaving, vcpu.claimed), (-2, 4, 2));
}

#[test]
fn the_inventories_of_a_region_are_those_of_its_hosts_together() {
    let mut world = SimulatedRegion::new(&[("host-a", 4), ("host-b", 4)]);
    let class = ResourceClass::vcpu();
    let inventory = Inventory {
        total: 20,
        reserved: 4,
        allocation_ratio: 2.0,
    };
    world
        .host("host-b")
        .inventory
        .insert(class.clone(), inventory);
    world.run(11);
    let summary = world.region.summary();
    let sum = &summary.inventories[&class];
    assert_eq!((sum.total, sum.reserved), (24, 4));
    // 4 + (20 - 4) × 2 is the capacity of 20 that are not reserved.
    assert!((sum.allocation_ratio - 1.8).abs() < 1e-12, "{sum:?}");
    let totals = summary.totals.iter().find(|u| u.class == class).unwrap();
    assert_eq!(totals.capacity, 36);
}
