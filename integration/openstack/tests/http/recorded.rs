//! What nova-scheduler sent to Placement and Keystone, and what we send instead: the same.

use crate::server::{Reply, Seen, Server, options, placement};
use ebbtide_openstack::placement::AllocationCandidates;
use ebbtide_openstack::{
    AdapterOptions, AllocationResult, NewClaim, Session, SessionOptions, VersionRange,
};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use uuid::Uuid;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded")
}

/// The exchanges of a file: one JSON list, or one a line.
fn exchanges(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    match serde_json::from_str(&text) {
        Ok(Value::Array(list)) => list,
        _ => text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect(),
    }
}

/// What of a request has to be the same.
fn essence(request: &Value) -> (String, String, Vec<(String, String)>, Value) {
    let wanted = [
        "accept",
        "content-type",
        "openstack-api-version",
        "x-openstack-request-id",
    ];
    let headers = request["headers"].as_object().unwrap().iter();
    let mut headers: Vec<_> = headers
        .map(|(name, value)| (name.to_lowercase(), value.as_str().unwrap().to_owned()))
        .filter(|(name, _)| wanted.contains(&name.as_str()))
        .collect();
    headers.sort();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (
        text(&request["method"]),
        text(&request["path"]),
        headers,
        request["body"].clone(),
    )
}

fn essence_of_ours(seen: &Seen) -> (String, String, Vec<(String, String)>, Value) {
    let headers = serde_json::to_value(&seen.headers).unwrap();
    essence(
        &serde_json::json!({"method": seen.method, "path": seen.path, "headers": headers, "body": seen.body}),
    )
}

fn reply(exchange: &Value) -> Reply {
    let response = &exchange["response"];
    let status = u16::try_from(response["status"].as_u64().unwrap()).unwrap();
    let reply = match &response["body"] {
        Value::Null => Reply::empty(status),
        body => Reply::json(status, body),
    };
    match response["headers"]["X-Subject-Token"].as_str() {
        Some(token) => reply.with_header("X-Subject-Token", token),
        None => reply,
    }
}

fn uuid_at_end(path: &str) -> Uuid {
    path.rsplit('/').next().unwrap().parse().unwrap()
}

/// The claim that made Nova send this: its candidate for a provider that the consumer did not hold
/// before.
fn claim_behind(put: &Value, got: &Value, candidates: &AllocationCandidates) -> NewClaim {
    let body = &put["request"]["body"];
    let had = got["response"]["body"]["allocations"].as_object().unwrap();
    let is_new = |provider: Uuid| {
        let provider = provider.to_string();
        body["allocations"].get(&provider).is_some() && !had.contains_key(&provider)
    };
    let request = candidates
        .allocation_requests
        .iter()
        .find(|request| request.providers().all(is_new));
    NewClaim {
        consumer: uuid_at_end(put["request"]["path"].as_str().unwrap()),
        resources: request.unwrap().clone(),
        project_id: body["project_id"].as_str().unwrap().to_owned(),
        user_id: body["user_id"].as_str().unwrap().to_owned(),
        generation: None,
    }
}

#[tokio::test]
async fn every_recorded_conversation_with_placement_is_the_same_with_us() {
    let mut files: Vec<_> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.retain(|file| file.extension().is_some_and(|e| e == "json"));
    assert!(files.len() >= 19, "recordings are missing");
    for file in files {
        let recorded = Arc::new(exchanges(&file));
        let script = Arc::clone(&recorded);
        let server = Server::start(move |number, _| reply(&script[number])).await;
        let mut candidates = AllocationCandidates::default();
        let mut position = 0;
        while let Some(exchange) = recorded.get(position) {
            let request = &exchange["request"];
            let (method, path) = (
                request["method"].as_str().unwrap(),
                request["path"].as_str().unwrap(),
            );
            let mut placement = placement(&server.url);
            if let Some(id) = request["headers"]["X-Openstack-Request-Id"].as_str() {
                placement = placement.for_request(id);
            }
            position += 1;
            match (method, path.split_once('?')) {
                ("GET", _) if path == "/" => drop(placement.check_version().await.unwrap()),
                ("GET", Some(("/allocation_candidates", query))) => {
                    candidates = placement.allocation_candidates(query).await.unwrap();
                    check_candidates(&candidates, &exchange["response"]["body"]);
                }
                ("GET", None) => {
                    let put = &recorded[position];
                    position += 1;
                    let claimed = placement
                        .claim(&claim_behind(put, exchange, &candidates))
                        .await
                        .unwrap();
                    let expected = put["response"]["status"] == 204;
                    assert_eq!(
                        claimed == AllocationResult::Yes,
                        expected,
                        "{}: {claimed:?}",
                        file.display()
                    );
                }
                ("DELETE", None) => assert!(
                    placement
                        .delete_allocations(uuid_at_end(path))
                        .await
                        .unwrap()
                ),
                other => panic!("{}: the test does not know {other:?}", file.display()),
            }
        }
        let ours: Vec<_> = server.seen().iter().map(essence_of_ours).collect();
        let theirs: Vec<_> = recorded
            .iter()
            .map(|exchange| essence(&exchange["request"]))
            .collect();
        assert_eq!(ours, theirs, "{}", file.display());
        for seen in server.seen().iter().filter(|seen| seen.path != "/") {
            assert_eq!(seen.headers["x-auth-token"], "a-token");
            assert!(seen.headers["user-agent"].starts_with("ebbtide-test/"));
        }
    }
}

/// All of the answer has arrived, in its order.
fn check_candidates(candidates: &AllocationCandidates, body: &Value) {
    let requests: Vec<_> = candidates
        .allocation_requests
        .iter()
        .map(|r| r.to_json())
        .collect();
    assert_eq!(Value::Array(requests), body["allocation_requests"]);
    let summaries = body["provider_summaries"].as_object().unwrap();
    assert_eq!(candidates.provider_summaries.len(), summaries.len());
    for (uuid, summary) in &candidates.provider_summaries {
        let theirs = &summaries[&uuid.to_string()];
        assert_eq!(
            summary.root_provider_uuid.unwrap().to_string(),
            theirs["root_provider_uuid"]
        );
        assert_eq!(summary.parent_provider_uuid, None);
        assert_eq!(serde_json::json!(summary.traits), theirs["traits"]);
        for (class, of) in &summary.resources {
            assert_eq!(
                theirs["resources"][class],
                serde_json::json!({"capacity": of.capacity, "used": of.used})
            );
        }
    }
}

#[tokio::test]
async fn provider_summaries_come_in_the_order_of_the_answer() {
    let (first, second) = (
        "ffffffff-0000-0000-0000-000000000001",
        "00000000-0000-0000-0000-000000000002",
    );
    let summary = r#"{"resources": {"VCPU": {"capacity": 8, "used": -1}}, "traits": []}"#;
    let body = format!(
        r#"{{"allocation_requests": [], "provider_summaries": {{"{first}": {summary}, "{second}": {summary}}}}}"#
    );
    let reply = Reply {
        status: 200,
        headers: Vec::new(),
        body: body.into_bytes(),
    };
    let server = Server::start(move |_, _| reply.clone()).await;
    let found = placement(&server.url)
        .allocation_candidates("resources=VCPU%3A1")
        .await
        .unwrap();
    let order: Vec<_> = found
        .provider_summaries
        .iter()
        .map(|(uuid, _)| uuid.to_string())
        .collect();
    assert_eq!(order, [first, second]);
}

#[tokio::test]
async fn the_recorded_start_gives_the_token_the_versions_and_the_endpoints() {
    let recorded = exchanges(&folder().join("startup-keystone.jsonl"));
    let tokens = recorded
        .iter()
        .find(|e| e["request"]["method"] == "POST")
        .unwrap()
        .clone();
    let answer = tokens.clone();
    let keystone = Server::start(move |_, _| reply(&answer)).await;
    let auth = options(&[
        ("auth_type", "password"),
        ("auth_url", &format!("{}/v3", keystone.url)),
        ("username", "nova"),
        ("user_domain_name", "Default"),
        ("password", "nova"),
        ("project_name", "service"),
        ("project_domain_name", "Default"),
    ]);
    let session = Session::new(auth.unwrap(), SessionOptions::new("ebbtide-test")).unwrap();
    session.authenticate().await.unwrap();
    assert_eq!(
        essence_of_ours(&keystone.seen()[0]),
        essence(&tokens["request"])
    );
    for (wanted, url) in [
        (AdapterOptions::placement(), "http://127.0.0.1:18778"),
        (AdapterOptions::compute(), "http://127.0.0.1:18774/v2.1"),
        (AdapterOptions::new("identity"), "http://127.0.0.1:15000/v3"),
    ] {
        assert_eq!(session.endpoint(&wanted).await.unwrap(), url);
    }
    assert_eq!(
        session.project_id().await.unwrap().unwrap(),
        "e094e6fba19247b4beae5a3b3fe0d258"
    );
    assert_eq!(keystone.seen().len(), 1, "one token is enough");

    let discovery = exchanges(&folder().join("startup-placement.jsonl")).remove(0);
    let answer = discovery.clone();
    let server = Server::start(move |_, _| reply(&answer)).await;
    let versions = placement(&server.url).check_version().await.unwrap();
    let (min, max) = ("1.0".parse().unwrap(), "1.39".parse().unwrap());
    assert_eq!(versions, VersionRange { min, max });
    assert_eq!(
        essence_of_ours(&server.seen()[0]),
        essence(&discovery["request"])
    );
    assert!(!server.seen()[0].headers.contains_key("x-auth-token"));
}
