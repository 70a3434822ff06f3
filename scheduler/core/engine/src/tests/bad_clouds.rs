//! Unusual clouds: one host, over-committed hosts, identical instances, many ties, multipliers that
//! are not numbers. The answer is as defined, and comes soon.

use super::kit::*;
use crate::{EngineConfig, HostTable, InstancePhase, WeigherConfig};
use ebbtide_model::{Decision, PlacementRequest};

/// Decides both ways; the answers are the same.
fn decide_twice(config: EngineConfig, table: &HostTable, request: &PlacementRequest) -> Decision {
    let engine = engine(config);
    let fast = decide_with(&engine, table, request);
    let simple = decide_with(&engine.simple(), table, request);
    assert_eq!(format!("{fast:?}"), format!("{simple:?}"));
    fast
}

fn decide_default(table: &HostTable, request: &PlacementRequest) -> Decision {
    decide_twice(EngineConfig::default(), table, request)
}

/// Many hosts of eight VCPUs with eight preemptible instances each, of which the ages in minutes
/// are given.
fn saturated(hosts: u64, minutes: impl Fn(u64) -> i64) -> HostTable {
    let mut table = HostTable::new();
    for number in 0..hosts {
        let name = format!("h{number:05}");
        table.put_host(&host(&name, i64::try_from(number).unwrap(), 8));
        for n in 0..8 {
            let id = 8 * number + n;
            let instance = spot(u128::from(id) + 1, &name, 1, minutes(id));
            table.put_instance(&instance).unwrap();
        }
    }
    table
}

#[test]
fn one_host_is_taken_unweighed_whether_it_has_room_or_has_to_evict() {
    let table = cloud(&[("only", 4)], &[spot(1, "only", 3, 10)]);
    for (vcpus, victims) in [(1, vec![]), (2, vec![1])] {
        let decision = decide_default(&table, &wants(vcpus));
        assert_eq!(summary(&decision), [("only", victims)]);
        let ranked = &decision.explanation.instances[0].ranking[0];
        assert_eq!((ranked.weight, ranked.weights.len()), (0.0, 0));
    }
    assert!(
        refused(&decide_default(&table, &wants(5)))
            .reason
            .contains("1 of 1 by capacity")
    );
}

#[test]
fn over_committed_hosts_take_no_instance_and_owe_what_they_lack_first() {
    // Inventory shrank below what is used: h_f and h_n are negative on a, h_f alone on b.
    let mut table = cloud(
        &[("a", 8), ("b", 8), ("c", 8)],
        &[
            normal(1, "a", 8),
            spot(2, "b", 4, 30),
            spot(3, "b", 4, 20),
            spot(4, "c", 8, 59),
        ],
    );
    table.put_host(&host("a", 0, 4));
    table.put_host(&host("b", 1, 6));
    assert!(
        table
            .usage("a")
            .unwrap()
            .classes
            .iter()
            .any(|c| c.free_normal < 0)
    );
    let decision = decide_default(&table, &wants(2));
    // One of four would do if b had eight VCPUs; it lacks two.
    assert_eq!(summary(&decision), [("b", vec![3])]);
    let decision = decide_default(&table, &wants(3));
    assert_eq!(summary(&decision), [("b", vec![2, 3])]);
    let preemptible = decide_default(&table, &wants(1).preemptible());
    assert_eq!(refused(&preemptible).dropped.last().unwrap().dropped, 3);
}

#[test]
fn hosts_that_are_all_alike_are_taken_in_the_order_of_registration() {
    let names: Vec<String> = (0..300).map(|n| format!("h{n:03}")).collect();
    // The last name registers first.
    let mut table = HostTable::new();
    for (position, name) in (0..).zip(names.iter().rev()) {
        table.put_host(&host(name, position, 4));
    }
    let decision = decide_default(&table, &wants(1));
    let ranking = &decision.explanation.instances[0].ranking;
    let first: Vec<&str> = ranking.iter().take(3).map(|r| r.host.as_str()).collect();
    assert_eq!(first, ["h299", "h298", "h297"]);
    assert!(ranking.windows(2).all(|two| two[0].weight == two[1].weight));
}

#[test]
fn multipliers_that_are_no_numbers_are_refused_in_the_configuration_and_rank_last_from_aggregates()
{
    for multiplier in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let config = EngineConfig {
            weighers: vec![WeigherConfig {
                name: "ram".to_owned(),
                multiplier: Some(multiplier),
                on_failure: None,
            }],
            ..EngineConfig::default()
        };
        assert_eq!(config.check().unwrap_err().code(), "EB-ENGINE-001");
    }
    let mut table = cloud(&[("a", 4), ("b", 8), ("c", 2)], &[]);
    for (text, best, total) in [
        ("nan", "b", None),
        ("inf", "a", Some(f64::INFINITY)),
        ("-inf", "b", Some(f64::NEG_INFINITY)),
    ] {
        table.set_aggregates(&[aggregate(1, &["a"], &[("ram_weight_multiplier", text)])]);
        let decision = decide_default(&table, &wants(1));
        assert_eq!(summary(&decision), [(best, vec![])], "{text}");
        let ranking = &decision.explanation.instances[0].ranking;
        let a = ranking.iter().find(|r| r.host == "a").unwrap().weight;
        assert_eq!(a.is_nan(), total.is_none(), "{text}: {a}");
        assert!(total.is_none_or(|total| a == total), "{text}: {a}");
    }
}

#[test]
fn multipliers_beyond_all_measure_give_what_the_arithmetic_gives() {
    let table = cloud(&[("a", 4), ("b", 8), ("c", 2)], &[normal(1, "c", 1)]);
    for (multiplier, best) in [(1e300, "b"), (-1e300, "c"), (1e-300, "b"), (f64::MAX, "a")] {
        let config = EngineConfig {
            weighers: ["ram", "cpu", "ram"]
                .map(|name| WeigherConfig {
                    name: name.to_owned(),
                    multiplier: Some(multiplier),
                    on_failure: None,
                })
                .to_vec(),
            ..EngineConfig::default()
        };
        // The largest of all makes the totals of a and b infinite: a tie.
        assert_eq!(
            summary(&decide_twice(config, &table, &wants(1))),
            [(best, vec![])]
        );
    }
}

#[test]
fn costs_of_zero_everywhere_are_a_tie_that_the_fewest_and_youngest_lose() {
    // Every instance has just completed an hour, some of them their second.
    let table = saturated(700, |id| if id % 3 == 0 { 60 } else { 120 });
    let decision = decide_default(&table, &wants(2));
    let placement = &placed(&decision)[0];
    assert_eq!(
        (placement.host.as_str(), placement.victims.len()),
        ("h00000", 2)
    );
    assert!(
        placement
            .victims
            .iter()
            .all(|v| v.cost == 0.0 && v.age_seconds == 3600.0)
    );
    assert!(decision.explanation.optimal);
}

#[test]
fn equal_costs_on_ten_thousand_hosts_do_not_explode() {
    let table = saturated(10_000, |_| 25);
    let engine = engine(EngineConfig::default());
    let decision = decide_with(&engine, &table, &wants(3));
    // Everything is equal: the first host in the order of registration, the smallest ids.
    assert_eq!(summary(&decision), [("h00000", vec![1, 2, 3])]);
    assert!(decision.explanation.optimal);
    assert_eq!(decision.explanation.instances[0].ranked, 10_000);
}

#[test]
fn a_cloud_in_which_no_instance_may_leave_says_so_of_every_host() {
    let mut table = saturated(200, |_| 25);
    for number in 0..200 {
        for view in table
            .instances_on(&format!("h{number:05}"))
            .iter()
            .map(|v| v.to_instance())
            .collect::<Vec<_>>()
        {
            let protected = crate::Instance {
                protected_until: Some(minutes_ago(-5)),
                phase: InstancePhase::Running,
                ..view
            };
            table.put_instance(&protected).unwrap();
        }
    }
    let decision = decide_default(&table, &wants(1));
    assert_eq!(refused(&decision).dropped.last().unwrap().dropped, 200);
}
