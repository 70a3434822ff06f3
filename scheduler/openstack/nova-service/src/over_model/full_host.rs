//! A full host whose preemptible instances can leave: a ledger, a broker, an agent, and records of
//! preemptions.

use super::agents::Agent;
use super::{Bench, LONG, facts, host, message_for};
use crate::Tasks;
use crate::evacuate::Evacuations;
use crate::facts::Facts;
use crate::metrics::Metrics;
use crate::preemption::{
    Holding, Newcomer, Preemption, PreemptionInput, PreemptionPolicy, PreemptionState, ReplyWhen,
    Victim, VictimState,
};
use ebbtide_bus::{Bus, InProcessBroker, QueuePrefix};
use ebbtide_model::message::Body;
use ebbtide_model::{EvacuationCause, EvacuationId, InterruptionBehaviour, Seconds, ServerId};
use ebbtide_nova::model::Options;
use ebbtide_nova_databases::instance_uuid;
use ebbtide_placement_model::{Model, ModelRequest};
use ebbtide_runtime::clock;
use ebbtide_store::ledger::{Ledger, LedgerRow, NewRow, UpdateResult};
use ebbtide_store::{Durability, StoreConfig};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// What a victim holds on its host: it boots from a volume.
pub(super) const VICTIM: [(&str, u64); 3] = [("VCPU", 2), ("MEMORY_MB", 1024), ("DISK_GB", 1)];

/// A cloud of one host with four victims, which fill its eight VCPUs. No scheduler runs yet.
pub(super) struct FullHost {
    pub(super) bench: Bench,
    pub(super) ledger: Ledger,
    /// The agent of the host, until a test takes it.
    agent: Option<Agent>,
    pub(super) broker: InProcessBroker,
    prefix: QueuePrefix,
    ledger_url: String,
}

pub(super) fn victim(n: i64) -> Uuid {
    instance_uuid(n).parse().unwrap()
}

pub(super) fn on_host(amounts: &[(&str, u64)]) -> BTreeMap<Uuid, BTreeMap<String, u64>> {
    let amounts = amounts.iter().map(|(class, n)| ((*class).to_owned(), *n));
    BTreeMap::from([(host(1), amounts.collect())])
}

/// What a record says of amounts on the host.
pub(super) fn holding(amounts: &[(&str, u64)], generation: Option<u64>) -> Holding {
    let amounts: BTreeMap<&str, u64> = amounts.iter().copied().collect();
    Holding {
        allocations: json!({host(1).to_string(): {"resources": amounts}}),
        mappings: None,
        project_id: "p1".to_owned(),
        user_id: "u1".to_owned(),
        generation,
    }
}

/// Another process writes what a consumer holds on the host: nothing takes all from it.
pub(super) fn write(model: &mut Model, consumer: Uuid, amounts: &[(&str, u64)]) -> u16 {
    let resources: BTreeMap<&str, u64> = amounts.iter().copied().collect();
    let mut allocations = json!({host(1).to_string(): {"resources": resources}});
    if amounts.is_empty() {
        allocations = json!({});
    }
    let body = json!({
        "allocations": allocations,
        "project_id": "p1",
        "user_id": "u1",
        "consumer_generation": model.consumer(consumer).map(|known| known.generation),
    });
    replay(model, "PUT", &format!("/allocations/{consumer}"), &body)
}

/// A request of another process; its status.
pub(super) fn replay(model: &mut Model, method: &str, path: &str, body: &Value) -> u16 {
    let request = ModelRequest {
        method,
        path,
        version: (1, 36),
        body: Some(body),
    };
    model.ask(request).status
}

impl FullHost {
    pub(super) async fn new() -> Self {
        let bench = Bench::of_hosts(1).await;
        let url = format!("sqlite:{}", bench.file("ledger.db").display());
        Self::over(bench, url).await
    }

    /// The same, with Nova's databases and the ledger where they are said to be.
    pub(super) async fn over(bench: Bench, ledger_url: String) -> Self {
        for n in 1..=4 {
            let uuid = bench
                .nova
                .add_instance(n, "compute1", "2026-01-01 00:00:00")
                .await;
            let text = format!("'{uuid}'");
            let mapping = [
                ("instance_uuid", text.as_str()),
                ("cell_id", "2"),
                ("project_id", "'p1'"),
            ];
            bench.nova.api.insert("instance_mappings", &mapping).await;
            let status = bench.placement.model(|m| write(m, victim(n), &VICTIM));
            assert_eq!(status, 204);
        }
        bench
            .nova
            .cell
            .sql("UPDATE instances SET node = 'node1'")
            .await;
        bench.look().await;
        let ledger = open_ledger(&ledger_url).await;
        let broker = InProcessBroker::new();
        let prefix = QueuePrefix::new("ebbtide").unwrap();
        let agent = Agent::of("compute1", &broker, &prefix).await;
        Self {
            bench,
            ledger,
            agent: Some(agent),
            broker,
            prefix,
            ledger_url,
        }
    }

    /// Where the ledger is.
    pub(super) fn ledger_url(&self) -> String {
        self.ledger_url.clone()
    }

    /// What a scheduler knows of the cloud when it starts.
    pub(super) async fn facts(&self) -> Facts {
        facts(&self.bench.nova, &self.bench.placement, Options::default()).await
    }

    /// A scheduler with connections of its own.
    pub(super) async fn scheduler(
        &self,
        name: &str,
        known: Facts,
        bus: Arc<dyn Bus>,
        policy: PreemptionPolicy,
        tasks: Tasks,
    ) -> Evacuations {
        let ledger = open_ledger(&self.ledger_url).await;
        let owner = ledger.register(name).await.unwrap();
        let evacuations = Evacuations::new(
            known,
            ledger,
            owner,
            bus,
            self.prefix.clone(),
            policy,
            tasks,
            Metrics::default(),
        );
        evacuations.start().await.unwrap();
        evacuations
    }

    /// The same with names of queues that begin otherwise, for a broker that tests share.
    pub(super) fn with_prefix(self, prefix: &str) -> Self {
        Self {
            prefix: QueuePrefix::new(prefix.trim_end_matches('.')).unwrap(),
            ..self
        }
    }

    /// How the queues of this cloud begin.
    pub(super) fn prefix(&self) -> QueuePrefix {
        self.prefix.clone()
    }

    /// The agent, for the test to play.
    pub(super) fn take_agent(&mut self) -> Agent {
        self.agent.take().unwrap()
    }

    /// A plan: these victims leave for so many VCPUs.
    pub(super) async fn plan(&self, newcomer: Uuid, victims: &[i64], vcpus: u64) -> Preemption {
        self.bench.expect(newcomer).await;
        let victims = victims.iter().map(|n| self.planned(victim(*n)));
        let claim = [("VCPU", vcpus), ("MEMORY_MB", 512), ("DISK_GB", 1)];
        Preemption {
            id: ebbtide_runtime::ids::new(),
            cause: EvacuationCause::Preemption,
            reclaim_owner: None,
            decision_id: None,
            request_id: "req-1".to_owned(),
            unique_id: message_for(newcomer),
            planned_at: clock::now(),
            state: PreemptionState::Planned,
            answerer: None,
            reply_when: ReplyWhen::RoomFree,
            answered: false,
            in_doubt: false,
            unconfirmed: false,
            caller_seen: None,
            newcomers: vec![Newcomer {
                instance: newcomer,
                host: "compute1".to_owned(),
                claim: holding(&claim, None),
                before: None,
            }],
            victims: victims.collect(),
            result: json!("the place"),
            reason: None,
            withdrawal: None,
            returned: false,
            give_back_at: None,
            give_back_refusals: 0,
        }
    }

    pub(super) fn planned(&self, server: Uuid) -> Victim {
        let known = self
            .bench
            .placement
            .model(|model| model.consumer(server).cloned());
        let generation = known.unwrap().generation;
        Victim {
            server: ServerId(server),
            name: String::new(),
            cost: 0.0,
            evacuation: EvacuationId(ebbtide_runtime::ids::new()),
            host: "compute1".to_owned(),
            had: holding(&VICTIM, Some(generation)),
            generation,
            keeps: None,
            behaviour: InterruptionBehaviour::Terminate,
            grace: Seconds(0),
            flavor: "m1.small".to_owned(),
            launched_at: None,
            released: false,
            state: VictimState::Claimed,
        }
    }

    /// A scheduler has written a plan down and died.
    pub(super) async fn leave_behind(&self, plan: &Preemption) -> LedgerRow {
        let row = self.written_by_another(plan).await;
        // Another life of that name: the one that wrote the row is over.
        self.ledger.register("other").await.unwrap();
        row
    }

    /// A scheduler that lives has written a plan down.
    pub(super) async fn written_by_another(&self, plan: &Preemption) -> LedgerRow {
        let owner = self.ledger.register("other").await.unwrap();
        let row = NewRow {
            id: plan.id,
            request_id: plan.request_id.clone(),
            request_key: Some(plan.unique_id.clone()),
            state: plan.state.as_str().to_owned(),
            owner,
            newcomers: plan.newcomers.iter().map(|n| n.instance).collect(),
            victims: plan.victims.iter().map(|v| v.server.0).collect(),
            document: serde_json::to_value(plan).unwrap(),
        };
        self.ledger.insert(&row).await.unwrap();
        self.row(plan.id).await
    }

    /// The scheduler that died had sent its swap, and Placement has taken it; the swap.
    pub(super) fn swap_as_planned(&self, plan: &Preemption) -> Value {
        let entry = |allocations: &Value, generation: Option<u64>| {
            json!({
                "allocations": allocations,
                "project_id": "p1",
                "user_id": "u1",
                "consumer_generation": generation,
            })
        };
        let victims = plan.victims.iter().map(|victim| {
            let entry = entry(&json!({}), Some(victim.generation));
            (victim.server.0.to_string(), entry)
        });
        let newcomers = plan.newcomers.iter().map(|newcomer| {
            let entry = entry(&newcomer.claim.allocations, None);
            (newcomer.instance.to_string(), entry)
        });
        let swap = Value::Object(victims.chain(newcomers).collect());
        let placement = &self.bench.placement;
        let status = placement.model(|model| replay(model, "POST", "/allocations", &swap));
        assert_eq!(status, 204);
        swap
    }

    pub(super) async fn row(&self, id: Uuid) -> LedgerRow {
        self.ledger.row(id).await.unwrap().unwrap()
    }

    /// Another scheduler gets a report of a victim that was told, and writes it into the row.
    pub(super) async fn reported_to_another(&self, id: Uuid, body: &Body) {
        let written = async {
            loop {
                tokio::time::sleep(Duration::from_millis(20)).await;
                let Some(row) = self.ledger.row(id).await.unwrap() else {
                    continue;
                };
                let mut record: Preemption = serde_json::from_value(row.document).unwrap();
                if !record.feed(
                    &PreemptionInput::Report(body),
                    clock::now(),
                    &PreemptionPolicy::default(),
                ) {
                    continue;
                }
                let (state, document) = (record.state.as_str(), json!(record));
                let update = self.ledger.update(id, row.version, state, &document);
                if matches!(update.await.unwrap(), UpdateResult::Updated(_)) {
                    return;
                }
            }
        };
        let written = tokio::time::timeout(LONG, written).await;
        written.expect("the row takes the report");
    }

    /// Waits until a record is over; the record.
    pub(super) async fn end_of(&self, id: Uuid) -> Preemption {
        let over = async {
            loop {
                let row = self.row(id).await;
                if row.finished {
                    return serde_json::from_value(row.document).unwrap();
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let over = tokio::time::timeout(LONG, over).await;
        over.expect("the preemption ends")
    }

    /// What a consumer holds, whole.
    pub(super) fn has(&self, consumer: Uuid) -> BTreeMap<Uuid, BTreeMap<String, u64>> {
        self.bench.placement.model(|model| model.holds(consumer))
    }

    /// Writes of several consumers at once that Placement has seen, from the oldest.
    pub(super) fn posts(&self) -> Vec<Value> {
        let seen = self.bench.placement.seen().into_iter();
        seen.filter(|seen| seen.what.starts_with("POST /allocations"))
            .map(|seen| seen.body)
            .collect()
    }

    /// Nova runs a newcomer on the host, in the row of that number.
    pub(super) async fn comes(&self, newcomer: Uuid, row: i64) {
        let nova = &self.bench.nova;
        let uuid = nova
            .add_instance(row, "compute1", "2026-01-01 00:00:00")
            .await;
        let sql = format!("UPDATE instances SET uuid = '{newcomer}' WHERE uuid = '{uuid}'");
        nova.cell.sql(&sql).await;
        let sql =
            format!("UPDATE instance_mappings SET cell_id = 2 WHERE instance_uuid = '{newcomer}'");
        nova.api.sql(&sql).await;
    }

    /// Deletes the build request: the caller does not wait for the instance's host any more.
    pub(super) async fn caller_leaves(&self, newcomer: Uuid) {
        let sql = format!("DELETE FROM build_requests WHERE instance_uuid = '{newcomer}'");
        self.bench.nova.api.sql(&sql).await;
    }
}

pub(super) async fn open_ledger(url: &str) -> Ledger {
    let mut config = StoreConfig::new(url).unwrap();
    config.durability = Durability::Normal;
    Ledger::open(&config).await.unwrap()
}
