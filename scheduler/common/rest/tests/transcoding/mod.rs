//! REST against a fake gRPC service.

#![allow(clippy::unwrap_used)] // All of this is tests; helpers too may fail loudly.

mod fake;

use axum::http::{StatusCode, header};
use fake::{BODY_BYTES, Fake};
use serde_json::json;

const JSON: (&str, &str) = ("content-type", "application/json");

#[tokio::test]
async fn a_body_becomes_the_request_and_the_answer_becomes_json() {
    let fake = Fake::default();
    let body = r#"{"name": "web", "request": {"flavor": "small", "count": 2, "projectId": "p"}}"#;
    let answer = fake.ask("POST /v1/servers", &[JSON], body).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED, "{}", answer.text);
    let created = fake.created.lock().unwrap().clone();
    let request = created.request.unwrap();
    assert_eq!((request.count, request.project_id.as_str()), (2, "p"));
    let json = answer.json();
    assert_eq!(json["servers"][0]["name"], "web");
    assert_eq!(json["servers"][0]["resources"]["VCPU"], "2");
    assert_eq!(json["servers"][0]["preemptible"], false);
}

#[tokio::test]
async fn a_list_links_to_its_next_page_until_it_ends() {
    let fake = Fake::default();
    let mut next = Some("/v1/servers?project=p&limit=2".to_owned());
    let mut seen = Vec::new();
    while let Some(path) = next {
        let answer = fake.ask(&format!("GET {path}"), &[], "").await;
        let json = answer.json();
        let servers = json["servers"].as_array().unwrap();
        seen.extend(servers.iter().map(|s| s["id"].as_str().unwrap().to_owned()));
        next = json["links"][0]["href"].as_str().map(str::to_owned);
        let link = answer.headers.get(header::LINK);
        let expected = next.as_ref().map(|next| format!("<{next}>; rel=\"next\""));
        assert_eq!(link.map(|link| link.to_str().unwrap()), expected.as_deref());
        assert!(next.as_ref().is_none_or(|next| next.contains("project=p")));
    }
    assert_eq!(seen, ["1", "2", "3", "4", "5"]);
}

#[tokio::test]
async fn what_does_not_fit_is_named() {
    let fake = Fake::default();
    for (request, body, status, code, field) in [
        (
            "POST /v1/servers",
            r#"{"nme": 1}"#,
            400,
            "EB-REST-003",
            json!("nme"),
        ),
        ("POST /v1/servers", "{", 400, "EB-REST-003", json!(null)),
        (
            "GET /v1/servers?limit=x",
            "",
            400,
            "EB-REST-004",
            json!("limit"),
        ),
        (
            "GET /v1/servers?limit=1&limit=2",
            "",
            400,
            "EB-REST-004",
            json!("limit"),
        ),
        (
            "GET /v1/servers?colour=red",
            "",
            400,
            "EB-REST-004",
            json!("colour"),
        ),
        ("GET /v1/nothing", "", 404, "EB-REST-001", json!(null)),
        ("PUT /v1/servers", "", 405, "EB-REST-002", json!(null)),
        ("GET /v1/servers/missing", "", 404, "EB-GRPC-5", json!(null)),
        (
            "POST /v1/servers/a/release",
            "",
            409,
            "EB-GRPC-9",
            json!(null),
        ),
        (
            "POST /v1/servers/a/release",
            r#"{"id": "b"}"#,
            400,
            "EB-REST-004",
            json!("id"),
        ),
    ] {
        let answer = fake.ask(request, &[JSON], body).await;
        let problem = answer.json();
        assert_eq!(answer.status.as_u16(), status, "{request}: {problem}");
        assert_eq!(problem["code"], code, "{request}: {problem}");
        assert_eq!(problem["field"], field, "{request}: {problem}");
        assert_eq!(problem["status"], status);
        let kind = &answer.headers[header::CONTENT_TYPE];
        assert_eq!(kind, "application/problem+json");
        let id = answer.headers["x-openstack-request-id"].to_str().unwrap();
        assert_eq!(problem["request_id"], id);
        assert!(id.starts_with("req-"));
    }
    let answer = fake.ask("PUT /v1/servers", &[], "").await;
    assert_eq!(answer.headers[header::ALLOW], "POST, GET");
}

#[tokio::test]
async fn a_body_is_bounded_and_has_to_be_json() {
    let fake = Fake::default();
    let long = format!(r#"{{"name": "{}"}}"#, "x".repeat(BODY_BYTES));
    let answer = fake.ask("POST /v1/servers", &[JSON], &long).await;
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
    let form = ("content-type", "application/x-www-form-urlencoded");
    let answer = fake.ask("POST /v1/servers", &[form], "{}").await;
    assert_eq!(answer.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    assert_eq!(answer.json()["code"], "EB-REST-006");
}

#[tokio::test]
async fn tokens_and_request_ids_reach_the_call() {
    let fake = Fake::default();
    let id = "req-0a1b2c3d-0000-4000-8000-0123456789ab";
    let given = [("x-auth-token", "secret"), ("x-openstack-request-id", id)];
    let answer = fake.ask("GET /v1/servers/a", &given, "").await;
    let metadata = fake.metadata.lock().unwrap().clone();
    assert_eq!(metadata.get("authorization").unwrap(), "Bearer secret");
    assert_eq!(metadata.get("x-openstack-global-request-id").unwrap(), id);
    let own = answer.headers["x-openstack-request-id"].to_str().unwrap();
    assert_ne!(own, id);
    assert_eq!(metadata.get("x-openstack-request-id").unwrap(), own);

    let wrong = [
        ("authorization", "Bearer wrong"),
        ("x-openstack-request-id", id),
    ];
    let answer = fake.ask("GET /v1/servers/a", &wrong, "").await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    assert!(answer.headers.contains_key(header::WWW_AUTHENTICATE));
    assert_eq!(answer.json()["global_request_id"], id);
}

#[tokio::test]
async fn an_entity_tag_stays_the_same_while_the_resource_does() {
    let fake = Fake::default();
    let first = fake.ask("GET /v1/servers/a", &[], "").await;
    let tag = first.headers[header::ETAG].to_str().unwrap().to_owned();
    for _ in 0..20 {
        // The resources are a map without an order.
        let again = fake.ask("GET /v1/servers/a", &[], "").await;
        assert_eq!(again.headers[header::ETAG], tag.as_str());
    }
    let known = [("if-none-match", tag.as_str())];
    let same = fake.ask("GET /v1/servers/a", &known, "").await;
    assert_eq!(
        (same.status, same.text.as_str()),
        (StatusCode::NOT_MODIFIED, "")
    );
    let other = fake.ask("GET /v1/servers/b", &known, "").await;
    assert_eq!(other.status, StatusCode::OK);
    let condition = [("if-match", tag.as_str())];
    let answer = fake.ask("DELETE /v1/servers/a", &condition, "").await;
    assert_eq!(answer.status, StatusCode::NOT_IMPLEMENTED);
}

#[tokio::test]
async fn events_have_ids_names_and_an_end() {
    let fake = Fake::default();
    let answer = fake.ask("GET /v1/events?project=p", &[], "").await;
    assert_eq!(answer.headers[header::CONTENT_TYPE], "text/event-stream");
    let mut events: Vec<&str> = answer.text.trim_end().split("\n\n").collect();
    // The reader knows at once that the stream is open.
    assert_eq!(events.remove(0), ": open");
    assert_eq!(events.len(), 3, "{}", answer.text);
    for (event, id) in events.iter().zip(["id: 1", "id: 2"]) {
        assert!(event.lines().any(|line| line == id), "{event}");
        assert!(event.lines().any(|line| line == "event: server"), "{event}");
        let data = event.lines().find_map(|line| line.strip_prefix("data: "));
        let data: serde_json::Value = serde_json::from_str(data.unwrap()).unwrap();
        assert_eq!(data["server"]["name"], "web");
    }
    assert!(events[2].contains("event: error"), "{}", events[2]);
    assert!(events[2].contains("EB-GRPC-14"), "{}", events[2]);

    let answer = fake
        .ask("GET /v1/events", &[("last-event-id", "7")], "")
        .await;
    let first = answer.text.split("\n\n").nth(1).unwrap();
    assert_eq!(first, "event: gap\ndata: {\"last_event_id\":\"7\"}");
}

#[tokio::test]
async fn a_call_without_an_answer_has_no_body() {
    let fake = Fake::default();
    let answer = fake.ask("DELETE /v1/server-groups/a", &[], "").await;
    assert_eq!(
        (answer.status, answer.text.as_str()),
        (StatusCode::NO_CONTENT, "")
    );
}

#[tokio::test]
async fn versions_are_found_as_openstacks_clients_look_for_them() {
    let fake = Fake::default();
    let host = [("host", "region.example:7070")];
    let answer = fake.ask("GET /", &host, "").await.json();
    let version = &answer["versions"][0];
    assert_eq!(
        (&version["id"], &version["status"]),
        (&json!("v1.0"), &json!("CURRENT"))
    );
    let link = &version["links"][0];
    assert_eq!(link["href"], "http://region.example:7070/v1/");
    assert_eq!(
        fake.ask("GET /v1", &host, "").await.json()["version"],
        *version
    );
    let answer = fake.ask("GET /v1/openapi.json", &host, "").await;
    assert_eq!(answer.json()["openapi"], "3.1.0");
    let answer = fake.ask("DELETE /", &host, "").await;
    assert_eq!(answer.headers[header::ALLOW], "GET");
}

#[tokio::test]
async fn grpc_goes_on_unchanged() {
    let fake = Fake::default();
    let grpc = ("content-type", "application/grpc");
    let body = "\0\0\0\0\0";
    let request = "POST /ebbtide.v1.Servers/GetServer";
    let answer = fake.ask(request, &[grpc], body).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(answer.headers[header::CONTENT_TYPE], "application/grpc");
}

#[tokio::test]
async fn a_page_of_another_origin_changes_nothing() {
    let fake = Fake::default();
    let body = r#"{"name": "web", "request": {"flavor": "small", "project_id": "p"}}"#;
    for (sent, refused) in [
        (("sec-fetch-site", "cross-site"), true),
        (("sec-fetch-site", "same-site"), true),
        (("origin", "https://evil.example"), true),
        (("origin", "null"), true),
        (("sec-fetch-site", "same-origin"), false),
        (("sec-fetch-site", "none"), false),
    ] {
        let answer = fake.ask("POST /v1/servers", &[JSON, sent], body).await;
        let wanted = if refused {
            StatusCode::FORBIDDEN
        } else {
            StatusCode::ACCEPTED
        };
        assert_eq!(answer.status, wanted, "{sent:?}: {}", answer.text);
        if refused {
            assert_eq!(answer.json()["code"], "EB-REST-011");
        }
        let sniffing = answer.headers.get(header::X_CONTENT_TYPE_OPTIONS).cloned();
        assert_eq!(sniffing.unwrap(), "nosniff");
    }
    // What it reads, the browser keeps from it: no answer allows another origin.
    let read = fake
        .ask(
            "GET /v1/servers?project=p",
            &[("sec-fetch-site", "cross-site")],
            "",
        )
        .await;
    assert_eq!(read.status, StatusCode::OK);
    assert!(!read.headers.contains_key("access-control-allow-origin"));
}
