//! One host, one victim, one preemptor, as often as wanted; and what must be true of them in the
//! end.

use crate::kit::{code, evacuations, flavor, preemptible, request, the_audit_is_clean, until};
use ebbtide_harness::{ProcessCommand, eventually};
use ebbtide_integration_tests::region::PATIENCE;
use ebbtide_integration_tests::{Region, RegionOptions, bin};
use ebbtide_proto::v1;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use uuid::Uuid;

/// Short limits, so that every wait for a missing event becomes visible. A host that is silent for
/// 6 s is down, so the audit covers everything that has been at rest for 3 s.
pub(super) const LIMITS: &str = "notice_timeout_seconds = 3\nnotice_attempts = 3\nact_timeout_seconds = 10\n\
     start_timeout_seconds = 20\nhost_down_seconds = 6\nfailed_victim_rest_seconds = 1";

/// How long one attempt to reach a scheduler may take that is being killed.
const ATTEMPT: Duration = Duration::from_secs(10);

/// One host, which one server fills.
pub(super) fn one_host() -> RegionOptions {
    RegionOptions {
        hosts: vec!["host-A".to_owned()],
        region: LIMITS.to_owned(),
        database_options: "lease_seconds = 2".to_owned(),
        ..RegionOptions::default()
    }
}

/// The flavors of the story: `victim` with a grace period of a second, `patient` with one of ten
/// minutes, `pet`.
pub(super) async fn flavors(region: &Region) {
    preemptible(region, "victim", 8, 1).await;
    preemptible(region, "patient", 8, 600).await;
    flavor(region, "pet", 8, &[]).await;
}

/// Creates one server under a known id and repeats the request until it succeeds, as a caller
/// without an answer does.
pub(super) async fn insist(region: &Region, name: &str, flavor: &str, id: Uuid) -> v1::Server {
    eventually(PATIENCE, async || {
        try_to_create(region, name, flavor, id).await
    })
    .await
}

/// One attempt of [`insist`].
pub(super) async fn try_to_create(
    region: &Region,
    name: &str,
    flavor: &str,
    id: Uuid,
) -> Result<v1::Server, String> {
    let create = v1::CreateServersRequest {
        max_price: String::new(),
        name: name.to_owned(),
        request: Some(v1::PlacementRequest {
            server_ids: vec![id.to_string()],
            ..request(flavor, 1)
        }),
    };
    let attempt = async {
        let mut servers = region.servers().await.map_err(|e| e.to_string())?;
        let created = servers.create_servers(create).await;
        let mut created = created
            .map_err(|e| format!("{} {e}", code(&e)))?
            .into_inner();
        Ok(created.servers.remove(0))
    };
    match tokio::time::timeout(ATTEMPT, attempt).await {
        Ok(answer) => answer,
        Err(_) => Err("no answer".to_owned()),
    }
}

/// Deletes a server, as often as it takes, and waits until it is gone.
pub(super) async fn delete(region: &Region, id: &str) {
    eventually(PATIENCE, async || try_to_delete(region, id).await).await;
    until(region, id, "deleted").await;
}

/// One attempt to delete a server.
pub(super) async fn try_to_delete(region: &Region, id: &str) -> Result<(), String> {
    let delete = v1::DeleteServerRequest { id: id.to_owned() };
    let attempt = async {
        let mut servers = region.servers().await.map_err(|e| e.to_string())?;
        match servers.delete_server(delete).await {
            Ok(_) => Ok(()),
            // It was gone already: an attempt was heard whose answer was not.
            Err(status) if status.code() == tonic::Code::NotFound => Ok(()),
            Err(status) => Err(status.to_string()),
        }
    };
    match tokio::time::timeout(ATTEMPT, attempt).await {
        Ok(answer) => answer,
        Err(_) => Err("no answer".to_owned()),
    }
}

/// What the simulated hypervisor of a host runs, by its own file: `(server, has a notice)`.
pub(super) fn hypervisor(region: &Region, host: &str) -> Vec<(String, bool)> {
    runs_in(&region.agent_dir(host))
}

/// The same, by the directory in which the hypervisor keeps its state.
pub(super) fn runs_in(dir: &Path) -> Vec<(String, bool)> {
    let text = std::fs::read_to_string(dir.join("hypervisor.json")).unwrap();
    let state: serde_json::Value = serde_json::from_str(&text).unwrap();
    let servers = state["servers"].as_object().cloned().unwrap_or_default();
    servers
        .into_iter()
        .filter(|(_, guest)| guest["state"] == "running")
        .map(|(id, guest)| (id, !guest["notice"].is_null()))
        .collect()
}

/// Exactly these servers run on a host, by what its hypervisor says itself, and none of them has a
/// notice.
pub(super) async fn runs_exactly(region: &Region, host: &str, ids: &[&str]) {
    let wanted: BTreeSet<(String, bool)> = ids.iter().map(|id| ((*id).to_owned(), false)).collect();
    eventually(PATIENCE, async || {
        let there: BTreeSet<_> = hypervisor(region, host).into_iter().collect();
        match there == wanted {
            true => Ok(()),
            false => Err(format!("{host} has {there:?}, not {wanted:?}")),
        }
    })
    .await;
}

/// The one evacuation that a victim has ever had.
pub(super) async fn only_evacuation(region: &Region, victim: &str) -> v1::Evacuation {
    let all = evacuations(region).await;
    let mut its: Vec<_> = all.into_iter().filter(|e| e.victim_id == victim).collect();
    assert_eq!(its.len(), 1, "chosen again: {its:?}");
    its.remove(0)
}

/// The host of [`one_host`], as the region knows it.
pub(super) async fn the_host(region: &Region) -> v1::Host {
    let mut admin = region.admin().await.unwrap();
    let hosts = admin.list_hosts(v1::ListHostsRequest {}).await.unwrap();
    let mut hosts = hosts.into_inner().hosts;
    assert_eq!(hosts.len(), 1, "{hosts:?}");
    hosts.remove(0)
}

/// `ebbtide-manage audit`, as an operator runs it, has nothing to say; asked until what is under
/// way has come to rest.
pub(super) async fn audited(region: &Region) {
    the_audit_is_clean(region).await;
    let log = region.dir().join("audit.log");
    let process = ProcessCommand::new("ebbtide-manage audit", bin("ebbtide-manage"))
        .env("EBBTIDE_ENDPOINT", region.endpoint().unwrap())
        .args(["audit"])
        .spawn(&log)
        .unwrap();
    let status = process.wait_exit(PATIENCE).await.unwrap();
    assert!(status.success(), "{}", process.log_tail());
}
