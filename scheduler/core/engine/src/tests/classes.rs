//! Any number of resource classes: what hosts report for each NUMA cell and each PCI pool is a
//! class like any other.

use super::brute_force::on_host;
use super::kit::*;
use crate::{Budgets, HostTable, Instance};
use ebbtide_model::{DecisionOutcome, Host, Inventory};
use proptest::prelude::*;

/// Of each cell its dedicated CPUs, memory and huge pages, and two pools of devices: eleven classes
/// with the usual three.
const CLASSES: [&str; 8] = [
    "CUSTOM_NUMA0_PCPU",
    "CUSTOM_NUMA0_MEMORY_MB",
    "CUSTOM_NUMA0_HUGE_PAGES",
    "CUSTOM_NUMA1_PCPU",
    "CUSTOM_NUMA1_MEMORY_MB",
    "CUSTOM_NUMA1_HUGE_PAGES",
    "CUSTOM_PCI_8086_10ED",
    "CUSTOM_PCI_10DE_1EB8",
];

fn numa_host(at: usize) -> Host {
    let mut host = host(&format!("h{at}"), at as i64, 16);
    for class in CLASSES {
        let amount = if class.ends_with("MEMORY_MB") {
            8000
        } else {
            4
        };
        host.inventory
            .insert(class.parse().unwrap(), Inventory::of(amount));
    }
    host
}

/// Pinned to a cell, with a device or none.
fn pinned(
    number: u128,
    host: usize,
    cell: usize,
    cpus: u64,
    pages: u64,
    device: Option<usize>,
    minutes: i64,
) -> Instance {
    let mut instance = spot(number, &format!("h{host}"), cpus, minutes);
    let mut set = |class: &str, amount| {
        instance
            .resources
            .set(class.parse().unwrap(), amount)
            .unwrap()
    };
    set(CLASSES[3 * cell], cpus);
    set(CLASSES[3 * cell + 1], cpus * 1000);
    set(CLASSES[3 * cell + 2], pages);
    if let Some(device) = device {
        set(CLASSES[6 + device], 1);
    }
    instance
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn victims_free_what_is_missing_of_every_cell_and_pool_at_the_least_cost(
        raw in prop::collection::vec((0..2_usize, 0..2_usize, 1..3_u64, 0..3_u64, prop::option::of(0..2_usize), 0..60_i64), 0..12),
        wanted in (1..4_u64, 0..3_u64, 0..4_u64, 0..2_u64, 0..2_u64),
    ) {
        let mut table = HostTable::default();
        let hosts: Vec<Host> = (0..2).map(numa_host).collect();
        for host in &hosts {
            table.put_host(host);
        }
        let instances: Vec<Instance> = (raw.into_iter().enumerate())
            .map(|(at, (host, cell, cpus, pages, device, minutes))| pinned(at as u128 + 1, host, cell, cpus, pages, device, minutes))
            .collect();
        for instance in &instances {
            table.put_instance(instance).unwrap();
        }
        let (first, pages, second, device, other) = wanted;
        let amounts = [first, 1000 * first, pages, second, 500 * second, 0, device, other];
        let mut request = wants(1);
        let mut all = sized(1);
        for (class, amount) in CLASSES.iter().zip(amounts).filter(|(_, amount)| *amount > 0) {
            request = request.spec(&format!("resources:{class}"), &amount.to_string());
            all.set(class.parse().unwrap(), amount).unwrap();
        }
        let budgets = Budgets::unlimited();
        let best = hosts.iter().filter_map(|host| on_host(host, &instances, &all, &budgets)).min();
        let decision = decide(&table, &request);
        match &decision.outcome {
            DecisionOutcome::NoValidHost(_) => prop_assert_eq!(best, None),
            DecisionOutcome::Placed(_) => {
                let victims: Vec<u64> = decision.victims().map(|(_, v)| (v.cost * 1e6).round() as u64).collect();
                let (_, cost, count) = best.unwrap();
                prop_assert_eq!((victims.iter().sum::<u64>(), victims.len()), (cost, count));
                prop_assert!(decision.explanation.optimal);
            }
        }
    }
}

#[test]
fn a_victim_in_the_other_cell_does_not_help() {
    let mut table = HostTable::default();
    table.put_host(&numa_host(0));
    for instance in [
        pinned(1, 0, 0, 4, 0, None, 1),
        pinned(2, 0, 1, 4, 0, None, 50),
    ] {
        table.put_instance(&instance).unwrap();
    }
    let request = wants(1).spec("resources:CUSTOM_NUMA1_PCPU", "2");
    assert_eq!(summary(&decide(&table, &request)), [("h0", vec![2])]);
}
