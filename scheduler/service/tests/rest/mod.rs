//! REST on a scheduler in this process, asked by curl. The region has no hosts: its servers are in
//! error at once, with a decision that says why.

mod tls;

use crate::curl::{Events, HttpAnswer, ask};
use crate::region::{Region, with};
use ebbtide_proto::v1;
use ebbtide_proto::v1::servers_client::ServersClient;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(30);

async fn create(region: &Region, token: &str, name: &str) -> Value {
    let body = json!({ "name": name, "request": { "flavor": "small" } }).to_string();
    let answer = ask(region, token, "/v1/servers", &["--json", &body]).await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    answer.json()
}

async fn names(region: &Region, token: &str) -> Vec<String> {
    let list = ask(region, token, "/v1/servers", &[]).await.json();
    let servers = list["servers"].as_array().unwrap();
    let mut names: Vec<String> = servers
        .iter()
        .map(|server| server["name"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

#[track_caller]
fn refused(answer: &HttpAnswer, status: u16, code: &str) -> Value {
    let problem = answer.json();
    assert_eq!(
        (answer.status, &problem["code"]),
        (status, &json!(code)),
        "{problem}"
    );
    assert_eq!(
        answer.header("content-type"),
        Some("application/problem+json")
    );
    let id = answer.header("x-openstack-request-id").unwrap();
    assert_eq!(problem["request_id"], id);
    problem
}

#[tokio::test]
async fn a_server_lives_and_ends_by_rest() {
    let region = Region::start("").await;
    let created = create(&region, &region.greedy, "web").await;
    assert_eq!(
        created["decision"]["no_valid_host"]["hosts"], 0,
        "{created}"
    );
    let id = created["servers"][0]["id"].as_str().unwrap();

    let path = format!("/v1/servers/{id}");
    let answer = ask(&region, &region.greedy, &path, &[]).await;
    let server = answer.json();
    assert_eq!(server["server"]["fault_code"], "EB-FAULT-001", "{server}");
    let tag = format!("if-none-match: {}", answer.header("etag").unwrap());
    let same = ask(&region, &region.greedy, &path, &["--header", &tag]).await;
    assert_eq!((same.status, same.body.as_str()), (304, ""));

    let decision = created["decision"]["id"].as_str().unwrap();
    let path = format!("/v1/decisions/{decision}");
    let explained = ask(&region, &region.greedy, &path, &[]).await.json();
    assert_eq!(explained["decision"]["id"], decision);

    let what_if = r#"{"request": {"flavor": "small", "count": 3}}"#;
    let answer = ask(&region, &region.greedy, "/v1/what-if", &["--json", what_if]).await;
    assert_eq!(answer.status, 200);
    assert!(answer.json()["decision"]["no_valid_host"].is_object());

    let path = format!("/v1/servers/{id}");
    let deleted = ask(&region, &region.greedy, &path, &["--request", "DELETE"]).await;
    assert_eq!(deleted.json()["server"]["id"], id, "{}", deleted.body);
    assert_eq!(names(&region, &region.greedy).await, [""; 0]);
    region.end().await;
}

#[tokio::test]
async fn pages_of_servers_follow_their_links_over_http_2_too() {
    let region = Region::start("").await;
    for name in ["a", "b", "c"] {
        create(&region, &region.greedy, name).await;
    }
    let mut next = Some("/v1/servers?limit=2".to_owned());
    let mut seen = Vec::new();
    while let Some(path) = next {
        let h2 = ["--http2-prior-knowledge"];
        let page = ask(&region, &region.greedy, &path, &h2).await.json();
        let servers = page["servers"].as_array().unwrap().clone();
        seen.extend(servers.iter().map(|server| server["name"].to_string()));
        next = page["links"][0]["href"].as_str().map(str::to_owned);
    }
    seen.sort();
    assert_eq!(seen, ["\"a\"", "\"b\"", "\"c\""]);
    region.end().await;
}

#[tokio::test]
async fn a_token_of_another_project_sees_nothing() {
    let region = Region::start("").await;
    let mut events = Events::of(&region, &region.modest, "/v1/events");
    first_event(&region, &region.modest, &mut events).await;
    let created = create(&region, &region.greedy, "web").await;
    let id = created["servers"][0]["id"].as_str().unwrap();
    let path = format!("/v1/servers/{id}");
    for options in [&[][..], &["--request", "DELETE"]] {
        let answer = ask(&region, &region.modest, &path, options).await;
        refused(&answer, 404, "EB-SERVICE-001");
    }
    let own = names(&region, &region.modest).await;
    assert!(own.iter().all(|name| name == "first"), "{own:?}");
    let answer = ask(&region, &region.modest, "/v1/servers?project=greedy", &[]).await;
    refused(&answer, 403, "EB-ACCESS-005");
    let path = format!(
        "/v1/decisions/{}",
        created["decision"]["id"].as_str().unwrap()
    );
    let answer = ask(&region, &region.modest, &path, &[]).await;
    refused(&answer, 404, "EB-SERVICE-001");
    assert_eq!(names(&region, &region.greedy).await, ["web"]);

    // All that the other project reads is its own, before and after what it must not see.
    create(&region, &region.modest, "last").await;
    loop {
        let event = timeout(PATIENCE, events.next()).await.unwrap();
        let data = event.iter().find_map(|line| line.strip_prefix("data: "));
        let data: Value = serde_json::from_str(data.unwrap()).unwrap();
        let about = ["server", "decision"].map(|kind| data[kind]["project_id"].as_str());
        assert!(about.contains(&Some("modest")), "{data}");
        if data["server"]["name"] == "last" {
            break;
        }
    }
    region.end().await;
}

#[tokio::test]
async fn events_are_read_while_they_happen_and_readers_are_counted() {
    let region = Region::start("[limits]\ntenant_watchers = 1\n").await;
    let mut events = Events::of(&region, &region.greedy, "/v1/events");
    let first = first_event(&region, &region.greedy, &mut events).await;
    assert!(
        first.iter().any(|line| line.starts_with("id: ")),
        "{first:?}"
    );
    assert!(
        first.iter().any(|line| line.starts_with("event: ")),
        "{first:?}"
    );
    let second = ask(&region, &region.greedy, "/v1/events", &[]).await;
    refused(&second, 429, "EB-ACCESS-008");
    drop(events);
    // Its place is free again after it has gone, also for a reader by gRPC.
    let mut scheduler = v1::scheduler_client::SchedulerClient::new(region.channel().await.unwrap());
    timeout(PATIENCE, async {
        loop {
            let watch = with(v1::WatchRequest::default(), &region.greedy);
            if scheduler.watch(watch).await.is_ok() {
                break;
            }
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    region.end().await;
}

/// The first event of a reader. Servers are created until there is one, since the reader may have
/// connected after the first of them.
async fn first_event(region: &Region, token: &str, events: &mut Events) -> Vec<String> {
    let servers = async {
        loop {
            create(region, token, "first").await;
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    tokio::select! {
        event = timeout(PATIENCE, events.next()) => event.unwrap(),
        () = servers => unreachable!(),
    }
}

#[tokio::test]
async fn the_gate_stands_before_rest_as_before_grpc() {
    let region = Region::start("").await;
    let problem = refused(
        &ask(&region, "nothing", "/v1/servers", &[]).await,
        401,
        "EB-ACCESS-002",
    );
    assert_eq!(problem["title"], "Unauthorized");
    let answer = ask(&region, &region.greedy, "/v1/hosts", &[]).await;
    refused(&answer, 403, "EB-ACCESS-004");
    let token = format!("x-auth-token: {}", region.greedy);
    let answer = ask(&region, "", "/v1/servers", &["--header", &token]).await;
    assert_eq!(answer.json(), json!({ "servers": [] }));
    refused(
        &ask(&region, "", "/v1/servers", &[]).await,
        401,
        "EB-ACCESS-001",
    );
    let answer = ask(&region, &region.operator, "/v1/hosts", &[]).await;
    assert_eq!(answer.json(), json!({ "hosts": [] }));
    // gRPC sees what REST has made.
    create(&region, &region.greedy, "web").await;
    let mut servers = ServersClient::new(region.channel().await.unwrap());
    let list = with(v1::ListServersRequest::default(), &region.operator);
    let list = servers.list_servers(list).await.unwrap().into_inner();
    assert_eq!(list.servers[0].project_id, "greedy");
    region.end().await;
}

#[tokio::test]
async fn a_caller_without_a_token_is_refused_before_its_body_is_read() {
    let region = Region::start("").await;
    let mut stream = TcpStream::connect(region.grpc).await.unwrap();
    let head = "POST /v1/servers HTTP/1.1\r\nhost: a\r\ncontent-length: 1000\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut bytes = [0; 12];
    let read = timeout(PATIENCE, stream.read_exact(&mut bytes)).await;
    read.unwrap().unwrap();
    assert_eq!(&bytes, b"HTTP/1.1 401");
    region.end().await;
}

#[tokio::test]
async fn a_rate_limit_counts_both_transports_and_says_when_to_come_again() {
    let region =
        Region::start("[limits]\ntenant_requests_per_second = 1\ntenant_burst = 2\n").await;
    region.list(&region.greedy).await.unwrap();
    let mut refusals = 0;
    for _ in 0..5 {
        let answer = ask(&region, &region.greedy, "/v1/flavors", &[]).await;
        if answer.status == 429 {
            refused(&answer, 429, "EB-ACCESS-007");
            assert!(answer.header("retry-after").is_some(), "{}", answer.head);
            refusals += 1;
        }
    }
    assert!(refusals > 0);
    assert!(region.refusals("rate").await > 0);
    region.end().await;
}

#[tokio::test]
async fn a_body_of_more_than_the_limit_is_refused() {
    let region = Region::start("[limits]\nrequest_bytes = 65536\n").await;
    let body = format!(r#"{{"name": "{}"}}"#, "x".repeat(70_000));
    let answer = ask(&region, &region.greedy, "/v1/servers", &["--json", &body]).await;
    refused(&answer, 413, "EB-REST-005");
    let body = r#"{"name": "a", "request": {"flavour": "small"}}"#;
    let answer = ask(&region, &region.greedy, "/v1/servers", &["--json", body]).await;
    assert_eq!(
        refused(&answer, 400, "EB-REST-003")["field"],
        "request.flavour"
    );
    let answer = ask(&region, &region.greedy, "/v1/servers", &["--json", "{}"]).await;
    refused(&answer, 400, "EB-SERVICE-002");
    region.end().await;
}
