//! What recording costs: the CPU time of this process for the same requests with and without it.
//! Placement is in the process and Nova's database is SQLite, so that a request here costs less
//! than on a real stack, where `bench-openstack` measures it.

#![allow(clippy::print_stdout, reason = "a measurement")]

use super::{Bench, LONG, newcomer};
use crate::Tasks;
use crate::decisions::{DecisionOptions, Decisions};
use crate::metrics::Metrics;
use ebbtide_harness::SharedServers;
use ebbtide_runtime::clock::Stopwatch;
use ebbtide_store::{DecisionFilter, DecisionStore, StoreConfig};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const HOSTS: i64 = 1000;
/// Requests of one round.
const REQUESTS: u128 = 200;
const ROUNDS: u128 = 3;

/// CPU time of this process, user and system, in microseconds.
fn cpu() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let behind_name = stat.rsplit(')').next().unwrap();
    let fields: Vec<u64> = behind_name
        .split_whitespace()
        .map(|field| field.parse().unwrap_or(0))
        .collect();
    // utime and stime, in hundredths of a second.
    (fields[11] + fields[12]) * 10_000
}

/// CPU and time of one request, in microseconds, the median time last.
async fn round(bench: &Bench, number: u128) -> (u64, Duration) {
    // Heartbeats grow old meanwhile; the first request reads the new ones.
    let up = "UPDATE services SET last_seen_up = datetime('now', '+50 seconds')";
    bench.nova.cell.sql(up).await;
    bench.ask(newcomer(1_000_000 + number), 1).await.unwrap();
    let before = cpu();
    let mut times = Vec::new();
    for n in 0..REQUESTS {
        let watch = Stopwatch::start();
        bench
            .ask(newcomer(1 + number * REQUESTS + n), 1)
            .await
            .unwrap();
        times.push(watch.elapsed());
    }
    times.sort_unstable();
    let spent = cpu() - before;
    (spent, times[times.len() / 2])
}

#[tokio::test]
#[ignore = "a measurement: cargo test --release recording_costs -- --ignored --nocapture"]
async fn what_recording_costs() {
    let database = SharedServers::mariadb().await.expect("a MariaDB server");
    let mut bench = Bench::of_hosts(HOSTS).await;
    round(&bench, 0).await;
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for number in 0..ROUNDS {
        bench.selector.decisions = Decisions::default();
        without.push(round(&bench, 1 + 2 * number).await);

        let tasks = Tasks::new(CancellationToken::new());
        let options = DecisionOptions {
            store: StoreConfig::new(database.url()).unwrap(),
            scheduler: "scheduler-1".to_owned(),
            keep: None,
            queue: 1000,
        };
        let facts = bench.selector.facts.clone();
        let decisions = Decisions::start(Some(options), &facts, &tasks, &Metrics::default());
        while decisions.store().is_none() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        bench.selector.decisions = decisions;
        let before = cpu();
        let (_, median) = round(&bench, 2 + 2 * number).await;
        tasks.stop().cancel();
        bench.selector.decisions.finish();
        assert!(tasks.finish(LONG).await);
        with.push((cpu() - before, median));
    }
    let per_request = |rounds: &mut Vec<(u64, Duration)>| {
        rounds.sort_unstable();
        let (spent, median) = rounds[rounds.len() / 2];
        (spent as f64 / REQUESTS as f64, median)
    };
    let (off, off_time) = per_request(&mut without);
    let (on, on_time) = per_request(&mut with);
    println!("{HOSTS} hosts, {ROUNDS} rounds of {REQUESTS} requests, the median round:");
    println!("  not recorded: {off:.0} us of CPU for a request, answered in {off_time:?}");
    println!("  recorded:     {on:.0} us of CPU for a request, answered in {on_time:?}");
    let config = StoreConfig::new(database.url()).unwrap();
    let store = DecisionStore::open(&config).await.unwrap();
    let last = DecisionFilter {
        limit: 1,
        ..DecisionFilter::default()
    };
    let record = store.decisions(&last).await.unwrap().remove(0);
    let bytes = serde_json::to_string(&record).unwrap().len();
    println!("  a record:     {:.0} us of CPU, {bytes} bytes", on - off);
    println!("{}", serde_json::to_string_pretty(&record).unwrap());
}
