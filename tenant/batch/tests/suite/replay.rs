//! Replays on on-demand servers.

use ebbtide_batch::{
    Book, BookEntry, Fact, ReplayRules, ServersCost, WorkBook, report, servers_cost,
};
use ebbtide_burst::{InstanceHistory, LifeEnd};
use serde_json::json;

/// A work of two stages whose members took so long, seconds.
fn book(map: &[i64], join: i64) -> Book {
    let document = json!({"name": "w", "dir": "/d", "stages": [
        {"name": "map", "command": "true", "count": map.len(), "cpus": 1, "memory_mb": 100},
        {"name": "join", "command": "true", "after": ["map"], "cpus": 2, "memory_mb": 100}]});
    let mut book = Book::default();
    let mut apply = |at: i64, fact: Fact| book.apply(&BookEntry { at, work: 1, fact }).unwrap();
    apply(0, Fact::Submitted { document });
    let members = map
        .iter()
        .enumerate()
        .map(|(index, took)| (0, index, *took));
    for (stage, index, took) in members.chain([(1, 0, join)]) {
        let began = 1_000;
        apply(
            began,
            Fact::Started {
                stage,
                index,
                attempt: 1,
                node: "p1".to_owned(),
                server_type: "spot".to_owned(),
                preemptible: true,
                hourly: 100_000,
                share: if stage == 0 { 0.5 } else { 1.0 },
                from: 0,
            },
        );
        apply(
            began,
            Fact::Running {
                stage,
                index,
                attempt: 1,
                since: began,
            },
        );
        let end = began + took * 1_000;
        let how = ebbtide_batch::AttemptEnd::Done;
        apply(
            end,
            Fact::Ended {
                stage,
                index,
                attempt: 1,
                end,
                how,
                saved: 0,
            },
        );
    }
    book
}

fn rules(most: usize) -> ReplayRules {
    ReplayRules {
        vcpus: 2,
        memory_mb: 4_000,
        hourly: 300_000,
        most,
        boot: 10_000,
        spare: 5_000,
    }
}

#[test]
fn the_same_members_on_on_demand_servers_take_their_time_and_cost() {
    let book = book(&[60, 60, 60], 30);
    let made = ebbtide_batch::replay(&book.works[&1], &rules(8), 0);
    // Two servers at once, each after ten seconds; the stage after them on the one that is there.
    assert_eq!((made.makespan, made.servers), (100_000, 2));
    // 10 + 60 + 30 s, and 10 + 60 s with 5 s as a spare; 0.30 an hour.
    assert!(
        (made.cost as i64 - 300_000 * 170 / 3_600).abs() < 600,
        "{made:?}"
    );
    let narrow = ebbtide_batch::replay(&book.works[&1], &rules(1), 0);
    // Two at a time, then one, then the last stage.
    assert_eq!((narrow.makespan, narrow.servers), (160_000, 1));
}

#[test]
fn a_report_compares_whole_servers_once_all_is_done() {
    let book = book(&[60, 60], 30);
    let life = server("p1", 0, Some(100_000), 100_000);
    let paid = servers_cost(&book.works, [&life], 200_000)[&1];
    let made = report(&book.works[&1], 200_000, paid, Some(&rules(8)), 0);
    assert_eq!(
        (made.state.as_str(), made.done, made.useful_ms),
        ("done", 3, 150_000)
    );
    // (60 / 2 + 60 / 2 + 30) s at 0.10 an hour of 100 s that are paid.
    assert_eq!((made.cost_micros, made.preemptible_micros), (2_500, 2_500));
    assert_eq!((made.servers, made.servers_micros), (1, 2_777));
    let other = made.on_demand.unwrap();
    // The same parts at 0.30; 10 s of boot and 90 s of work, whole.
    assert_eq!((other.cost_micros, other.servers_micros), (7_500, 8_333));
    let ratio = other.cost_ratio.unwrap();
    assert!((ratio - 3.0).abs() < 1e-2, "{ratio}");
    assert_eq!(made.overhead, 0.0);
}

#[test]
fn an_open_work_has_no_ratio_yet() {
    let mut book = book(&[60, 60], 30);
    book.works.get_mut(&1).unwrap().members[1][0].done = false;
    let made = report(
        &book.works[&1],
        200_000,
        ServersCost::default(),
        Some(&rules(8)),
        0,
    );
    assert_eq!(made.on_demand.unwrap().cost_ratio, None);
}

#[test]
fn a_server_is_divided_by_use_and_one_without_use_among_open_works() {
    // Work 1 runs until 151 s; a second one has a single member, which runs there for 30 s.
    let mut book = book(&[60, 60], 30);
    let second = self::book(&[60], 30).works[&1].clone();
    let mut second = WorkBook {
        submitted: 50_000,
        ..second
    };
    for member in second.members.iter_mut().flatten() {
        member.attempts[0].node = "p2".to_owned();
    }
    book.works.insert(2, second);
    let servers = [
        // Used by work 1 alone.
        server("p1", 0, Some(100_000), 3_600_000),
        // An earlier server of the same name, which ended before: no attempt used it.
        server("p2", -50_000, Some(-10_000), 3_600_000),
        // Used by work 2 alone.
        server("p2", 0, Some(100_000), 3_600_000),
        // Never came up, while both were open.
        server("p3", 55_000, Some(60_000), 3_600_000),
    ];
    let costs = servers_cost(&book.works, &servers, 200_000);
    // 1,000 millionths a second. Uses: 90 s and 60 s, which divide the 5 s of p3.
    assert_eq!((costs[&1].servers, costs[&2].servers), (1, 1));
    assert!((costs[&1].micros - 103_000.0).abs() < 1.0, "{costs:?}");
    assert!((costs[&2].micros - 102_000.0).abs() < 1.0, "{costs:?}");
}

fn server(node: &str, launch: i64, end: Option<i64>, hourly: u64) -> InstanceHistory {
    let mut made = InstanceHistory::new(node.to_owned(), launch, hourly);
    made.end = end.map(|end| (end, LifeEnd::Released));
    made
}

#[test]
fn an_attempt_costs_each_part_of_its_time_at_the_price_of_that_hour() {
    let document = json!({"name": "w", "dir": "/d", "command": "true", "cpus": 1});
    let mut book = Book::default();
    let mut apply = |at: i64, fact: Fact| book.apply(&BookEntry { at, work: 1, fact }).unwrap();
    apply(0, Fact::Submitted { document });
    apply(
        0,
        Fact::Started {
            stage: 0,
            index: 0,
            attempt: 1,
            node: "p1".to_owned(),
            server_type: "spot".to_owned(),
            preemptible: true,
            hourly: 3_600_000,
            share: 0.5,
            from: 0,
        },
    );
    let (stage, index, attempt) = (0, 0, 1);
    let price = |since, hourly| Fact::Price {
        stage,
        index,
        attempt,
        since,
        hourly,
    };
    // Another hour begins before it runs: that is its price.
    apply(5_000, price(4_000, 7_200_000));
    let since = 10_000;
    apply(
        since,
        Fact::Running {
            stage,
            index,
            attempt,
            since,
        },
    );
    // Heard of late, it counts from its begin on.
    apply(45_000, price(40_000, 3_600_000));
    let (end, how, saved) = (50_000, ebbtide_batch::AttemptEnd::Done, 0);
    apply(
        end,
        Fact::Ended {
            stage,
            index,
            attempt,
            end,
            how,
            saved,
        },
    );
    // Half of 30 s at 2,000 and of 10 s at 1,000 millionths a second.
    assert_eq!(book.works[&1].spent(60_000), 30_000 + 5_000);
    assert_eq!(book.works[&1].spent(i64::MAX), 35_000);
}
