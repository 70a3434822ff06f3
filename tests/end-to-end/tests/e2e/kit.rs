//! Short words for long calls.

use ebbtide_harness::eventually;
use ebbtide_integration_tests::Region;
use ebbtide_integration_tests::region::PATIENCE;
use ebbtide_proto::v1;
use std::collections::HashMap;

/// A flavor with `vcpus` CPUs, 1000 MB and 10 GB for each.
pub(crate) async fn flavor(region: &Region, name: &str, vcpus: u32, specs: &[(&str, &str)]) {
    let extra_specs = specs
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect();
    let (ram_mb, disk_gb) = (vcpus * 1000, vcpus * 10);
    let flavor = v1::Flavor {
        name: name.to_owned(),
        vcpus,
        ram_mb,
        disk_gb,
        extra_specs,
        ..Default::default()
    };
    region
        .admin()
        .await
        .unwrap()
        .create_flavor(v1::CreateFlavorRequest {
            flavor: Some(flavor),
        })
        .await
        .unwrap();
}

/// A preemptible flavor with a grace period.
pub(crate) async fn preemptible(region: &Region, name: &str, vcpus: u32, grace: u32) {
    let grace = grace.to_string();
    flavor(
        region,
        name,
        vcpus,
        &[
            ("ebbtide:preemptible", "true"),
            ("ebbtide:grace_seconds", &grace),
        ],
    )
    .await;
}

/// A request for `count` servers of a flavor.
pub(crate) fn request(flavor: &str, count: u32) -> v1::PlacementRequest {
    v1::PlacementRequest {
        count,
        flavor: flavor.to_owned(),
        project_id: "tests".to_owned(),
        ..Default::default()
    }
}

/// Creates servers; returns them with the decision.
pub(crate) async fn create(
    region: &Region,
    name: &str,
    request: v1::PlacementRequest,
) -> (Vec<v1::Server>, v1::Decision) {
    let create = v1::CreateServersRequest {
        max_price: String::new(),
        name: name.to_owned(),
        request: Some(request),
    };
    let created = region
        .servers()
        .await
        .unwrap()
        .create_servers(create)
        .await
        .unwrap()
        .into_inner();
    (created.servers, created.decision.unwrap())
}

/// A server as it is now.
pub(crate) async fn server(region: &Region, id: &str) -> v1::Server {
    let get = v1::GetServerRequest { id: id.to_owned() };
    region
        .servers()
        .await
        .unwrap()
        .get_server(get)
        .await
        .unwrap()
        .into_inner()
        .server
        .unwrap()
}

/// Waits until a server has a status, and returns it.
#[track_caller]
pub(crate) fn until(region: &Region, id: &str, status: &str) -> impl Future<Output = v1::Server> {
    let (id, status) = (id.to_owned(), status.to_owned());
    eventually(PATIENCE, async move || -> Result<v1::Server, String> {
        let mut servers = region.servers().await.map_err(|e| e.to_string())?;
        let get = v1::GetServerRequest { id: id.clone() };
        let server = servers
            .get_server(get)
            .await
            .map_err(|e| e.to_string())?
            .into_inner()
            .server
            .unwrap();
        if server.status == status {
            Ok(server)
        } else {
            Err(format!(
                "{} is {} ({}), not {status}",
                server.name, server.status, server.fault_message
            ))
        }
    })
}

/// Fills every host of a four-host region with two preemptible servers of 4 CPUs; returns name to
/// id.
pub(crate) async fn fill(region: &Region, grace: u32) -> HashMap<String, String> {
    preemptible(region, "p.half", 4, grace).await;
    flavor(region, "half", 4, &[]).await;
    flavor(region, "whole", 8, &[]).await;
    let (servers, _) = create(region, "cattle", request("p.half", 8)).await;
    let mut ids = HashMap::new();
    for server in &servers {
        until(region, &server.id, "active").await;
        ids.insert(server.name.clone(), server.id.clone());
    }
    ids
}

/// All evacuations.
pub(crate) async fn evacuations(region: &Region) -> Vec<v1::Evacuation> {
    let list = v1::ListEvacuationsRequest::default();
    region
        .servers()
        .await
        .unwrap()
        .list_evacuations(list)
        .await
        .unwrap()
        .into_inner()
        .evacuations
}

/// Waits until the evacuation of a victim has a state.
#[track_caller]
pub(crate) fn until_evacuation(
    region: &Region,
    victim: &str,
    state: &str,
) -> impl Future<Output = v1::Evacuation> {
    let (victim, state) = (victim.to_owned(), state.to_owned());
    eventually(PATIENCE, async move || -> Result<v1::Evacuation, String> {
        let mut servers = region.servers().await.map_err(|e| e.to_string())?;
        let list = v1::ListEvacuationsRequest {
            server_id: victim.clone(),
            ..Default::default()
        };
        let all = servers
            .list_evacuations(list)
            .await
            .map_err(|e| e.to_string())?
            .into_inner()
            .evacuations;
        let seen: Vec<String> = all.iter().map(|e| e.state.clone()).collect();
        all.into_iter()
            .find(|e| e.state == state)
            .ok_or_else(|| format!("{seen:?}, not {state}"))
    })
}

/// The audit finds nothing: database, memory and agents agree. What was under way when it was asked
/// may take a moment.
pub(crate) async fn the_audit_is_clean(region: &Region) {
    let mut admin = region.admin().await.unwrap();
    eventually(PATIENCE, async || {
        let report = admin.clone().audit(v1::AuditRequest {}).await;
        let report = report.map_err(|status| status.to_string())?.into_inner();
        match report.findings.is_empty() {
            true => Ok(()),
            false => Err(format!("{:?}", report.findings)),
        }
    })
    .await;
    // Asked once more, so that a connection that broke with a scheduler is not taken for an answer.
    let report = admin.audit(v1::AuditRequest {}).await.unwrap();
    assert_eq!(report.into_inner().findings, []);
}

/// What the hosts hold must never be more than they have, in what the region believes; and the
/// audit agrees.
pub(crate) async fn nothing_is_overcommitted(region: &Region) {
    the_audit_is_clean(region).await;
    let hosts = region
        .admin()
        .await
        .unwrap()
        .list_hosts(v1::ListHostsRequest {})
        .await
        .unwrap()
        .into_inner()
        .hosts;
    for host in hosts {
        for class in &host.resources {
            assert!(class.free_normal >= 0, "{}: {class:?}", host.name);
            assert!(
                class.normal + class.preemptible <= class.capacity,
                "{}: {class:?}",
                host.name
            );
        }
    }
}

/// The stable code of a refused call.
pub(crate) fn code(status: &tonic::Status) -> String {
    use tonic_types::StatusExt;
    status
        .get_details_error_info()
        .map(|info| info.reason)
        .unwrap_or_default()
}
