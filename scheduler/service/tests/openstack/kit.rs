//! An OpenStack with servers of two projects and a preemption under way, and its API.

use super::keystone::Cloud;
use crate::curl::{HttpService, ask};
use ebbtide_config::CallerLimits;
use ebbtide_keystone::AuthTokenOptions;
use ebbtide_model::{
    DecisionId, EvacuationCause, EvacuationId, InterruptionBehaviour, Seconds, ServerId, Timestamp,
};
use ebbtide_nova_databases::{CloudDatabases, compute_uuid, instance_uuid};
use ebbtide_nova_service::CloudReader;
use ebbtide_nova_service::preemption::{
    Holding, Newcomer, Preemption, PreemptionState, ReplyWhen, Victim, VictimState,
};
use ebbtide_placement_model::{InProcess, Model, ModelRequest};
use ebbtide_runtime::clock;
use ebbtide_scheduler::openstack_api::{OpenStackApi, OpenStackApiConfig};
use ebbtide_store::StoreConfig;
use ebbtide_store::ledger::{Ledger, NewRow};
use oslo_config::Config;
use serde_json::json;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// The host's name: that of its nova-compute.
pub(crate) const HOST: &str = "compute1";
/// The project of the other tenant.
pub(crate) const OTHER_PROJECT: &str = "another";
/// The new server that two servers have to leave for.
pub(crate) const NEWCOMER: Uuid = Uuid::from_u128(0x4000_0000_0000_4000_8000_0000_0000_0001);
/// The decision about it.
pub(crate) const DECISION: DecisionId =
    DecisionId(Uuid::from_u128(0x5000_0000_0000_4000_8000_0000_0000_0001));

/// One host with eight VCPUs and four preemptible servers of two VCPUs: 1 and 2 of the project of
/// Keystone, 3 and 4 of the other. 2 and 3 are leaving.
pub(crate) struct OpenStack {
    pub(crate) keystone: Cloud,
    /// When the servers that are leaving end.
    pub(crate) deadline: Timestamp,
    /// The policy file; empty.
    pub(crate) policy: PathBuf,
    pub(crate) evacuations: [EvacuationId; 2],
    /// The database of ledger and decisions.
    pub(crate) database: StoreConfig,
    pub(crate) nova: CloudDatabases,
    reader: CloudReader,
    api: OpenStackApi,
    stop: CancellationToken,
    _placement: InProcess,
    _folder: TempDir,
}

impl HttpService for OpenStack {
    fn address(&self) -> SocketAddr {
        self.api.address
    }
}

pub(crate) fn server(n: i64) -> ServerId {
    instance_uuid(n).parse().unwrap()
}

fn host() -> Uuid {
    compute_uuid(1).parse().unwrap()
}

pub(crate) fn holding(project_id: &str, vcpus: u64) -> Holding {
    Holding {
        allocations: json!({host().to_string(): {"resources": {
            "VCPU": vcpus, "MEMORY_MB": 1024, "DISK_GB": 1,
        }}}),
        mappings: None,
        project_id: project_id.to_owned(),
        user_id: "u1".to_owned(),
        generation: Some(1),
    }
}

fn claim(placement: &InProcess, consumer: ServerId, project_id: &str) {
    let body = json!({
        "allocations": holding(project_id, 2).allocations,
        "project_id": project_id,
        "user_id": "u1",
        "consumer_generation": null,
    });
    let path = format!("/allocations/{consumer}");
    let request = ModelRequest {
        method: "PUT",
        path: &path,
        version: (1, 36),
        body: Some(&body),
    };
    let status = placement.model(|model| model.ask(request).status);
    assert_eq!(status, 204);
}

/// What a scheduler has written of its preemption.
fn preemption(evacuations: [EvacuationId; 2], project: &str, deadline: Timestamp) -> Preemption {
    let victim = |(n, project_id, evacuation): (i64, &str, EvacuationId)| Victim {
        server: server(n),
        name: format!("server {n}"),
        cost: 2.5,
        evacuation,
        host: HOST.to_owned(),
        had: holding(project_id, 2),
        generation: 1,
        keeps: None,
        behaviour: InterruptionBehaviour::Terminate,
        grace: Seconds(600),
        flavor: "m1.small".to_owned(),
        launched_at: None,
        released: false,
        state: VictimState::Draining { deadline },
    };
    let [own, other] = evacuations;
    Preemption {
        id: ebbtide_runtime::ids::new(),
        cause: EvacuationCause::Preemption,
        // No preemption has one; tenants must not see it.
        reclaim_owner: Some("slurm:7".to_owned()),
        decision_id: Some(DECISION),
        request_id: "req-1".to_owned(),
        unique_id: "message 1".to_owned(),
        planned_at: clock::now(),
        state: PreemptionState::Evacuating,
        answerer: None,
        reply_when: ReplyWhen::RoomFree,
        answered: false,
        in_doubt: false,
        unconfirmed: false,
        caller_seen: None,
        newcomers: vec![Newcomer {
            instance: NEWCOMER,
            host: HOST.to_owned(),
            claim: holding("a third", 4),
            before: None,
        }],
        victims: [(2, project, own), (3, OTHER_PROJECT, other)]
            .map(victim)
            .into(),
        result: json!(null),
        reason: None,
        withdrawal: None,
        returned: false,
        give_back_at: None,
        give_back_refusals: 0,
    }
}

async fn write(ledger: &Ledger, record: &Preemption) {
    let row = NewRow {
        id: record.id,
        request_id: record.request_id.clone(),
        request_key: Some(record.unique_id.clone()),
        state: record.state.as_str().to_owned(),
        owner: ledger.register("scheduler1").await.unwrap(),
        newcomers: vec![NEWCOMER],
        victims: record.victims.iter().map(|v| v.server.0).collect(),
        document: serde_json::to_value(record).unwrap(),
    };
    ledger.insert(&row).await.unwrap();
}

fn authtoken(keystone: &Cloud, more: &str) -> AuthTokenOptions {
    let text = format!(
        "[keystone_authtoken]\nauth_type = password\nauth_url = {}\nusername = nova\n\
         user_domain_name = Default\npassword = nova\nproject_name = service\n\
         project_domain_name = Default\nservice_type = preemption\n{more}\n",
        keystone.url()
    );
    let config = Config::of_text(Path::new("nova.conf"), &text).unwrap();
    AuthTokenOptions::read(&config).unwrap()
}

impl OpenStack {
    /// With further lines of `[keystone_authtoken]`.
    pub(crate) async fn start(more: &str) -> Self {
        Self::start_after(more, async |_, _, _| ()).await
    }

    /// The same after a past: what is in Nova's databases and in the ledger before the API is
    /// there, for the project of Keystone.
    pub(crate) async fn start_after(
        more: &str,
        past: impl AsyncFnOnce(&CloudDatabases, &Ledger, &str),
    ) -> Self {
        Self::start_with(more, CallerLimits::default(), past).await
    }

    /// The same with these limits of callers.
    pub(crate) async fn start_with(
        more: &str,
        limits: CallerLimits,
        past: impl AsyncFnOnce(&CloudDatabases, &Ledger, &str),
    ) -> Self {
        let keystone = Cloud::start("").await;
        let folder = tempfile::tempdir().unwrap();
        let policy = folder.path().join("policy.yaml");
        std::fs::write(&policy, "# The defaults.\n").unwrap();
        let nova = CloudDatabases::sqlite().await;
        nova.add_host(1, "2026-01-01 00:00:00").await;
        nova.cell
            .sql("UPDATE services SET last_seen_up = datetime('now', '+1 minute')")
            .await;
        let mut model = Model::new();
        model.add_host(host(), "node1", 8, 16_000, 160);
        let placement = InProcess::new(model);
        for n in 1..=4 {
            nova.add_instance(n, HOST, "2026-01-01 00:00:00").await;
            let project = if n <= 2 {
                &keystone.project
            } else {
                OTHER_PROJECT
            };
            let row = format!(
                "UPDATE instances SET project_id = '{project}', node = 'node1', \
                 display_name = 'web-{n}' WHERE id = {n}"
            );
            nova.cell.sql(&row).await;
            claim(&placement, server(n), project);
        }
        let url = format!("sqlite:{}", folder.path().join("ledger.db").display());
        let database = StoreConfig::new(&url).unwrap();
        let ledger = Ledger::open(&database).await.unwrap();
        let deadline = clock::now().plus(Seconds(500));
        let ids = [(); 2].map(|()| EvacuationId(ebbtide_runtime::ids::new()));
        write(&ledger, &preemption(ids, &keystone.project, deadline)).await;
        past(&nova, &ledger, &keystone.project).await;
        let reader = CloudReader::of_databases(nova.open().await, placement.client(), ledger);
        let stop = CancellationToken::new();
        let config = OpenStackApiConfig {
            address: "127.0.0.1:0".parse().unwrap(),
            authtoken: authtoken(&keystone, more),
            ledger: Some(database.clone()),
            policy: Some(policy.clone()),
            limits,
            tls: None,
        };
        let reader = reader.await.unwrap();
        let api = OpenStackApi::over(config, reader.clone(), |_| {}, stop.clone()).await;
        let cloud = Self {
            keystone,
            deadline,
            policy,
            evacuations: ids,
            database,
            nova,
            reader,
            api: api.unwrap(),
            stop,
            _placement: placement,
            _folder: folder,
        };
        // On a busy machine Keystone's first answers take longer than a request may wait.
        let answers = async || {
            let answer = ask(&cloud, &cloud.keystone.admin, "/v1/servers", &[]).await;
            match answer.status {
                200 => Ok(()),
                status => Err(status),
            }
        };
        ebbtide_harness::eventually(Duration::from_secs(120), answers).await;
        cloud
    }

    /// A flavor that every project may use, with one extra spec.
    pub(crate) async fn sell(&self, id: i64, name: &str, vcpus: u64, spec: (&str, &str)) {
        let text = |text: &str| format!("'{text}'");
        let (id, vcpus) = (id.to_string(), vcpus.to_string());
        let (name, flavorid) = (text(name), text(&format!("f{id}")));
        let row = [
            ("id", id.as_str()),
            ("name", &name),
            ("flavorid", &flavorid),
            ("memory_mb", "512"),
            ("vcpus", &vcpus),
            ("swap", "0"),
            ("root_gb", "1"),
            ("ephemeral_gb", "0"),
            ("disabled", "FALSE"),
            ("is_public", "TRUE"),
        ];
        self.nova.api.insert("flavors", &row).await;
        let (key, value) = (text(spec.0), text(spec.1));
        let row = [
            ("id", id.as_str()),
            ("flavor_id", &id),
            ("key", &key),
            ("value", &value),
        ];
        self.nova.api.insert("flavor_extra_specs", &row).await;
    }

    /// A server group of a project.
    pub(crate) async fn group(&self, n: i64, name: &str, project: &str) -> String {
        let uuid = format!("55555555-5555-4555-8555-{n:012}");
        let text = |text: &str| format!("'{text}'");
        let (id, quoted) = (n.to_string(), text(&uuid));
        let (name, project) = (text(name), text(project));
        let row = [
            ("id", id.as_str()),
            ("uuid", &quoted),
            ("name", &name),
            ("project_id", &project),
        ];
        self.nova.api.insert("instance_groups", &row).await;
        let row = [
            ("id", id.as_str()),
            ("group_id", &id),
            ("policy", "'anti-affinity'"),
            ("rules", "'{}'"),
        ];
        self.nova.api.insert("instance_group_policy", &row).await;
        uuid
    }

    /// All servers get this state in Nova.
    pub(crate) async fn servers_become(&self, vm_state: &str) {
        let sql = format!("UPDATE instances SET vm_state = '{vm_state}'");
        self.nova.cell.sql(&sql).await;
        self.reader.read_again().await.unwrap();
    }

    /// Nova has deleted a server. Nothing tells the scheduler.
    pub(crate) async fn server_goes(&self, n: i64) {
        let sql = format!(
            "UPDATE instances SET deleted = id, vm_state = 'deleted', deleted_at = \
             datetime('now'), updated_at = datetime('now') WHERE id = {n}"
        );
        self.nova.cell.sql(&sql).await;
    }

    pub(crate) async fn end(self) {
        self.stop.cancel();
        self.api.finish().await;
    }
}
