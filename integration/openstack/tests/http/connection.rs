//! Services that are away, hang up, hang, or speak something else.

use crate::server::{Reply, Server, compute, placement, token_session};
use ebbtide_openstack::placement::Generation;
use ebbtide_openstack::{
    AdapterOptions, AuthOptions, OpenStackError, Placement, ReleasedConsumer, RequestEffect,
    Session, SessionOptions,
};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::task::JoinSet;
use uuid::Uuid;

fn victim() -> ReleasedConsumer {
    ReleasedConsumer {
        consumer: Uuid::from_u128(1),
        generation: Generation(1),
        project_id: "p".to_owned(),
        user_id: "u".to_owned(),
    }
}

/// A server that reads what comes and then hangs up without an answer; counts how often.
async fn hanging_up(times: Arc<AtomicUsize>) -> (String, JoinSet<()>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut bytes = [0; 4_096];
            if socket.read(&mut bytes).await.is_ok_and(|n| n > 0) {
                times.fetch_add(1, Ordering::SeqCst);
            }
        }
    });
    (url, tasks)
}

#[tokio::test]
async fn a_service_that_takes_no_connection_has_done_nothing() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = placement(&url)
        .post_allocations(&[victim()], &[])
        .await
        .unwrap_err();
    assert!(
        matches!(
            error,
            OpenStackError::Unavailable {
                effect: RequestEffect::None,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(error.code(), "EB-HTTP-007");
}

#[tokio::test]
async fn a_write_whose_answer_is_lost_may_have_been_done_and_is_not_repeated() {
    let times = Arc::new(AtomicUsize::new(0));
    let (url, _server) = hanging_up(Arc::clone(&times)).await;
    let mut options = AdapterOptions::placement();
    (options.connect_retries, options.connect_retry_delay) = (3, Some(Duration::from_millis(1)));
    let placement = Placement::new(token_session(&url), options).unwrap();
    let error = placement
        .post_allocations(&[victim()], &[])
        .await
        .unwrap_err();
    assert_eq!(error.effect(), RequestEffect::Unknown, "{error}");
    assert_eq!(times.load(Ordering::SeqCst), 1);
    let error = placement.providers("").await.unwrap_err();
    assert!(error.is_passing());
    assert_eq!(times.load(Ordering::SeqCst), 1 + 4, "a read is tried again");
}

#[tokio::test]
async fn a_service_that_hangs_is_given_up_after_the_timeout() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mut options = AdapterOptions::placement();
    options.timeout = Some(Duration::from_millis(50));
    let placement = Placement::new(token_session(&url), options).unwrap();
    let error = placement
        .post_allocations(&[victim()], &[])
        .await
        .unwrap_err();
    assert_eq!(error.effect(), RequestEffect::Unknown);
    assert!(error.to_string().contains("no answer in time"), "{error}");
}

#[tokio::test]
async fn each_status_is_told_apart() {
    let cases: [(u16, &str, RequestEffect); 8] = [
        (400, "EB-HTTP-006", RequestEffect::None),
        (401, "EB-HTTP-002", RequestEffect::None),
        (403, "EB-HTTP-003", RequestEffect::None),
        (404, "EB-HTTP-004", RequestEffect::None),
        (409, "EB-HTTP-005", RequestEffect::None),
        (302, "EB-HTTP-006", RequestEffect::None),
        (500, "EB-HTTP-007", RequestEffect::Unknown),
        (503, "EB-HTTP-007", RequestEffect::Unknown),
    ];
    for (status, code, effect) in cases {
        let answer = Reply::json(
            status,
            &json!({"errors": [{"detail": "these\n\n words  "}]}),
        );
        let server = Server::start(move |_, _| answer.clone()).await;
        let error = placement(&server.url)
            .put_allocations(&crate::swap::newcomer(None))
            .await
            .unwrap_err();
        assert_eq!(
            (error.code(), error.effect()),
            (code, effect),
            "{status}: {error}"
        );
        assert!(
            status == 401 || error.to_string().contains("these words"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_request_id_with_strange_bytes_is_left_out() {
    let server = Server::start(|_, _| Reply::json(200, &json!({"resource_providers": []}))).await;
    let placement = placement(&server.url);
    placement
        .for_request("req-1\r\nX-Auth-Token: stolen")
        .providers("")
        .await
        .unwrap();
    placement.for_request("req-2").providers("").await.unwrap();
    let ids: Vec<_> = server
        .seen()
        .iter()
        .map(|seen| seen.headers.get("x-openstack-request-id").cloned())
        .collect();
    assert_eq!(ids, [None, Some("req-2".to_owned())]);
}

#[tokio::test]
async fn an_answer_that_never_ends_is_cut_off() {
    let body = format!("{{\"resource_providers\": [{}", " ".repeat(100_000));
    let server = Server::start(move |_, _| Reply {
        status: 200,
        headers: Vec::new(),
        body: body.clone().into_bytes(),
    })
    .await;
    let pairs = [("auth_type", "none"), ("endpoint", server.url.as_str())];
    let auth = AuthOptions::from_lookup("[test]", |n| {
        pairs
            .iter()
            .find(|(k, _)| *k == n)
            .map(|(_, v)| (*v).to_owned())
    });
    let mut options = SessionOptions::new("ebbtide-test");
    options.max_answer_bytes = 50_000;
    let session = Session::new(auth.unwrap(), options).unwrap();
    let error = Placement::new(session, AdapterOptions::placement())
        .unwrap()
        .providers("")
        .await
        .unwrap_err();
    assert!(matches!(error, OpenStackError::BadAnswer { .. }), "{error}");
    assert!(!server.seen()[0].headers.contains_key("x-auth-token"));
}

#[tokio::test]
async fn a_placement_or_nova_that_is_too_old_is_named() {
    let versions =
        json!({"versions": [{"id": "v1.0", "min_version": "1.0", "max_version": "1.35"}]});
    let server = Server::start(move |_, _| Reply::json(200, &versions)).await;
    let error = placement(&server.url).check_version().await.unwrap_err();
    assert_eq!(error.code(), "EB-HTTP-010");
    let version = json!({"version": {"version": "2.38", "min_version": "2.1"}});
    let server = Server::start(move |_, _| Reply::json(200, &version)).await;
    let error = compute(&server.url).negotiated().await.unwrap_err();
    assert!(matches!(error, OpenStackError::Version { .. }), "{error}");
}
