//! Several instances in one request: all or nothing, each sees those before it.

use super::kit::*;
use crate::{Budgets, EngineConfig, Instance};

#[test]
fn instances_see_the_places_of_those_before_them() {
    let table = cloud(&[("a", 4), ("b", 4)], &[]);
    let decision = decide(&table, &wants(2).times(4));
    let hosts: Vec<_> = placed(&decision).iter().map(|p| p.host.as_str()).collect();
    assert_eq!(
        hosts,
        ["a", "b", "a", "b"],
        "spread by free CPUs and memory"
    );
    let ids: Vec<_> = placed(&decision).iter().map(|p| p.server_id).collect();
    assert_eq!(ids, decision.request.server_ids);
}

#[test]
fn one_that_finds_no_host_takes_all_places_back() {
    let table = cloud(&[("a", 4), ("b", 4)], &[]);
    let decision = decide(&table, &wants(3).times(3));
    let no = refused(&decision);
    assert_eq!((no.placed_before, no.hosts), (2, 2));
    assert_eq!(
        no.reason,
        "No valid host was found for instance 3 of 3: hosts dropped: 2 of 2 by capacity."
    );
    assert_eq!(decision.explanation.instances.len(), 3);
    assert!(decision.victims().next().is_none());
}

#[test]
fn no_victim_is_chosen_twice() {
    let table = cloud(&[("a", 4)], &[spot(1, "a", 2, 1), spot(2, "a", 2, 30)]);
    assert_eq!(
        summary(&decide(&table, &wants(2).times(2))),
        [("a", vec![1]), ("a", vec![2])]
    );
    assert_eq!(
        refused(&decide(&table, &wants(2).times(3))).placed_before,
        2
    );
}

#[test]
fn what_a_victim_leaves_over_goes_to_the_next_instance() {
    let table = cloud(
        &[("a", 4), ("b", 4)],
        &[spot(1, "a", 4, 9), spot(2, "b", 4, 10)],
    );
    let decision = decide(&table, &wants(2).times(2));
    assert_eq!(summary(&decision), [("a", vec![1]), ("a", vec![])]);
    assert!(
        placed(&decision).iter().all(|p| p.waits_for_room),
        "both wait for the same victim"
    );
}

#[test]
fn a_victim_that_became_superfluous_is_spared() {
    // The first instance takes the cheap small one; for both together the large one alone is
    // enough.
    let table = cloud(&[("a", 5)], &[spot(1, "a", 1, 1), spot(2, "a", 4, 2)]);
    let request = wants(1).times(2);
    let both = decide(&table, &request);
    assert_eq!(summary(&both), [("a", vec![2]), ("a", vec![])]);
    let table = cloud(&[("a", 5)], &[spot(1, "a", 1, 1), spot(2, "a", 4, 59)]);
    let one = decide(&table, &wants(1));
    assert_eq!(summary(&one), [("a", vec![1])]);
}

#[test]
fn budgets_are_used_up_along_the_way() {
    let other = |number, minutes| Instance {
        project_id: "project-t".to_owned(),
        ..spot(number, "b", 2, minutes)
    };
    let table = cloud(
        &[("a", 4), ("b", 4)],
        &[
            spot(1, "a", 2, 1),
            spot(2, "a", 2, 2),
            other(3, 40),
            other(4, 50),
        ],
    );
    let engine = engine(EngineConfig::default());
    let mut budgets = Budgets::unlimited();
    budgets.limit_project("project-s", 1);
    let decision = try_decide(&engine, &table, &budgets, &wants(2).times(2)).unwrap();
    assert_eq!(summary(&decision), [("a", vec![1]), ("b", vec![3])]);
    budgets.limit_project("project-t", 1);
    let decision = try_decide(&engine, &table, &budgets, &wants(2).times(3)).unwrap();
    assert_eq!(refused(&decision).placed_before, 2);
}

#[test]
fn the_explanations_of_many_stay_short() {
    let hosts: Vec<(String, u64)> = (0..20).map(|n| (format!("h{n:02}"), 10)).collect();
    let hosts: Vec<(&str, u64)> = hosts.iter().map(|(name, n)| (name.as_str(), *n)).collect();
    let table = cloud(&hosts, &[]);
    let decision = decide(&table, &wants(1).times(30));
    let instances = &decision.explanation.instances;
    assert_eq!(instances.len(), 30);
    assert_eq!(instances[0].ranking.len(), 10);
    assert_eq!(instances[29].ranking.len(), 2);
    for (instance, placement) in instances.iter().zip(placed(&decision)) {
        let chosen: Vec<_> = instance.ranking.iter().filter(|r| r.chosen).collect();
        assert_eq!(chosen.len(), 1);
        assert_eq!(chosen[0].host, placement.host);
    }
}
