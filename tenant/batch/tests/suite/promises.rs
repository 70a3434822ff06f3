//! What the controller promises, whatever goes wrong.

use crate::run::Run;
use crate::sim::TICK;
use ebbtide_batch::MemberId;
use proptest::prelude::*;
use serde_json::{Value, json};

fn bag(count: usize, more: &[(&str, Value)]) -> Value {
    let mut work = json!({"name": "bag", "dir": "/shared/bag", "command": "./render",
        "count": count, "cpus": 2, "memory_mb": 1000, "length": "20s"});
    for (key, value) in more {
        work[key] = value.clone();
    }
    work
}

#[test]
fn a_job_runs_on_a_preemptible_server_and_the_server_is_given_back() {
    let mut run = Run::new();
    let work = run.submit(bag(1, &[]));
    run.until_over(work);
    assert_eq!(run.state(work), "done");
    assert_eq!(run.sim.most_servers, 1);
    assert!(run.sim.used.contains("p1"), "{:?}", run.sim.used);
    // The hot spare goes after ten seconds.
    for _ in 0..60 {
        run.step(true);
    }
    assert_eq!(run.sim.servers(), 0);
}

#[test]
fn a_bag_gets_as_many_servers_as_there_are_and_needs_no_long_job() {
    let mut run = Run::new();
    let work = run.submit(bag(12, &[]));
    run.until_over(work);
    assert_eq!(run.sim.most_servers, 4);
    assert!(run.sim.used.iter().all(|node| node.starts_with('p')));
    let book = &run.controller.book().works[&work];
    assert!(book.spent(run.sim.now) > 0);
}

#[test]
fn stages_run_after_those_that_they_wait_for() {
    let mut run = Run::new();
    let stage = |name: &str, count: usize, after: &[&str]| json!({"name": name, "command": "true", "count": count, "after": after, "cpus": 1});
    let work = run.submit(json!({"name": "flow", "dir": "/shared/flow",
        "stages": [stage("split", 1, &[]), stage("map", 6, &["split"]), stage("join", 1, &["map"])]}));
    run.until_over(work);
    let book = &run.controller.book().works[&work];
    let begin = |stage: usize| {
        let runs = book.members[stage]
            .iter()
            .map(|one| one.attempts[0].running.unwrap());
        runs.min().unwrap()
    };
    let end = |stage: usize| {
        let ends = book.members[stage]
            .iter()
            .map(|one| one.attempts[0].end.unwrap().0);
        ends.max().unwrap()
    };
    assert!(begin(1) >= end(0) && begin(2) >= end(1), "{book:?}");
}

#[test]
fn a_full_cloud_lets_a_deadline_be_met_on_on_demand_servers() {
    let mut run = Run::new();
    run.sim.full = true;
    let work = run.submit(bag(2, &[("deadline", json!("3m"))]));
    let took = run.until_over(work);
    assert!(took <= 180_000, "{took}");
    assert!(run.sim.used.iter().all(|node| node.starts_with('d')));
    // Not before it had to be.
    assert!(took > 60_000, "{took}");
}

#[test]
fn a_copy_meets_the_deadline_that_a_server_taken_at_the_last_moment_would_break() {
    let mut run = Run::new();
    let work = run.submit(bag(
        1,
        &[("deadline", json!("100s")), ("length", json!("40s"))],
    ));
    let member = MemberId { stage: 0, index: 0 };
    run.sim.lengths.insert((work, member), 46_000);
    let begin = run.sim.now;
    while run.sim.now < begin + 52_000 {
        run.step(true);
    }
    run.sim.take(0, false);
    run.until_over(work);
    let book = &run.controller.book().works[&work];
    let took = book.last_end.unwrap() - begin;
    assert!(took <= 100_000, "{took}: {:#?}", book.member(member));
    assert_eq!(run.sim.ended[&(work, member)], 1);
}

#[test]
fn a_member_that_waited_for_too_long_gets_an_on_demand_server() {
    let mut run = Run::new();
    run.sim.full = true;
    let work = run.submit(bag(1, &[("max_wait", json!("30s"))]));
    let took = run.until_over(work);
    assert!((50_000..120_000).contains(&took), "{took}");
}

#[test]
fn a_server_with_notice_loses_no_work_of_a_member_that_saves() {
    let mut run = Run::new();
    run.sim.saves = true;
    let checkpoint = json!({"command": "./save", "cost": "1s"});
    let work = run.submit(bag(
        1,
        &[("checkpoint", checkpoint), ("length", json!("60s"))],
    ));
    let member = MemberId { stage: 0, index: 0 };
    run.sim.lengths.insert((work, member), 60_000);
    for _ in 0..60 {
        run.step(true);
    }
    run.sim.take(0, true);
    run.until_over(work);
    let one = run.controller.book().works[&work].member(member);
    assert_eq!(one.attempts.len(), 2, "{one:?}");
    assert!(one.attempts[1].from > 15_000, "{one:?}");
    assert_eq!(one.length(), Some(60_000), "{one:?}");
}

#[test]
fn a_member_that_ends_before_its_server_works_on_through_a_notice() {
    let mut run = Run::new();
    let work = run.submit(bag(1, &[]));
    let member = MemberId { stage: 0, index: 0 };
    run.sim.lengths.insert((work, member), 20_000);
    let ran = |run: &Run| {
        let one = run.controller.book().works[&work].member(member);
        let running = one.attempts.first().and_then(|attempt| attempt.running);
        running.map_or(0, |since| run.sim.now - since)
    };
    // Five of twenty seconds are left, and its server has eight.
    while ran(&run) < 15_000 {
        run.step(true);
    }
    run.sim.take(0, true);
    run.until_over(work);
    let one = run.controller.book().works[&work].member(member);
    assert!(one.done && one.attempts.len() == 1, "{one:?}");
}

#[test]
fn a_member_that_fails_is_given_up_and_the_others_are_done() {
    let mut run = Run::new();
    let work = run.submit(bag(6, &[("retries", json!(1))]));
    let member = MemberId { stage: 0, index: 2 };
    run.sim.failing.insert((work, member));
    run.until_over(work);
    assert_eq!(run.state(work), "failed");
    let book = &run.controller.book().works[&work];
    assert_eq!(book.member(member).attempts.len(), 2);
    assert_eq!(book.counts(), (5, 0, 1));
    assert_eq!(run.problems, ["EB-BATCH-009"]);
}

#[test]
fn a_budget_used_up_stops_the_work_and_a_higher_one_lets_it_go_on() {
    let mut run = Run::new();
    // 0.10 an hour: a member of 20 s costs 0.000556.
    let work = run.submit(bag(6, &[("budget", json!("0.001"))]));
    for _ in 0..400 {
        run.step(true);
    }
    assert_eq!(run.state(work), "over-budget");
    assert_eq!(run.sim.servers(), 0);
    // What was started could be paid: one member, and none that was stopped.
    let book = &run.controller.book().works[&work];
    assert_eq!(book.counts().0, 1);
    assert!(
        book.spent(run.sim.now) <= 1_000,
        "{}",
        book.spent(run.sim.now)
    );
    assert!(
        run.problems
            .iter()
            .filter(|code| *code == "EB-BATCH-006")
            .count()
            == 1
    );
    let entry = run.controller.set_budget(run.sim.now, work, None).unwrap();
    run.book.push(entry);
    run.until_over(work);
    assert_eq!(run.state(work), "done");
}

#[test]
fn a_cancelled_work_ends_its_jobs_and_leaves_no_server() {
    let mut run = Run::new();
    let work = run.submit(bag(6, &[]));
    for _ in 0..40 {
        run.step(true);
    }
    let entry = run.controller.cancel(run.sim.now, work).unwrap();
    run.book.push(entry);
    for _ in 0..80 {
        run.step(true);
    }
    assert_eq!(run.state(work), "cancelled");
    assert_eq!(run.sim.servers(), 0);
    assert!(run.controller.cancel(run.sim.now, work).is_err());
}

#[test]
fn what_finished_members_took_counts_for_the_rest() {
    let mut run = Run::new();
    let work = run.submit(bag(8, &[("length", json!("5m"))]));
    run.until_over(work);
    let book = &run.controller.book().works[&work];
    let estimate = ebbtide_batch::LengthEstimate::of(book, 0, 60_000, 0.2);
    assert_eq!((estimate.expected, estimate.safe), (20_000, 360_000));
}

#[test]
fn nodes_that_never_come_up_are_reported_and_no_server_is_left_behind() {
    let mut run = Run::new();
    run.sim.broken = true;
    let work = run.submit(bag(1, &[]));
    for _ in 0..200 {
        run.step(true);
    }
    assert_eq!(run.state(work), "active");
    let entry = run.controller.cancel(run.sim.now, work).unwrap();
    run.book.push(entry);
    for _ in 0..300 {
        run.step(true);
    }
    assert_eq!(run.sim.servers(), 0);
}

#[test]
fn a_single_member_that_saves_goes_on_demand_late_and_back_when_it_pays() {
    let mut run = Run::new();
    run.sim.saves = true;
    let checkpoint = json!({"command": "./save", "cost": "1s"});
    let more = [
        ("checkpoint", checkpoint),
        ("length", json!("10m")),
        ("deadline", json!("20m")),
    ];
    let work = run.submit(bag(1, &more));
    let member = MemberId { stage: 0, index: 0 };
    run.sim.lengths.insert((work, member), 600_000);
    let begin = run.sim.now;
    // There is no preemptible server for eight minutes, then there is.
    run.sim.full = true;
    while run.sim.now < begin + 480_000 {
        run.step(true);
    }
    let early = run.controller.book().works[&work].member(member).clone();
    run.sim.full = false;
    let took = run.until_over(work) + 480_000;
    assert!(took <= 1_200_000, "{took}");
    let one = run.controller.book().works[&work].member(member);
    let waited = early
        .attempts
        .first()
        .map_or(480_000, |first| first.started - begin);
    assert!(waited > 60_000, "on demand at once: {early:?}");
    assert!(one.attempts.iter().any(|one| one.preemptible), "{one:#?}");
    assert_eq!(run.sim.ended[&(work, member)], 1);
}

/// What happens between two looks.
#[derive(Debug, Clone, Copy)]
enum Happens {
    Nothing(u8),
    Taken(usize, bool),
    Full(bool),
    Restart,
    ActionsLost,
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        8 => (1..40u8).prop_map(Happens::Nothing),
        4 => (0..4usize, any::<bool>()).prop_map(|(at, notice)| Happens::Taken(at, notice)),
        1 => any::<bool>().prop_map(Happens::Full),
        1 => Just(Happens::Restart),
        1 => Just(Happens::ActionsLost),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_member_is_done_once_before_the_deadline_and_no_server_is_left(
        saves in any::<bool>(),
        count in 1..14usize,
        lengths in proptest::collection::vec(2..46i64, 14),
        slack in 0..300i64,
        events in proptest::collection::vec(happens(), 0..60),
    ) {
        let mut run = Run::new();
        run.sim.saves = saves;
        // The least that can be promised: all of it on two on-demand servers, with the reserves,
        // and what lost actions and looks half a second apart cost each member.
        let safe = 40 * 12 / 10;
        let rounds = (count as i64 - 1) / 2 + 1;
        let deadline = safe * rounds + safe + 8 + 13 + 20 * rounds + slack;
        let mut more = vec![("deadline", json!(deadline)), ("length", json!("40s"))];
        if saves {
            more.push(("checkpoint", json!({"command": "./save", "cost": "1s"})));
        }
        let work = run.submit(bag(count, &more));
        for (index, seconds) in lengths.iter().enumerate().take(count) {
            let member = MemberId { stage: 0, index };
            run.sim.lengths.insert((work, member), seconds.min(&46) * 1_000);
        }
        let begin = run.sim.now;
        for event in events {
            match event {
                Happens::Nothing(ticks) => (0..ticks).for_each(|_| run.step(true)),
                Happens::Taken(at, notice) => run.sim.take(at, notice),
                Happens::Full(full) => run.sim.full = full,
                Happens::Restart => run.restart(),
                Happens::ActionsLost => run.step(false),
            }
        }
        run.until_over(work);
        prop_assert_eq!(run.state(work), "done");
        let book = &run.controller.book().works[&work];
        let took = book.last_end.unwrap() - begin;
        prop_assert!(took <= deadline * 1_000 + TICK, "{} of {} s", took / 1_000, deadline);
        for index in 0..count {
            let key = (work, MemberId { stage: 0, index });
            prop_assert_eq!(run.sim.ended.get(&key), Some(&1));
        }
        for _ in 0..200 {
            run.step(true);
        }
        prop_assert_eq!(run.sim.servers(), 0);
        let spent = run.controller.book().works[&work].spent(run.sim.now);
        prop_assert!(spent > 0);
    }
}
