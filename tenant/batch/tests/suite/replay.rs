//! Replays on on-demand servers.

use ebbtide_batch::{Book, BookEntry, Fact, ReplayRules, report};
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
fn a_report_counts_parts_of_servers_on_both_sides() {
    let book = book(&[60, 60], 30);
    let made = report(&book.works[&1], 200_000, Some(&rules(8)), 0);
    assert_eq!(
        (made.state.as_str(), made.done, made.useful_ms),
        ("done", 3, 150_000)
    );
    // (60 / 2 + 60 / 2 + 30) s at 0.10 and at 0.30 an hour.
    assert_eq!((made.cost_micros, made.preemptible_micros), (2_500, 2_500));
    let other = made.on_demand.unwrap();
    assert_eq!(other.cost_micros, 7_500);
    assert!((other.cost_ratio - 3.0).abs() < 1e-9);
    assert_eq!(made.overhead, 0.0);
}
