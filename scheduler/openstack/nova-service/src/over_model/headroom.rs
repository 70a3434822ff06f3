//! Headroom: servers leave before a normal server needs their capacity, and no more than it needs.

use super::Bench;
use super::full_host::{FullHost, replay, victim, write};
use super::newcomer;
use super::preemptions::Stage;
use super::reader;
use super::what_if::{Clouds, Flavor, ServerRequest};
use crate::evacuate::{AheadResult, PreemptionDriver};
use crate::headroom::{HeadroomController, HeadroomState, REBALANCE};
use crate::metrics::Metrics;
use crate::nova_api::{ActionResult, ServerActions};
use crate::preemption::{Preemption, PreemptionState};
use crate::select::Selector;
use crate::settings::HeadroomOptions;
use async_trait::async_trait;
use ebbtide_harness::SharedServers;
use ebbtide_model::{BudgetScope, DisruptionBudget, EvacuationCause, Seconds, ServerId};
use ebbtide_nova::model::Options;
use ebbtide_nova_databases::{CloudDatabases as Nova, NOVA_34, quote};
use ebbtide_store::ledger::Ledger;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use uuid::Uuid;

const RULE: &str = "small:1";

/// What was written into the metadata of servers.
#[derive(Default)]
struct Notes(Mutex<Vec<(Uuid, String, bool)>>);

#[async_trait]
impl ServerActions for Notes {
    async fn start(&self, _server: Uuid) -> ActionResult {
        ActionResult::Refused("headroom starts no server".to_owned())
    }

    async fn unshelve(&self, _server: Uuid) -> ActionResult {
        ActionResult::Refused("headroom starts no server".to_owned())
    }

    async fn set_metadata(&self, server: Uuid, key: &str, value: Option<&str>) -> ActionResult {
        let note = (server, key.to_owned(), value.is_some());
        self.0.lock().unwrap().push(note);
        ActionResult::Taken
    }
}

fn keeper(selector: &Selector, rule: &str) -> HeadroomController {
    let options = HeadroomOptions {
        rules: vec![rule.parse().unwrap()],
        every: Duration::from_secs(30),
        lead: Seconds(120),
    };
    HeadroomController::new(selector, options, &Metrics::default())
}

/// What the first scheduler of the cloud makes of a rule. `None`: servers are leaving.
async fn state(selector: &Selector, rule: &str) -> Option<HeadroomState> {
    let evacuations = selector.preempting.get().unwrap();
    let kept = keeper(selector, rule)
        .keep(&rule.parse().unwrap(), evacuations)
        .await;
    kept.unwrap()
}

fn lacking(state: Option<HeadroomState>) -> String {
    match state {
        Some(HeadroomState::Lacking(why)) => why,
        other => panic!("{other:?}"),
    }
}

async fn records(ledger: &Ledger) -> Vec<Preemption> {
    let rows = ledger.rows_of_late(3_600_000).await.unwrap();
    let documents = rows.into_iter().map(|row| row.document);
    documents
        .map(|document| serde_json::from_value(document).unwrap())
        .collect()
}

/// A normal flavor of so many VCPUs.
fn flavor(vcpus: u64) -> Flavor {
    ServerRequest::normal(newcomer(1), vcpus).flavor()
}

impl Stage {
    /// Nova has deleted a server, and what it holds.
    async fn goes(&self, n: i64) {
        self.loses_server(n).await;
        self.gives_up(n);
    }

    /// Nova has deleted a server. Placement still has what it held.
    async fn loses_server(&self, n: i64) {
        let uuid = victim(n);
        let sql = format!("UPDATE instances SET deleted = id, host = NULL WHERE uuid = '{uuid}'");
        self.bench.nova.cell.sql(&sql).await;
    }

    /// The compute of a deleted server has told Placement.
    fn gives_up(&self, n: i64) {
        let placement = &self.bench.placement;
        let freed = placement.model(|m| write(m, victim(n), &[]));
        assert_eq!(freed, 204);
    }
}

async fn room_is_made_once_and_then_found_free(mut stage: Stage) {
    stage.bench.sells(&flavor(2)).await;
    let first = &stage.bench.selector;
    let mut of_first = keeper(first, RULE);
    let second = Selector {
        facts: stage.facts().await,
        ..first.clone()
    };
    let other = stage
        .scheduler_with("scheduler-2", second.facts.clone())
        .await;
    let second = Selector {
        preempting: PreemptionDriver::ready(other),
        ..second
    };
    let mut of_second = keeper(&second, RULE);
    tokio::join!(of_first.look(), of_second.look());
    // While the server leaves, more looks change nothing.
    of_first.look().await;
    of_second.look().await;
    let begun = records(&stage.ledger).await;
    assert_eq!(begun.len(), 1, "{begun:?}");
    assert_eq!(begun[0].cause, EvacuationCause::Headroom);
    assert!(begun[0].newcomers.is_empty());
    let mut agent = stage.take_agent();
    let notice = agent.notice().await;
    let leaving = (1..=4)
        .find(|n| victim(*n) == notice.server_id.0)
        .expect("one of the four");
    stage.goes(leaving).await;
    agent.gone(&notice).await;
    let end = stage.end_of(begun[0].id).await;
    assert_eq!(end.state, PreemptionState::Done);
    // The first look afterwards waits for what the server left to be known.
    for _ in 0..2 {
        of_first.look().await;
        of_second.look().await;
    }
    assert_eq!(records(&stage.ledger).await.len(), 1);
    assert_eq!(
        state(&stage.bench.selector, RULE).await,
        Some(HeadroomState::Free)
    );
    // A normal server takes the room without a victim, and it is made anew.
    stage.bench.ask(newcomer(1), 2).await.unwrap();
    let made = state(&stage.bench.selector, RULE).await;
    assert_eq!(made, Some(HeadroomState::MakingRoom(1)));
    assert_eq!(records(&stage.ledger).await.len(), 2);
}

#[tokio::test]
async fn room_is_made_by_one_of_two_schedulers_and_once() {
    Box::pin(room_is_made_once_and_then_found_free(Stage::new().await)).await;
}

#[tokio::test]
async fn room_is_made_once_on_mariadb_as_well() {
    let ledger = SharedServers::mariadb().await.expect("a MariaDB server");
    let nova = Nova::mariadb(NOVA_34).await;
    let bench = Bench::over(nova, 1, Options::default()).await;
    let full = FullHost::over(bench, ledger.url().to_owned()).await;
    Box::pin(room_is_made_once_and_then_found_free(Stage::of(full).await)).await;
}

#[tokio::test]
async fn no_second_server_leaves_while_placement_has_what_the_first_one_held() {
    let mut stage = Stage::new().await;
    stage.bench.sells(&flavor(2)).await;
    let mut agent = stage.take_agent();
    let selector = stage.bench.selector.clone();
    let mut controller = keeper(&selector, RULE);
    controller.look().await;
    let notice = agent.notice().await;
    let leaving = (1..=4).find(|n| victim(*n) == notice.server_id.0).unwrap();
    stage.loses_server(leaving).await;
    let facts = &selector.facts;
    facts.write(|cloud| cloud.remove_instance(victim(leaving)));
    agent.gone(&notice).await;
    let begun = records(&stage.ledger).await;
    stage.end_of(begun[0].id).await;
    for _ in 0..4 {
        controller.look().await;
        // A scheduler that starts now knows of no look before.
        assert_eq!(state(&selector, RULE).await, None);
    }
    assert_eq!(records(&stage.ledger).await.len(), 1);
    stage.gives_up(leaving);
    assert_eq!(state(&selector, RULE).await, Some(HeadroomState::Free));
    assert_eq!(records(&stage.ledger).await.len(), 1);
}

#[tokio::test]
async fn a_server_that_would_be_next_is_warned_once_by_all_schedulers() {
    let mut stage = Stage::new().await;
    stage.bench.sells(&flavor(2)).await;
    let mut agent = stage.take_agent();
    let selector = &stage.bench.selector;
    let notes = Arc::new(Notes::default());
    let warner = || {
        let mut keeper = keeper(selector, RULE);
        keeper.warns_by(Arc::clone(&notes) as Arc<dyn ServerActions>);
        keeper
    };
    let mut first = warner();
    first.look().await;
    let told = || notes.0.lock().unwrap().clone();
    assert_eq!(told(), [], "one leaves, and the rest is not known yet");
    let notice = agent.notice().await;
    let leaving = (1..=4).find(|n| victim(*n) == notice.server_id.0).unwrap();
    stage.goes(leaving).await;
    agent.gone(&notice).await;
    let begun = records(&stage.ledger).await;
    stage.end_of(begun[0].id).await;
    for _ in 0..4 {
        first.look().await;
    }
    let warned = told();
    let [(server, key, true)] = warned.as_slice() else {
        panic!("{warned:?}");
    };
    assert_eq!(key, REBALANCE);
    assert!((1..=4).any(|n| victim(n) == *server && n != leaving));
    assert_eq!(
        records(&stage.ledger).await.len(),
        1,
        "no server leaves for it"
    );
    // Another scheduler reads what Nova has.
    let (uuid, key) = (format!("'{server}'"), format!("'{key}'"));
    let row = [
        ("instance_uuid", uuid.as_str()),
        ("key", key.as_str()),
        ("value", "'2026-01-01T00:00:00Z'"),
        ("deleted", "0"),
    ];
    stage
        .bench
        .nova
        .cell
        .insert("instance_metadata", &row)
        .await;
    warner().look().await;
    assert_eq!(told().len(), 1);
}

#[tokio::test]
async fn two_that_planned_in_the_same_turn_do_not_both_begin() {
    let stage = Stage::new().await;
    let second = stage.scheduler("scheduler-2").await;
    let (first, turn) = (&stage.first, stage.first.headroom_turn().await.unwrap());
    assert_eq!(second.headroom_turn().await.unwrap(), turn);
    let turn = turn.unwrap();
    let planned = |n| {
        let facts = &stage.bench.selector.facts;
        facts.read(|cloud| vec![cloud.victim(victim(n), 0.0).unwrap()])
    };
    let begun = first.evict_ahead(&planned(1), turn).await.unwrap();
    assert_eq!(begun, AheadResult::Begun(1));
    // Another victim: no unique key of the ledger's victims is in the way.
    let refused = second.evict_ahead(&planned(2), turn).await.unwrap();
    assert_eq!(refused, AheadResult::Overtaken);
    assert_eq!(second.headroom_turn().await.unwrap(), None);
    assert_eq!(records(&stage.ledger).await.len(), 1);
}

/// Two full hosts: servers 1 to 4 are on the first one, 5 to 8 on the second one.
async fn two_full_hosts() -> Clouds {
    let cloud = Clouds::of_hosts(2).await;
    for n in 1..=8 {
        cloud.runs(n, if n <= 4 { 1 } else { 2 }, 2, true, 1).await;
    }
    cloud.bench.look().await;
    cloud.sells(&flavor(2)).await;
    cloud
}

async fn aggregate(cloud: &Clouds, name: &str, host: i64) {
    let api = &cloud.bench.nova.api;
    let uuid = format!("77777777-7777-4777-8777-{host:012}");
    let (id, name, quoted) = (host.to_string(), quote(api, name), quote(api, &uuid));
    let row = [
        ("id", id.as_str()),
        ("uuid", quoted.as_str()),
        ("name", name.as_str()),
    ];
    api.insert("aggregates", &row).await;
    let compute = quote(api, &format!("compute{host}"));
    let row = [("aggregate_id", id.as_str()), ("host", compute.as_str())];
    api.insert("aggregate_hosts", &row).await;
    cloud.bench.placement.model(|model| {
        let provider = super::host(host);
        let (_, known) = model.providers().find(|(id, _)| *id == provider).unwrap();
        let body = json!({
            "aggregates": [uuid],
            "resource_provider_generation": known.generation,
        });
        let path = format!("/resource_providers/{provider}/aggregates");
        assert_eq!(replay(model, "PUT", &path, &body), 200);
    });
    cloud.bench.look().await;
}

#[tokio::test]
async fn a_rule_of_an_aggregate_takes_victims_there_only() {
    let cloud = two_full_hosts().await;
    aggregate(&cloud, "gpu", 2).await;
    let selector = &cloud.bench.selector;
    let made = state(selector, "small@gpu:2").await;
    assert_eq!(made, Some(HeadroomState::MakingRoom(2)));
    let there: BTreeSet<_> = (5..=8).map(victim).collect();
    let victims = cloud.victims().await;
    assert!(
        victims.len() == 2 && victims.is_subset(&there),
        "{victims:?}"
    );
    assert_eq!(state(selector, "small:1").await, None, "two are leaving");
}

#[tokio::test]
async fn what_cannot_be_kept_free_is_said_and_evicts_no_server() {
    let cloud = two_full_hosts().await;
    let selector = &cloud.bench.selector;
    for (rule, why) in [
        ("small:9", "No valid host"),
        ("large:1", "no flavor"),
        ("small@gpu:1", "no aggregate"),
    ] {
        let said = lacking(state(selector, rule).await);
        assert!(said.contains(why), "{rule}: {said}");
    }
    let preemptible = Flavor {
        preemptible: true,
        ..flavor(2)
    };
    cloud.sells(&preemptible).await;
    let said = lacking(state(selector, RULE).await);
    assert!(said.contains("is preemptible"), "{said}");
    assert!(cloud.victims().await.is_empty());
}

#[tokio::test]
async fn a_disruption_budget_limits_headroom_and_counts_its_victims() {
    let cloud = two_full_hosts().await;
    let selector = &cloud.bench.selector;
    let reader = reader(selector);
    let server = selector.facts.read(|cloud| cloud.server(victim(1)));
    let budget = DisruptionBudget {
        scope: BudgetScope::Project(server.unwrap().project_id),
        max_victims: 1,
        window: Seconds(3600),
    };
    assert!(reader.put_budget(&budget).await.unwrap());
    let said = lacking(state(selector, "small:2").await);
    assert!(said.contains("No valid host"), "{said}");
    let made = state(selector, "small:1").await;
    assert_eq!(made, Some(HeadroomState::MakingRoom(1)));
    // A request would need a second victim.
    let refused = cloud.asks(&ServerRequest::normal(newcomer(1), 2)).await;
    assert_eq!(refused.unwrap_err().class, "NoValidHost");
    assert_eq!(cloud.victims().await.len(), 1);
}

#[tokio::test]
async fn without_an_agent_that_reads_no_server_gets_a_notice() {
    let mut stage = Stage::new().await;
    stage.bench.sells(&flavor(2)).await;
    drop(stage.take_agent());
    let said = lacking(state(&stage.bench.selector, RULE).await);
    assert!(said.contains("no agent reads"), "{said}");
    assert!(records(&stage.ledger).await.is_empty());
}

#[tokio::test]
async fn a_host_without_an_agent_gives_no_room_and_the_others_do() {
    let mut cloud = two_full_hosts().await;
    drop(cloud.agents.remove(0));
    let made = state(&cloud.bench.selector, "small:4").await;
    assert_eq!(made, Some(HeadroomState::MakingRoom(4)));
    let there: BTreeSet<_> = (5..=8).map(victim).collect();
    assert_eq!(cloud.victims().await, there);
}

#[tokio::test]
async fn a_server_that_was_locked_after_the_plan_stays() {
    let stage = Stage::new().await;
    let turn = stage.first.headroom_turn().await.unwrap().unwrap();
    let facts = &stage.bench.selector.facts;
    let planned = facts.read(|cloud| vec![cloud.victim(victim(1), 0.0).unwrap()]);
    let sql = format!(
        "UPDATE instances SET locked = 1 WHERE uuid = '{}'",
        victim(1)
    );
    stage.bench.nova.cell.sql(&sql).await;
    stage.bench.look().await;
    let begun = stage.first.evict_ahead(&planned, turn).await.unwrap();
    assert_eq!(begun, AheadResult::Overtaken);
    assert!(records(&stage.ledger).await.is_empty());
}

#[tokio::test]
async fn a_leaving_server_is_released_early_by_any_scheduler_and_others_are_not() {
    let mut stage = Stage::new().await;
    stage.bench.sells(&flavor(2)).await;
    let selector = &stage.bench.selector;
    let reader = reader(selector);
    for n in 1..=4 {
        let released = reader.release_early(ServerId(victim(n))).await.unwrap();
        assert_eq!(released, None, "it is not leaving");
    }
    keeper(selector, RULE).look().await;
    let mut agent = stage.take_agent();
    let notice = agent.notice().await;
    let second = stage.scheduler("scheduler-2").await;
    let released = second.release_early(notice.server_id).await.unwrap();
    assert_eq!(released.map(|(_, place)| place), Some(0));
    let heard = agent.release().await;
    assert_eq!(heard.server_id, notice.server_id);
    assert_eq!(heard.evacuation_id, notice.evacuation_id);
    let shown = reader.release_early(notice.server_id).await.unwrap();
    assert_eq!(shown.map(|e| e.id), Some(notice.evacuation_id));
}
