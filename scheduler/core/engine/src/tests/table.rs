//! The host table: sums, order, and that both states stay true whatever happens.

use super::kit::*;
use crate::{EngineError, HostTable, Instance, InstancePhase};
use ebbtide_model::{GroupPolicy, HostHealth, Inventory, ResourceClass, Timestamp};
use proptest::prelude::*;

fn vcpus(table: &HostTable, host: &str) -> crate::ClassUsage {
    let usage = table.usage(host).unwrap();
    usage
        .classes
        .into_iter()
        .find(|c| c.class == ResourceClass::vcpu())
        .unwrap()
}

#[test]
fn both_states_are_subtractions() {
    let leaving = Instance {
        phase: InstancePhase::Leaving,
        ..spot(3, "a", 1, 10)
    };
    let claimed = Instance {
        phase: InstancePhase::Claimed,
        ..normal(4, "a", 2)
    };
    let going = Instance {
        phase: InstancePhase::Leaving,
        ..normal(5, "a", 1)
    };
    let table = cloud(
        &[("a", 10)],
        &[
            normal(1, "a", 2),
            spot(2, "a", 3, 10),
            leaving,
            claimed,
            going,
        ],
    );
    let usage = vcpus(&table, "a");
    assert_eq!(usage.capacity, 10);
    assert_eq!(usage.normal, 5, "a normal instance counts until it is gone");
    assert_eq!((usage.preemptible, usage.leaving, usage.claimed), (3, 1, 2));
    assert_eq!((usage.free_full, usage.free_normal), (1, 5));
    assert_eq!(
        table
            .totals()
            .iter()
            .find(|c| c.class == ResourceClass::vcpu()),
        Some(&usage)
    );
    let host = table.usage("a").unwrap();
    assert_eq!((host.servers, host.staying_preemptible_servers), (5, 1));
}

#[test]
fn capacity_knows_reserved_and_ratio_and_follows_the_inventory() {
    let mut table = HostTable::new();
    let mut a = host("a", 0, 10);
    let inventory = Inventory {
        total: 10,
        reserved: 3,
        allocation_ratio: 1.5,
    };
    a.inventory.insert(ResourceClass::vcpu(), inventory);
    table.put_host(&a);
    assert_eq!(vcpus(&table, "a").capacity, 10);
    a.inventory.remove(&ResourceClass::vcpu());
    table.put_host(&a);
    table.put_instance(&normal(1, "a", 1)).unwrap();
    assert_eq!(
        vcpus(&table, "a").free_normal,
        -1,
        "who has none and uses one owes one"
    );
    table.check_consistency().unwrap();
}

#[test]
fn hosts_are_in_the_order_of_their_registration_not_of_the_calls() {
    let mut table = HostTable::new();
    for (name, created) in [("c", 5), ("a", 9), ("b", 5), ("z", 1)] {
        table.put_host(&host(name, created, 1));
    }
    let names = |table: &HostTable| table.hosts().map(|h| h.name.to_owned()).collect::<Vec<_>>();
    assert_eq!(names(&table), ["z", "b", "c", "a"]);
    table.put_host(&host("a", 0, 1));
    assert_eq!(names(&table), ["a", "z", "b", "c"]);
    assert!(table.remove_host("z"));
    assert!(!table.remove_host("z"));
    table.put_host(&host("d", 3, 1));
    assert_eq!(names(&table), ["a", "d", "b", "c"]);
    table.check_consistency().unwrap();
}

#[test]
fn an_instance_can_move_and_be_replaced() {
    let mut table = cloud(&[("a", 8), ("b", 8)], &[spot(1, "a", 2, 10)]);
    table.put_instance(&normal(1, "b", 3)).unwrap();
    assert_eq!(vcpus(&table, "a").free_full, 8);
    assert_eq!(vcpus(&table, "b").free_normal, 5);
    assert_eq!(table.instance_count(), 1);
    assert_eq!(table.instance(server(1)).unwrap().host, "b");
    assert!(table.instances_on("a").is_empty());
    assert!(table.remove_instance(server(1)));
    assert!(!table.remove_instance(server(1)));
    table.check_consistency().unwrap();
}

#[test]
fn an_instance_on_an_unknown_host_is_refused_and_changes_nothing() {
    let mut table = cloud(&[("a", 8)], &[normal(1, "a", 2)]);
    let error = table.put_instance(&normal(1, "nowhere", 2)).unwrap_err();
    assert_eq!(error.code(), "EB-ENGINE-004");
    assert!(matches!(error, EngineError::UnknownHost { .. }));
    assert_eq!(table.instance(server(1)).unwrap().host, "a");
    table.check_consistency().unwrap();
}

#[test]
fn a_removed_host_takes_its_instances_along() {
    let mut table = cloud(
        &[("a", 8), ("b", 8)],
        &[normal(1, "a", 2), normal(2, "b", 2)],
    );
    table.remove_host("a");
    assert_eq!(table.instance(server(1)), None);
    assert_eq!(table.instance_count(), 1);
    assert_eq!((table.len(), table.usage("a")), (1, None));
    table.check_consistency().unwrap();
}

#[test]
fn health_is_what_was_said_last() {
    let mut table = cloud(&[("a", 8)], &[]);
    let health = |table: &HostTable| table.hosts().next().unwrap().health;
    assert_eq!(
        health(&table),
        HostHealth::Up,
        "registration is a sign of life"
    );
    table.set_health("a", HostHealth::Down);
    table.put_host(&host("a", 0, 8));
    assert_eq!(health(&table), HostHealth::Down, "an inventory is not");
    let mut disabled = host("a", 0, 8);
    disabled.disabled_reason = Some("new disks".to_owned());
    table.put_host(&disabled);
    assert_eq!(health(&table), HostHealth::Disabled);
    table.set_health("a", HostHealth::Up);
    assert_eq!(health(&table), HostHealth::Up);
    assert!(!table.set_health("b", HostHealth::Up));
}

#[test]
fn aggregates_may_name_hosts_that_come_later() {
    let mut table = HostTable::new();
    table.set_aggregates(&[aggregate(1, &["a"], &[("availability_zone", "east")])]);
    table.put_host(&host("a", 0, 8));
    table.check_consistency().unwrap();
    let mut request = wants(1);
    request.availability_zone = Some("east".to_owned());
    assert_eq!(summary(&decide(&table, &request)), [("a", vec![])]);
}

#[derive(Debug, Clone)]
enum Operation {
    PutHost {
        host: usize,
        vcpus: u64,
        created: i64,
        disabled: bool,
    },
    RemoveHost(usize),
    Health(usize, HostHealth),
    Put {
        id: u128,
        host: usize,
        vcpus: u64,
        preemptible: bool,
        phase: InstancePhase,
        group: Option<u128>,
        /// In MiB; may be more than it takes.
        retained: u64,
    },
    Remove(u128),
    PutGroup(u128),
    RemoveGroup(u128),
    Aggregates(Vec<usize>),
}

const HOSTS: [&str; 4] = ["a", "b", "c", "d"];

pub(super) fn any_phase() -> impl Strategy<Value = InstancePhase> {
    prop_oneof![
        1 => Just(InstancePhase::Claimed),
        1 => Just(InstancePhase::Building),
        4 => Just(InstancePhase::Running),
        1 => Just(InstancePhase::Leaving),
        1 => Just(InstancePhase::Retained)
    ]
}

fn any_operation() -> impl Strategy<Value = Operation> {
    let host = 0..HOSTS.len();
    let health = prop_oneof![
        Just(HostHealth::Up),
        Just(HostHealth::Down),
        Just(HostHealth::Disabled)
    ];
    let group = prop::option::of(1..3_u128);
    prop_oneof![
        2 => (host.clone(), 0..16_u64, 0..4_i64, any::<bool>()).prop_map(
            |(host, vcpus, created, disabled)| Operation::PutHost { host, vcpus, created, disabled }
        ),
        1 => host.clone().prop_map(Operation::RemoveHost),
        1 => (host.clone(), health).prop_map(|(host, health)| Operation::Health(host, health)),
        8 => (1..20_u128, host.clone(), 0..5_u64, any::<bool>(), any_phase(), group, 0..6000_u64).prop_map(
            |(id, host, vcpus, preemptible, phase, group, retained)| Operation::Put {
                id, host, vcpus, preemptible, phase, group, retained
            }
        ),
        4 => (1..20_u128).prop_map(Operation::Remove),
        1 => (1..3_u128).prop_map(Operation::PutGroup),
        1 => (1..3_u128).prop_map(Operation::RemoveGroup),
        1 => prop::collection::vec(host, 0..4).prop_map(Operation::Aggregates),
    ]
}

fn run(table: &mut HostTable, operation: &Operation) {
    match operation {
        Operation::PutHost {
            host: at,
            vcpus,
            created,
            disabled,
        } => {
            let mut host = host(HOSTS[*at], *created, *vcpus);
            host.disabled_reason = disabled.then(|| "why not".to_owned());
            if *vcpus > 8 {
                let class: ResourceClass = "CUSTOM_GPU".parse().unwrap();
                host.inventory.insert(class, Inventory::of(*vcpus));
                host.traits.insert("CUSTOM_BIG".parse().unwrap());
            }
            table.put_host(&host);
        }
        Operation::RemoveHost(at) => {
            table.remove_host(HOSTS[*at]);
        }
        Operation::Health(at, health) => {
            table.set_health(HOSTS[*at], *health);
        }
        Operation::Put {
            id,
            host,
            vcpus,
            preemptible,
            phase,
            group,
            retained,
        } => {
            let instance = Instance {
                preemptible: *preemptible,
                phase: *phase,
                group_id: group.map(group_id),
                retained: resources(&[("MEMORY_MB", *retained)]),
                project_id: format!("project-{}", id % 3),
                ..normal(*id, HOSTS[*host], *vcpus)
            };
            let known = table.hosts().any(|h| h.name == HOSTS[*host]);
            assert_eq!(table.put_instance(&instance).is_ok(), known);
        }
        Operation::Remove(id) => {
            table.remove_instance(server(*id));
        }
        Operation::PutGroup(id) => table.put_group(&group(*id, GroupPolicy::AntiAffinity)),
        Operation::RemoveGroup(id) => {
            table.remove_group(group_id(*id));
        }
        Operation::Aggregates(hosts) => {
            let names: Vec<&str> = hosts.iter().map(|at| HOSTS[*at]).collect();
            table.set_aggregates(&[aggregate(1, &names, &[]), aggregate(2, &["a"], &[])]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_table_equals_its_recomputation_after_any_operations(
        operations in prop::collection::vec(any_operation(), 1..120)
    ) {
        let mut table = HostTable::new();
        for operation in &operations {
            run(&mut table, operation);
            prop_assert_eq!(table.check_consistency(), Ok(()), "after {:?}", operation);
        }
        // An instance that is removed leaves nothing behind.
        let ids: Vec<_> = HOSTS.iter().flat_map(|h| table.instances_on(h)).map(|i| i.id).collect();
        prop_assert_eq!(ids.len(), table.instance_count());
        for id in ids {
            prop_assert!(table.remove_instance(id));
        }
        for total in table.totals() {
            prop_assert_eq!((total.normal, total.preemptible, total.leaving, total.claimed), (0, 0, 0, 0));
        }
        prop_assert_eq!(table.check_consistency(), Ok(()));
    }
}

#[test]
fn views_show_what_was_put() {
    let mut instance = spot(1, "a", 2, 30);
    instance.protected_until = Some(Timestamp::from_millis(5));
    instance.group_id = Some(group_id(3));
    instance.priority = 2;
    instance.retained = resources(&[("MEMORY_MB", 500)]);
    let table = cloud(&[("a", 8)], &[instance.clone()]);
    assert_eq!(table.instance(server(1)).unwrap().to_instance(), instance);
    assert_eq!(table.instances_on("a")[0].to_instance(), instance);
}
