//! Servers that were stopped or shelved come back when there is room.

use super::full_host::{FullHost, VICTIM, on_host, victim, write};
use super::lifetimes::HOUR;
use super::newcomer;
use super::preemptions::Stage;
use super::what_if::ServerRequest;
use super::{Bench, other_claims};
use crate::comebacks::{ResumeController, RetainedServer, RetainedState};
use crate::evacuate::RestingServers;
use crate::headroom::{HeadroomController, ReservedHeadroom};
use crate::metrics::Metrics;
use crate::nova_api::{ActionResult, ServerActions};
use crate::select::Selector;
use crate::settings::HeadroomOptions;
use async_trait::async_trait;
use ebbtide_evacuation::ComebackConfig;
use ebbtide_harness::SharedServers;
use ebbtide_model::message::EvacuationEnd;
use ebbtide_model::{Seconds, Timestamp};
use ebbtide_nova::model::Options;
use ebbtide_nova_databases::{CloudDatabases as Nova, NOVA_34, quote};
use ebbtide_placement_model::{Model, ScriptedStep};
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use uuid::Uuid;

/// What a stopped server goes on holding.
const DISK: [(&str, u64); 1] = [("DISK_GB", 1)];

/// Nova's API. The real one is in the story of `devstack/openstack`.
#[derive(Default)]
struct Power {
    calls: Mutex<Vec<(&'static str, Uuid)>>,
    refuses: bool,
}

impl Power {
    fn takes(&self, what: &'static str, server: Uuid) -> ActionResult {
        self.calls.lock().unwrap().push((what, server));
        match self.refuses {
            true => ActionResult::Refused("its instance is locked".to_owned()),
            false => ActionResult::Taken,
        }
    }

    fn calls(&self) -> Vec<(&'static str, Uuid)> {
        self.calls.lock().unwrap().clone()
    }
}

#[async_trait]
impl ServerActions for Power {
    async fn start(&self, server: Uuid) -> ActionResult {
        self.takes("start", server)
    }

    async fn unshelve(&self, server: Uuid) -> ActionResult {
        self.takes("unshelve", server)
    }

    async fn set_metadata(&self, server: Uuid, _key: &str, _value: Option<&str>) -> ActionResult {
        self.takes("set_metadata", server)
    }
}

fn comebacks_of(
    selector: &Selector,
    power: &Arc<Power>,
    kept: ReservedHeadroom,
) -> ResumeController {
    let config = ComebackConfig::default();
    let power = Arc::clone(power) as Arc<dyn ServerActions>;
    ResumeController::new(selector, power, config, kept, &Metrics::default())
}

/// The first scheduler of a stage.
fn comebacks(stage: &Stage, power: &Arc<Power>) -> ResumeController {
    comebacks_of(&stage.bench.selector, power, ReservedHeadroom::default())
}

impl Stage {
    /// A preemptible server of the host has had to leave, and was kept.
    async fn keeps(&mut self, interruption: &'static str) {
        let mut keys = HOUR.to_vec();
        keys.push(("interruption", interruption));
        self.has_flavor_with(1, &keys).await;
        self.first
            .end_lifetimes(&mut RestingServers::default())
            .await;
        let mut agent = self.take_agent();
        let notice = agent.notice().await;
        match interruption {
            "stop" => {
                self.sets(1, "vm_state = 'stopped', power_state = 4").await;
                agent.ended(&notice, EvacuationEnd::Stopped).await;
            }
            _ => {
                let shelved = "vm_state = 'shelved_offloaded', host = NULL, node = NULL";
                self.sets(1, shelved).await;
                let freed = self.bench.placement.model(|m| write(m, victim(1), &[]));
                assert_eq!(freed, 204);
                agent.ended(&notice, EvacuationEnd::Hibernated).await;
            }
        }
        let begun = self.record_of(victim(1)).await;
        self.end_of(begun.id).await;
        self.bench.look().await;
    }

    /// The record of the server that was kept.
    async fn kept(&self) -> RetainedServer {
        let row = self.ledger.comeback(victim(1)).await.unwrap().unwrap();
        serde_json::from_value(row.document).unwrap()
    }

    /// The time has come at which the server may return.
    async fn is_due(&self) {
        let row = self.ledger.comeback(victim(1)).await.unwrap().unwrap();
        let mut kept: RetainedServer = serde_json::from_value(row.document).unwrap();
        kept.comeback.not_before = Timestamp::from_millis(0);
        let document = serde_json::to_value(&kept).unwrap();
        let put = self
            .ledger
            .put_comeback(victim(1), Some(row.version), &document);
        assert!(put.await.unwrap());
    }

    /// The conductor has kept the request of the server, whose image may be for one architecture.
    async fn asked(&self, architecture: Option<&str>) {
        let mut asked = ServerRequest::normal(victim(1), 1);
        asked.flavor.preemptible = true;
        let mut asked = asked.arguments();
        let spec = &mut asked["spec_obj"];
        if let Some(architecture) = architecture {
            let image = &mut spec["nova_object.data"]["image"]["nova_object.data"];
            image["properties"]["nova_object.data"]["hw_architecture"] = json!(architecture);
        }
        let api = &self.bench.nova.api;
        let (uuid, spec) = (
            quote(api, &victim(1).to_string()),
            quote(api, &spec.to_string()),
        );
        api.sql("DELETE FROM request_specs").await;
        let row = [("id", "1"), ("instance_uuid", &uuid), ("spec", &spec)];
        api.insert("request_specs", &row).await;
    }

    /// Other servers take all CPUs of the host, or leave it.
    fn is_full(&self, full: bool) {
        let others = Uuid::from_u128(77);
        let status = self.bench.placement.model(|model| match full {
            true => other_claims(model, others, super::host(1), 2),
            false => write(model, others, &[]),
        });
        assert_eq!(status, 204);
    }
}

async fn one_of_two_schedulers_starts_a_stopped_server(mut stage: Stage) {
    stage.keeps("stop").await;
    assert_eq!(stage.has(victim(1)), on_host(&DISK));
    let power = Arc::new(Power::default());
    let mut one = comebacks(&stage, &power);
    let other = Selector {
        facts: stage.facts().await,
        ..stage.bench.selector.clone()
    };
    let mut two = comebacks_of(&other, &power, ReservedHeadroom::default());
    one.look().await.unwrap();
    assert_eq!(power.calls(), [], "it has just left");
    stage.is_due().await;
    let (first, second) = tokio::join!(one.look(), two.look());
    first.unwrap();
    second.unwrap();
    assert_eq!(power.calls(), [("start", victim(1))]);
    assert_eq!(stage.has(victim(1)), on_host(&VICTIM), "before it starts");
    assert!(matches!(
        stage.kept().await.state,
        RetainedState::Returning { .. }
    ));
    stage.sets(1, "vm_state = 'active', power_state = 1").await;
    stage.bench.look().await;
    one.look().await.unwrap();
    let kept = stage.kept().await;
    assert!(
        matches!(kept.state, RetainedState::Running { .. }),
        "{kept:?}"
    );
    assert!(kept.comeback.resumed_at.is_some());
    two.look().await.unwrap();
    assert_eq!(power.calls().len(), 1);
}

#[tokio::test]
async fn a_stopped_server_comes_back_once_with_what_it_held() {
    Box::pin(one_of_two_schedulers_starts_a_stopped_server(
        Stage::new().await,
    ))
    .await;
}

#[tokio::test]
async fn a_stopped_server_comes_back_on_mariadb_as_well() {
    let ledger = SharedServers::mariadb().await.expect("a MariaDB server");
    let nova = Nova::mariadb(NOVA_34).await;
    let bench = Bench::over(nova, 1, Options::default()).await;
    let full = FullHost::over(bench, ledger.url().to_owned()).await;
    let stage = Stage::of(full).await;
    Box::pin(one_of_two_schedulers_starts_a_stopped_server(stage)).await;
}

#[tokio::test]
async fn a_claim_that_meets_that_of_a_server_that_comes_back_lets_it_wait() {
    let mut stage = Stage::new().await;
    stage.keeps("stop").await;
    let power = Arc::new(Power::default());
    let mut comebacks = comebacks(&stage, &power);
    comebacks.look().await.unwrap();
    stage.is_due().await;
    let other = |model: &mut Model| {
        let others = Uuid::from_u128(77);
        assert_eq!(other_claims(model, others, super::host(1), 2), 204);
    };
    let placement = &stage.bench.placement;
    let met = ScriptedStep::During(Box::new(other));
    placement.once("POST /allocations", met);
    comebacks.look().await.unwrap();
    assert_eq!(power.calls(), [], "it is not started");
    assert_eq!(stage.has(victim(1)), on_host(&DISK), "given back");
    assert!(placement.model(|model| model.over_capacity()).is_empty());
    assert_eq!(stage.kept().await.comeback.tries, 1);
}

#[tokio::test]
async fn a_server_without_room_waits_and_no_attempt_is_counted() {
    let mut stage = Stage::new().await;
    stage.keeps("stop").await;
    stage.is_full(true);
    stage.bench.look().await;
    stage.is_due().await;
    let power = Arc::new(Power::default());
    let mut comebacks = comebacks(&stage, &power);
    comebacks.look().await.unwrap();
    let kept = stage.kept().await;
    assert_eq!(
        (kept.state, kept.comeback.tries),
        (RetainedState::Waiting, 0)
    );
    stage.is_full(false);
    stage.bench.look().await;
    comebacks.look().await.unwrap();
    assert_eq!(power.calls(), [("start", victim(1))]);
}

#[tokio::test]
async fn room_that_another_process_takes_first_is_a_failed_attempt() {
    let mut stage = Stage::new().await;
    stage.keeps("stop").await;
    stage.is_due().await;
    // The scheduler does not know of it yet.
    stage.is_full(true);
    let power = Arc::new(Power::default());
    comebacks(&stage, &power).look().await.unwrap();
    assert_eq!(power.calls(), []);
    assert_eq!(stage.has(victim(1)), on_host(&DISK));
    let kept = stage.kept().await;
    assert_eq!(
        (kept.state, kept.comeback.tries),
        (RetainedState::Waiting, 1)
    );
    assert!(kept.comeback.reason.is_some());
}

#[tokio::test]
async fn one_that_its_owner_has_resized_is_forgotten() {
    let mut stage = Stage::new().await;
    stage.keeps("stop").await;
    stage.is_due().await;
    let resized = [("VCPU", 1), ("DISK_GB", 1)];
    let status = stage
        .bench
        .placement
        .model(|m| write(m, victim(1), &resized));
    assert_eq!(status, 204);
    let power = Arc::new(Power::default());
    comebacks(&stage, &power).look().await.unwrap();
    assert_eq!(power.calls(), []);
    assert_eq!(stage.has(victim(1)), on_host(&resized));
    assert_eq!(stage.ledger.comebacks().await.unwrap(), []);
}

#[tokio::test]
async fn what_was_claimed_for_a_start_that_nova_refuses_is_given_back() {
    let mut stage = Stage::new().await;
    stage.keeps("stop").await;
    stage.is_due().await;
    let power = Arc::new(Power {
        refuses: true,
        ..Power::default()
    });
    comebacks(&stage, &power).look().await.unwrap();
    assert_eq!(power.calls(), [("start", victim(1))]);
    assert_eq!(stage.has(victim(1)), on_host(&DISK));
    let kept = stage.kept().await;
    assert_eq!(
        (kept.state, kept.comeback.tries),
        (RetainedState::Waiting, 1)
    );
    let why = kept.comeback.reason;
    assert_eq!(why.as_deref(), Some("its instance is locked"));
}

#[tokio::test]
async fn one_that_its_owner_starts_gets_its_claim_and_is_not_started_again() {
    let mut stage = Stage::new().await;
    stage.keeps("stop").await;
    stage.is_due().await;
    stage.sets(1, "vm_state = 'active', power_state = 1").await;
    stage.bench.look().await;
    let power = Arc::new(Power::default());
    comebacks(&stage, &power).look().await.unwrap();
    assert_eq!(power.calls(), []);
    assert_eq!(stage.has(victim(1)), on_host(&VICTIM));
    let kept = stage.kept().await;
    assert!(
        matches!(kept.state, RetainedState::Running { .. }),
        "{kept:?}"
    );
    assert_eq!(kept.comeback.resumed_at, None, "it counts for no turn");
}

#[tokio::test]
async fn a_locked_server_stays_stopped_and_a_deleted_one_is_forgotten() {
    let mut stage = Stage::new().await;
    stage.keeps("stop").await;
    stage.is_due().await;
    stage.sets(1, "locked = 1").await;
    stage.bench.look().await;
    let power = Arc::new(Power::default());
    comebacks(&stage, &power).look().await.unwrap();
    assert_eq!(power.calls(), []);
    stage.is_deleted(1).await;
    // A scheduler that starts reads that from Nova.
    let other = Selector {
        facts: stage.facts().await,
        ..stage.bench.selector.clone()
    };
    let mut later = comebacks_of(&other, &power, ReservedHeadroom::default());
    later.look().await.unwrap();
    assert_eq!(power.calls(), []);
    assert_eq!(stage.ledger.comebacks().await.unwrap(), []);
}

#[tokio::test]
async fn a_shelved_server_is_unshelved_when_a_request_for_it_would_find_room() {
    let mut stage = Stage::new().await;
    stage.keeps("hibernate").await;
    stage.is_due().await;
    stage.is_full(true);
    stage.bench.look().await;
    let power = Arc::new(Power::default());
    let mut comebacks = comebacks(&stage, &power);
    comebacks.look().await.unwrap();
    assert_eq!(power.calls(), []);
    stage.is_full(false);
    stage.bench.look().await;
    comebacks.look().await.unwrap();
    assert_eq!(power.calls(), [("unshelve", victim(1))]);
    assert_eq!(
        stage.has(victim(1)),
        Default::default(),
        "Nova's request claims"
    );
}

#[tokio::test]
async fn a_shelved_server_comes_back_only_where_its_own_request_may_go() {
    let mut stage = Stage::new().await;
    stage.keeps("hibernate").await;
    stage.is_due().await;
    stage.bench.look().await;
    let power = Arc::new(Power::default());
    // No host runs guests of the first architecture.
    for (architecture, calls) in [(Some("aarch64"), 0), (None, 1)] {
        stage.asked(architecture).await;
        // Each is another scheduler: one that found no host leaves the server out for a while.
        comebacks(&stage, &power).look().await.unwrap();
        assert_eq!(power.calls().len(), calls, "{architecture:?}");
    }
    assert_eq!(power.calls(), [("unshelve", victim(1))]);
}

#[tokio::test]
async fn no_server_comes_back_into_the_room_that_headroom_keeps() {
    let mut stage = Stage::new().await;
    stage.keeps("stop").await;
    stage.is_due().await;
    let flavor = ServerRequest::normal(newcomer(1), 2).flavor();
    stage.bench.sells(&flavor).await;
    let options = HeadroomOptions {
        rules: vec!["small:1".parse().unwrap()],
        every: Duration::from_secs(30),
        lead: Seconds(120),
    };
    let selector = &stage.bench.selector;
    let mut keeper = HeadroomController::new(selector, options, &Metrics::default());
    let power = Arc::new(Power::default());
    // Each is another scheduler: one that found no room leaves the server out for a while.
    let look = async |kept: ReservedHeadroom| {
        comebacks_of(selector, &power, kept).look().await.unwrap();
        power.calls()
    };
    assert_eq!(
        look(keeper.reserved_headroom()).await,
        [],
        "no look at the rule yet"
    );
    keeper.look().await;
    assert_eq!(look(keeper.reserved_headroom()).await, [], "the only host");
    assert_eq!(stage.kept().await.comeback.tries, 0);
    assert_eq!(
        look(ReservedHeadroom::default()).await,
        [("start", victim(1))]
    );
}
