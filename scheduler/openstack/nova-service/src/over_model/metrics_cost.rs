//! What the page of metrics costs in a large cloud. Nova's database is SQLite, and the servers are
//! put into memory without rows; what is timed is what a scrape does.

#![allow(clippy::print_stdout, reason = "a measurement")]

use super::Bench;
use crate::metrics::Metrics;
use crate::pages::metrics_text;
use ebbtide_runtime::clock::Stopwatch;
use uuid::Uuid;

/// Hosts of the clouds, and servers of each host.
const HOSTS: [i64; 3] = [100, 1_000, 4_000];
const SERVERS: i64 = 10;
/// Every fourth server is preemptible: of one of so many projects, with one of so many flavors.
const PROJECTS: i64 = 20;
const FLAVORS: i64 = 5;
const SCRAPES: usize = 9;

#[tokio::test]
#[ignore = "measures: cargo test -p ebbtide-nova-service metrics_page -- --ignored --nocapture"]
async fn what_the_metrics_page_costs() {
    for hosts in HOSTS {
        let bench = Bench::of_hosts(hosts).await;
        bench
            .nova
            .add_instance(1, "compute1", "2026-01-01 00:00:00")
            .await;
        bench.selector.facts.database.load().await.unwrap();
        let facts = &bench.selector.facts;
        let first: Uuid = ebbtide_nova_databases::instance_uuid(1).parse().unwrap();
        let model = facts.read(|cloud| cloud.instance(first).cloned());
        let model = model.expect("the instance that was added");
        facts.write(|cloud| {
            for n in 0..hosts * SERVERS {
                let mut server = model.clone();
                server.uuid = ebbtide_runtime::ids::new();
                let host = 1 + n / SERVERS;
                server.host = Some(format!("compute{host}"));
                server.node = Some(format!("node{host}"));
                match n % 4 {
                    0 => {
                        server.project_id = format!("project-{}", n / 4 % PROJECTS);
                        server.flavor.name = format!("spot-{}", n / 4 / PROJECTS % FLAVORS);
                    }
                    _ => server.flavor.extra_specs = None,
                }
                cloud.put_instance(server);
            }
        });
        let metrics = Metrics::default();
        let selector = &bench.selector;
        let (mut times, mut page) = (Vec::new(), String::new());
        for _ in 0..SCRAPES {
            let watch = Stopwatch::start();
            page = metrics_text(facts, &metrics, &selector.preempting, &selector.market);
            times.push(watch.elapsed());
        }
        times.sort_unstable();
        let series = page.lines().filter(|line| !line.starts_with('#')).count();
        println!(
            "{hosts} hosts, {} servers: {:.1} ms (median of {SCRAPES}, longest {:.1}), {series} series, {} bytes",
            hosts * SERVERS,
            times[SCRAPES / 2].as_secs_f64() * 1e3,
            times[SCRAPES - 1].as_secs_f64() * 1e3,
            page.len()
        );
    }
}
