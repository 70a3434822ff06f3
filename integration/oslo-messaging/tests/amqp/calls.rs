//! Our client and our server with each other, and what servers do with rubbish.

use std::time::Duration;

use oslo_messaging::{
    AckMode, ArrivalQueue, CallOptions, CallerState, Map, MessagingError, RpcClient, ServerOptions,
    ServerRole, Target,
};
use serde_json::{Value, json};

use crate::raw::Raw;
use crate::support::{Book, Place, args, caller_becomes, soon};

fn quick() -> CallOptions {
    CallOptions {
        timeout: Duration::from_secs(30),
        ..CallOptions::default()
    }
}

/// Reads along.
fn observer() -> ServerOptions {
    ServerOptions {
        role: ServerRole::Observer,
        ack: AckMode::Early,
        ..ServerOptions::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_observer_gets_a_copy_of_each_request_and_answers_none() {
    let place = Place::shared().await;
    let transport = place.transport();
    let (seen, done) = (Book::default(), Book::default());
    let _observer = place.serve(&transport, "h9", observer(), &seen).await;
    let client = RpcClient::new(&transport);
    let target = place.target();
    let context = args(json!({"user": "ann"}));
    let sent = args(json!({"number": 1}));
    // Without a worker no reply comes, neither from the observer nor from elsewhere.
    let hurried = CallOptions {
        timeout: Duration::from_secs(2),
        ..CallOptions::default()
    };
    let call = client.call(&target, &context, "echo", &sent, &hurried);
    let failed = soon("the end of the call", call).await.unwrap_err();
    assert!(matches!(failed, MessagingError::Timeout { .. }), "{failed}");
    let copy = seen.wait(1).await.pop().unwrap();
    assert_eq!((copy.method.as_str(), &copy.args), ("echo", &sent));
    // With one, each of several requests comes to both, and the worker answers.
    let _worker = place
        .serve(&transport, "h1", ServerOptions::default(), &done)
        .await;
    for number in 0..5 {
        let sent = args(json!({"number": number}));
        let options = quick();
        let call = client.call(&target, &context, "echo", &sent, &options);
        let result = soon("a reply", call).await.unwrap();
        assert_eq!(result, json!({"context": {"user": "ann"}, "args": sent}));
    }
    let copies = seen.wait(6).await;
    assert_eq!(copies.len(), 6);
    assert!(copies.iter().all(|copy| copy.source == ArrivalQueue::Topic));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_casts_and_fanouts_reach_whom_they_name() {
    let place = Place::shared().await;
    let transport = place.transport();
    let (one, two) = (Book::default(), Book::default());
    let first = place
        .serve(&transport, "h1", ServerOptions::default(), &one)
        .await;
    let second = place
        .serve(&transport, "h2", ServerOptions::default(), &two)
        .await;
    let client = RpcClient::new(&transport);
    let target = place.target();
    let context = args(json!({"user": "ann"}));

    let sent = args(json!({"text": "Zürich \u{1F600}", "number": 1.5, "list": [null, true]}));
    let options = quick();
    let call = client.call(&target, &context, "echo", &sent, &options);
    let result = soon("a reply", call).await.unwrap();
    assert_eq!(result, json!({"context": {"user": "ann"}, "args": sent}));

    let to_second = target.clone().server("h2");
    soon(
        "a reply",
        client.call(&to_second, &context, "echo", &Map::new(), &quick()),
    )
    .await
    .unwrap();
    assert_eq!(two.entries().last().unwrap().source, ArrivalQueue::Server);

    let before = (one.entries().len(), two.entries().len());
    soon(
        "a fanout",
        client.cast(&target.clone().fanout(), &context, "note", &sent),
    )
    .await
    .unwrap();
    let seen = [one.wait(before.0 + 1).await, two.wait(before.1 + 1).await];
    for entry in seen.map(|mut entries| entries.pop().unwrap()) {
        assert_eq!(
            (entry.source, entry.user.as_deref(), entry.expiration),
            (ArrivalQueue::Fanout, Some("ann"), None)
        );
    }
    soon("a cast", client.cast(&to_second, &context, "note", &sent))
        .await
        .unwrap();
    two.wait(before.1 + 2).await;

    let named = Target::topic(&place.topic).version(1, 0).namespace("named");
    let pong = soon(
        "a reply",
        client.call(&named, &context, "ping", &args(json!({"arg": 1})), &quick()),
    )
    .await
    .unwrap();
    assert_eq!(pong, json!({"service": "ours", "arg": 1}));

    for server in [first, second] {
        assert_eq!(
            soon("stop", server.stop(Duration::from_secs(5)))
                .await
                .unfinished,
            0
        );
    }
    transport.close().await;
    assert_eq!(
        client.cast(&target, &context, "note", &sent).await,
        Err(MessagingError::Closed)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_cannot_succeed_says_why() {
    let place = Place::shared().await;
    let transport = place.transport();
    let client = RpcClient::new(&transport);
    let unanswered = soon(
        "an answer",
        client.call(&place.target(), &Map::new(), "echo", &Map::new(), &quick()),
    )
    .await;
    assert_eq!(unanswered.unwrap_err().code(), "EB-OSLO-011");

    let book = Book::default();
    let server = place
        .serve(&transport, "h1", ServerOptions::default(), &book)
        .await;
    let call = async |target: Target, method: &str, sent: Value, options: CallOptions| {
        soon(
            "an answer",
            client.call(&target, &Map::new(), method, &args(sent), &options),
        )
        .await
    };
    let remote = |outcome: Result<Value, MessagingError>| match outcome {
        Err(MessagingError::Remote(failure)) => failure,
        other => panic!("{other:?}"),
    };
    let failure = remote(call(place.target(), "fail", json!({"reason": "full"}), quick()).await);
    assert!(failure.is("peer_errors", "NoHost"));
    assert_eq!(
        Value::Object(*failure.kwargs),
        json!({"reason": "full", "code": 500})
    );
    assert!(
        remote(call(place.target(), "panic", json!({}), quick()).await)
            .is("builtins", "RuntimeError")
    );
    assert_eq!(
        remote(call(place.target(), "none", json!({}), quick()).await).class,
        "NoSuchMethod"
    );
    assert_eq!(
        remote(call(place.target().version(2, 4), "echo", json!({}), quick()).await).class,
        "UnsupportedVersion"
    );
    assert_eq!(
        remote(call(place.target(), "oslo_rpc_server_ping", json!({}), quick()).await).class,
        "NoSuchMethod"
    );

    let short = CallOptions {
        timeout: Duration::from_millis(300),
        ..CallOptions::default()
    };
    let late = call(place.target(), "wait", json!({}), short)
        .await
        .unwrap_err();
    assert_eq!(late.code(), "EB-OSLO-010", "{late}");
    book.gate.add_permits(1);

    let cap = CallOptions {
        version_cap: Some((2, 0).into()),
        ..quick()
    };
    assert_eq!(
        call(place.target(), "echo", json!({}), cap)
            .await
            .unwrap_err()
            .code(),
        "EB-OSLO-016"
    );
    assert_eq!(
        call(place.target().fanout(), "echo", json!({}), quick())
            .await
            .unwrap_err()
            .code(),
        "EB-OSLO-013"
    );
    server.stop(Duration::from_secs(5)).await;
    transport.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heartbeats_keep_a_long_call_alive() {
    let place = Place::shared().await;
    let transport = place.transport();
    let book = Book::default();
    let server = place
        .serve(&transport, "h1", ServerOptions::default(), &book)
        .await;
    let client = RpcClient::new(&transport);
    let options = CallOptions {
        call_monitor_timeout: Some(Duration::from_secs(2)),
        ..quick()
    };
    // Longer than the monitor's timeout, which only heartbeats can renew.
    let call = client
        .call(
            &place.target(),
            &Map::new(),
            "slow",
            &args(json!({"seconds": 4.5})),
            &options,
        )
        .await;
    assert_eq!(call, Ok(json!("done")));
    assert_eq!(book.entries()[0].expiration, Some(options.timeout));
    server.stop(Duration::from_secs(5)).await;
    transport.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rubbish_is_thrown_away_and_the_server_lives_on() {
    let place = Place::shared().await;
    let transport = place.transport();
    let book = Book::default();
    let options = ServerOptions {
        max_message_bytes: 2000,
        prefetch: 2,
        ..ServerOptions::default()
    };
    let server = place.serve(&transport, "h1", options, &book).await;
    let client = RpcClient::new(&transport);
    let raw = Raw::open(&place).await;
    let large = vec![b' '; 2001];
    let bodies: [&[u8]; 6] = [
        b"",
        b"\xff",
        b"{}",
        br#"{"oslo.version": "3.0", "oslo.message": "{}"}"#,
        br#"{"oslo.version": "2.0", "oslo.message": "{\"method\": \"echo\", \"args\": 3}"}"#,
        &large,
    ];
    for body in bodies {
        raw.publish(&place.topic, body, None).await;
    }
    raw.publish(
        &place.topic,
        b"{}",
        Some(("compression", "application/x-bz2")),
    )
    .await;
    // More rubbish than the prefetch: whatever were not settled would block this call.
    soon(
        "a reply",
        client.call(&place.target(), &Map::new(), "echo", &Map::new(), &quick()),
    )
    .await
    .unwrap();
    raw.until_empty(&place.topic).await;
    assert_eq!((book.entries().len(), server.in_progress()), (1, 0));
    server.stop(Duration::from_secs(5)).await;
    assert_eq!(
        raw.look(&place.topic).await,
        Some((0, 0)),
        "something was put back"
    );
    transport.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_comes_twice_is_done_once() {
    let place = Place::shared().await;
    let transport = place.transport();
    let book = Book::default();
    let server = place
        .serve(&transport, "h1", ServerOptions::default(), &book)
        .await;
    let raw = Raw::open(&place).await;
    let message =
        json!({"method": "wait", "version": "2.3", "args": {}, "_unique_id": "u1"}).to_string();
    raw.publish(&place.topic, message.as_bytes(), None).await;
    book.wait(1).await;
    // While it is worked on, and after.
    raw.publish(&place.topic, message.as_bytes(), None).await;
    book.gate.add_permits(1);
    ebbtide_harness::eventually(crate::support::PATIENCE, async || {
        match server.in_progress() {
            0 => Ok(()),
            n => Err(format!("{n} in progress")),
        }
    })
    .await;
    raw.publish(&place.topic, message.as_bytes(), None).await;
    let other =
        json!({"method": "echo", "version": "2.3", "args": {}, "_unique_id": "u2"}).to_string();
    raw.publish(&place.topic, other.as_bytes(), None).await;
    let entries = book.wait(2).await;
    assert_eq!([&entries[0].method, &entries[1].method], ["wait", "echo"]);
    server.stop(Duration::from_secs(5)).await;
    assert_eq!(
        (book.entries().len(), raw.look(&place.topic).await),
        (2, Some((0, 0)))
    );
    transport.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_learns_that_its_caller_is_gone() {
    let place = Place::shared()
        .await
        .with("kombu_missing_consumer_retry_timeout=2");
    let transport = place.transport();
    let book = Book::default();
    let server = place
        .serve(&transport, "h1", ServerOptions::default(), &book)
        .await;
    let raw = Raw::open(&place).await;
    let callers = place.transport();
    let client = RpcClient::new(&callers);
    let options = CallOptions {
        call_monitor_timeout: Some(Duration::from_secs(2)),
        ..quick()
    };
    let target = place.target();
    let (empty, none) = (Map::new(), Map::new());
    let call = client.call(&target, &none, "wait", &empty, &options);
    let state = tokio::select! {
        outcome = call => panic!("{outcome:?}"),
        state = caller_becomes(&book, CallerState::Listening) => state,
    };
    assert_eq!(state.ask().await, CallerState::Listening);
    // The process of the caller dies; its queue stays for half an hour.
    callers.close().await;
    ebbtide_harness::eventually(crate::support::PATIENCE, async || match state.ask().await {
        CallerState::NotListening => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
    let shown = format!("{client:?}");
    let queue = shown.split('"').nth(1).unwrap();
    assert!(queue.starts_with("reply_"), "{shown}");
    raw.delete(queue).await;
    caller_becomes(&book, CallerState::Gone).await;
    soon("the handler is told", state.abandoned().cancelled()).await;
    raw.until_empty(&place.topic).await;
    assert_eq!(
        soon("stop", server.stop(Duration::from_secs(10)))
            .await
            .unfinished,
        0
    );
    transport.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn early_acknowledgement_takes_a_request_off_the_queue_before_the_work_and_late_does_not() {
    for (ack, left) in [(AckMode::Early, 0), (AckMode::Late, 1)] {
        let place = Place::shared().await;
        let transport = place.transport();
        let book = Book::default();
        let server = place
            .serve(
                &transport,
                "h1",
                ServerOptions {
                    ack,
                    ..ServerOptions::default()
                },
                &book,
            )
            .await;
        let raw = Raw::open(&place).await;
        let message = json!({"method": "wait", "version": "2.3", "args": {}}).to_string();
        raw.publish(&place.topic, message.as_bytes(), None).await;
        book.wait(1).await;
        // Stopping without patience: what was acknowledged early is lost, what was not is there
        // again.
        let report = soon("stop", server.stop(Duration::ZERO)).await;
        assert_eq!(report.unfinished, 1);
        ebbtide_harness::eventually(crate::support::PATIENCE, async || {
            match raw.look(&place.topic).await {
                Some((count, 0)) if count == left => Ok(()),
                other => Err(format!("{ack:?}: {other:?}")),
            }
        })
        .await;
        transport.close().await;
    }
}
