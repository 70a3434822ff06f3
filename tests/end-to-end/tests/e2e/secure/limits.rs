//! How much of the scheduler one caller can have.

use super::kit::{Tokens, refusal, scheduler, soon, with_token};
use ebbtide_access::Role;
use ebbtide_proto::v1;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tonic::Code;
use tonic_types::StatusExt as _;

/// A page in plain text, headers included.
pub(crate) async fn get(address: &str, path: &str, token: Option<&str>) -> String {
    let authorization = token.map_or(String::new(), |t| format!("Authorization: Bearer {t}\r\n"));
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: localhost\r\n{authorization}Connection: close\r\n\r\n"
    );
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn a_tenant_that_asks_too_often_learns_when_to_retry_and_disturbs_no_other() {
    let mut tokens = Tokens::new();
    let operator = tokens.make(Role::Operator, &[]);
    let (one, same) = (
        tokens.make(Role::Tenant, &["science"]),
        tokens.make(Role::Tenant, &["science"]),
    );
    let other = tokens.make(Role::Tenant, &["art"]);
    let limits = "[limits]\ntenant_requests_per_second = 0.5\ntenant_burst = 3\n";
    let region = scheduler(format!("{}{limits}", tokens.auth()), with_token(&operator)).await;
    let ask = async |token: &str| {
        let mut clients = region.clients(&with_token(token)).await.unwrap();
        clients
            .servers
            .list_servers(v1::ListServersRequest::default())
            .await
    };
    // A second token of the same tenant is no second bucket.
    for token in [&one, &same, &one] {
        ask(token).await.unwrap();
    }
    let status = ask(&same).await.unwrap_err();
    let wait = status
        .get_details_retry_info()
        .unwrap()
        .retry_delay
        .unwrap();
    assert!(
        wait > Duration::ZERO && wait <= Duration::from_secs(2),
        "{wait:?}"
    );
    let refused = (Code::ResourceExhausted, "EB-ACCESS-007".to_owned());
    assert_eq!(refusal::<v1::ListServersResponse>(Err(status)), refused);
    ask(&other).await.unwrap();
    for _ in 0..10 {
        region
            .admin()
            .await
            .unwrap()
            .list_hosts(v1::ListHostsRequest {})
            .await
            .unwrap();
    }
    soon(async || ask(&one).await.map(drop).map_err(|e| e.to_string())).await;
}

#[tokio::test]
async fn a_tenant_has_so_many_event_streams_and_no_more() {
    let mut tokens = Tokens::new();
    let operator = tokens.make(Role::Operator, &[]);
    let tenant = tokens.make(Role::Tenant, &["science"]);
    let limits = "[limits]\ntenant_watchers = 1\n";
    let region = scheduler(format!("{}{limits}", tokens.auth()), with_token(&operator)).await;
    let watch = async |token: &str| {
        let mut clients = region.clients(&with_token(token)).await.unwrap();
        clients.scheduler.watch(v1::WatchRequest::default()).await
    };
    let first = watch(&tenant).await.unwrap();
    let refused = (Code::ResourceExhausted, "EB-ACCESS-008".to_owned());
    assert_eq!(refusal(watch(&tenant).await), refused);
    let _operators = watch(&operator).await.unwrap();
    drop(first);
    soon(async || watch(&tenant).await.map(drop).map_err(|e| e.to_string())).await;
}

#[tokio::test]
async fn large_requests_are_refused_and_of_too_many_connections_the_idle_ones_go() {
    let limits = "[limits]\nrequest_bytes = 4096\nconnections_per_address = 3\n";
    let region = scheduler(limits.to_owned(), Default::default()).await;
    let mut clients = region.clients(&Default::default()).await.unwrap();
    let large = v1::GetServerRequest {
        id: "x".repeat(5000),
    };
    let status = clients.servers.get_server(large).await.unwrap_err();
    assert_eq!(status.code(), Code::OutOfRange, "{status}");
    let http = region.address("http").unwrap().replace("http://", "");
    let mut held = Vec::new();
    for _ in 0..10 {
        // Each says nothing, and makes way for the next one.
        held.push(TcpStream::connect(&http).await.unwrap());
    }
    soon(async || {
        let answer = tokio::time::timeout(Duration::from_secs(5), try_get(&http)).await;
        answer.map_err(|e| e.to_string())?
    })
    .await;
    let metrics = get(&http, "/metrics", None).await;
    let evicted = "ebbtide_refusals_total{kind=\"evicted\"}";
    assert!(metrics.contains(evicted), "{metrics}");
}

async fn try_get(address: &str) -> Result<(), String> {
    let mut stream = TcpStream::connect(address)
        .await
        .map_err(|e| e.to_string())?;
    let request = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    stream.write_all(request).await.map_err(|e| e.to_string())?;
    let mut answer = String::new();
    stream
        .read_to_string(&mut answer)
        .await
        .map_err(|e| e.to_string())?;
    if answer.starts_with("HTTP/1.1 200") {
        Ok(())
    } else {
        Err(answer)
    }
}

#[tokio::test]
async fn an_open_listener_for_unknown_callers_must_be_configured() {
    use ebbtide_harness::ProcessCommand;
    use ebbtide_integration_tests::region::PATIENCE;
    let dir = tempfile::tempdir().unwrap();
    let try_it = async |text: &str| {
        let config = dir.path().join("scheduler.toml");
        std::fs::write(&config, text).unwrap();
        let process = ProcessCommand::new(
            "scheduler",
            ebbtide_integration_tests::bin("ebbtide-scheduler"),
        )
        .arg("--config")
        .arg(&config)
        .arg("--check-config")
        .spawn(dir.path().join("log"))
        .unwrap();
        let status = process.wait_exit(PATIENCE).await.unwrap();
        (status.code(), process.log_tail())
    };
    for (text, named) in [
        ("[grpc]\nlisten = \"0.0.0.0:7470\"", "grpc.tls"),
        (
            "[grpc]\nlisten = \"[::]:7470\"\ninsecure = true",
            "auth.tokens",
        ),
        ("[http]\nlisten = \"0.0.0.0:7471\"", "http.tls"),
        (
            "[bus]\nurls = [\"amqp://u:geheim@mq.example/\"]",
            "amqps://",
        ),
        ("[limits]\nburst = 0", "limits.burst"),
        ("[bus]\nkey = \"k\"", "certificate"),
        (
            "[[auth.certificates]]\nname = \"x\"\nrole = \"reader\"",
            "dns:NAME",
        ),
    ] {
        let (code, said) = try_it(text).await;
        assert_eq!(code, Some(2), "{text}: {said}");
        assert!(
            said.contains(named) && !said.contains("geheim"),
            "{text}: {said}"
        );
    }
    let open =
        "[grpc]\nlisten = \"0.0.0.0:7470\"\ninsecure = true\n[auth]\nallow_unauthenticated = true";
    let (code, said) = try_it(open).await;
    assert_eq!(code, Some(0), "{said}");
}
