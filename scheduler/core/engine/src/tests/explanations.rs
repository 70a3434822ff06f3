//! Why: what an explanation holds, and what a refusal says.

use super::kit::*;
use crate::EngineConfig;
use ebbtide_model::HostHealth;

#[test]
fn the_runner_up_and_its_price_are_told() {
    let table = cloud(
        &[("a", 4), ("b", 4), ("c", 4), ("d", 4)],
        &[
            spot(1, "a", 4, 30),
            spot(2, "b", 4, 10),
            spot(3, "c", 4, 20),
            normal(4, "d", 4),
        ],
    );
    let decision = decide(&table, &wants(2));
    let explanation = &decision.explanation;
    assert_eq!(
        (
            explanation.policy.as_str(),
            explanation.cost_module.as_str()
        ),
        ("tiered", "partial_hour")
    );
    assert_eq!(explanation.filtered_on, "normal");
    assert!(explanation.optimal && explanation.gap == 0.0 && explanation.warnings.is_empty());
    let instance = &explanation.instances[0];
    let ranking: Vec<(&str, bool, Option<f64>)> = instance
        .ranking
        .iter()
        .map(|r| (r.host.as_str(), r.chosen, r.eviction_cost))
        .collect();
    assert_eq!(
        ranking,
        [
            ("b", true, Some(600.0)),
            ("c", false, Some(1200.0)),
            ("a", false, Some(1800.0))
        ]
    );
    assert_eq!(instance.ranking[1].victims[0].server_id, server(3));
    assert_eq!(instance.ranked, 3);
    let capacity = instance.filters.last().unwrap();
    assert_eq!((capacity.before, capacity.after), (4, 3));
    assert_eq!(capacity.dropped[0].host, "d");
}

#[test]
fn hosts_that_were_not_needed_to_decide_are_listed_without_a_price() {
    let table = cloud(&[("a", 4), ("b", 4)], &[spot(1, "a", 4, 30)]);
    let decision = decide(&table, &wants(2));
    let ranking = &decision.explanation.instances[0].ranking;
    assert_eq!(
        (ranking[0].host.as_str(), ranking[0].eviction_cost),
        ("b", Some(0.0))
    );
    assert_eq!(
        (ranking[1].host.as_str(), ranking[1].eviction_cost),
        ("a", None)
    );
}

#[test]
fn lists_are_cut_and_counts_are_of_all() {
    let hosts: Vec<(String, u64)> = (0..30).map(|n| (format!("h{n:02}"), 4)).collect();
    let hosts: Vec<(&str, u64)> = hosts.iter().map(|(name, n)| (name.as_str(), *n)).collect();
    let mut table = cloud(&hosts, &[]);
    for n in 0..10 {
        table.set_health(&format!("h{n:02}"), HostHealth::Down);
    }
    let config = EngineConfig {
        explain_hosts: 3,
        explain_dropped: 2,
        ..EngineConfig::default()
    };
    let decision = decide_with(&engine(config), &table, &wants(1));
    let instance = &decision.explanation.instances[0];
    assert_eq!((instance.ranking.len(), instance.ranked), (3, 20));
    let step = &instance.filters[1];
    assert_eq!((step.before, step.after, step.dropped.len()), (30, 20, 2));
    let none = EngineConfig {
        explain_hosts: 0,
        explain_dropped: 0,
        ..EngineConfig::default()
    };
    let decision = decide_with(&engine(none), &table, &wants(1));
    let ranking = &decision.explanation.instances[0].ranking;
    assert_eq!(
        (ranking.len(), ranking[0].chosen),
        (1, true),
        "the chosen one is always told"
    );
}

#[test]
fn a_refusal_counts_by_filter() {
    let protected = crate::Instance {
        protected_until: Some(minutes_ago(-1)),
        ..spot(1, "a", 3, 1)
    };
    let mut table = cloud(&[("a", 4), ("b", 2), ("c", 4)], &[protected]);
    table.set_health("c", HostHealth::Down);
    let decision = decide(&table, &wants(3));
    let no = refused(&decision);
    let counts: Vec<(&str, u32)> = no
        .dropped
        .iter()
        .map(|d| (d.filter.as_str(), d.dropped))
        .collect();
    assert_eq!(
        counts
            .into_iter()
            .filter(|(_, n)| *n > 0)
            .collect::<Vec<_>>(),
        [("enabled-and-up", 1), ("capacity", 1), ("victims", 1)]
    );
    assert_eq!(
        no.reason,
        "No valid host was found: hosts dropped: 1 of 3 by enabled-and-up, 1 of 2 by capacity, 1 of 1 by victims."
    );
    let why = &decision.explanation.instances[0]
        .filters
        .last()
        .unwrap()
        .dropped[0]
        .reason;
    assert!(
        why.contains("VCPU: 2 missing, instances that may be evacuated have 0"),
        "{why}"
    );
    assert!(why.contains("1 more in protected time"), "{why}");
}

#[test]
fn a_search_that_was_cut_says_how_far_off_it_can_be() {
    // Costs follow sizes closely and no two instances are alike: the hard kind.
    let instances: Vec<_> = (0..24_u64)
        .map(|n| {
            let vcpus = 11 + (n * 29) % 37;
            let memory = 1000 + (n * 7919) % 977;
            let disk = 50 + (n * 104_729) % 89;
            let amounts = [("VCPU", vcpus), ("MEMORY_MB", memory), ("DISK_GB", disk)];
            let minutes = i64::try_from(10 + vcpus).unwrap();
            crate::Instance {
                resources: resources(&amounts),
                ..spot(u128::from(n) + 1, "a", 1, minutes)
            }
        })
        .collect();
    let all = |class: &str| {
        instances
            .iter()
            .map(|i| i.resources.amount(class))
            .sum::<u64>()
    };
    let mut a = host("a", 0, 1);
    for class in ["VCPU", "MEMORY_MB", "DISK_GB"] {
        let inventory = ebbtide_model::Inventory::of(all(class));
        a.inventory.insert(class.parse().unwrap(), inventory);
    }
    let mut table = crate::HostTable::new();
    table.put_host(&a);
    instances
        .iter()
        .for_each(|i| table.put_instance(i).unwrap());
    let short = EngineConfig {
        max_solver_nodes: 1,
        ..EngineConfig::default()
    };
    let (long, short) = (engine(EngineConfig::default()), engine(short));
    let cost = |d: &ebbtide_model::Decision| d.victims().map(|(_, v)| v.cost).sum::<f64>();
    let mut cuts = 0;
    for step in 0..20 {
        let mut request = wants(60 + 11 * step);
        request.flavor.ram_mb = 3000 + 500 * step;
        request.flavor.disk_gb = 200 + 30 * step;
        let (whole, cut) = (
            decide_with(&long, &table, &request),
            decide_with(&short, &table, &request),
        );
        assert!(whole.explanation.optimal && whole.explanation.gap == 0.0);
        let (optimum, found) = (cost(&whole), cost(&cut));
        assert!(found >= optimum);
        assert!(
            found - cut.explanation.gap <= optimum + 1e-6,
            "{found} {optimum}"
        );
        assert!(!cut.explanation.optimal || found == optimum);
        cuts += u32::from(!cut.explanation.optimal);
    }
    assert!(
        cuts > 0,
        "one node was always enough: the test needs a harder host"
    );
}
