//! Python's oslo.messaging on the other side, in both directions.
//!
//! The interpreter is Debian's (`/usr/bin/python3` with python3-oslo.messaging), or the one that
//! `EBBTIDE_OSLO_PYTHON` names.

use std::path::Path;
use std::time::Duration;

use ebbtide_harness::{Process, ProcessCommand};
use oslo_messaging::{
    ArrivalQueue, CallOptions, Map, MessagingError, Notification, Notifier, NotifierFormat,
    NotifierOptions, Priority, RpcClient, ServerOptions, Target,
};
use serde_json::{Value, json};

use crate::support::{Book, PATIENCE, Place, args, soon};

/// A Python program that speaks oslo.messaging.
pub struct Peer {
    pub process: Process,
    _folder: tempfile::TempDir,
}

impl Peer {
    /// Starts it and waits until it is ready.
    pub async fn start(arguments: &[&str]) -> Self {
        let python =
            std::env::var("EBBTIDE_OSLO_PYTHON").unwrap_or_else(|_| "/usr/bin/python3".to_owned());
        let folder = tempfile::tempdir().unwrap();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/peer.py");
        let process = ProcessCommand::new("python", python)
            .args(["-W", "ignore", script])
            .args(arguments)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .spawn(folder.path().join("python.log"))
            .unwrap();
        match process.wait_for_line("READY", PATIENCE).await {
            Ok(_) => Self {
                process,
                _folder: folder,
            },
            Err(error) => panic!(
                "Python's oslo.messaging does not start ({error}); bash devstack/lib/packages.sh oslo-messaging installs it:\n{}",
                process.log_tail()
            ),
        }
    }

    pub async fn wait_for(&self, text: &str) {
        if let Err(error) = self.process.wait_for_line(text, PATIENCE).await {
            panic!("{error}\n{}", self.process.log_tail());
        }
    }

    /// What it reports until it is done.
    pub async fn events(&self) -> Vec<Value> {
        self.wait_for("DONE").await;
        let log: &Path = self.process.log_path().unwrap();
        std::fs::read_to_string(log)
            .unwrap()
            .lines()
            .filter_map(|line| line.strip_prefix("EVENT "))
            .map(|json| serde_json::from_str(json).unwrap())
            .collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pythons_client_is_served_as_by_pythons_server() {
    let place = Place::shared().await;
    let transport = place.transport();
    let book = Book::default();
    let server = place
        .serve(&transport, "h1", ServerOptions::default(), &book)
        .await;
    let topic = &place.topic;
    let target = json!({"topic": topic, "version": "2.3"});
    let data = json!({"text": "Zürich \u{1F600}\u{7f}", "number": 1.5, "big": 1e22, "list": [null, true, {"a": {}}]});
    let steps = json!([
        {"target": target, "method": "echo", "args": data, "context": {"user": "ann", "roles": ["x"]}},
        {"target": {"topic": topic, "server": "h1", "version": "2.0"}, "method": "echo", "args": {}},
        {"target": {"topic": topic, "namespace": "named", "version": "1.0"}, "method": "ping", "args": {"arg": "hello"}},
        {"target": target, "method": "fail", "args": {"reason": "full"}},
        {"target": target, "method": "panic", "args": {}},
        {"target": target, "method": "none", "args": {}},
        {"target": {"topic": topic, "version": "2.4"}, "method": "echo", "args": {}},
        {"target": {"topic": topic, "version": "3.0"}, "method": "echo", "args": {}},
        // Half of 2 s is the interval of our heartbeats; without them Python would give up after 2
        // s.
        {"target": target, "method": "slow", "args": {"seconds": 4.5}, "options": {"timeout": 60, "call_monitor_timeout": 2}},
        {"target": target, "method": "wait", "args": {}, "options": {"timeout": 1}},
        {"target": target, "method": "note", "args": {"n": 1}, "cast": true},
        {"target": {"topic": topic, "version": "2.3", "server": "h1"}, "method": "note", "args": {"n": 2}, "cast": true},
        {"target": {"topic": topic, "version": "2.3", "fanout": true}, "method": "note", "args": {"n": 3}, "cast": true}
    ]);
    let peer = Peer::start(&["client", &place.url, &place.exchange, &steps.to_string()]).await;
    let events = peer.events().await;
    assert_eq!(events.len(), 13);
    assert_eq!(
        events[0]["result"],
        json!({"context": {"user": "ann"}, "args": data}),
        "{}",
        events[0]
    );
    assert_eq!(
        events[1]["result"],
        json!({"context": {"user": null}, "args": {}})
    );
    assert_eq!(
        events[2]["result"],
        json!({"service": "ours", "arg": "hello"})
    );
    // A class of an allowed module is built again, keyword arguments included.
    assert_eq!(events[3]["raised"], "NoHost_Remote");
    assert_eq!(events[3]["module"], "peer_errors_Remote");
    assert_eq!(events[3]["kwargs"], json!({"reason": "full", "code": 500}));
    assert!(
        events[3]["text"]
            .as_str()
            .unwrap()
            .starts_with("No host was found. full")
    );
    assert_eq!(events[4]["raised"], "RuntimeError");
    // Others are wrapped.
    for (at, class, text) in [
        (
            5,
            "NoSuchMethod",
            "Endpoint does not support RPC method none",
        ),
        (
            6,
            "UnsupportedVersion",
            "Endpoint does not support RPC version 2.4. Attempted method: echo",
        ),
        (
            7,
            "UnsupportedVersion",
            "Endpoint does not support RPC version 3.0. Attempted method: echo",
        ),
    ] {
        assert_eq!(
            (&events[at]["raised"], &events[at]["exc_type"]),
            (&json!("RemoteError"), &json!(class))
        );
        assert!(
            events[at]["text"].as_str().unwrap().contains(text),
            "{}",
            events[at]
        );
    }
    assert_eq!(events[8]["result"], "done", "{}", events[8]);
    assert_eq!(events[9]["raised"], "MessagingTimeout");
    book.gate.add_permits(1);
    let entries = book.wait(10).await;
    assert_eq!(entries[0].expiration, Some(Duration::from_secs(60)));
    let notes: Vec<_> = entries.iter().filter(|e| e.method == "note").collect();
    let mut sources: Vec<_> = notes
        .iter()
        .map(|e| (e.args["n"].as_u64(), e.source))
        .collect();
    sources.sort_by_key(|(n, _)| *n);
    assert_eq!(
        sources,
        [
            (Some(1), ArrivalQueue::Topic),
            (Some(2), ArrivalQueue::Server),
            (Some(3), ArrivalQueue::Fanout)
        ]
    );
    server.stop(Duration::from_secs(10)).await;
    transport.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_client_is_served_by_pythons_server() {
    let place = Place::shared().await;
    let peer = Peer::start(&["server", &place.url, &place.exchange, &place.topic, "h1"]).await;
    let transport = place.transport();
    let client = RpcClient::new(&transport);
    let target = place.target();
    let context = args(json!({"user": "ann"}));
    let quick = CallOptions {
        timeout: Duration::from_secs(30),
        ..CallOptions::default()
    };
    let call = async |target: Target, method: &str, sent: Value, options: &CallOptions| {
        soon(
            "an answer",
            client.call(&target, &context, method, &args(sent), options),
        )
        .await
    };
    let data =
        json!({"text": "Zürich \u{1F600}\u{7f}", "number": 1.5, "list": [null, true, {"a": {}}]});
    assert_eq!(
        call(target.clone(), "echo", data.clone(), &quick).await,
        Ok(json!({"context": {"user": "ann"}, "args": data}))
    );
    let directed = target.clone().server("h1");
    assert!(
        call(directed.clone(), "echo", json!({}), &quick)
            .await
            .is_ok()
    );
    let named = Target::topic(&place.topic).version(1, 1).namespace("named");
    assert_eq!(
        call(named, "ping", json!({"arg": 1}), &quick).await,
        Ok(json!({"service": "peer", "arg": 1}))
    );

    let failures = [
        (
            "fail",
            target.clone(),
            json!({"reason": "full"}),
            "peer_errors",
            "NoHost",
        ),
        (
            "echo",
            target.clone().version(2, 4),
            json!({}),
            "oslo_messaging.rpc.dispatcher",
            "UnsupportedVersion",
        ),
        (
            "none",
            target.clone(),
            json!({}),
            "oslo_messaging.rpc.dispatcher",
            "NoSuchMethod",
        ),
        (
            "slow",
            target.clone(),
            json!({"x": 1}),
            "builtins",
            "TypeError",
        ),
    ];
    for (method, target, sent, module, class) in failures {
        match call(target, method, sent, &quick).await {
            Err(MessagingError::Remote(failure)) => {
                assert!(failure.is(module, class), "{failure}");
                assert!(
                    failure.traceback.len() > 2,
                    "Python sends a whole traceback"
                );
                if method == "fail" {
                    assert_eq!(failure.message, "No host was found. full");
                    assert_eq!(
                        Value::Object(*failure.kwargs),
                        json!({"reason": "full", "code": 500})
                    );
                }
            }
            other => panic!("{method}: {other:?}"),
        }
    }
    let monitored = CallOptions {
        call_monitor_timeout: Some(Duration::from_secs(2)),
        ..quick.clone()
    };
    assert_eq!(
        call(target.clone(), "slow", json!({"seconds": 4.5}), &monitored).await,
        Ok(json!("done"))
    );
    let short = CallOptions {
        timeout: Duration::from_secs(1),
        ..quick.clone()
    };
    assert_eq!(
        call(target.clone(), "slow", json!({"seconds": 3}), &short)
            .await
            .unwrap_err()
            .code(),
        "EB-OSLO-010"
    );

    for (number, target) in [target.clone(), directed, target.clone().fanout()]
        .iter()
        .enumerate()
    {
        soon(
            "a cast",
            client.cast(target, &context, "note", &args(json!({"n": number}))),
        )
        .await
        .unwrap();
        peer.wait_for(&format!("EVENT {{\"n\": {number}}}")).await;
    }
    transport.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pythons_listener_reads_our_notifications() {
    for format in [NotifierFormat::V2, NotifierFormat::V1] {
        let place = Place::shared().await;
        let transport = place.transport();
        let topic = format!("{}_notifications", place.topic);
        let options = |publisher_id: &str| NotifierOptions {
            publisher_id: publisher_id.to_owned(),
            topics: vec![topic.clone()],
            format,
        };
        let notify = async |publisher: &str, event_type: &str, priority, payload: Value| {
            let notification = Notification {
                event_type: event_type.to_owned(),
                priority,
                payload,
                context: args(json!({"request_id": "req-1"})),
            };
            let notifier = Notifier::new(&transport, options(publisher)).unwrap();
            soon("a notification", notifier.notify(&notification))
                .await
                .unwrap();
        };
        // Before anybody listens: the queue is made, and keeps it.
        let payload = json!({"request_spec": {"num_instances": 1}, "text": "Zürich"});
        notify(
            "scheduler.h1",
            "scheduler.select_destinations.start",
            Priority::Info,
            payload.clone(),
        )
        .await;
        let peer = Peer::start(&["listener", &place.url, &place.exchange, &topic, "2"]).await;
        notify(
            "nova-scheduler:h1",
            "scheduler.select_destinations.end",
            Priority::Error,
            json!({"n": [1]}),
        )
        .await;
        let mut events = peer.events().await;
        events.sort_by_key(|event| event["priority"] == "error");
        assert_eq!(events.len(), 2);
        assert_eq!(events[0]["payload"], payload);
        assert_eq!(events[0]["publisher_id"], "scheduler.h1");
        assert_eq!(events[0]["context"]["request_id"], "req-1");
        assert_eq!(events[1]["publisher_id"], "nova-scheduler:h1");
        assert_eq!(events[1]["event_type"], "scheduler.select_destinations.end");
        let timestamp = events[1]["timestamp"].as_str().unwrap();
        assert!(
            timestamp.len() >= 19 && timestamp.as_bytes()[10] == b' ',
            "{timestamp}"
        );
        assert_eq!(events[1]["message_id"].as_str().unwrap().len(), 36);
        transport.close().await;
    }
}

/// If one of us declared anything otherwise than the other, the broker would refuse the second one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn we_share_queues_with_pythons_server_under_every_queue_option() {
    for query in [
        "amqp_durable_queues=true",
        "amqp_auto_delete=true",
        "rabbit_ha_queues=true",
        "rabbit_quorum_queue=true&rabbit_quorum_delivery_limit=5",
        "rabbit_transient_queues_ttl=60",
    ] {
        let place = Place::shared().await.with(query);
        let peer = Peer::start(&[
            "server",
            &place.url,
            &place.exchange,
            &place.topic,
            "python",
        ])
        .await;
        let transport = place.transport();
        let book = Book::default();
        let server = place
            .serve(&transport, "rust", ServerOptions::default(), &book)
            .await;
        let client = RpcClient::new(&transport);
        let quick = CallOptions {
            timeout: Duration::from_secs(30),
            ..CallOptions::default()
        };
        for host in ["python", "rust"] {
            let target = place.target().server(host);
            let answer = client
                .call(&target, &Map::new(), "echo", &Map::new(), &quick)
                .await;
            assert!(answer.is_ok(), "{query} {host}: {answer:?}");
        }
        // The topic's queue is one for both: some calls go here, some there.
        let mut calls = 0;
        while book
            .entries()
            .iter()
            .all(|entry| entry.source != ArrivalQueue::Topic)
            || calls < 4
        {
            let answer = client
                .call(&place.target(), &Map::new(), "echo", &Map::new(), &quick)
                .await;
            assert!(answer.is_ok(), "{query}: {answer:?}");
            calls += 1;
            assert!(calls < 100, "{query}: we never get a request");
        }
        let target = place.target().fanout();
        client
            .cast(&target, &Map::new(), "note", &args(json!({"to": "all"})))
            .await
            .unwrap();
        peer.wait_for("EVENT {\"to\": \"all\"}").await;
        let noted = book.entries().len();
        soon("our copy", book.wait(noted.max(1))).await;
        server.stop(Duration::from_secs(5)).await;
        transport.close().await;
    }
}
