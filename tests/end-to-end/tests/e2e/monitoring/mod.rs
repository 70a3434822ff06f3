//! Dashboards, rules and alerts of `packaging`, against a real Prometheus that scrapes a real
//! region with agents before, during and after a preemption.

mod pictures;
mod prometheus;

use self::prometheus::{Prometheus, encoded, packaging};
use super::command::{ebbtide, run};
use super::kit::{create, evacuations, flavor, request, until};
use ebbtide_harness::{eventually, free_port};
use ebbtide_integration_tests::region::PATIENCE;
use ebbtide_integration_tests::{Region, RegionOptions};
use ebbtide_runtime::task::{self, Task};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Queries that a region has no data for, because only an OpenStack has the feature.
const OPENSTACK_ONLY: [&str; 4] = [
    "min by (flavor, aggregate) (ebbtide_headroom_is_free)",
    "sum by (kind) (increase(ebbtide_ended_servers_total[1h]))",
    "histogram_quantile(0.95, sum by (le) (rate(ebbtide_request_seconds_bucket{kind=\"room\"}[5m])))",
    "max(ebbtide_servers_waiting)",
];

/// Metrics in rules that a region does not have; `scheduler/openstack/nova-service` declares them.
const OPENSTACK_METRICS: [&str; 8] = [
    "ebbtide_claims_total",
    "ebbtide_headroom_is_free",
    "ebbtide_preemptions_total",
    "ebbtide_preemptions_under_way",
    "ebbtide_request_seconds_bucket",
    "ebbtide_requests_total",
    "ebbtide_second_agent_heartbeats_total",
    "ebbtide_unusable_reports_total",
];

/// Metrics in rules that only `ebbtide-batch` has.
const BATCH_METRICS: [&str; 2] = ["ebbtide_batch_faults", "ebbtide_batch_ready"];

/// A region with prices whose two agents show their metrics, and where that is.
async fn region_with_pages() -> (Region, Vec<String>) {
    let hosts = ["host-A", "host-B"].map(str::to_owned).to_vec();
    let mut drivers = BTreeMap::new();
    let mut pages = Vec::new();
    for host in &hosts {
        let page = format!("127.0.0.1:{}", free_port().unwrap());
        let text = format!(
            "[http]\nlisten = \"{page}\"\n[driver]\nkind = \"simulated\"\n[driver.simulated]\n\
             inventory = {{ VCPU = 8, MEMORY_MB = 16000, DISK_GB = 160 }}\n\
             start_seconds = 0.05\nterminate_seconds = 0.05\n"
        );
        drivers.insert(host.clone(), text);
        pages.push(page);
    }
    let options = RegionOptions {
        hosts,
        drivers,
        sections: "[region.market]\nenabled = true\ninterval_seconds = 1\n".to_owned(),
        ..RegionOptions::default()
    };
    let region = Region::start(options).await.unwrap();
    let priced = |price| {
        [
            ("ebbtide:preemptible", "true"),
            ("ebbtide:grace_seconds", "1"),
            ("ebbtide:price_per_hour", price),
        ]
    };
    flavor(&region, "spot", 4, &priced("0.10")).await;
    flavor(&region, "spot.small", 2, &priced("0.04")).await;
    flavor(&region, "pet", 4, &[]).await;
    (region, pages)
}

/// What the node exporter is in a cloud: it serves the file that the audit wrote.
async fn exporter(file: PathBuf) -> (String, Task) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let serving = task::spawn("exporter", async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let body = std::fs::read_to_string(&file).unwrap_or_default();
            let head = "HTTP/1.0 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\n\r\n";
            let mut request = [0; 4096];
            // One that hangs up gets nothing.
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
        }
    });
    (address, serving)
}

/// Fills the region with preemptible servers and lets a normal one take the place of one.
async fn preempt(region: &Region) {
    for (name, flavor, count, project) in [
        ("cattle", "spot", 3, "tests"),
        ("sheep", "spot.small", 2, "farm"),
    ] {
        let mut wanted = request(flavor, count);
        wanted.project_id = project.to_owned();
        let (servers, _) = create(region, name, wanted).await;
        for server in &servers {
            until(region, &server.id, "active").await;
        }
    }
    let (pet, decision) = create(region, "pet", request("pet", 1)).await;
    assert!(
        decision.placements.iter().any(|p| !p.victims.is_empty()),
        "{decision:?}"
    );
    until(region, &pet[0].id, "active").await;
    assert!(!evacuations(region).await.is_empty());
}

/// A normal server comes and goes, and a preemptible one takes its place.
async fn preempt_again(region: &Region, round: u32) {
    let (pet, _) = create(region, &format!("p{round}"), request("pet", 1)).await;
    until(region, &pet[0].id, "active").await;
    let deleted = ebbtide(region, &["server", "delete", &pet[0].id]).await;
    assert_eq!(deleted.code, Some(0), "{}", deleted.text);
    until(region, &pet[0].id, "deleted").await;
    let (cattle, _) = create(region, &format!("c{round}"), request("spot", 1)).await;
    until(region, &cattle[0].id, "active").await;
}

/// The dashboards, by name.
fn dashboards() -> BTreeMap<String, Value> {
    let files = std::fs::read_dir(packaging("grafana")).unwrap();
    let files = files.map(|file| file.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|end| end == "json"));
    let read = |path: PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let json = serde_json::from_str(&std::fs::read_to_string(path).unwrap());
        (name, json.unwrap())
    };
    files.map(read).collect()
}

/// Every query of a dashboard, with the title of its panel.
fn queries(dashboard: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let of_panel = |panel: &Value| -> Vec<(String, String)> {
        let targets = panel["targets"].as_array().unwrap().iter();
        let each = targets.map(|target| (text(&panel["title"]), text(&target["expr"])));
        each.collect()
    };
    panels.flat_map(of_panel).collect()
}

/// Names of Ebbtide's metrics and recorded series in an expression.
fn metrics_in(expression: &str) -> BTreeSet<String> {
    let part = |c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':');
    let words = expression.split(part);
    let ours = words.filter(|word| word.starts_with("ebbtide_") || word.starts_with("ebbtide:"));
    ours.map(str::to_owned).collect()
}

/// Whether a query has a number for at least one series.
async fn has_data(prometheus: &Prometheus, query: &str) -> Result<bool, String> {
    let series = prometheus.query(query).await?;
    let series = series.as_array().ok_or("no list of series")?;
    let number = |one: &Value| one["value"][1].as_str().is_some_and(|value| value != "NaN");
    Ok(series.iter().any(number))
}

/// Waits until each query has data, and names those that never have.
async fn all_have_data(prometheus: &Prometheus, queries: &[(String, String)]) {
    eventually(PATIENCE, async || {
        let mut empty = Vec::new();
        for (place, query) in queries {
            if !has_data(prometheus, query).await? {
                empty.push(format!("{place}: {query}"));
            }
        }
        if empty.is_empty() {
            Ok(())
        } else {
            Err(format!("without data:\n{}", empty.join("\n")))
        }
    })
    .await;
}

#[tokio::test]
async fn every_query_of_dashboards_and_rules_has_data_from_a_region_after_a_preemption() {
    let (region, pages) = region_with_pages().await;
    let file = region.dir().join("ebbtide.prom");
    let written = file.to_string_lossy();
    let audit = run("ebbtide-manage", &region, &["audit", "--metrics", &written]).await;
    assert_eq!(audit.code, Some(0), "{}", audit.text);
    let (audit, _exporter) = exporter(file).await;
    let prometheus = Prometheus::start(&region, &pages, &audit).await;
    preempt(&region).await;

    let dashboards = dashboards();
    assert_eq!(dashboards.len(), 4);
    let mut wanted = Vec::new();
    let mut left_out = BTreeSet::new();
    for (name, dashboard) in &dashboards {
        for (panel, query) in queries(dashboard) {
            if OPENSTACK_ONLY.contains(&query.as_str()) {
                left_out.insert(query);
            } else {
                wanted.push((format!("{name}, {panel}"), query));
            }
        }
    }
    assert_eq!(left_out, OPENSTACK_ONLY.map(str::to_owned).into());

    let rules = prometheus.ask("rules").await.unwrap();
    let groups = rules["groups"].as_array().unwrap().iter();
    let rules: Vec<&Value> = groups
        .flat_map(|group| group["rules"].as_array().unwrap())
        .collect();
    let alerts = rules.iter().filter(|rule| rule["type"] == "alerting");
    assert!(alerts.clone().count() > 15);
    let (mut absent, mut of_batch) = (BTreeSet::new(), BTreeSet::new());
    for rule in &rules {
        let query = rule["query"].as_str().unwrap();
        let name = rule["name"].as_str().unwrap();
        if rule["type"] == "recording" {
            wanted.push((name.to_owned(), name.to_owned()));
            wanted.push((format!("{name} is computed"), query.to_owned()));
        }
        // A healthy region has no series for an alert, but has each metric that an alert reads.
        for metric in metrics_in(query) {
            if BATCH_METRICS.contains(&metric.as_str()) {
                of_batch.insert(metric);
            } else if OPENSTACK_METRICS.contains(&metric.as_str()) {
                absent.insert(metric);
            } else {
                wanted.push((format!("{name} reads"), metric));
            }
        }
    }
    absent.insert("ebbtide_preemptions_total".to_owned()); // Of a dashboard.
    assert_eq!(absent, OPENSTACK_METRICS.map(str::to_owned).into());
    assert_eq!(of_batch, BATCH_METRICS.map(str::to_owned).into());
    all_have_data(&prometheus, &wanted).await;
    a_scrape_is_small(&prometheus).await;
    each_alert_has_a_runbook(&rules);
    a_slow_request_leads_to_its_decision(&region, &prometheus).await;
    if let Some(directory) = std::env::var_os("EBBTIDE_PICTURES") {
        pictures::draw(&region, &prometheus, &dashboards, directory.into()).await;
    }
}

/// The series of a scrape do not grow with hosts, servers or time. The page of the documentation
/// has what this prints.
#[allow(clippy::print_stdout, reason = "figures of the documentation")]
async fn a_scrape_is_small(prometheus: &Prometheus) {
    for (job, most) in [("ebbtide-scheduler", 200.0), ("ebbtide-agent", 30.0)] {
        let query = format!("max(scrape_samples_scraped{{job=\"{job}\"}})");
        let series = prometheus.query(&query).await.unwrap();
        let count: f64 = series[0]["value"][1].as_str().unwrap().parse().unwrap();
        println!("{job}: {count} series");
        assert!(count > 5.0 && count < most, "{job}: {count} series");
    }
}

/// What a region has no data for is at least declared by OpenStack mode.
#[test]
fn each_metric_of_openstack_mode_is_declared_there() {
    let source = include_str!("../../../../../scheduler/openstack/nova-service/src/metrics.rs");
    let queries = OPENSTACK_ONLY.iter().chain(&OPENSTACK_METRICS);
    for metric in queries.flat_map(|query| metrics_in(query)) {
        let name = metric.trim_start_matches("ebbtide_");
        let name = ["_bucket", "_seconds", "_total"]
            .iter()
            .fold(name, |name, end| name.trim_end_matches(end));
        assert!(source.contains(&format!("\"{name}\"")), "{metric}");
    }
    let source = include_str!("../../../../../cli/batch/src/service/metrics.rs");
    for metric in BATCH_METRICS {
        let name = metric.trim_start_matches("ebbtide_batch_");
        assert!(source.contains(&format!("\"{name}\"")), "{metric}");
    }
}

fn each_alert_has_a_runbook(rules: &[&Value]) {
    let page = include_str!("../../../../../docs/operate/alerts.md");
    for alert in rules.iter().filter(|rule| rule["type"] == "alerting") {
        let name = alert["name"].as_str().unwrap();
        let severity = alert["labels"]["severity"].as_str();
        assert!(matches!(severity, Some("critical" | "warning")), "{name}");
        assert!(alert["duration"].as_f64().unwrap() >= 60.0, "{name}");
        assert!(alert["annotations"]["summary"].is_string(), "{name}");
        let book = alert["annotations"]["runbook_url"].as_str().unwrap();
        let end = format!("/operate/alerts.md#{}", name.to_lowercase());
        assert!(book.ends_with(&end), "{book}");
        assert!(page.contains(&format!("\n### {name}\n")), "{name}");
    }
}

/// The exemplar of a request's time is the decision that `ebbtide explain` shows.
async fn a_slow_request_leads_to_its_decision(region: &Region, prometheus: &Prometheus) {
    let query = encoded("ebbtide_decision_seconds_bucket");
    let path = format!("query_exemplars?query={query}&start=0&end=9999999999");
    let decision = eventually(PATIENCE, async || {
        let found = prometheus.ask(&path).await?;
        let id = &found[0]["exemplars"][0]["labels"]["decision_id"];
        let id = id.as_str().map(str::to_owned);
        id.ok_or_else(|| format!("no exemplar: {found}"))
    })
    .await;
    let explained = ebbtide(region, &["explain", &decision]).await;
    assert_eq!(explained.code, Some(0), "{}", explained.text);
    assert!(explained.text.contains(&decision), "{}", explained.text);
}
