//! Nova's own numbers. `data/nova_weighers.jsonl` holds 35 cases that Nova 34.0.0 was run on: what
//! its host states hold, what each weigher gave (after clamping) and what became of it after
//! normalising.

use crate::support;

use ebbtide_model::GroupPolicy;
use ebbtide_weigher_api::{Column, arithmetic};
use serde_json::Value;
use support::{Hosts, named};

const CASES: &str = include_str!("data/nova_weighers.jsonl");

fn numbers(value: &Value) -> Vec<f64> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|x| x.as_f64().unwrap())
        .collect()
}

fn hosts(case: &Value) -> Hosts {
    let column = |key: &str| numbers(&case["columns"][key]);
    let policy = match case["policy"].as_str() {
        None => None,
        Some("affinity") => Some(GroupPolicy::Affinity),
        Some("anti-affinity") => Some(GroupPolicy::AntiAffinity),
        Some("soft-affinity") => Some(GroupPolicy::SoftAffinity),
        Some("soft-anti-affinity") => Some(GroupPolicy::SoftAntiAffinity),
        Some(other) => panic!("policy {other}"),
    };
    Hosts::new(column("ram").len())
        .with(Column::FreeRamMb, &column("ram"))
        .with(Column::FreeVcpus, &column("cpu"))
        .with(Column::FreeDiskMb, &column("disk"))
        .with(Column::NumIoOps, &column("io_ops"))
        .with(Column::NumInstances, &column("num_instances"))
        .with(Column::GroupMembers, &column("members"))
        .group(policy)
}

fn bits(numbers: &[f64]) -> Vec<u64> {
    numbers.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn every_weigher_gives_what_nova_gives_bit_for_bit() {
    let mut compared = 0;
    for line in CASES.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let hosts = hosts(&case);
        for (name, nova) in case["weighers"].as_object().unwrap() {
            let weigher = named(name);
            let mut raw = hosts.raw(weigher.as_ref()).unwrap();
            arithmetic::clamp(&mut raw, weigher.bounds());
            assert_eq!(
                bits(&raw),
                bits(&numbers(&nova["raw"])),
                "raw {name} of {}",
                case["id"]
            );
            let normalised = hosts.normalised(weigher.as_ref());
            assert_eq!(
                bits(&normalised),
                bits(&numbers(&nova["norm"])),
                "{name} of {}",
                case["id"]
            );
            compared += normalised.len();
        }
    }
    assert!(compared > 1000, "only {compared} numbers were compared");
}

#[test]
fn keys_and_default_multipliers_are_nova_s() {
    // Nova 34, nova/conf/scheduler.py, group [filter_scheduler].
    let table = [
        ("ram", "ram_weight_multiplier", 1.0),
        ("cpu", "cpu_weight_multiplier", 1.0),
        ("disk", "disk_weight_multiplier", 1.0),
        ("io_ops", "io_ops_weight_multiplier", -1.0),
        ("num_instances", "num_instances_weight_multiplier", 0.0),
        ("soft_affinity", "soft_affinity_weight_multiplier", 1.0),
        (
            "soft_anti_affinity",
            "soft_anti_affinity_weight_multiplier",
            1.0,
        ),
    ];
    for (name, key, multiplier) in table {
        let weigher = named(name);
        assert_eq!(
            (weigher.multiplier_key(), weigher.default_multiplier()),
            (key, multiplier)
        );
    }
}
