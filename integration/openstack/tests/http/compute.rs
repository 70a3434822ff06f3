//! Nova's API: the calls, the pages, and what its answers mean.

use crate::server::{Reply, Seen, Server, compute};
use ebbtide_openstack::compute::{AcceptedAction, NewServer, ServerFilter, ServerNetworks};
use ebbtide_openstack::{Compute, OpenStackError};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::pin::Pin;
use uuid::Uuid;

const SERVER: Uuid = Uuid::from_u128(5);

fn versions(max: &str) -> Reply {
    Reply::json(
        200,
        &json!({"version": {"id": "v2.1", "version": max, "min_version": "2.1"}}),
    )
}

fn server(id: u128) -> Value {
    json!({
        "id": Uuid::from_u128(id).to_string(), "name": "s", "status": "ACTIVE", "metadata": {"a": "b"},
        "OS-EXT-STS:task_state": null, "OS-EXT-SRV-ATTR:host": "compute1", "OS-SRV-USG:launched_at": "2026-11-20T17:53:30.000000",
        "flavor": {"original_name": "f", "vcpus": 4, "ram": 8000, "disk": 80, "ephemeral": 0, "swap": 0,
                   "extra_specs": {"ebbtide:preemptible": "true"}},
    })
}

async fn nova(
    max: &'static str,
    answer: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
) -> (Server, Compute) {
    let server = Server::start(move |_, seen| {
        if seen.path == "/" {
            versions(max)
        } else {
            answer(seen)
        }
    })
    .await;
    let compute = compute(&server.url);
    (server, compute)
}

type Called<'a> = Pin<Box<dyn Future<Output = Result<AcceptedAction, OpenStackError>> + 'a>>;

#[tokio::test]
async fn each_action_is_sent_as_nova_wants_it() {
    let (server, compute) = nova("2.93", |_| {
        Reply::empty(202).with_header("x-openstack-request-id", "req-of-nova")
    })
    .await;
    let pairs = BTreeMap::from([("ebbtide:notice".to_owned(), "x".to_owned())]);
    let calls: Vec<(Called<'_>, Value)> = vec![
        (Box::pin(compute.stop(SERVER)), json!({"os-stop": null})),
        (Box::pin(compute.start(SERVER)), json!({"os-start": null})),
        (Box::pin(compute.shelve(SERVER)), json!({"shelve": null})),
        (
            Box::pin(compute.shelve_offload(SERVER)),
            json!({"shelveOffload": null}),
        ),
        (
            Box::pin(compute.unshelve(SERVER)),
            json!({"unshelve": null}),
        ),
        (
            Box::pin(compute.force_delete(SERVER)),
            json!({"forceDelete": null}),
        ),
        (
            Box::pin(compute.live_migrate(SERVER, None)),
            json!({"os-migrateLive": {"host": null, "block_migration": "auto"}}),
        ),
        (
            Box::pin(compute.live_migrate(SERVER, Some("c2"))),
            json!({"os-migrateLive": {"host": "c2", "block_migration": "auto"}}),
        ),
    ];
    for (call, body) in calls {
        assert_eq!(
            call.await.unwrap().request_id.as_deref(),
            Some("req-of-nova")
        );
        let seen = server.seen().pop().unwrap();
        assert_eq!(
            (seen.method.as_str(), seen.path.as_str()),
            ("POST", format!("/servers/{SERVER}/action").as_str())
        );
        assert_eq!(seen.body, body);
        assert_eq!(seen.headers["openstack-api-version"], "compute 2.79");
    }
    compute.set_metadata(SERVER, &pairs).await.unwrap();
    let seen = server.seen().pop().unwrap();
    assert_eq!(
        (seen.method.as_str(), seen.path),
        ("POST", format!("/servers/{SERVER}/metadata"))
    );
    assert_eq!(seen.body, json!({"metadata": {"ebbtide:notice": "x"}}));
    assert!(
        compute
            .delete_metadata(SERVER, "ebbtide:notice")
            .await
            .unwrap()
    );
    let seen = server.seen().pop().unwrap();
    assert_eq!(
        (seen.method.as_str(), seen.path),
        (
            "DELETE",
            format!("/servers/{SERVER}/metadata/ebbtide%3Anotice")
        )
    );
    compute.delete(SERVER).await.unwrap();
    assert_eq!(
        server.seen().iter().filter(|seen| seen.path == "/").count(),
        1,
        "versions are asked for once"
    );
}

#[tokio::test]
async fn a_server_is_created_and_its_id_returned() {
    let (server, compute) = nova("2.93", |seen| match seen.path.as_str() {
        "/flavors" => Reply::json(
            200,
            &json!({"flavors": [{"id": "7", "name": "p.node", "links": []}]}),
        ),
        _ => Reply::json(202, &json!({"server": {"id": SERVER, "adminPass": "x"}})),
    })
    .await;
    let flavor = compute.flavors().await.unwrap().remove(0);
    assert_eq!((flavor.id.as_str(), flavor.name.as_str()), ("7", "p.node"));
    let new = NewServer {
        name: "c1".to_owned(),
        flavor: flavor.id,
        image: SERVER,
        networks: ServerNetworks::None,
        ..NewServer::default()
    };
    assert_eq!(compute.create(&new).await.unwrap(), SERVER);
    let seen = server.seen().pop().unwrap();
    assert_eq!(
        (seen.method.as_str(), seen.path.as_str()),
        ("POST", "/servers")
    );
    assert_eq!(seen.headers["openstack-api-version"], "compute 2.79");
    assert_eq!(
        seen.body,
        json!({"server": {
            "name": "c1", "flavorRef": "7", "imageRef": SERVER, "networks": "none", "metadata": {},
        }})
    );
}

#[tokio::test]
async fn an_exhausted_quota_is_forbidden_in_novas_words() {
    let words = "Quota exceeded for instances: Requested 1, but already used 0 of 0 instances";
    let (_server, compute) = nova("2.93", move |_| {
        Reply::json(403, &json!({"forbidden": {"code": 403, "message": words}}))
    })
    .await;
    let refused = compute.create(&NewServer::default()).await.unwrap_err();
    let OpenStackError::Forbidden { text, .. } = refused else {
        panic!("{refused}")
    };
    assert!(text.contains(words), "{text}");
}

#[tokio::test]
async fn an_older_nova_is_asked_in_its_own_way() {
    let (server, compute) = nova("2.60", |_| Reply::empty(202)).await;
    compute.live_migrate(SERVER, None).await.unwrap();
    let seen = server.seen().pop().unwrap();
    assert_eq!(seen.headers["x-openstack-nova-api-version"], "2.60");
    assert_eq!(seen.body["os-migrateLive"]["force"], json!(false));
}

#[tokio::test]
async fn a_server_is_read_with_all_that_an_agent_needs() {
    let (_server, compute) =
        nova("2.93", |_| Reply::json(200, &json!({"server": server(5)}))).await;
    let found = compute.server(SERVER).await.unwrap();
    assert_eq!(
        (found.id, found.host.as_deref(), found.flavor.vcpus),
        (SERVER, Some("compute1"), 4)
    );
    assert_eq!(found.flavor.extra_specs["ebbtide:preemptible"], "true");
    assert_eq!(
        found.launched_at.as_deref(),
        Some("2026-11-20T17:53:30.000000")
    );
}

#[tokio::test]
async fn servers_are_listed_page_by_page_until_nova_has_no_more() {
    let (server, compute) = nova("2.93", |seen| {
        let last = Uuid::from_u128(2).to_string();
        if seen.path.ends_with(&format!("&marker={last}")) {
            return Reply::json(200, &json!({"servers": [server(3)]}));
        }
        Reply::json(200, &json!({"servers": [server(1), server(2)], "servers_links": [{"rel": "next", "href": "…"}]}))
    })
    .await;
    let mut filter = ServerFilter::on_host("compute 1");
    filter.changes_since = Some("2026-11-20T17:53:29Z".to_owned());
    let found = compute.servers(&filter).await.unwrap();
    assert_eq!(found.len(), 3);
    let path = &server.seen()[1].path;
    assert_eq!(
        path,
        "/servers/detail?limit=1000&all_tenants=1&host=compute%201&changes-since=2026-11-20T17%3A53%3A29Z"
    );
}

#[tokio::test]
async fn a_nova_that_repeats_a_page_for_ever_is_left() {
    let page = json!({"servers": [server(1)], "servers_links": [{}]});
    let (_server, compute) = nova("2.93", move |_| Reply::json(200, &page)).await;
    assert_eq!(
        compute
            .servers(&ServerFilter::everywhere())
            .await
            .unwrap()
            .len(),
        2
    );
}

#[tokio::test]
async fn what_nova_refuses_is_told_apart() {
    let (_server, compute) = nova("2.93", |seen| {
        match seen
            .body
            .as_object()
            .and_then(|b| b.keys().next())
            .map(String::as_str)
        {
            Some("os-stop") => Reply::json(
                409,
                &json!({"conflictingRequest": {"code": 409, "message": "Cannot 'stop' it"}}),
            ),
            Some("os-migrateLive") => Reply::json(
                400,
                &json!({"badRequest": {"code": 400, "message": "No valid host was found."}}),
            ),
            _ => Reply::json(
                404,
                &json!({"itemNotFound": {"code": 404, "message": "Instance could not be found."}}),
            ),
        }
    })
    .await;
    let error = compute.stop(SERVER).await.unwrap_err();
    assert!(
        matches!(&error, OpenStackError::Conflict { text, .. } if text == "Cannot 'stop' it"),
        "{error}"
    );
    let error = compute.live_migrate(SERVER, None).await.unwrap_err();
    assert!(
        matches!(&error, OpenStackError::Refused { status: 400, .. }),
        "{error}"
    );
    let error = compute.delete(SERVER).await.unwrap_err();
    assert!(matches!(&error, OpenStackError::NotFound { .. }), "{error}");
    assert!(!compute.delete_metadata(SERVER, "k").await.unwrap());
}

#[tokio::test]
async fn services_and_hypervisors_are_read() {
    let (_server, compute) = nova("2.93", |seen| {
        if seen.path == "/os-services?binary=nova-compute" {
            let service = json!({"id": "x", "binary": "nova-compute", "host": "c1", "status": "enabled", "state": "up"});
            return Reply::json(200, &json!({"services": [service]}));
        }
        let hypervisor = json!({
            "id": SERVER.to_string(), "hypervisor_hostname": "c1.example", "state": "up", "status": "enabled",
            "vcpus": 8, "memory_mb": 16000, "local_gb": 160, "service": {"id": "x", "host": "c1"},
        });
        Reply::json(200, &json!({"hypervisors": [hypervisor]}))
    })
    .await;
    assert_eq!(
        compute.services(Some("nova-compute")).await.unwrap()[0].state,
        "up"
    );
    let hypervisors = compute.hypervisors().await.unwrap();
    assert_eq!(
        (hypervisors[0].vcpus, hypervisors[0].service.host.as_str()),
        (8, "c1")
    );
}

#[tokio::test]
async fn the_compute_of_a_host_is_found_disabled_and_enabled() {
    let (server, compute) = nova("2.93", |seen| {
        if seen.method == "PUT" {
            return match seen.path.as_str() {
                "/os-services/of-c1" => Reply::json(200, &json!({"service": {}})),
                _ => Reply::json(403, &json!({"forbidden": {"code": 403, "message": "no"}})),
            };
        }
        let service = |host: &str, status: &str| {
            json!({"id": format!("of-{host}"), "binary": "nova-compute", "host": host, "status": status,
                   "disabled_reason": "fans", "state": "up"})
        };
        match seen.path.as_str() {
            "/os-services?binary=nova-compute&host=c1" => {
                Reply::json(200, &json!({"services": [service("c1", "disabled")]}))
            }
            _ => Reply::json(200, &json!({"services": []})),
        }
    })
    .await;
    let found = compute.compute_service("c1").await.unwrap().unwrap();
    let words = (found.id.as_str(), found.status.as_str());
    assert_eq!(words, ("of-c1", "disabled"));
    assert_eq!(found.disabled_reason.as_deref(), Some("fans"));
    assert_eq!(compute.compute_service("c2").await.unwrap(), None);
    for reason in [Some("reclaimed by x: y"), None] {
        compute.set_service_disabled("of-c1", reason).await.unwrap();
    }
    let bodies: Vec<Value> = server
        .seen()
        .into_iter()
        .filter(|seen| seen.method == "PUT")
        .map(|seen| seen.body)
        .collect();
    assert_eq!(
        bodies,
        [
            json!({"status": "disabled", "disabled_reason": "reclaimed by x: y"}),
            json!({"status": "enabled"}),
        ]
    );
    let refused = compute.set_service_disabled("of-c2", None).await;
    let refused = refused.unwrap_err();
    assert!(
        matches!(refused, OpenStackError::Forbidden { .. }),
        "{refused}"
    );
}
