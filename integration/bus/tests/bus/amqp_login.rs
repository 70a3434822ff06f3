//! Getting in: wrong passwords, missing vhosts, brokers that are away, mute or several.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ebbtide_bus::{AmqpBus, Bus, BusStatus};
use tokio::net::TcpListener;

use crate::proxy::{Mode, Proxy};
use crate::support::{PATIENCE, message, next, shared_broker, soon, status, text, unique_prefix};
use crate::transports::{config, host_and_port, with_host_and_port};

/// An address on which no process listens.
async fn closed_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().to_string()
}

fn with_login(url: &str, login: &str) -> String {
    format!("amqp://{login}@{}", url.split_once('@').unwrap().1)
}

#[tokio::test]
async fn a_wrong_password_is_told_at_once_and_never_shown() {
    let broker = shared_broker().await;
    let url = with_login(broker.url(), "ebbtide-stranger:geheim42");
    let connecting = AmqpBus::connect(config(&[&url]), PATIENCE * 10);
    let error = soon("the refusal", connecting).await.unwrap_err();
    assert_eq!(error.code(), "EB-BUS-007", "{error}");
    let shown = format!("{error} {error:?}");
    assert!(shown.contains("ebbtide-stranger"), "{shown}");
    assert!(!shown.contains("geheim42"), "{shown}");
}

#[tokio::test]
async fn a_bus_opened_without_waiting_shows_the_wrong_password_in_its_status() {
    let broker = shared_broker().await;
    let url = with_login(broker.url(), "ebbtide-stranger:geheim42");
    let mut config = config(&[&url]);
    config.operation_timeout = Duration::from_millis(200);
    let bus = AmqpBus::open(config).unwrap();
    let seen = status(
        &bus,
        "two refused attempts",
        |status| matches!(status, BusStatus::Reconnecting { attempts, .. } if *attempts >= 2),
    )
    .await;
    let shown = format!("{seen:?}");
    assert!(
        shown.contains("refused the login") && !shown.contains("geheim42"),
        "{shown}"
    );
    let error = bus.declare(&unique_prefix().scheduler()).await.unwrap_err();
    assert_eq!(error.code(), "EB-BUS-006");
    assert!(error.to_string().contains("refused the login"), "{error}");
    bus.close().await;
}

#[tokio::test]
async fn a_missing_vhost_is_told_at_once() {
    let broker = shared_broker().await;
    let url = broker.url();
    let url = format!(
        "amqp://{}/no-such-vhost",
        url.split_once("://").unwrap().1.split('/').next().unwrap()
    );
    let connecting = AmqpBus::connect(config(&[&url]), PATIENCE * 10);
    let error = soon("the refusal", connecting).await.unwrap_err();
    assert_eq!(error.code(), "EB-BUS-008", "{error}");
    assert!(error.to_string().contains("no-such-vhost"), "{error}");
}

#[tokio::test]
async fn the_next_broker_is_tried_when_the_first_is_away() {
    let broker = shared_broker().await;
    let good = broker.url();
    let bad = with_host_and_port(good, &closed_port().await);
    let bus = AmqpBus::connect(config(&[&bad, good]), PATIENCE)
        .await
        .unwrap();
    bus.declare(&unique_prefix().scheduler()).await.unwrap();
    bus.close().await;
}

#[tokio::test]
async fn one_refusal_among_several_brokers_does_not_end_the_search() {
    let broker = shared_broker().await;
    let good = broker.url();
    let proxy = Proxy::start(&host_and_port(good), Mode::Refuse).await;
    let refused = with_login(good, "ebbtide-stranger:x");
    let late = with_host_and_port(good, &proxy.address().to_string());
    let connecting = tokio::spawn(AmqpBus::connect(config(&[&refused, &late]), PATIENCE));
    let mut accepted = proxy.accepted();
    soon("attempts", accepted.wait_for(|n| *n >= 2))
        .await
        .unwrap();
    proxy.set(Mode::Forward);
    let bus = soon("the connection", connecting).await.unwrap().unwrap();
    bus.close().await;
}

#[tokio::test]
async fn without_a_broker_every_operation_ends_at_its_deadline_with_advice() {
    let url = format!("amqp://ann:geheim42@{}", closed_port().await);
    let mut config = config(&[&url]);
    config.operation_timeout = Duration::from_millis(300);
    let deadline = Duration::from_millis(300);
    let began = Instant::now();
    let error = AmqpBus::connect(config.clone(), deadline)
        .await
        .unwrap_err();
    assert_eq!(error.code(), "EB-BUS-006");
    assert!(
        began.elapsed() >= deadline,
        "gave up early, after {:?}",
        began.elapsed()
    );

    let bus = AmqpBus::open(config).unwrap();
    let queue = unique_prefix().scheduler();
    let publish = soon("publish", bus.publish(&queue, &message("x")))
        .await
        .unwrap_err();
    let declare = soon("declare", bus.declare(&queue)).await.unwrap_err();
    for error in [error, publish, declare] {
        assert_eq!(error.code(), "EB-BUS-006");
        let shown = format!("{error} {error:?}");
        let advice = error.to_string().matches("is the broker running").count();
        assert_eq!(advice, 1, "{shown}");
        assert!(shown.contains("refused"), "the cause is missing: {shown}");
        assert!(!shown.contains("geheim42"), "{shown}");
    }
    let mut subscription = soon("consume", bus.consume(&queue, 1)).await.unwrap();
    soon("close without a broker", bus.close()).await;
    assert!(subscription.next().await.is_none());
}

#[tokio::test]
async fn what_was_begun_without_a_broker_is_done_when_it_comes() {
    let broker = shared_broker().await;
    let direct = broker.url();
    let proxy = Proxy::start(&host_and_port(direct), Mode::Refuse).await;
    let url = with_host_and_port(direct, &proxy.address().to_string());
    let mut settings = config(&[&url]);
    settings.operation_timeout = Duration::from_millis(300);
    let reader = AmqpBus::open(settings).unwrap();
    let writer = Arc::new(AmqpBus::open(config(&[&url])).unwrap());
    let queue = unique_prefix().agent("early").unwrap();
    let mut subscription = soon("consume", reader.consume(&queue, 1)).await.unwrap();
    let publishing = {
        let (writer, queue) = (Arc::clone(&writer), queue.clone());
        tokio::spawn(async move {
            writer.declare(&queue).await?;
            writer.publish(&queue, &message("early bird")).await
        })
    };
    let mut accepted = proxy.accepted();
    soon("attempts", accepted.wait_for(|n| *n >= 4))
        .await
        .unwrap();
    assert!(!publishing.is_finished());
    proxy.set(Mode::Forward);
    soon("the early publish", publishing)
        .await
        .unwrap()
        .unwrap();
    let got = next(&mut subscription).await;
    assert_eq!(text(&got), "early bird");
    got.ack().await;
    reader.close().await;
    writer.close().await;
}

#[tokio::test]
async fn a_mute_peer_costs_one_socket_not_one_for_each_attempt() {
    let broker = shared_broker().await;
    let direct = broker.url();
    let proxy = Proxy::start(&host_and_port(direct), Mode::Mute).await;
    let url = with_host_and_port(direct, &proxy.address().to_string());
    let mut config = config(&[&url]);
    config.connect_timeout = Duration::from_millis(200);
    let bus = AmqpBus::open(config).unwrap();
    let (mut accepted, mut open) = (proxy.accepted(), proxy.open());
    soon("six attempts", accepted.wait_for(|n| *n >= 6))
        .await
        .unwrap();
    // The sixth is running, the five before it have been hung up (and with them lapin's threads).
    soon("the old sockets are closed", open.wait_for(|n| *n <= 1))
        .await
        .unwrap();
    // A busy machine may need longer than that to log in, but it has many attempts.
    proxy.set(Mode::Forward);
    status(&bus, "connected", BusStatus::is_ready).await;
    bus.close().await;
    soon("all sockets are closed", open.wait_for(|n| *n == 0))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_peer_that_falls_silent_is_noticed_by_heartbeat() {
    let broker = shared_broker().await;
    let direct = broker.url();
    let proxy = Proxy::start(&host_and_port(direct), Mode::Forward).await;
    let url = with_host_and_port(direct, &proxy.address().to_string());
    let mut config = config(&[&url]);
    config.heartbeat = Duration::from_secs(1);
    let bus = AmqpBus::connect(config, PATIENCE).await.unwrap();
    let queue = unique_prefix().scheduler();
    let mut subscription = bus.consume(&queue, 1).await.unwrap();
    proxy.set(Mode::Mute);
    status(&bus, "the silence is noticed", |s| {
        matches!(s, BusStatus::Reconnecting { .. })
    })
    .await;
    proxy.set(Mode::Forward);
    bus.publish(&queue, &message("x")).await.unwrap();
    next(&mut subscription).await.ack().await;
    bus.close().await;
}

#[tokio::test]
async fn a_server_that_speaks_another_protocol_is_no_broker() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("amqp://u:geheim42@{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            let _ = tokio::io::AsyncWriteExt::write_all(
                &mut socket,
                b"HTTP/1.1 400 Bad Request\r\n\r\n",
            )
            .await;
        }
    });
    let error = AmqpBus::connect(config(&[&url]), Duration::from_secs(2))
        .await
        .unwrap_err();
    assert_eq!(error.code(), "EB-BUS-006", "{error}");
    assert!(!error.to_string().contains("geheim42"));
    server.abort();
}
