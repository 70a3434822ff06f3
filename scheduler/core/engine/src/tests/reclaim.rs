//! Which instances leave a host that its owner takes back.

use super::kit::{group_id, host, keeper, minutes_ago, normal, now, server, spot};
use crate::{Budgets, Engine, EngineConfig, HostEviction, HostTable, Instance, InstancePhase};
use ebbtide_model::{
    GroupPolicy, Reclaim, ReclaimDeadline, ReclaimTerms, ServerGroup, ServerId, StayReason,
};

fn table(instances: &[Instance]) -> HostTable {
    let mut table = HostTable::new();
    table.put_host(&host("A", 1, 64));
    table.put_host(&host("B", 2, 64));
    table.put_group(&ServerGroup {
        id: group_id(1),
        name: "g".to_owned(),
        project_id: "project-s".to_owned(),
        policy: GroupPolicy::AntiAffinity,
        max_server_per_host: 1,
    });
    for instance in instances {
        table.put_instance(instance).unwrap();
    }
    table
}

fn reclaim(max_cost: Option<f64>) -> Reclaim {
    let terms = ReclaimTerms {
        owner: "slurm:1".to_owned(),
        reason: "job 1".to_owned(),
        deadline: ReclaimDeadline::None,
        max_cost,
    };
    Reclaim::new(terms, None, minutes_ago(1))
}

fn empty(table: &HostTable, budgets: &Budgets, reclaim: &Reclaim) -> HostEviction {
    let engine = Engine::new(EngineConfig::default()).unwrap();
    let empty = engine.empty_host(table, "A", budgets, reclaim, now(), |_| None);
    empty.unwrap()
}

fn leave(eviction: &HostEviction) -> Vec<ServerId> {
    eviction.leave.iter().map(|(id, _)| *id).collect()
}

#[test]
fn every_preemptible_instance_of_the_host_leaves_and_the_others_are_named() {
    let kept = Instance {
        phase: InstancePhase::Retained,
        ..keeper(4, "A", 1, 5, 10)
    };
    let leaving = Instance {
        phase: InstancePhase::Leaving,
        ..spot(5, "A", 1, 10)
    };
    let protected = Instance {
        protected_until: Some(minutes_ago(-1)),
        ..spot(6, "A", 1, 10)
    };
    let table = table(&[
        normal(1, "A", 2),
        spot(2, "A", 2, 30),
        spot(3, "A", 2, 10),
        kept,
        leaving,
        protected,
        spot(7, "B", 2, 10),
    ]);
    let eviction = empty(&table, &Budgets::unlimited(), &reclaim(None));
    // The default cost module: the minutes of the started hour.
    assert_eq!(eviction.leave, [(server(3), 600.0), (server(2), 1800.0)]);
    let until = minutes_ago(-1);
    let stay = [
        (server(1), StayReason::Normal),
        (server(4), StayReason::Kept),
        (server(6), StayReason::Protected { until }),
    ];
    assert_eq!(eviction.stay, stay);
}

#[test]
fn protected_time_ends_at_its_very_moment() {
    let spot = Instance {
        protected_until: Some(now()),
        ..spot(1, "A", 1, 10)
    };
    let eviction = empty(&table(&[spot]), &Budgets::unlimited(), &reclaim(None));
    assert_eq!(leave(&eviction), [server(1)]);
}

#[test]
fn of_equal_costs_the_younger_leaves_first() {
    let table = table(&[
        spot(1, "A", 1, 70),
        spot(2, "A", 1, 10),
        spot(3, "A", 1, 10),
    ]);
    let mut budgets = Budgets::unlimited();
    budgets.limit_project("project-s", 2);
    let eviction = empty(&table, &budgets, &reclaim(None));
    assert_eq!(leave(&eviction), [server(2), server(3)]);
    assert_eq!(eviction.stay, [(server(1), StayReason::Budget)]);
}

#[test]
fn a_budget_of_a_group_holds_only_its_members() {
    let member = |number| Instance {
        group_id: Some(group_id(1)),
        ..spot(number, "A", 1, 10)
    };
    let table = table(&[member(1), member(2), spot(3, "A", 1, 20)]);
    let mut budgets = Budgets::unlimited();
    budgets.limit_group(group_id(1), 1);
    let eviction = empty(&table, &budgets, &reclaim(None));
    assert_eq!(leave(&eviction), [server(1), server(3)]);
    assert_eq!(eviction.stay, [(server(2), StayReason::Budget)]);
}

#[test]
fn the_maximum_cost_counts_what_has_left_before() {
    let table = table(&[spot(1, "A", 1, 10), spot(2, "A", 1, 20)]);
    let mut reclaim = reclaim(Some(1000.0));
    let first = empty(&table, &Budgets::unlimited(), &reclaim);
    assert_eq!(leave(&first), [server(1)]);
    let cost = 1200.0;
    assert_eq!(first.stay, [(server(2), StayReason::MaxCost { cost })]);
    reclaim.charge(server(9), 500.0);
    let second = empty(&table, &Budgets::unlimited(), &reclaim);
    assert_eq!(leave(&second), []);
}

#[test]
fn what_the_caller_holds_stays_and_an_unknown_host_is_empty() {
    let table = table(&[spot(1, "A", 1, 10), normal(2, "A", 1)]);
    let engine = Engine::new(EngineConfig::default()).unwrap();
    let budgets = Budgets::unlimited();
    let hold = |_| Some(StayReason::HostSilent);
    let reclaim = reclaim(None);
    let held = engine.empty_host(&table, "A", &budgets, &reclaim, now(), hold);
    let stay = [
        (server(1), StayReason::HostSilent),
        (server(2), StayReason::Normal),
    ];
    assert_eq!(held.unwrap().stay, stay);
    let nothing = engine.empty_host(&table, "C", &budgets, &reclaim, now(), hold);
    assert_eq!(nothing.unwrap(), HostEviction::default());
}
