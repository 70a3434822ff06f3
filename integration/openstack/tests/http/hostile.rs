//! Whatever a service answers: an error perhaps, a panic never.

use crate::server::{Reply, Server, compute, options, placement};
use ebbtide_openstack::compute::ServerFilter;
use ebbtide_openstack::{Session, SessionOptions};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use uuid::Uuid;

/// Something that may stand anywhere in JSON.
fn any_json() -> impl Strategy<Value = Value> {
    let names = [
        "allocations",
        "resources",
        "servers",
        "server",
        "token",
        "versions",
        "errors",
        "code",
        "detail",
        "catalog",
        "allocation_requests",
        "provider_summaries",
        "resource_providers",
        "consumer_generation",
        "version",
        "id",
        "status",
        "11111111-1111-1111-1111-111111111111",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,20}".prop_map(Value::from),
        prop::sample::select(names.to_vec()).prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        let key = prop_oneof![
            prop::sample::select(names.to_vec()).prop_map(str::to_owned),
            "\\PC{0,8}"
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..5)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

/// An answer that was good until one byte of it was changed.
fn nearly_good() -> impl Strategy<Value = Vec<u8>> {
    let id = "11111111-1111-1111-1111-111111111111";
    let good = [
        json!({"allocations": {id: {"resources": {"VCPU": 1}, "generation": 1}}, "consumer_generation": 1}),
        json!({"allocation_requests": [{"allocations": {id: {"resources": {"VCPU": 1}}}, "mappings": {"": [id]}}],
               "provider_summaries": {id: {"resources": {"VCPU": {"capacity": 8, "used": 0}}, "traits": []}}}),
        json!({"server": {"id": id, "status": "ACTIVE", "metadata": {}, "flavor": {"vcpus": 1}}}),
        json!({"token": {"issued_at": "2026-11-20T17:52:33Z", "expires_at": "2026-11-20T18:52:33Z", "catalog": []}}),
        json!({"inventories": {"VCPU": {"total": 8, "allocation_ratio": 16.0}}, "resource_provider_generation": 1}),
    ];
    let good: Vec<String> = good.iter().map(Value::to_string).collect();
    (
        prop::sample::select(good),
        any::<prop::sample::Index>(),
        any::<u8>(),
    )
        .prop_map(|(text, at, byte)| {
            let mut bytes = text.into_bytes();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            bytes
        })
}

fn any_reply() -> impl Strategy<Value = Reply> {
    let body = prop_oneof![
        any_json().prop_map(|json| json.to_string().into_bytes()),
        nearly_good(),
        prop::collection::vec(any::<u8>(), 0..200),
    ];
    let status = prop::sample::select(vec![
        200_u16, 200, 200, 201, 202, 204, 300, 400, 401, 404, 409, 418, 500, 503,
    ]);
    (status, body).prop_map(|(status, body)| {
        Reply {
            status,
            headers: Vec::new(),
            body,
        }
        .with_header("X-Subject-Token", "t")
    })
}

async fn call_everything(url: &str) {
    let uuid = Uuid::from_u128(1);
    let placement = placement(url);
    let _ = placement.check_version().await;
    let _ = placement.allocation_candidates("resources=VCPU%3A1").await;
    let _ = placement.allocations(uuid).await;
    let _ = placement.providers("").await;
    let _ = placement.provider(uuid).await;
    let _ = placement.inventories(uuid).await;
    let _ = placement.usages(uuid).await;
    let _ = placement.traits(uuid).await;
    let _ = placement.aggregates(uuid).await;
    let _ = placement.provider_allocations(uuid).await;
    let _ = placement.claim(&crate::swap::newcomer(None)).await;
    let _ = placement.claim_new(&crate::swap::newcomer(None)).await;
    let compute = compute(url);
    let _ = compute.versions().await;
    let _ = compute.server(uuid).await;
    let _ = compute.servers(&ServerFilter::everywhere()).await;
    let _ = compute.services(None).await;
    let _ = compute.hypervisors().await;
    let _ = compute.instance_actions(uuid).await;
    let _ = compute.migrations(uuid).await;
    let auth = options(&[("auth_url", url), ("user_id", "u"), ("password", "p")]).unwrap();
    let session = Session::new(auth, SessionOptions::new("ebbtide-test")).unwrap();
    let _ = session.authenticate().await;
}

#[test]
fn no_answer_makes_a_client_panic() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let reply = Arc::new(Mutex::new(Reply::empty(200)));
    let current = Arc::clone(&reply);
    // So that what needs Nova's version first is reached, too, it is good every second time.
    let version = Reply::json(
        200,
        &json!({"version": {"version": "2.93", "min_version": "2.1"}, "versions": []}),
    );
    let answer = move |number: usize, seen: &crate::server::Seen| {
        if seen.path == "/" && !number.is_multiple_of(3) {
            version.clone()
        } else {
            current.lock().unwrap().clone()
        }
    };
    let server = runtime.block_on(Server::start(answer));
    proptest!(ProptestConfig::with_cases(96), |(next in any_reply())| {
        *reply.lock().unwrap() = next;
        runtime.block_on(call_everything(&server.url));
    });
}
