//! Server groups: together, apart, and what that means for victims.

use super::kit::*;
use crate::{Budgets, EngineConfig, HostTable, Instance, InstancePhase, RankingPolicy};
use ebbtide_model::{DecisionId, GroupPolicy};

fn member(instance: Instance) -> Instance {
    Instance {
        group_id: Some(group_id(1)),
        ..instance
    }
}

fn with_group(policy: GroupPolicy, limit: u32, table: &mut HostTable) {
    let mut group = group(1, policy);
    group.max_server_per_host = limit;
    table.put_group(&group);
}

#[test]
fn affinity_goes_where_the_members_are() {
    let mut table = cloud(&[("a", 9), ("b", 4)], &[member(normal(1, "b", 1))]);
    with_group(GroupPolicy::Affinity, 1, &mut table);
    assert_eq!(
        summary(&decide(&table, &wants(1).joins(group_id(1)))),
        [("b", vec![])]
    );
    let no = decide(&table, &wants(4).joins(group_id(1)));
    assert_eq!(refused(&no).dropped.last().unwrap().filter, "capacity");
}

#[test]
fn a_leaving_member_does_not_attract() {
    let leaving = member(Instance {
        phase: InstancePhase::Leaving,
        ..normal(1, "b", 1)
    });
    let mut table = cloud(&[("a", 9), ("b", 4)], &[leaving]);
    with_group(GroupPolicy::Affinity, 1, &mut table);
    assert_eq!(
        summary(&decide(&table, &wants(1).joins(group_id(1)))),
        [("a", vec![])]
    );
}

#[test]
fn affinity_does_not_drive_away_whom_it_wants_to_be_near() {
    let mut table = cloud(
        &[("a", 4), ("b", 4)],
        &[member(spot(1, "a", 2, 0)), spot(2, "a", 2, 59)],
    );
    with_group(GroupPolicy::Affinity, 1, &mut table);
    let request = wants(2).joins(group_id(1));
    assert_eq!(summary(&decide(&table, &request)), [("a", vec![2])]);
    table.remove_instance(server(2));
    table.put_instance(&normal(2, "a", 2)).unwrap();
    assert_eq!(
        refused(&decide(&table, &request))
            .dropped
            .last()
            .unwrap()
            .filter,
        "victims"
    );
}

#[test]
fn several_instances_under_affinity_find_the_host_that_holds_them_all() {
    // a is best for one, and holds one only.
    let mut table = cloud(
        &[("a", 8), ("b", 8), ("c", 8)],
        &[
            normal(1, "a", 5),
            normal(2, "b", 2),
            normal(3, "c", 1),
            spot(4, "c", 7, 5),
        ],
    );
    with_group(GroupPolicy::Affinity, 1, &mut table);
    let request = wants(3).times(2).joins(group_id(1));
    assert_eq!(
        summary(&decide(&table, &request)),
        [("b", vec![]), ("b", vec![])]
    );
    // Too much for b: c has to make room, and the first instance waits for no more than it needs.
    let mut table = cloud(
        &[("a", 8), ("c", 8)],
        &[normal(1, "a", 6), spot(2, "c", 3, 5), spot(3, "c", 3, 6)],
    );
    with_group(GroupPolicy::Affinity, 1, &mut table);
    let decision = decide(&table, &wants(2).times(4).joins(group_id(1)));
    let mut found = summary(&decision);
    assert!(found.iter().all(|(host, _)| *host == "c"));
    let waits: Vec<bool> = placed(&decision).iter().map(|p| p.waits_for_room).collect();
    assert_eq!(waits, [false, true, true, true]);
    found
        .iter_mut()
        .for_each(|(_, victims)| victims.sort_unstable());
    let victims: Vec<Vec<u128>> = found.into_iter().map(|(_, v)| v).collect();
    assert_eq!(victims, [vec![], vec![2], vec![3], vec![]]);
    let no = decide(&table, &wants(2).times(5).joins(group_id(1)));
    assert!(
        refused(&no).reason.contains("all 5 instances together"),
        "{}",
        refused(&no).reason
    );
}

#[test]
fn anti_affinity_keeps_members_apart_and_leaving_ones_still_count() {
    let leaving = member(Instance {
        phase: InstancePhase::Leaving,
        ..normal(1, "a", 1)
    });
    let mut table = cloud(&[("a", 9), ("b", 4), ("c", 2)], &[leaving]);
    with_group(GroupPolicy::AntiAffinity, 1, &mut table);
    let request = wants(1).times(2).joins(group_id(1));
    assert_eq!(
        summary(&decide(&table, &request)),
        [("b", vec![]), ("c", vec![])]
    );
    let decision = decide(&table, &request.clone().times(3));
    let no = refused(&decision);
    assert_eq!(
        (no.placed_before, no.dropped.last().unwrap().filter.as_str()),
        (2, "anti-affinity")
    );
    with_group(GroupPolicy::AntiAffinity, 2, &mut table);
    let hosts: Vec<_> = placed(&decide(&table, &request.times(5)))
        .iter()
        .map(|p| p.host.clone())
        .collect();
    assert_eq!(hosts, ["a", "b", "b", "c", "c"]);
}

#[test]
fn evicting_a_member_makes_no_room_under_anti_affinity() {
    let mut table = cloud(&[("a", 4)], &[member(spot(1, "a", 4, 0))]);
    with_group(GroupPolicy::AntiAffinity, 1, &mut table);
    let no = decide(&table, &wants(4).joins(group_id(1)));
    assert_eq!(refused(&no).dropped.last().unwrap().filter, "anti-affinity");
}

#[test]
fn soft_policies_are_wishes() {
    let mut table = cloud(&[("a", 8), ("b", 8)], &[member(normal(1, "b", 1))]);
    with_group(GroupPolicy::SoftAffinity, 1, &mut table);
    let config = EngineConfig {
        weighers: vec![crate::WeigherConfig {
            name: "soft_affinity".into(),
            multiplier: Some(10.0),
            on_failure: None,
        }],
        ..EngineConfig::default()
    };
    let request = wants(1).joins(group_id(1));
    assert_eq!(
        summary(&decide_with(&engine(config), &table, &request)),
        [("b", vec![])]
    );
    assert_eq!(summary(&decide(&table, &wants(1))), [("a", vec![])]);
    with_group(GroupPolicy::SoftAntiAffinity, 1, &mut table);
    assert_eq!(summary(&decide(&table, &request)), [("a", vec![])]);
    // Placed members count for those that follow.
    let three = decide(&table, &request.times(3));
    let hosts: Vec<_> = placed(&three).iter().map(|p| p.host.as_str()).collect();
    assert_eq!(hosts, ["a", "b", "a"]);
}

#[test]
fn an_unknown_group_is_refused_by_its_code() {
    let table = cloud(&[("a", 8)], &[]);
    let engine = engine(EngineConfig {
        policy: RankingPolicy::Nova,
        ..EngineConfig::default()
    });
    let budgets = crate::Budgets::unlimited();
    let error = try_decide(&engine, &table, &budgets, &wants(1).joins(group_id(5))).unwrap_err();
    assert_eq!(error.code(), "EB-ENGINE-003");
}

#[test]
fn who_can_be_on_one_host_only_still_has_to_pass_the_filters() {
    let mut table = cloud(&[("a", 8), ("b", 8)], &[]);
    table.put_group(&group(1, GroupPolicy::AntiAffinity));
    let request = wants(2).preemptible().joins(group_id(1));
    let on = |table: &HostTable, host: &str| {
        let engine = engine(EngineConfig::default());
        let id = DecisionId(uuid::Uuid::nil());
        let budgets = Budgets::unlimited();
        let decided = engine.decide_on(table, &budgets, &request, &[host], now(), 1, id);
        decided.expect("a right request")
    };
    assert_eq!(placed(&on(&table, "b"))[0].host, "b");
    let mut member = spot(9, "b", 2, 10);
    member.group_id = Some(group_id(1));
    table.put_instance(&member).unwrap();
    assert_eq!(
        refused(&on(&table, "b")).dropped.last().unwrap().filter,
        "anti-affinity"
    );
    assert_eq!(placed(&on(&table, "a"))[0].host, "a");
    refused(&on(&table, "nowhere"));
}
