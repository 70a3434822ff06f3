//! Small stories, reckoned by hand: who runs what when, and who pays what.

use ebbtide_bag::simulate::{
    BarEnd, Outage, OutageEnd, PlanRun, PriceTrace, Prices, Scenario, simulate,
};
use ebbtide_bag::{
    Bag, BagAction, BagEvent, Checkpoints, Effort, ExecutionPolicy, Executor, InstanceType,
    OnHibernation, Rules, Task, VmId, plan,
};
use ebbtide_model::Money;

const HOUR: u64 = 3600;

/// One task of four hours with a deadline of ten, on one type: 0.10 on demand, 0.03 preemptible.
fn bag(checkpoints: Option<Checkpoints>) -> Bag {
    let task = Task {
        name: "a".to_owned(),
        seconds: 4 * HOUR,
        memory_mb: 1,
        checkpoints,
    };
    let ty = InstanceType {
        name: "v".to_owned(),
        vcpus: 1,
        memory_mb: 1,
        on_demand: Some(Money::from_micros(100_000)),
        preemptible: Some(Money::from_micros(30_000)),
        slowdown: 1.0,
    };
    let rules = Rules {
        deadline: 10 * HOUR,
        ..Rules::default()
    };
    Bag::new(vec![task], vec![ty], rules).unwrap()
}

fn run(bag: &Bag, outages: Vec<Outage>, policy: ExecutionPolicy, prices: Prices) -> PlanRun {
    let plan = plan(bag, Effort::Greedy);
    let scenario = Scenario {
        outages,
        prices,
        policy,
    };
    simulate(bag, &plan, &scenario).unwrap()
}

fn asleep(from: u64, to: u64) -> Outage {
    Outage {
        vm: 0,
        from: from * HOUR,
        end: OutageEnd::Resumes(to * HOUR),
    }
}

#[test]
fn a_hibernation_that_ends_in_time_costs_nothing_but_time() {
    let run = run(
        &bag(None),
        vec![asleep(1, 3)],
        ExecutionPolicy::default(),
        Prices::default(),
    );
    // Six hours, of which four were used; the backup's latest start is after six.
    assert_eq!(
        (run.makespan, run.price, run.backups),
        (6 * HOUR, 120_000, 0)
    );
    assert_eq!(run.instances[0].frozen, [(HOUR, 3 * HOUR)]);
    assert_eq!(run.instances[0].slots, 4);
}

#[test]
fn what_is_used_before_and_after_a_hibernation_is_rounded_up_once() {
    let half = Outage {
        vm: 0,
        from: HOUR / 2,
        end: OutageEnd::Resumes(HOUR),
    };
    let run = run(
        &bag(None),
        vec![half],
        ExecutionPolicy::default(),
        Prices::default(),
    );
    assert_eq!((run.instances[0].slots, run.price), (4, 120_000));
}

#[test]
fn an_instance_that_runs_after_the_latest_start_has_a_copy_and_the_first_that_is_done_wins() {
    // Frozen from 1 to 4 h: it would be done after 7 h. At 6 h the copy starts, and is dropped an
    // hour later.
    let insured = run(
        &bag(None),
        vec![asleep(1, 4)],
        ExecutionPolicy::default(),
        Prices::default(),
    );
    assert_eq!(
        (insured.makespan, insured.backups, insured.moved),
        (7 * HOUR, 1, 0)
    );
    assert_eq!(insured.price, 120_000 + 100_000);
    let copy = &insured.instances[1];
    assert_eq!(
        (copy.from, copy.to, copy.bars[0].end),
        (6 * HOUR, 7 * HOUR, BarEnd::Cancelled)
    );
    // Asleep again from 6 h on, and once more: the copy is there.
    let again = vec![asleep(1, 4), asleep(6, 9), asleep(9, 20)];
    let kept = run(
        &bag(None),
        again,
        ExecutionPolicy::default(),
        Prices::default(),
    );
    assert_eq!((kept.met, kept.makespan, kept.moved), (true, 10 * HOUR, 1));
}

#[test]
fn without_copies_a_hibernation_after_the_latest_start_breaks_the_deadline() {
    let twice = vec![
        asleep(1, 4),
        Outage {
            vm: 0,
            from: 6 * HOUR + 1800,
            end: OutageEnd::Never,
        },
    ];
    let paper = run(
        &bag(None),
        twice.clone(),
        ExecutionPolicy::paper(OnHibernation::Wait),
        Prices::default(),
    );
    assert_eq!((paper.met, paper.makespan), (false, 10 * HOUR + 1800));
    assert!(
        run(
            &bag(None),
            twice,
            ExecutionPolicy::default(),
            Prices::default()
        )
        .met
    );
}

#[test]
fn a_checkpoint_moves_the_latest_start_and_is_where_the_backup_goes_on() {
    // Every hour of work it saves for six minutes: three times, since the end needs none; 4 h 18 m
    // in all.
    let checkpoints = Checkpoints {
        interval: HOUR,
        cost: 360,
    };
    let bag = bag(Some(checkpoints));
    assert_eq!(bag.runtime(0, 0), Some(4 * HOUR + 3 * 360));
    let gone = Outage {
        vm: 0,
        from: 2 * HOUR + 800,
        end: OutageEnd::Never,
    };
    let run = run(
        &bag,
        vec![gone],
        ExecutionPolicy::default(),
        Prices::default(),
    );
    // Two hours are saved after 2 h 12 m. Two hours and one checkpoint are left: the backup starts
    // at 7 h 54 m.
    let backup = &run.instances[1];
    assert_eq!(backup.from, 10 * HOUR - (2 * HOUR + 360));
    assert_eq!((run.makespan, run.met), (10 * HOUR, true));
}

#[test]
fn an_interruption_is_not_waited_out() {
    let gone = Outage {
        vm: 0,
        from: HOUR,
        end: OutageEnd::Interrupted,
    };
    let run = run(
        &bag(None),
        vec![gone],
        ExecutionPolicy::default(),
        Prices::default(),
    );
    assert_eq!((run.makespan, run.price), (5 * HOUR, 30_000 + 400_000));
    assert_eq!(run.instances[0].bars[0].end, BarEnd::Lost);
}

#[test]
fn a_slot_costs_what_the_trace_says_when_it_begins() {
    let trace = PriceTrace::new(
        "v",
        vec![
            (0, Money::from_micros(10_000)),
            (HOUR + 1, Money::from_micros(20_000)),
            (4 * HOUR, Money::from_micros(40_000)),
        ],
    )
    .unwrap();
    let prices = Prices([(0, trace)].into());
    // Slots begin at 0, 1, 2 and 3 h.
    let quiet = run(
        &bag(None),
        Vec::new(),
        ExecutionPolicy::default(),
        prices.clone(),
    );
    assert_eq!(quiet.price, 10_000 + 10_000 + 20_000 + 20_000);
    // Frozen in the second slot, from 1.5 to 3.5 h: the third begins at 4 h, the fourth at 5 h.
    let half = Outage {
        vm: 0,
        from: HOUR + HOUR / 2,
        end: OutageEnd::Resumes(3 * HOUR + HOUR / 2),
    };
    let slept = run(
        &bag(None),
        vec![half],
        ExecutionPolicy::default(),
        prices.clone(),
    );
    assert_eq!(slept.price, 10_000 + 10_000 + 40_000 + 40_000);
    // Above 0.03 instances hibernate.
    let bag = bag(None);
    let outages = prices.outages(&plan(&bag, Effort::Greedy), Money::from_micros(30_000));
    let expected = Outage {
        vm: 0,
        from: 4 * HOUR,
        end: OutageEnd::Never,
    };
    assert_eq!(outages, [expected]);
}

#[test]
fn the_executor_says_what_to_do_and_when_it_wants_to_be_woken() {
    let bag = bag(None);
    let plan = plan(&bag, Effort::Greedy);
    let (mut executor, begin) = Executor::begin(&bag, &plan, ExecutionPolicy::default());
    let (vm, backup) = (VmId::Primary(0), VmId::Backup(0));
    assert_eq!(begin, [BagAction::Launch(vm)]);
    assert_eq!(executor.wake_at(), Some(6 * HOUR));
    let runs = |vm| BagAction::Run {
        task: 0,
        vm,
        core: 0,
        saved: 0,
    };
    assert_eq!(executor.on(0, BagEvent::Started(vm)).unwrap(), [runs(vm)]);
    assert_eq!(executor.on(HOUR, BagEvent::Hibernated(vm)).unwrap(), []);
    assert_eq!(executor.on(6 * HOUR - 1, BagEvent::Time).unwrap(), []);
    assert_eq!(
        executor.on(6 * HOUR, BagEvent::Time).unwrap(),
        [BagAction::Launch(backup)]
    );
    assert_eq!(executor.wake_at(), None);
    assert_eq!(
        executor.on(6 * HOUR, BagEvent::Started(backup)).unwrap(),
        [runs(backup)]
    );
    assert_eq!(executor.on(7 * HOUR, BagEvent::Resumed(vm)).unwrap(), []);
    let done = executor
        .on(10 * HOUR, BagEvent::Finished { task: 0, vm })
        .unwrap();
    let cancel = BagAction::Cancel {
        task: 0,
        vm: backup,
        core: 0,
    };
    assert_eq!(
        done,
        [BagAction::Release(vm), cancel, BagAction::Release(backup)]
    );
    assert!(executor.is_done());
}
