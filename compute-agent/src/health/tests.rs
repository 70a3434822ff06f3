use super::*;
use crate::health::pages;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

fn connected() -> (watch::Sender<BusStatus>, watch::Receiver<BusStatus>) {
    watch::channel(BusStatus::Connected)
}

/// A host whose agent can do all of its work.
fn working(health: &Health, host: &str, bus: watch::Receiver<BusStatus>) -> HostHealth {
    let session = health.open(host, Duration::from_secs(1), bus);
    session.consumes(true);
    session.listed(None);
    session
}

async fn page(health: &Health, path: &str) -> (u16, String) {
    let listen = "127.0.0.1:0".parse().unwrap();
    let pages = pages::serve(health.clone(), listen).await.unwrap();
    let mut stream = tokio::net::TcpStream::connect(pages.address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_session_without_a_sign_of_life_is_stuck_until_it_shows_one() {
    let health = Health::default();
    let (_bus, status) = connected();
    let session = working(&health, "host-a", status);
    tokio::time::advance(SILENCE).await;
    assert!(health.stuck().is_empty());
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(health.stuck(), ["host-a"]);
    assert_eq!(
        health.not_ready(),
        ["host-a: its session shows no sign of life"]
    );
    session.beat(0);
    assert!(health.stuck().is_empty());
    assert!(health.not_ready().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_slow_look_at_servers_is_allowed_for() {
    let health = Health::default();
    let (_bus, status) = connected();
    let _session = health.open("host-a", Duration::from_secs(60), status);
    tokio::time::advance(Duration::from_secs(240)).await;
    assert!(health.stuck().is_empty());
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(health.stuck(), ["host-a"]);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_ends_is_not_stuck_however_long_that_takes() {
    let health = Health::default();
    let (_bus, status) = connected();
    let session = working(&health, "host-a", status);
    session.ending();
    session.beat(1);
    tokio::time::advance(Duration::from_secs(3_600)).await;
    assert!(health.stuck().is_empty());
    assert_eq!(health.not_ready(), ["host-a: it is ending"]);
}

#[tokio::test]
async fn an_agent_is_ready_once_the_broker_the_queue_and_the_hypervisor_are_there() {
    let health = Health::default();
    assert_eq!(health.not_ready(), ["no host is known yet"]);
    let (bus, status) = connected();
    let session = health.open("host-a", Duration::from_secs(1), status);
    let reason = || health.not_ready().join("\n");
    assert_eq!(
        reason(),
        "host-a: it does not take the commands of its host"
    );
    session.consumes(true);
    assert_eq!(reason(), "");
    session.listed(Some(&DriverError::TimedOut {
        what: "list its servers",
        seconds: 10,
    }));
    let unlisted = reason();
    assert!(unlisted.contains("does not list its servers"), "{unlisted}");
    session.listed(None);
    bus.send(BusStatus::Closed).unwrap();
    assert_eq!(reason(), "host-a: the connection is closed");
    drop(session);
    let refused = AgentError::config("state_dir", "it is empty");
    health.closed("host-a", &refused);
    assert!(
        reason().starts_with("host-a: EB-AGENT-001: "),
        "{}",
        reason()
    );
}

#[tokio::test]
async fn the_pages_answer_for_each_host() {
    let health = Health::default();
    let (_bus, status) = connected();
    let session = working(&health, "host-a", status.clone());
    session.command();
    session.called(false);
    session.reported();
    session.beat(3);
    assert_eq!(page(&health, "/healthz").await, (200, "ok\n".to_owned()));
    assert_eq!(page(&health, "/readyz").await, (200, "ready\n".to_owned()));
    let idle = health.open("host-b", Duration::from_secs(1), status);
    let (code, text) = page(&health, "/readyz").await;
    let reason = "host-b: it does not take the commands of its host";
    assert_eq!((code, text), (503, format!("not ready:\n{reason}\n")));
    let (code, text) = page(&health, "/metrics").await;
    assert_eq!(code, 200);
    for line in [
        "ebbtide_agent_ready{host=\"host-a\"} 1",
        "ebbtide_agent_ready{host=\"host-b\"} 0",
        "ebbtide_agent_evacuations_remembered{host=\"host-a\"} 3",
        "ebbtide_agent_sessions_total{host=\"host-a\"} 1",
        "ebbtide_agent_commands_total{host=\"host-a\"} 1",
        "ebbtide_agent_commands_total{host=\"host-b\"} 0",
        "ebbtide_agent_reports_total{host=\"host-a\"} 1",
        "ebbtide_agent_hypervisor_calls_total{host=\"host-a\",outcome=\"failed\"} 1",
        "ebbtide_agent_hypervisor_calls_total{host=\"host-a\",outcome=\"good\"} 0",
    ] {
        assert!(
            text.lines().any(|one| one == line),
            "{line} is not in\n{text}"
        );
    }
    drop(idle);
}

#[tokio::test]
async fn a_page_names_no_more_hosts_than_can_be_read() {
    let health = Health::default();
    let (_bus, status) = connected();
    let open = |n| health.open(&format!("host-{n:02}"), SILENCE, status.clone());
    let _sessions: Vec<_> = (0..25).map(open).collect();
    let (_, text) = page(&health, "/readyz").await;
    assert!(text.contains("host-19: "), "{text}");
    assert!(!text.contains("host-20: "), "{text}");
    assert!(text.ends_with("and 5 more\n"), "{text}");
}

#[test]
fn every_metric_has_its_row_in_the_operator_guide() {
    let guide = include_str!("../../../docs/operate/operator-guide.md");
    let source = include_str!("metrics.rs");
    let missing = ebbtide_metrics::without_row(source, guide, "ebbtide_agent_");
    assert_eq!(missing, [] as [String; 0], "write a row for each");
}
