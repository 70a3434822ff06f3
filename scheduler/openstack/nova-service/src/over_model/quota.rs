//! Requests of projects with limits.

use super::{Bench, newcomer};
use crate::quota::{LimitSource, Quota};
use async_trait::async_trait;
use ebbtide_keystone::limits::{EnforcementModel, LimitRow, RESOURCES, RegisteredLimits};
use ebbtide_keystone::{KeystoneError, ProjectLimits};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use uuid::Uuid;

/// A registered limit: the resource and the amount.
type Row = (&'static str, i64);

/// Limits that the test changes; `None`: Keystone is away.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Option<Vec<Row>>>>);

impl Written {
    fn set(&self, limits: Option<&[Row]>) {
        *self.0.lock().unwrap() = limits.map(<[_]>::to_vec);
    }
}

#[async_trait]
impl LimitSource for Written {
    async fn limits(&self, _: &str) -> Result<Arc<ProjectLimits>, KeystoneError> {
        let rows = self.0.lock().unwrap().clone();
        let rows = rows.ok_or_else(|| KeystoneError::Unavailable("it is away".to_owned()))?;
        let registered = RegisteredLimits {
            model: EnforcementModel::Flat,
            service_id: "preemption".to_owned(),
            region: None,
            rows: rows
                .into_iter()
                .map(|(name, amount)| LimitRow {
                    resource_name: name.to_owned(),
                    region_id: None,
                    amount,
                })
                .collect(),
        };
        Ok(Arc::new(ProjectLimits::new(
            &registered,
            &[],
            &[],
            &RESOURCES,
        )))
    }
}

const OF_FOUR_CPUS: [Row; 3] = [
    ("preemptible_servers", -1),
    ("preemptible_vcpus", 4),
    ("preemptible_memory_mb", -1),
];

async fn bench() -> (Bench, Written) {
    let mut bench = Bench::of_hosts(2).await;
    let limits = Written::default();
    limits.set(Some(&OF_FOUR_CPUS));
    bench.selector.quota = Quota::new(Some(Arc::new(limits.clone())));
    (bench, limits)
}

fn preemptible(vcpus: u64) -> impl FnOnce(&mut Value) {
    move |spec: &mut Value| {
        let flavor = &mut spec["flavor"]["nova_object.data"];
        flavor["vcpus"] = json!(vcpus);
        flavor["memory_mb"] = json!(1);
        flavor["extra_specs"] = json!({"ebbtide:preemptible": "true"});
    }
}

/// The text of a refusal, or the host.
async fn ask(bench: &Bench, server: Uuid, vcpus: u64) -> Result<(), String> {
    let answer = bench.ask_for(server, preemptible(vcpus), false).await;
    answer.map(drop).map_err(|error| {
        assert_eq!(error.class, "NoValidHost");
        error.message
    })
}

#[tokio::test]
async fn a_project_gets_as_many_vcpus_as_its_limit_and_normal_servers_beside_them() {
    let (bench, _) = bench().await;
    ask(&bench, newcomer(1), 2).await.unwrap();
    // Nova has not written the first server yet: what it got counts all the same.
    let refused = ask(&bench, newcomer(2), 3).await.unwrap_err();
    assert!(refused.contains("EB-DOOR-063"), "{refused}");
    assert!(
        refused.contains("preemptible_vcpus: 2 of 4 in use, 3 more asked for"),
        "{refused}"
    );
    assert_eq!(bench.holds(newcomer(2)), [], "nothing is claimed");
    ask(&bench, newcomer(3), 2).await.unwrap();
    assert!(ask(&bench, newcomer(4), 1).await.is_err());
    bench.ask(newcomer(5), 4).await.unwrap();
    assert_eq!(bench.used(1) + bench.used(2), 8);
}

#[tokio::test]
async fn a_request_that_gets_no_host_takes_nothing_of_the_quota() {
    let (bench, limits) = bench().await;
    limits.set(Some(&[
        ("preemptible_servers", 1),
        ("preemptible_vcpus", -1),
        ("preemptible_memory_mb", -1),
    ]));
    let full = ask(&bench, newcomer(1), 9).await.unwrap_err();
    assert!(!full.contains("EB-DOOR"), "no host has nine: {full}");
    ask(&bench, newcomer(2), 1).await.unwrap();
    // The same request again, after its build failed on a host: it has its place already.
    bench.forget_expected(newcomer(2)).await;
    ask(&bench, newcomer(2), 1).await.unwrap();
    assert!(ask(&bench, newcomer(3), 1).await.is_err());
}

#[tokio::test]
async fn servers_of_novas_databases_count_and_may_move_in_a_project_over_its_limit() {
    let (bench, limits) = bench().await;
    let uuid = bench
        .nova
        .add_instance(1, "compute1", "2026-01-01 00:00:00")
        .await;
    let project = project_of_requests();
    let sql = format!("UPDATE instances SET project_id = '{project}' WHERE id = 1");
    bench.nova.cell.sql(&sql).await;
    bench.look().await;
    let server: Uuid = uuid.parse().unwrap();
    let has = bench
        .selector
        .facts
        .read(|cloud| cloud.preemptible_usage_of(server))
        .unwrap();
    let most = i64::try_from(has.vcpus).unwrap();
    limits.set(Some(&[
        ("preemptible_servers", -1),
        ("preemptible_vcpus", most),
        ("preemptible_memory_mb", -1),
    ]));
    assert!(
        ask(&bench, newcomer(1), 1)
            .await
            .unwrap_err()
            .contains("EB-DOOR-063")
    );
    limits.set(Some(&[
        ("preemptible_servers", 0),
        ("preemptible_vcpus", 0),
        ("preemptible_memory_mb", 0),
    ]));
    bench.forget_expected(server).await;
    ask(&bench, server, has.vcpus).await.unwrap();
    bench.forget_expected(server).await;
    let grows = ask(&bench, server, has.vcpus + 1).await.unwrap_err();
    assert!(grows.contains("EB-DOOR-063"), "a resize is more: {grows}");
}

/// The project of the recorded request.
fn project_of_requests() -> String {
    let args: Value = serde_json::from_str(super::ASKED).unwrap();
    let spec = &args["spec_obj"]["nova_object.data"];
    spec["project_id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn limits_read_last_hold_while_keystone_is_away_and_none_allow_nothing() {
    let (bench, limits) = bench().await;
    limits.set(None);
    let unknown = ask(&bench, newcomer(1), 1).await.unwrap_err();
    assert!(unknown.contains("EB-DOOR-064"), "{unknown}");
    bench.ask(newcomer(2), 1).await.unwrap();
    limits.set(Some(&OF_FOUR_CPUS));
    ask(&bench, newcomer(3), 3).await.unwrap();
    limits.set(None);
    ask(&bench, newcomer(4), 1).await.unwrap();
    assert!(
        ask(&bench, newcomer(5), 1)
            .await
            .unwrap_err()
            .contains("EB-DOOR-063")
    );
    // A resource without a registered limit allows nothing, as in oslo.limit.
    limits.set(Some(&[("preemptible_servers", -1)]));
    let error = ask(&bench, newcomer(6), 1).await.unwrap_err();
    assert!(error.contains("Keystone has no limit"), "{error}");
    assert_eq!(bench.holds(newcomer(6)), []);
}

#[tokio::test]
async fn requests_at_the_same_moment_do_not_share_what_is_left() {
    let (bench, _) = bench().await;
    let asked = (1..=6).map(|n| ask(&bench, newcomer(n), 1));
    let answers = futures::future::join_all(asked).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 4);
}
