//! One instance: where it is placed, which instances have to leave, and which never do.

use super::kit::*;
use crate::{Budgets, EngineConfig, Instance, InstancePhase};
use ebbtide_model::Timestamp;

#[test]
fn a_host_with_room_is_taken_and_no_instance_leaves() {
    let table = cloud(
        &[("full", 4), ("free", 4)],
        &[spot(1, "full", 4, 0), normal(2, "free", 2)],
    );
    let decision = decide(&table, &wants(2));
    assert_eq!(summary(&decision), [("free", vec![])]);
    assert!(!placed(&decision)[0].waits_for_room);
    assert!(decision.explanation.optimal);
}

#[test]
fn the_cheapest_sufficient_set_over_all_hosts_is_chosen() {
    let table = cloud(
        &[("a", 4), ("b", 4)],
        &[
            spot(1, "a", 2, 30),
            spot(2, "a", 2, 20),
            spot(3, "b", 4, 19),
            normal(4, "a", 0),
        ],
    );
    assert_eq!(summary(&decide(&table, &wants(2))), [("b", vec![3])]);
    assert_eq!(summary(&decide(&table, &wants(4))), [("b", vec![3])]);
    let table = cloud(&[("a", 4)], &[spot(1, "a", 2, 30), spot(2, "a", 2, 20)]);
    let decision = decide(&table, &wants(2));
    assert_eq!(summary(&decision), [("a", vec![2])]);
    assert!(placed(&decision)[0].waits_for_room);
    let victim = &placed(&decision)[0].victims[0];
    assert_eq!((victim.age_seconds, victim.cost), (1200.0, 1200.0));
}

#[test]
fn room_that_is_becoming_free_is_waited_for_before_anybody_else_is_asked_to_go() {
    let leaving = Instance {
        phase: InstancePhase::Leaving,
        ..spot(1, "a", 2, 50)
    };
    let table = cloud(
        &[("a", 4), ("b", 4)],
        &[leaving, normal(2, "a", 2), spot(3, "b", 4, 60)],
    );
    let decision = decide(&table, &wants(2));
    assert_eq!(
        summary(&decision),
        [("a", vec![])],
        "the free victim on b costs nothing, but dies"
    );
    assert!(placed(&decision)[0].waits_for_room);
}

#[test]
fn room_that_is_promised_is_not_given_again() {
    // 4 VCPUs: two are claimed by a normal instance whose victim is still there.
    let leaving = Instance {
        phase: InstancePhase::Leaving,
        ..spot(1, "a", 2, 50)
    };
    let claimed = Instance {
        phase: InstancePhase::Claimed,
        ..normal(2, "a", 2)
    };
    let table = cloud(&[("a", 4)], &[leaving, claimed, normal(3, "a", 2)]);
    assert_eq!(
        refused(&decide(&table, &wants(1)))
            .dropped
            .last()
            .unwrap()
            .filter,
        "capacity"
    );
}

#[test]
fn a_preemptible_request_sees_the_full_state_and_never_has_victims() {
    let table = cloud(&[("a", 4)], &[spot(1, "a", 3, 50)]);
    let decision = decide(&table, &wants(2).preemptible());
    assert_eq!(
        refused(&decision).dropped.last().unwrap().filter,
        "capacity"
    );
    assert_eq!(decision.explanation.filtered_on, "full");
    assert_eq!(
        summary(&decide(&table, &wants(1).preemptible())),
        [("a", vec![])]
    );
    // Room that is becoming free is not yet there for it.
    let leaving = Instance {
        phase: InstancePhase::Leaving,
        ..spot(1, "a", 3, 50)
    };
    let table = cloud(&[("a", 4)], &[leaving]);
    assert_eq!(refused(&decide(&table, &wants(2).preemptible())).hosts, 1);
}

#[test]
fn an_instance_in_its_protected_time_is_no_victim() {
    let until = |millis: i64| Some(Timestamp::from_millis(now().as_millis() + millis));
    let protected = Instance {
        protected_until: until(1),
        ..spot(1, "a", 4, 0)
    };
    let table = cloud(&[("a", 4)], std::slice::from_ref(&protected));
    let decision = decide(&table, &wants(2));
    assert_eq!(refused(&decision).dropped.last().unwrap().filter, "victims");
    let over = Instance {
        protected_until: until(0),
        ..protected
    };
    let table = cloud(&[("a", 4)], &[over]);
    assert_eq!(summary(&decide(&table, &wants(2))), [("a", vec![1])]);
}

#[test]
fn instances_that_leave_already_are_no_victims() {
    let leaving = Instance {
        phase: InstancePhase::Leaving,
        ..spot(1, "a", 2, 0)
    };
    let table = cloud(&[("a", 4)], &[leaving, spot(2, "a", 2, 59)]);
    assert_eq!(summary(&decide(&table, &wants(4))), [("a", vec![2])]);
}

#[test]
fn instances_that_have_not_started_can_be_victims() {
    for phase in [InstancePhase::Claimed, InstancePhase::Building] {
        let fresh = Instance {
            phase,
            launched_at: None,
            ..spot(1, "a", 4, 0)
        };
        let table = cloud(&[("a", 4)], &[fresh]);
        let decision = decide(&table, &wants(4));
        assert_eq!(summary(&decision), [("a", vec![1])]);
        assert_eq!(placed(&decision)[0].victims[0].age_seconds, 0.0);
    }
}

#[test]
fn equal_costs_prefer_fewer_victims_then_the_younger_then_the_smaller_uuid() {
    // An hour old or two: all cost nothing.
    let table = cloud(
        &[("a", 4), ("b", 4)],
        &[
            spot(1, "a", 2, 60),
            spot(2, "a", 2, 60),
            spot(3, "b", 4, 60),
        ],
    );
    assert_eq!(summary(&decide(&table, &wants(4))), [("b", vec![3])]);
    let table = cloud(&[("a", 4)], &[spot(1, "a", 2, 120), spot(2, "a", 2, 60)]);
    assert_eq!(summary(&decide(&table, &wants(2))), [("a", vec![2])]);
    let table = cloud(&[("a", 4)], &[spot(2, "a", 2, 60), spot(1, "a", 2, 60)]);
    assert_eq!(summary(&decide(&table, &wants(2))), [("a", vec![1])]);
}

#[test]
fn equal_victims_prefer_the_host_with_the_better_weight_then_the_older_registration() {
    // Same victims everywhere; b has more free memory.
    let mut table = cloud(
        &[("a", 4), ("b", 4)],
        &[spot(1, "a", 4, 10), spot(2, "b", 4, 10)],
    );
    assert_eq!(summary(&decide(&table, &wants(4))), [("a", vec![1])]);
    let mut b = host("b", 1, 4);
    let memory = ebbtide_model::Inventory::of(64_000);
    b.inventory
        .insert(ebbtide_model::ResourceClass::memory_mb(), memory);
    table.put_host(&b);
    assert_eq!(summary(&decide(&table, &wants(4))), [("b", vec![2])]);
}

#[test]
fn every_resource_class_counts() {
    let gpu = |number, host: &str, gpus, minutes| Instance {
        resources: resources(&[("VCPU", 1), ("CUSTOM_GPU", gpus)]),
        ..spot(number, host, 1, minutes)
    };
    let mut table = cloud(&[("a", 8), ("b", 8)], &[]);
    for (position, name) in ["a", "b"].into_iter().enumerate() {
        let mut with_gpus = host(name, i64::try_from(position).unwrap(), 8);
        let class = "CUSTOM_GPU".parse().unwrap();
        with_gpus
            .inventory
            .insert(class, ebbtide_model::Inventory::of(2));
        table.put_host(&with_gpus);
    }
    for instance in [gpu(1, "a", 1, 5), gpu(2, "a", 1, 6), gpu(3, "b", 2, 10)] {
        table.put_instance(&instance).unwrap();
    }
    let request = wants(1).spec("resources:CUSTOM_GPU", "2");
    assert_eq!(summary(&decide(&table, &request)), [("b", vec![3])]);
    let request = wants(1).spec("resources:CUSTOM_GPU", "1");
    assert_eq!(summary(&decide(&table, &request)), [("a", vec![1])]);
    assert_eq!(
        summary(&decide(&table, &wants(1))),
        [("b", vec![])],
        "no GPU, no victim"
    );
}

#[test]
fn a_class_that_is_over_committed_and_not_asked_for_does_not_matter() {
    let hog = Instance {
        resources: resources(&[("DISK_GB", 500)]),
        ..normal(1, "a", 0)
    };
    let table = cloud(&[("a", 4)], &[hog]);
    assert_eq!(summary(&decide(&table, &wants(4))), [("a", vec![])]);
}

#[test]
fn an_over_committed_host_pays_its_debt_first() {
    // 4 VCPUs, 6 used: for 2 more, 4 have to go.
    let table = cloud(
        &[("a", 4)],
        &[spot(1, "a", 2, 1), spot(2, "a", 2, 2), spot(3, "a", 2, 59)],
    );
    assert_eq!(summary(&decide(&table, &wants(2))), [("a", vec![1, 2])]);
}

#[test]
fn budgets_are_constraints() {
    let other = |number, vcpus, minutes| Instance {
        project_id: "project-t".to_owned(),
        ..spot(number, "a", vcpus, minutes)
    };
    let table = cloud(
        &[("a", 4)],
        &[spot(1, "a", 2, 1), spot(2, "a", 2, 2), other(3, 2, 50)],
    );
    let engine = engine(EngineConfig::default());
    let with = |remaining| {
        let mut budgets = Budgets::unlimited();
        budgets.limit_project("project-s", remaining);
        try_decide(&engine, &table, &budgets, &wants(2)).unwrap()
    };
    assert_eq!(summary(&with(2)), [("a", vec![1, 2])]);
    assert_eq!(summary(&with(1)), [("a", vec![1, 3])]);
    let decision = with(0);
    let no = refused(&decision);
    assert_eq!(no.dropped.last().unwrap().filter, "victims");
    let reason = &decision.explanation.instances[0]
        .filters
        .last()
        .unwrap()
        .dropped[0]
        .reason;
    assert!(reason.contains("budget"), "{reason}");
}

#[test]
fn alternates_are_other_hosts_with_room_best_first() {
    let table = cloud(
        &[("a", 4), ("b", 16), ("c", 8), ("d", 4)],
        &[spot(1, "a", 4, 0), normal(2, "d", 2)],
    );
    let mut request = wants(2);
    request.alternates = 2;
    assert_eq!(placed(&decide(&table, &request))[0].alternates, ["c", "d"]);
    request.alternates = 9;
    assert_eq!(
        placed(&decide(&table, &request))[0].alternates,
        ["c", "d"],
        "a would have to evict"
    );
}
