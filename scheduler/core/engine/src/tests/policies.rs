//! Ranking policies: Nova's arithmetic, first fit, chance, multipliers of aggregates.

use super::kit::*;
use crate::{EngineConfig, RankingPolicy, WeigherConfig};
use ebbtide_model::{Inventory, ResourceClass};
use std::collections::BTreeSet;

fn nova(weighers: &[(&str, f64)]) -> EngineConfig {
    let weighers = weighers
        .iter()
        .map(|(name, multiplier)| WeigherConfig {
            name: (*name).to_owned(),
            multiplier: Some(*multiplier),
            on_failure: None,
        })
        .collect();
    EngineConfig {
        policy: RankingPolicy::Nova,
        weighers,
        ..EngineConfig::default()
    }
}

#[test]
fn weights_are_novas_to_the_last_bit() {
    let table = cloud(
        &[("a", 10), ("b", 7), ("c", 3)],
        &[normal(1, "a", 1), normal(2, "b", 1), normal(3, "b", 1)],
    );
    let config = nova(&[("cpu", 1.0), ("ram", 0.3), ("num_instances", -0.7)]);
    let decision = decide_with(&engine(config), &table, &wants(1));
    let ranking = &decision.explanation.instances[0].ranking;
    let weight = |cpu: f64, ram: f64, instances: f64| {
        let mut total = 0.0;
        total += 1.0 * (cpu / 9.0);
        total += 0.3 * (ram / 9000.0);
        total += -0.7 * (instances / 2.0);
        total
    };
    let expected = [
        ("a", weight(9.0, 9000.0, 1.0)),
        ("c", weight(3.0, 3000.0, 0.0)),
        ("b", weight(5.0, 5000.0, 2.0)),
    ];
    let found: Vec<(&str, f64)> = ranking
        .iter()
        .map(|r| (r.host.as_str(), r.weight))
        .collect();
    assert_eq!(found, expected);
    let weights = &ranking[2].weights;
    assert_eq!(
        (weights[2].raw, weights[2].normalised, weights[2].multiplier),
        (2.0, 1.0, -0.7)
    );
}

#[test]
fn free_amounts_are_novas() {
    // RAM without the ratio, CPUs with it, both without what is reserved.
    let mut a = host("a", 0, 10);
    a.inventory.insert(
        ResourceClass::vcpu(),
        Inventory {
            total: 10,
            reserved: 1,
            allocation_ratio: 4.0,
        },
    );
    a.inventory.insert(
        ResourceClass::memory_mb(),
        Inventory {
            total: 8000,
            reserved: 512,
            allocation_ratio: 1.5,
        },
    );
    let mut table = cloud(&[("b", 100)], &[]);
    table.put_host(&a);
    table.put_instance(&normal(1, "a", 3)).unwrap();
    let config = nova(&[("cpu", 1.0), ("ram", 1.0), ("disk", 1.0)]);
    let decision = decide_with(&engine(config), &table, &wants(1));
    let ranking = &decision.explanation.instances[0].ranking;
    let raw: Vec<f64> = ranking
        .iter()
        .find(|r| r.host == "a")
        .unwrap()
        .weights
        .iter()
        .map(|w| w.raw)
        .collect();
    assert_eq!(
        raw,
        [10.0 * 4.0 - 4.0, 8000.0 - 512.0 - 3000.0, 100.0 * 1024.0]
    );
}

#[test]
fn a_single_host_is_not_weighed() {
    let table = cloud(&[("a", 4), ("b", 1)], &[]);
    let decision = decide(&table, &wants(2));
    let only = &decision.explanation.instances[0].ranking[0];
    assert_eq!((only.weight, only.weights.len()), (0.0, 0));
}

#[test]
fn under_nova_the_weighers_alone_decide_about_evictions() {
    let table = cloud(&[("full", 9), ("free", 2)], &[spot(1, "full", 8, 3)]);
    let pure = decide_with(&engine(nova(&[("cpu", -1.0)])), &table, &wants(2));
    assert_eq!(
        summary(&pure),
        [("full", vec![1])],
        "fewer free CPUs are better"
    );
    let config = EngineConfig {
        policy: RankingPolicy::Nova,
        ..EngineConfig::default()
    };
    let default = decide_with(&engine(config), &table, &wants(2));
    assert_eq!(
        summary(&default),
        [("free", vec![])],
        "the default set avoids evictions"
    );
}

#[test]
fn under_nova_hosts_without_a_sufficient_set_are_left_out_before_weighing() {
    let protected = crate::Instance {
        protected_until: Some(minutes_ago(-9)),
        ..spot(1, "a", 90, 1)
    };
    let table = cloud(&[("a", 90), ("b", 4), ("c", 3)], &[protected]);
    let decision = decide_with(&engine(nova(&[("ram", 1.0)])), &table, &wants(1));
    let instance = &decision.explanation.instances[0];
    assert_eq!(instance.ranked, 2);
    assert_eq!(instance.ranking[0].host, "b");
    let step = instance.filters.last().unwrap();
    assert_eq!(
        (step.filter.as_str(), step.before, step.after),
        ("victims", 3, 2)
    );
    assert!(
        step.dropped[0].reason.contains("1 more in protected time"),
        "{step:?}"
    );
}

#[test]
fn first_fit_takes_the_first_in_the_order_of_registration() {
    let config = EngineConfig {
        policy: RankingPolicy::FirstFit,
        ..EngineConfig::default()
    };
    let engine = engine(config);
    let mut table = cloud(&[("a", 2), ("b", 4), ("c", 90)], &[normal(1, "a", 2)]);
    assert_eq!(
        summary(&decide_with(&engine, &table, &wants(2))),
        [("b", vec![])]
    );
    let hosts = |n: u128| {
        let decision = decide_with(&engine, &table, &wants(2).times(n));
        placed(&decision)
            .iter()
            .map(|p| p.host.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(hosts(3), ["b", "b", "c"]);
    table.remove_host("c");
    table.put_instance(&spot(2, "b", 4, 30)).unwrap();
    table.put_instance(&spot(3, "b", 0, 30)).unwrap();
    assert_eq!(
        summary(&decide_with(&engine, &table, &wants(2))),
        [("b", vec![2])]
    );
}

#[test]
fn the_smallest_multiplier_of_the_aggregates_counts_if_all_are_numbers() {
    let mut table = cloud(&[("a", 4), ("b", 4), ("c", 4), ("d", 4)], &[]);
    let key = "cpu_weight_multiplier";
    table.set_aggregates(&[
        aggregate(1, &["a", "b"], &[(key, "3")]),
        aggregate(2, &["b", "c"], &[(key, " 1_0.5 ")]),
        aggregate(3, &["c"], &[(key, "2,5")]),
    ]);
    let decision = decide_with(&engine(nova(&[("cpu", 2.0)])), &table, &wants(1));
    let mut found: Vec<(&str, f64)> = decision.explanation.instances[0]
        .ranking
        .iter()
        .map(|r| (r.host.as_str(), r.weights[0].multiplier))
        .collect();
    found.sort_by_key(|(host, _)| *host);
    assert_eq!(found, [("a", 3.0), ("b", 3.0), ("c", 2.0), ("d", 2.0)]);
}

#[test]
fn multipliers_that_are_no_numbers_put_a_host_last_and_nothing_panics() {
    let mut table = cloud(&[("a", 4), ("b", 4), ("c", 4)], &[]);
    let key = "cpu_weight_multiplier";
    table.set_aggregates(&[
        aggregate(1, &["a"], &[(key, "nan")]),
        aggregate(2, &["c"], &[(key, "inf")]),
    ]);
    let decision = decide_with(&engine(nova(&[("cpu", 1.0)])), &table, &wants(1));
    let hosts: Vec<&str> = decision.explanation.instances[0]
        .ranking
        .iter()
        .map(|r| r.host.as_str())
        .collect();
    assert_eq!(hosts, ["c", "b", "a"]);
}

#[test]
fn chance_chooses_among_equals_only_and_only_from_the_seed() {
    let table = cloud(
        &[("a", 4), ("b", 4), ("c", 4)],
        &[spot(1, "a", 4, 5), spot(2, "b", 4, 5), spot(3, "c", 4, 6)],
    );
    for config in [
        EngineConfig {
            host_subset_size: 3,
            ..EngineConfig::default()
        },
        EngineConfig {
            shuffle_best_same_weighed_hosts: true,
            ..EngineConfig::default()
        },
    ] {
        let engine = engine(config);
        let pick = |seed| {
            let id = ebbtide_model::DecisionId(uuid::Uuid::nil());
            let budgets = crate::Budgets::unlimited();
            let decision = engine
                .decide(&table, &budgets, &wants(4), now(), seed, id)
                .unwrap();
            assert_eq!(decision.explanation.seed, seed);
            placed(&decision)[0].host.clone()
        };
        let seen: BTreeSet<String> = (0..50).map(pick).collect();
        assert_eq!(
            seen,
            BTreeSet::from(["a".to_owned(), "b".to_owned()]),
            "c is dearer"
        );
        assert_eq!(pick(7), pick(7));
    }
}

#[test]
fn weighers_are_added_in_the_configured_order_and_may_count_twice() {
    let table = cloud(&[("a", 4), ("b", 2)], &[]);
    let decision = decide_with(
        &engine(nova(&[("cpu", 1.0), ("cpu", 1.0)])),
        &table,
        &wants(1),
    );
    assert_eq!(decision.explanation.instances[0].ranking[0].weight, 2.0);
}
