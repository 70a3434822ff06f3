//! What cannot be planned is refused, each with its code; what cannot have happened, too.

use ebbtide_bag::simulate::{Outage, OutageEnd, PriceTrace, Scenario, simulate};
use ebbtide_bag::{
    Bag, BagError, BagEvent, Checkpoints, Effort, ExecutionPolicy, Executor, InstanceType, LONGEST,
    Rules, Task, VmId, plan, plan_on,
};
use ebbtide_model::Money;

fn task(name: &str) -> Task {
    Task {
        name: name.to_owned(),
        seconds: 3600,
        memory_mb: 1024,
        checkpoints: None,
    }
}

fn ty(name: &str) -> InstanceType {
    InstanceType {
        name: name.to_owned(),
        vcpus: 2,
        memory_mb: 4096,
        on_demand: Some(Money::from_micros(100_000)),
        preemptible: Some(Money::from_micros(30_000)),
        slowdown: 1.0,
    }
}

fn rules() -> Rules {
    Rules {
        deadline: 4 * 3600,
        ..Rules::default()
    }
}

fn good() -> Bag {
    Bag::new(vec![task("a"), task("b")], vec![ty("v")], rules()).unwrap()
}

/// The code and words of what is refused after a change of a good bag.
fn refused(change: impl FnOnce(&mut Vec<Task>, &mut Vec<InstanceType>, &mut Rules)) -> String {
    let (mut tasks, mut types, mut rules) = (vec![task("a"), task("b")], vec![ty("v")], rules());
    change(&mut tasks, &mut types, &mut rules);
    let error = Bag::new(tasks, types, rules).expect_err("it has to be refused");
    format!("{} {error}", error.code())
}

#[track_caller]
fn says(told: &str, parts: &[&str]) {
    for part in parts {
        assert!(told.contains(part), "{told:?} does not say {part:?}");
    }
}

#[test]
fn a_task_that_fits_no_type_is_named_with_the_largest_type() {
    let told = refused(|tasks, _, _| tasks[1].memory_mb = 5000);
    says(&told, &["EB-BAG-006", "\"b\"", "5000", "v", "4096"]);
    // A type that is only preemptible is no backup, however large.
    let told = refused(|tasks, types, _| {
        tasks[0].memory_mb = 5000;
        types.push(InstanceType {
            memory_mb: 10_000,
            on_demand: None,
            ..ty("large")
        });
    });
    says(&told, &["EB-BAG-006", "\"a\""]);
}

#[test]
fn a_deadline_that_cannot_be_met_is_proven_with_the_smallest_that_can() {
    let told = refused(|tasks, _, rules| {
        tasks[1].seconds = 5000;
        rules.boot = 60;
        rules.margin = 40;
        rules.deadline = 5000;
    });
    says(&told, &["EB-BAG-007", "\"b\"", "5100 s is the smallest"]);
    let told = refused(|_, _, rules| rules.deadline = 0);
    says(&told, &["EB-BAG-001", "the deadline", "0 s", "above zero"]);
}

#[test]
fn missing_prices_are_refused() {
    let told = refused(|_, types, _| {
        types.push(InstanceType {
            on_demand: None,
            preemptible: None,
            ..ty("free")
        });
    });
    says(&told, &["EB-BAG-005", "\"free\""]);
    let told = refused(|_, types, _| types[0].on_demand = None);
    says(&told, &["EB-BAG-005", "backup"]);
    // Without any preemptible price everything runs on demand.
    let only = InstanceType {
        preemptible: None,
        ..ty("v")
    };
    let bag = Bag::new(vec![task("a")], vec![only], rules()).unwrap();
    for effort in [Effort::Greedy, Effort::usual(1)] {
        let plan = plan(&bag, effort);
        assert_eq!(plan.flaw(&bag), None);
        assert!(plan.vms.iter().all(|p| p.backups.is_empty()));
    }
    assert_eq!(plan_on(&bag, &[(0, 1)]).unwrap_err().code(), "EB-BAG-005");
}

#[test]
fn duplicate_and_empty_names_are_refused() {
    says(
        &refused(|tasks, _, _| tasks[1].name = "a".to_owned()),
        &["EB-BAG-002", "two tasks", "\"a\""],
    );
    says(
        &refused(|_, types, _| types.push(ty("v"))),
        &["EB-BAG-002", "two instance types", "\"v\""],
    );
    says(
        &refused(|tasks, _, _| tasks[0].name.clear()),
        &["EB-BAG-001", "name"],
    );
}

#[test]
fn a_bag_of_nothing_is_refused() {
    says(
        &refused(|tasks, _, _| tasks.clear()),
        &["EB-BAG-003", "task"],
    );
    says(
        &refused(|_, types, _| types.clear()),
        &["EB-BAG-003", "instance type"],
    );
    let many: Vec<InstanceType> = (0..1001).map(|i| ty(&format!("v{i}"))).collect();
    says(
        &refused(|_, types, _| *types = many),
        &["EB-BAG-004", "1001", "1000"],
    );
}

#[test]
fn numbers_that_are_none_negative_or_huge_are_refused() {
    for slowdown in [f64::NAN, f64::INFINITY, 0.0, -1.0, 1e-9, 1e9] {
        let told = refused(|_, types, _| types[0].slowdown = slowdown);
        says(&told, &["EB-BAG-001", "slowdown", "\"v\""]);
    }
    for share in [f64::NAN, 0.0, -0.5, 1.01, f64::INFINITY] {
        says(
            &refused(|_, _, rules| rules.share = share),
            &["EB-BAG-001", "share"],
        );
    }
    for risk in [f64::NAN, -0.1, 2.0] {
        says(
            &refused(|_, _, rules| rules.risk = risk),
            &["EB-BAG-001", "risk"],
        );
    }
    for seconds in [0, LONGEST + 1, u64::MAX] {
        says(
            &refused(|tasks, _, _| tasks[0].seconds = seconds),
            &["EB-BAG-001", "duration", "\"a\""],
        );
    }
    says(
        &refused(|tasks, _, _| tasks[0].memory_mb = u64::MAX),
        &["EB-BAG-001", "memory"],
    );
    says(
        &refused(|_, types, _| types[0].memory_mb = 0),
        &["EB-BAG-001", "memory"],
    );
    says(
        &refused(|_, types, _| types[0].vcpus = 0),
        &["EB-BAG-001", "vCPUs"],
    );
    says(
        &refused(|_, types, _| types[0].vcpus = u32::MAX),
        &["EB-BAG-001", "vCPUs"],
    );
    says(
        &refused(|_, _, rules| rules.deadline = u64::MAX),
        &["EB-BAG-001", "deadline"],
    );
    says(
        &refused(|_, _, rules| rules.slot = 0),
        &["EB-BAG-001", "slot"],
    );
    says(
        &refused(|_, _, rules| rules.period = 0),
        &["EB-BAG-001", "period"],
    );
    says(
        &refused(|_, _, rules| rules.boot = u64::MAX),
        &["EB-BAG-001", "boot"],
    );
    says(
        &refused(|_, _, rules| rules.margin = rules.deadline),
        &["EB-BAG-001", "margin"],
    );
    for (interval, cost) in [(0, 0), (u64::MAX, 0), (10, 11)] {
        let told = refused(|tasks, _, _| {
            tasks[0].checkpoints = Some(Checkpoints { interval, cost });
        });
        says(&told, &["EB-BAG-001", "checkpoint"]);
    }
}

#[test]
fn the_largest_numbers_that_are_allowed_do_not_overflow() {
    let tasks = (0..40)
        .map(|at| Task {
            seconds: LONGEST,
            memory_mb: 1 << 30,
            ..task(&format!("t{at}"))
        })
        .collect();
    let large = InstanceType {
        memory_mb: 1 << 30,
        on_demand: Some(Money::from_micros(u64::MAX)),
        preemptible: Some(Money::from_micros(u64::MAX)),
        ..ty("v")
    };
    let rules = Rules {
        deadline: LONGEST,
        slot: 1,
        ..Rules::default()
    };
    let bag = Bag::new(tasks, vec![large], rules).unwrap();
    let plan = plan(&bag, Effort::Search { rounds: 5, seed: 1 });
    assert_eq!(plan.flaw(&bag), None);
    assert!(simulate(&bag, &plan, &Scenario::default()).unwrap().met);
}

#[test]
fn fleets_that_are_too_small_or_too_large_are_refused() {
    let bag = good();
    for (fleet, says) in [
        (vec![], "fits on none"),
        (vec![(0, 3)], "more instances than tasks"),
        (vec![(7, 1)], "no type 7"),
    ] {
        let error = plan_on(&bag, &fleet).unwrap_err();
        assert_eq!(error.code(), "EB-BAG-010");
        assert!(error.to_string().contains(says), "{error}");
    }
    let long = Rules {
        deadline: 5400,
        ..rules()
    };
    let tasks = (0..3).map(|at| task(&at.to_string())).collect();
    let bag = Bag::new(tasks, vec![ty("v")], long).unwrap();
    let error = plan_on(&bag, &[(0, 1)]).unwrap_err();
    assert!(
        error.to_string().contains("would end after 7200 s"),
        "{error}"
    );
}

#[test]
fn price_traces_that_do_not_rise_in_time_are_refused() {
    let price = Money::from_micros(1);
    for points in [
        vec![],
        vec![(5, price), (5, price)],
        vec![(5, price), (4, price)],
    ] {
        let error = PriceTrace::new("v", points).unwrap_err();
        assert_eq!(error.code(), "EB-BAG-009");
        assert!(error.to_string().contains('v'), "{error}");
    }
}

#[test]
fn outages_that_cannot_be_are_refused() {
    let bag = good();
    let plan = plan(&bag, Effort::Greedy);
    for outage in [
        Outage {
            vm: 99,
            from: 5,
            end: OutageEnd::Never,
        },
        Outage {
            vm: 0,
            from: 5,
            end: OutageEnd::Resumes(4),
        },
    ] {
        let scenario = Scenario {
            outages: vec![outage],
            ..Scenario::default()
        };
        let error = simulate(&bag, &plan, &scenario).unwrap_err();
        assert_eq!(error.code(), "EB-BAG-008");
    }
}

#[test]
fn events_that_cannot_be_are_refused_and_repeated_ones_change_nothing() {
    let bag = good();
    let plan = plan(&bag, Effort::Greedy);
    let (mut executor, begun) = Executor::begin(&bag, &plan, ExecutionPolicy::default());
    assert_eq!(begun.len(), plan.vms.len());
    let vm = VmId::Primary(0);
    let code = |result: Result<_, BagError>| result.map(|_: Vec<_>| ()).unwrap_err().code();
    assert_eq!(
        code(executor.on(0, BagEvent::Started(VmId::Primary(9)))),
        "EB-BAG-008"
    );
    assert_eq!(
        code(executor.on(0, BagEvent::Finished { task: 9, vm })),
        "EB-BAG-008"
    );
    let runs = executor.on(10, BagEvent::Started(vm)).unwrap();
    assert!(!runs.is_empty());
    assert_eq!(code(executor.on(9, BagEvent::Time)), "EB-BAG-008");
    for again in [
        BagEvent::Started(vm),
        BagEvent::Resumed(vm),
        BagEvent::Hibernated(VmId::Backup(0)),
        BagEvent::Interrupted(VmId::Backup(0)),
    ] {
        assert_eq!(executor.on(10, again).unwrap(), [], "{again:?}");
    }
    executor.on(11, BagEvent::Finished { task: 0, vm }).unwrap();
    assert_eq!(
        executor.on(11, BagEvent::Finished { task: 0, vm }).unwrap(),
        []
    );
}
