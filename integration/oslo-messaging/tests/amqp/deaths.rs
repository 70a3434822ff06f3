//! Servers, connections and brokers that die in the middle.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ebbtide_harness::{Process, ProcessCommand};
use oslo_messaging::wire::{Properties, decode_reply};
use oslo_messaging::{CallOptions, Map, MessagingError, RpcClient, ServerOptions, Target};
use serde_json::json;

use crate::raw::Raw;
use crate::support::{Book, PATIENCE, Place, args, private_broker, soon};
use crate::tap::Tap;

fn patient() -> CallOptions {
    CallOptions {
        timeout: PATIENCE,
        call_monitor_timeout: Some(Duration::from_secs(60)),
        ..CallOptions::default()
    }
}

/// The example program, which is built with the tests.
fn example(folder: &std::path::Path, place: &Place, host: &str) -> Process {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    path.push("examples/echo_server");
    assert!(
        path.exists(),
        "{} is missing; build it: cargo build -p oslo-messaging --examples",
        path.display()
    );
    ProcessCommand::new(host, path)
        .args([place.url.as_str(), place.topic.as_str(), host])
        .spawn(folder.join(format!("{host}.log")))
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_request_of_a_killed_server_is_answered_by_another_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut place = Place::shared().await;
    // The example's exchange; the topic is this test's own.
    place.exchange = "openstack".to_owned();
    let transport = place.transport();
    let client = RpcClient::new(&transport);
    let victim = example(folder.path(), &place, "victim");
    victim.wait_for_line("READY", PATIENCE).await.unwrap();
    let target = Target::topic(&place.topic).version(1, 2);
    let sent = args(json!({"seconds": 3, "id": 7}));
    let (none, options) = (Map::new(), patient());
    let call = client.call(&target, &none, "sleep", &sent, &options);
    let story = async {
        victim
            .wait_for_line("BEGIN sleep redelivered=false", PATIENCE)
            .await
            .unwrap();
        victim.kill();
        victim.wait_exit(PATIENCE).await.unwrap();
        let survivor = example(folder.path(), &place, "survivor");
        survivor
            .wait_for_line("BEGIN sleep redelivered=true", PATIENCE)
            .await
            .unwrap();
        survivor
    };
    let (outcome, _survivor) = tokio::join!(call, story);
    assert_eq!(outcome.unwrap(), json!({"args": sent, "redelivered": true}));
    transport.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopping_server_finishes_what_it_can_and_leaves_the_rest_to_another_one() {
    let place = Place::shared().await;
    let (first_transport, transport) = (place.transport(), place.transport());
    let (one, two) = (Book::default(), Book::default());
    let first = place
        .serve(&first_transport, "h1", ServerOptions::default(), &one)
        .await;
    let client = RpcClient::new(&transport);
    let (target, none, options) = (place.target(), Map::new(), patient());
    let (quick, long) = (args(json!({"seconds": 1})), Map::new());
    let finished = client.call(&target, &none, "slow", &quick, &options);
    let handed_over = client.call(&target, &none, "wait", &long, &options);
    let story = async {
        one.wait(2).await;
        let report = soon("stop", first.stop(Duration::from_secs(3))).await;
        assert_eq!(report.unfinished, 1);
        first_transport.close().await;
        let second = place
            .serve(&transport, "h2", ServerOptions::default(), &two)
            .await;
        two.wait(1).await;
        two.gate.add_permits(1);
        second
    };
    let (finished, handed_over, second) = tokio::join!(finished, handed_over, story);
    assert_eq!(
        (finished, handed_over),
        (Ok(json!("done")), Ok(json!("done")))
    );
    let entries = two.entries();
    assert_eq!(
        (
            entries.len(),
            entries[0].method.as_str(),
            entries[0].redelivered
        ),
        (1, "wait", true)
    );
    second.stop(Duration::from_secs(5)).await;
    transport.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_outlives_the_connection_on_which_its_request_came() {
    let place = Place::shared().await;
    let tap = Tap::start(&place.address()).await;
    let (behind_tap, transport) = (place.through(tap.address()).transport(), place.transport());
    let book = Book::default();
    let server = place
        .serve(&behind_tap, "h1", ServerOptions::default(), &book)
        .await;
    let mut reading = server.watch_reading();
    let client = RpcClient::new(&transport);
    let raw = Raw::open(&place).await;
    let (target, none, options) = (place.target(), Map::new(), patient());
    let call = client.call(&target, &none, "wait", &none, &options);
    let story = async {
        book.wait(1).await;
        tap.cut();
        soon("the loss is noticed", reading.wait_for(|reading| !reading))
            .await
            .unwrap();
        // The work ends while there is no connection, and the broker has the request back.
        book.gate.add_permits(1);
        ebbtide_harness::eventually(PATIENCE, async || match raw.look(&place.topic).await {
            Some((1, 0)) => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
        tap.open();
    };
    let (outcome, ()) = tokio::join!(call, story);
    assert_eq!(outcome, Ok(json!("done")));
    soon("it reads again", reading.wait_for(|reading| *reading))
        .await
        .unwrap();
    // The second delivery is recognised: acknowledged, and not done again. It is before this one in
    // the queue.
    client
        .call(&target, &none, "echo", &none, &options)
        .await
        .unwrap();
    assert_eq!(server.stop(Duration::from_secs(5)).await.unfinished, 0);
    assert_eq!(raw.look(&place.topic).await, Some((0, 0)));
    assert_eq!(
        (book.entries().len(), book.finished.load(Ordering::Relaxed)),
        (2, 2)
    );
    for transport in [behind_tap, transport] {
        transport.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_broker_loses_no_request_and_doubles_none() {
    let mut broker = private_broker().await;
    let place = Place::on(&broker).with("amqp_durable_queues=true");
    let (servers, clients) = (place.transport(), place.transport());
    let book = Book::default();
    let options = ServerOptions {
        prefetch: 8,
        ..ServerOptions::default()
    };
    let server = place.serve(&servers, "h1", options, &book).await;
    let client = RpcClient::new(&clients);
    let target = place.target();
    // More calls than are worked on at once: some wait in the queue while the broker is away.
    let calls: Vec<_> = (0..20)
        .map(|number| {
            let (client, target) = (client.clone(), target.clone());
            tokio::spawn(async move {
                let sent = args(json!({"number": number}));
                client
                    .call(&target, &Map::new(), "wait", &sent, &patient())
                    .await
            })
        })
        .collect();
    book.wait(8).await;
    let raw = Raw::open(&place).await;
    ebbtide_harness::eventually(PATIENCE, async || match raw.look(&place.topic).await {
        Some((12, _)) => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
    broker.kill();
    broker.restart().await.unwrap();
    book.gate.add_permits(100);
    for call in calls {
        assert_eq!(soon("an answer", call).await.unwrap(), Ok(json!("done")));
    }
    let mut numbers: Vec<_> = book
        .entries()
        .iter()
        .map(|entry| entry.args["number"].as_u64().unwrap())
        .collect();
    numbers.sort_unstable();
    assert_eq!(
        numbers,
        (0..20).collect::<Vec<_>>(),
        "each request is done exactly once"
    );
    assert_eq!(server.stop(Duration::from_secs(5)).await.unfinished, 0);
    for transport in [servers, clients] {
        transport.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_survive_connections_that_are_cut_again_and_again() {
    const CALLERS: u64 = 8;
    const CUTS: usize = 12;
    let place = Place::shared().await;
    let tap = Tap::start(&place.address()).await;
    let behind = place.through(tap.address());
    // Client and server have their own connections, and all of them are cut at once.
    let (servers, clients) = (behind.transport(), behind.transport());
    let book = Book::default();
    let server = place
        .serve(&servers, "h1", ServerOptions::default(), &book)
        .await;
    let client = RpcClient::new(&clients);
    let stop = Arc::new(AtomicBool::new(false));
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let (client, target, stop) = (client.clone(), place.target(), Arc::clone(&stop));
            tokio::spawn(async move {
                let mut number = 0_u64;
                while !stop.load(Ordering::Relaxed) {
                    let sent = args(json!({"id": caller * 1_000_000 + number}));
                    let answer = client
                        .call(&target, &Map::new(), "echo", &sent, &patient())
                        .await;
                    assert_eq!(answer.unwrap()["args"], json!(sent));
                    number += 1;
                }
                number
            })
        })
        .collect();
    let mut reading = server.watch_reading();
    for _ in 0..CUTS {
        // In the middle of traffic: some requests have been done since the last cut.
        let done = book.entries().len();
        book.wait(done + 20).await;
        tap.cut();
        soon("the loss is noticed", reading.wait_for(|reading| !reading))
            .await
            .unwrap();
        tap.open();
        soon("it reads again", reading.wait_for(|reading| *reading))
            .await
            .unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    let mut answered = 0;
    for caller in callers {
        answered += soon("a caller ends", caller).await.unwrap();
    }
    let ids: Vec<u64> = book
        .entries()
        .iter()
        .map(|entry| entry.args["id"].as_u64().unwrap())
        .collect();
    let distinct: HashSet<u64> = ids.iter().copied().collect();
    assert_eq!(
        (ids.len(), answered as usize),
        (distinct.len(), distinct.len()),
        "done, answered, different"
    );
    assert_eq!(server.stop(Duration::from_secs(5)).await.unfinished, 0);
    assert_eq!(
        Raw::open(&place).await.look(&place.topic).await,
        Some((0, 0))
    );
    for transport in [servers, clients] {
        transport.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_caller_of_a_redelivered_request_hears_of_it_at_once() {
    let place = Place::shared().await.with("rabbit_quorum_queue=true");
    let transport = place.transport();
    let (one, two) = (Book::default(), Book::default());
    let first = place
        .serve(&transport, "h1", ServerOptions::default(), &one)
        .await;
    let raw = Raw::open(&place).await;
    let replies = raw.reply_queue().await;
    let request = json!({
        "method": "wait", "version": "2.3", "args": {}, "_unique_id": "u", "_msg_id": "i", "_reply_q": replies, "_timeout": 600
    });
    raw.publish(&place.topic, request.to_string().as_bytes(), None)
        .await;
    assert!(!one.wait(1).await[0].redelivered);
    soon("stop", first.stop(Duration::ZERO)).await;
    let second = place
        .serve(&transport, "h2", ServerOptions::default(), &two)
        .await;
    let entry = two.wait(1).await.remove(0);
    assert_eq!((entry.redelivered, entry.delivery_count), (true, Some(1)));
    // Long before half of the 600 s, and while the work lasts.
    let reply = |body: Vec<u8>| decode_reply(&body, Properties::default(), 10_000).unwrap();
    let heartbeat = reply(raw.take(&replies).await);
    assert_eq!(
        (heartbeat.ending, heartbeat.message_id.as_str()),
        (false, "i")
    );
    two.gate.add_permits(1);
    let result = reply(raw.take(&replies).await);
    assert_eq!((result.ending, result.result), (true, json!("done")));
    second.stop(Duration::from_secs(5)).await;
    transport.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_whose_queue_is_deleted_makes_it_again_and_finishes_its_work() {
    let place = Place::shared().await;
    let (servers, clients) = (place.transport(), place.transport());
    let book = Book::default();
    let server = place
        .serve(&servers, "h1", ServerOptions::default(), &book)
        .await;
    let client = RpcClient::new(&clients);
    let raw = Raw::open(&place).await;
    let (target, none, options) = (place.target(), Map::new(), patient());
    let call = client.call(&target, &none, "wait", &none, &options);
    let story = async {
        book.wait(1).await;
        let mut reading = server.watch_reading();
        reading.mark_unchanged();
        raw.delete(&place.topic).await;
        soon("the loss is noticed", reading.changed())
            .await
            .unwrap();
        soon("it reads again", reading.wait_for(|reading| *reading))
            .await
            .unwrap();
        soon(
            "a reply",
            client.call(&target, &none, "echo", &none, &options),
        )
        .await
        .unwrap();
        book.gate.add_permits(1);
    };
    let (outcome, ()) = tokio::join!(call, story);
    assert_eq!(outcome, Ok(json!("done")));
    assert_eq!(server.stop(Duration::from_secs(5)).await.unfinished, 0);
    for transport in [servers, clients] {
        transport.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_a_handler_gives_back_comes_again_and_is_answered_then() {
    let place = Place::shared().await;
    let (transport, book) = (place.transport(), Book::default());
    let server = place
        .serve(&transport, "h1", ServerOptions::default(), &book)
        .await;
    let client = RpcClient::new(&transport);
    let (target, back) = (place.target(), args(json!({"to": "another server"})));
    let answer = client
        .call(&target, &Map::new(), "leave", &back, &patient())
        .await;
    assert_eq!(answer, Ok(json!("done")));
    let redelivered: Vec<bool> = book.entries().iter().map(|e| e.redelivered).collect();
    assert_eq!(redelivered, [false, true]);
    let report = soon("stop", server.stop(Duration::from_secs(5))).await;
    assert_eq!(report.unfinished, 1);
    transport.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_another_server_answers_is_settled_without_a_word() {
    let place = Place::shared().await;
    let (transport, book) = (place.transport(), Book::default());
    let server = place
        .serve(&transport, "h1", ServerOptions::default(), &book)
        .await;
    let client = RpcClient::new(&transport);
    let (target, another) = (place.target(), args(json!({"to": "another"})));
    let impatient = CallOptions {
        timeout: Duration::from_secs(2),
        ..patient()
    };
    let answer = client
        .call(&target, &Map::new(), "leave", &another, &impatient)
        .await;
    assert!(
        matches!(answer, Err(MessagingError::Timeout { .. })),
        "{answer:?}"
    );
    // The message was acknowledged, so a later server does not get it.
    soon("stop", server.stop(Duration::from_secs(5))).await;
    let later = Book::default();
    let second = place
        .serve(&transport, "h2", ServerOptions::default(), &later)
        .await;
    let echo = client
        .call(&target, &Map::new(), "echo", &Map::new(), &patient())
        .await;
    assert!(echo.is_ok(), "{echo:?}");
    let methods: Vec<String> = later.entries().into_iter().map(|e| e.method).collect();
    assert_eq!(methods, ["echo"]);
    second.stop(Duration::from_secs(5)).await;
    transport.close().await;
}
