//! The scheduler's own code without a stack: over Placement in memory, Nova's databases and the
//! ledger on SQLite, and agents that tests play on a broker in the process.
//!
//! What is asked here is what `select_destinations` is asked, with the arguments that Nova's
//! conductor was recorded to send, or a record of a preemption as a plan makes it; what is looked
//! at is what Placement holds.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod adoption;
mod agents;
mod budgets;
mod claims;
mod comebacks;
mod concurrent_writers;
mod confirmation;
mod decisions;
mod decisions_cost;
mod full_host;
mod giving_back;
mod headroom;
mod hostile;
mod lifetimes;
mod market;
mod metrics_cost;
mod plugins;
mod preemptions;
mod quota;
mod reclaims;
mod removals;
mod restored;
mod shadow;
mod single_scheduler;
mod swaps;
mod traces;
mod what_if;
mod worlds;

use crate::Tasks;
use crate::evacuate::PreemptionDriver;
use crate::facts::Facts;
use crate::reader::CloudReader;
use crate::release::CloudRelease;
use crate::select::Selector;
use crate::settings::SelectSettings;
use ebbtide_nova::model::Options;
use ebbtide_nova_cloud::{Cloud, CloudSettings};
use ebbtide_nova_databases::{CloudDatabases as Nova, compute_uuid};
use ebbtide_nova_db::{OldComputePolicy, OwnService};
use ebbtide_placement_model::{InProcess, Model, ModelRequest};
use oslo_messaging::{IncomingCall, RemoteError};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// What Nova's conductor was recorded to ask.
const ASKED: &str = include_str!("../../../../../fuzz/seeds/nova_objects/cap_select_destinations");
/// Longer than anything here takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// A cloud of equal hosts with one scheduler.
pub(super) struct Bench {
    pub(super) placement: InProcess,
    pub(super) nova: Nova,
    pub(super) selector: Selector,
    tasks: Tasks,
    folder: tempfile::TempDir,
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.tasks.stop().cancel();
    }
}

/// What the API reads of a scheduler without plugins.
pub(super) fn reader(selector: &Selector) -> CloudReader {
    CloudReader::new(selector, crate::plugins::none(&selector.facts).unwrap())
}

pub(super) fn host(n: i64) -> Uuid {
    compute_uuid(n).parse().unwrap()
}

pub(super) fn newcomer(n: u128) -> Uuid {
    Uuid::from_u128(0x4000_0000_0000_4000_8000_0000_0000_0000 + n)
}

/// The name of the message that asks for an instance's place.
pub(super) fn message_for(instance: Uuid) -> String {
    format!("message for {instance}")
}

/// What a scheduler knows of a cloud, read anew.
async fn facts(nova: &Nova, placement: &InProcess, options: Options) -> Facts {
    let cloud = Cloud::new(options, CloudSettings::default()).unwrap();
    let facts = Facts::of_sources(cloud, nova.open().await, placement.client());
    facts.database.load().await.unwrap();
    facts.providers.load().await.unwrap();
    facts
}

/// Another process writes allocations.
pub(super) fn other_claims(model: &mut Model, consumer: Uuid, host: Uuid, vcpus: u64) -> u16 {
    let generation = model.consumer(consumer).map(|known| known.generation);
    let body = json!({
        "allocations": {host.to_string(): {"resources": {"VCPU": vcpus}}},
        "project_id": "p1",
        "user_id": "u1",
        "consumer_generation": generation,
    });
    let path = format!("/allocations/{consumer}");
    let request = ModelRequest {
        method: "PUT",
        path: &path,
        version: (1, 36),
        body: Some(&body),
    };
    model.ask(request).status
}

impl Bench {
    /// Hosts of eight VCPUs.
    pub(super) async fn of_hosts(hosts: i64) -> Self {
        Self::with_options(hosts, Options::default()).await
    }

    /// The same, with other filters or weighers.
    pub(super) async fn with_options(hosts: i64, options: Options) -> Self {
        Self::over(Nova::sqlite().await, hosts, options).await
    }

    /// The same, with other databases of Nova.
    pub(super) async fn over(nova: Nova, hosts: i64, options: Options) -> Self {
        let mut model = Model::new();
        for n in 1..=hosts {
            nova.add_host(n, "2026-01-01 00:00:00").await;
            model.add_host(host(n), &format!("node{n}"), 8, 16_000, 160);
        }
        let soon = match nova.cell.url.starts_with("mysql") {
            true => "UTC_TIMESTAMP() + INTERVAL 1 MINUTE",
            false => "datetime('now', '+1 minute')",
        };
        let sql = format!("UPDATE services SET last_seen_up = {soon}");
        nova.cell.sql(&sql).await;
        let placement = InProcess::new(model);
        let facts = facts(&nova, &placement, options).await;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("nova.conf");
        std::fs::write(&file, "[DEFAULT]\nhost = controller\nmy_ip = 127.0.0.1\n").unwrap();
        let conf = crate::read_conf(&[file], &[]).unwrap();
        let shown = None;
        let own = crate::release::recorded(shown, &conf);
        let record = OwnService::start(
            facts.database.nova(),
            "controller",
            own,
            OldComputePolicy::Warn,
        )
        .await
        .unwrap();
        let release = CloudRelease::new(&conf, &facts, record, shown);
        let tasks = Tasks::new(CancellationToken::new());
        let settings = SelectSettings {
            placement_patience: Duration::from_millis(300),
            ..SelectSettings::default()
        };
        let selector = Selector {
            settings: Arc::new(settings),
            release,
            ..Selector::observer(facts, PreemptionDriver::default())
        };
        Self {
            placement,
            nova,
            selector,
            tasks,
            folder,
        }
    }

    /// A file that is gone after the test.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Reads everything anew, as after a start.
    pub(super) async fn look(&self) {
        self.selector.facts.database.load().await.unwrap();
        self.selector.facts.providers.load().await.unwrap();
        for (provider, _) in self.placement.model(|model| {
            let all = model.providers();
            all.map(|(uuid, known)| (uuid, known.generation))
                .collect::<Vec<_>>()
        }) {
            self.selector
                .facts
                .providers
                .refresh(provider)
                .await
                .unwrap();
        }
    }

    /// Nova's conductor asks for a place for a new instance, and waits.
    pub(super) async fn ask(&self, instance: Uuid, vcpus: u64) -> Result<Value, RemoteError> {
        self.ask_as(instance, vcpus, false).await
    }

    /// Nova's API has taken a new instance and waits for its place.
    pub(super) async fn expect(&self, instance: Uuid) {
        let text = format!("'{instance}'");
        let row = [("instance_uuid", text.as_str()), ("project_id", "'p'")];
        self.nova.api.insert("instance_mappings", &row).await;
        self.nova.api.insert("build_requests", &row).await;
    }

    /// Nova's conductor may ask for the place of an instance once more.
    pub(super) async fn forget_expected(&self, instance: Uuid) {
        for table in ["instance_mappings", "build_requests"] {
            let sql = format!("DELETE FROM {table} WHERE instance_uuid = '{instance}'");
            self.nova.api.sql(&sql).await;
        }
    }

    pub(super) async fn ask_as(
        &self,
        instance: Uuid,
        vcpus: u64,
        redelivered: bool,
    ) -> Result<Value, RemoteError> {
        self.ask_for(instance, small(vcpus), redelivered).await
    }

    /// The same, with a recorded request that is changed.
    pub(super) async fn ask_for(
        &self,
        instance: Uuid,
        change: impl FnOnce(&mut Value),
        redelivered: bool,
    ) -> Result<Value, RemoteError> {
        self.ask_of(&self.selector, instance, change, redelivered)
            .await
    }

    /// The same, at another scheduler of the cloud.
    pub(super) async fn ask_of(
        &self,
        selector: &Selector,
        instance: Uuid,
        change: impl FnOnce(&mut Value),
        redelivered: bool,
    ) -> Result<Value, RemoteError> {
        if !redelivered {
            self.expect(instance).await;
        }
        let call = recorded_call(instance, change, redelivered);
        tokio::time::timeout(LONG, selector.select(call))
            .await
            .expect("an answer in time")
    }

    /// What all consumers hold of a host's VCPUs.
    pub(super) fn used(&self, n: i64) -> u64 {
        self.placement.model(|model| model.used(host(n), "VCPU"))
    }

    /// On which hosts a consumer holds how many VCPUs.
    pub(super) fn holds(&self, consumer: Uuid) -> Vec<(Uuid, u64)> {
        let held = self.placement.model(|model| model.holds(consumer));
        held.into_iter()
            .map(|(host, of)| (host, of.get("VCPU").copied().unwrap_or(0)))
            .collect()
    }
}

/// A recorded call that is changed: it asks for a place for `instance`.
pub(super) fn recorded_call(
    instance: Uuid,
    change: impl FnOnce(&mut Value),
    redelivered: bool,
) -> IncomingCall {
    let mut args: Value = serde_json::from_str(ASKED).unwrap();
    args["instance_uuids"] = json!([instance]);
    let spec = &mut args["spec_obj"]["nova_object.data"];
    spec["instance_uuid"] = json!(instance);
    change(spec);
    let Value::Object(args) = args else {
        panic!("arguments")
    };
    let mut call = IncomingCall::detached("select_destinations", args);
    let request = format!("req-{instance}");
    call.context.insert("request_id".to_owned(), json!(request));
    call.message_id = Some("reply".to_owned());
    call.unique_id = Some(message_for(instance));
    call.redelivered = redelivered;
    call
}

/// A flavor of so many VCPUs.
pub(super) fn small(vcpus: u64) -> impl FnOnce(&mut Value) {
    move |spec: &mut Value| {
        spec["flavor"]["nova_object.data"]["vcpus"] = json!(vcpus);
    }
}

/// The host of the first selection of an answer.
pub(super) fn place(answer: &Value) -> String {
    let first = &answer[0][0]["nova_object.data"];
    first["service_host"]
        .as_str()
        .unwrap_or_else(|| panic!("{answer}"))
        .to_owned()
}
