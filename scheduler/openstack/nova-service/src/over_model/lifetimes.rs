//! Servers at their maximum lifetime: the ledger, the protocol, and what they hold in Placement.

use super::Bench;
use super::full_host::{FullHost, VICTIM, on_host, victim, write};
use super::newcomer;
use super::preemptions::Stage;
use super::reader;
use crate::evacuate::{RestingServers, end_of_lifetime};
use crate::metrics::Metrics;
use crate::preemption::{Preemption, PreemptionState, VictimState};
use ebbtide_harness::SharedServers;
use ebbtide_model::message::{Body, Draining, EvacuationEnd};
use ebbtide_model::{EvacuationCause, EvacuationId};
use ebbtide_nova::model::Options;
use ebbtide_nova_databases::{CloudDatabases as Nova, NOVA_34};
use ebbtide_store::ledger::UsageFilter;
use std::time::Duration;
use uuid::Uuid;

/// What a stopped server goes on holding.
const DISK: [(&str, u64); 1] = [("DISK_GB", 1)];

impl Stage {
    /// The flavor of a victim has these keys, too, and Nova's row says when that was written.
    pub(super) async fn has_flavor_with(&self, n: i64, keys: &[(&str, &str)]) {
        let keys: String = keys
            .iter()
            .map(|(key, value)| format!(", \"ebbtide:{key}\": \"{value}\""))
            .collect();
        let flavor = ebbtide_nova_databases::flavor_json("true");
        let flavor = flavor.replace(
            "\"ebbtide:preemptible\": \"true\"",
            &format!("\"ebbtide:preemptible\": \"true\"{keys}"),
        );
        let nova = &self.bench.nova;
        let flavor = ebbtide_nova_databases::quote(&nova.cell, &flavor);
        let uuid = victim(n);
        let sql =
            format!("UPDATE instance_extra SET flavor = {flavor} WHERE instance_uuid = '{uuid}'");
        nova.cell.sql(&sql).await;
        self.bench.look().await;
    }

    pub(super) async fn sets(&self, n: i64, what: &str) {
        let uuid = victim(n);
        let sql = format!("UPDATE instances SET {what} WHERE uuid = '{uuid}'");
        self.bench.nova.cell.sql(&sql).await;
    }

    /// Nova has deleted a server, and what it holds.
    pub(super) async fn is_deleted(&self, n: i64) {
        self.sets(n, "deleted = id, host = NULL").await;
        let freed = self.bench.placement.model(|m| write(m, victim(n), &[]));
        assert_eq!(freed, 204);
    }

    /// All records, open or not.
    async fn records(&self) -> Vec<Preemption> {
        let rows = self.ledger.rows_of_late(3_600_000).await.unwrap();
        let documents = rows.into_iter().map(|row| row.document);
        documents
            .map(|document| serde_json::from_value(document).unwrap())
            .collect()
    }

    /// The record of a server that ends; a scheduler may begin it at any moment.
    pub(super) async fn record_of(&self, server: Uuid) -> Preemption {
        let begun = async {
            loop {
                let records = self.records().await.into_iter();
                let mut of = records.filter(|record| record.victims[0].server.0 == server);
                if let Some(record) = of.next() {
                    return record;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let begun = tokio::time::timeout(super::LONG, begun).await;
        begun.expect("its evacuation begins")
    }
}

/// Launched in January, and it is later than that.
pub(super) const HOUR: [(&str, &str); 2] =
    [("max_lifetime_seconds", "3600"), ("grace_seconds", "5")];

async fn a_server_ends_with_notice_and_one_of_two_schedulers_does_it(mut stage: Stage) {
    stage.has_flavor_with(1, &HOUR).await;
    let second = stage.scheduler("scheduler-2").await;
    let mut late = RestingServers::default();
    let (mut one, mut two) = (RestingServers::default(), RestingServers::default());
    let first = stage.first.clone();
    tokio::join!(
        first.end_lifetimes(&mut one),
        second.end_lifetimes(&mut two)
    );
    let mut agent = stage.take_agent();
    let notice = agent.notice().await;
    assert_eq!((notice.server_id.0, notice.grace_seconds.0), (victim(1), 5));
    let begun = stage.record_of(victim(1)).await;
    assert_eq!(begun.cause, EvacuationCause::MaxLifetime);
    let selector = &stage.bench.selector;
    let reader = reader(selector);
    let shown = reader.evacuations(false).await.unwrap();
    let causes: Vec<_> = shown.iter().map(|e| (e.cause, e.preemptor_id)).collect();
    assert_eq!(causes, [(EvacuationCause::MaxLifetime, None)]);
    assert_eq!(stage.has(victim(1)), on_host(&VICTIM), "while it runs");
    stage.is_deleted(1).await;
    agent.gone(&notice).await;
    let end = stage.end_of(begun.id).await;
    assert_eq!(end.state, PreemptionState::Done);
    assert_eq!(stage.posts().len(), 0, "Nova has freed its room");
    // A scheduler whose memory is late begins nothing new.
    stage.first.end_lifetimes(&mut late).await;
    second.end_lifetimes(&mut late).await;
    assert_eq!(stage.records().await.len(), 1);
    let usage = stage.ledger.usage(&UsageFilter::default()).await.unwrap();
    assert_eq!(usage.len(), 1, "its last partial hour is credited once");
    assert_eq!(stage.bench.used(1), 6);
}

#[tokio::test]
async fn at_its_maximum_lifetime_a_server_ends_with_notice_and_once() {
    a_server_ends_with_notice_and_one_of_two_schedulers_does_it(Stage::new().await).await;
}

#[tokio::test]
async fn at_its_maximum_lifetime_a_server_ends_on_mariadb_as_well() {
    let ledger = SharedServers::mariadb().await.expect("a MariaDB server");
    let nova = Nova::mariadb(NOVA_34).await;
    let bench = Bench::over(nova, 1, Options::default()).await;
    let full = FullHost::over(bench, ledger.url().to_owned()).await;
    let stage = Stage::of(full).await;
    a_server_ends_with_notice_and_one_of_two_schedulers_does_it(stage).await;
}

#[tokio::test]
async fn one_whose_scheduler_died_is_ended_by_another() {
    let mut stage = Stage::new().await;
    let planned = stage.planned(victim(1));
    let record = end_of_lifetime(planned, ebbtide_runtime::clock::now());
    stage.leave_behind(&record).await;
    stage.first.beat().await.unwrap();
    let mut agent = stage.take_agent();
    let notice = agent.notice().await;
    assert_eq!(notice.server_id.0, victim(1));
    stage.is_deleted(1).await;
    agent.gone(&notice).await;
    let end = stage.end_of(record.id).await;
    assert_eq!((end.state, end.answered), (PreemptionState::Done, true));
}

#[tokio::test]
async fn one_that_is_stopped_keeps_its_disk_in_placement_and_nothing_else() {
    let mut stage = Stage::new().await;
    let mut keys = HOUR.to_vec();
    keys.push(("interruption", "stop"));
    stage.has_flavor_with(1, &keys).await;
    let mut resting = RestingServers::default();
    stage.first.end_lifetimes(&mut resting).await;
    let mut agent = stage.take_agent();
    let notice = agent.notice().await;
    stage.sets(1, "vm_state = 'stopped', power_state = 4").await;
    agent.stopped(&notice).await;
    let begun = stage.record_of(victim(1)).await;
    let end = stage.end_of(begun.id).await;
    assert!(end.victims[0].released, "{end:?}");
    assert_eq!(stage.has(victim(1)), on_host(&DISK));
    assert_eq!(stage.bench.used(1), 6);
    // It is stopped: nothing is left to end.
    stage.bench.look().await;
    let now = ebbtide_runtime::clock::now();
    let due = stage
        .bench
        .selector
        .facts
        .read(|cloud| cloud.lifetimes_due(now));
    assert_eq!(due, Vec::<Uuid>::new());
}

#[tokio::test]
async fn one_that_its_owner_started_meanwhile_keeps_what_it_holds() {
    let mut stage = Stage::new().await;
    let mut keys = HOUR.to_vec();
    keys.push(("interruption", "stop"));
    stage.has_flavor_with(1, &keys).await;
    let mut resting = RestingServers::default();
    stage.first.end_lifetimes(&mut resting).await;
    let mut agent = stage.take_agent();
    let notice = agent.notice().await;
    // Nova's row says that it runs again.
    agent.stopped(&notice).await;
    let begun = stage.record_of(victim(1)).await;
    stage.end_of(begun.id).await;
    assert_eq!(stage.has(victim(1)), on_host(&VICTIM));
}

#[tokio::test]
async fn a_start_by_its_owner_begins_a_new_life() {
    let stage = Stage::new().await;
    let uuid = victim(1);
    let text = format!("'{uuid}'");
    // An hour from now, so that the test does not depend on how fast it runs.
    let action = [
        ("instance_uuid", text.as_str()),
        ("action", "'start'"),
        ("start_time", "datetime('now', '+1 hour')"),
        ("deleted", "0"),
    ];
    let nova = &stage.bench.nova;
    nova.cell.insert("instance_actions", &action).await;
    stage.has_flavor_with(1, &HOUR).await;
    let mut resting = RestingServers::default();
    stage.first.end_lifetimes(&mut resting).await;
    assert!(stage.records().await.is_empty());
    let now = ebbtide_runtime::clock::now();
    let next = stage
        .bench
        .selector
        .facts
        .read(|cloud| cloud.next_lifetime(now));
    let hours = next.unwrap().millis_since(now) / 3_600_000;
    assert_eq!(hours, 1, "a grace period before two hours are over");
}

#[tokio::test]
async fn a_locked_server_and_a_victim_of_a_preemption_are_left_alone() {
    let stage = Stage::new().await;
    for n in [1, 2] {
        stage.has_flavor_with(n, &HOUR).await;
    }
    stage.sets(1, "locked = 1").await;
    let plan = stage.plan(newcomer(1), &[2], 2).await;
    let id = plan.id;
    stage.written_by_another(&plan).await;
    stage.bench.look().await;
    let mut resting = RestingServers::default();
    stage.first.end_lifetimes(&mut resting).await;
    let records = stage.records().await;
    let ids: Vec<Uuid> = records.iter().map(|record| record.id).collect();
    assert_eq!(ids, [id]);
}

#[tokio::test]
async fn an_agent_that_follows_an_earlier_notice_is_asked_to_spare_for_that_one_only() {
    let mut stage = Stage::new().await;
    stage.has_flavor_with(1, &HOUR).await;
    stage
        .first
        .end_lifetimes(&mut RestingServers::default())
        .await;
    let mut agent = stage.take_agent();
    let notice = agent.notice().await;
    let earlier = EvacuationId(Uuid::from_u128(7));
    let now = ebbtide_runtime::clock::now();
    let draining = Body::Draining(Draining {
        evacuation_id: earlier,
        host: "compute1".to_owned(),
        server_id: notice.server_id,
        notified_at: now,
        deadline_at: now,
    });
    agent.says(draining).await;
    assert_eq!(agent.spare().await.evacuation_id, earlier);
    stage.is_deleted(1).await;
    agent.gone(&notice).await;
    let begun = stage.record_of(victim(1)).await;
    assert_eq!(stage.end_of(begun.id).await.state, PreemptionState::Done);
}

#[tokio::test]
async fn a_server_that_ends_counts_as_no_preemption() {
    let stage = Stage::new().await;
    let now = ebbtide_runtime::clock::now();
    let mut record = end_of_lifetime(stage.planned(victim(1)), now);
    record.victims[0].state = VictimState::Evacuated {
        how: EvacuationEnd::Terminated,
        at: now,
        unbilled: None,
        recorded: true,
    };
    let metrics = Metrics::default();
    metrics.ended(&record);
    let page = metrics.text(Default::default(), 0);
    let line = "ebbtide_ended_servers_total{kind=\"max-lifetime\"} 1";
    assert!(page.contains(line), "{page}");
    let mut preemptions = page
        .lines()
        .filter(|line| line.starts_with("ebbtide_preemptions_total{"));
    assert!(preemptions.all(|line| line.ends_with(" 0")), "{page}");
}
