//! A broker that restarts, with Python's server and ours on it beside each other.

use std::time::{Duration, Instant};

use oslo_messaging::{
    CallOptions, Map, MessagingError, RabbitOptions, RpcClient, ServerOptions, Target, Transport,
    TransportUrl,
};
use serde_json::json;

use crate::python::Peer;
use crate::raw::Raw;
use crate::support::{Book, PATIENCE, Place, private_broker, soon};
use crate::tap::Tap;

/// Interval between two calls to the same server after the broker is back.
const BETWEEN_CALLS: Duration = Duration::from_millis(50);

/// As services are configured that say nothing: the other tests reconnect quicker than anybody
/// would in production.
fn production(place: &Place, change: impl FnOnce(&mut RabbitOptions)) -> Transport {
    let url: TransportUrl = place.url.parse().unwrap();
    let mut options = RabbitOptions::for_url(&url, |_| None).unwrap();
    change(&mut options);
    Transport::start(&url, options, &place.exchange).unwrap()
}

/// What became of the calls to one server since the broker was back.
#[derive(Debug, Default)]
struct RestartResult {
    /// There was no queue yet: a conductor would wait for its timeout.
    lost: usize,
    answered: usize,
    first_answer: Option<Duration>,
    /// Neither: a request that was in a queue and was not answered.
    failed: Vec<MessagingError>,
}

/// Calls both topics again and again until each has answered, and waits for all answers.
async fn call_until_both_answer(client: &RpcClient, topics: [&str; 2]) -> [RestartResult; 2] {
    let began = Instant::now();
    let mut outcomes = [RestartResult::default(), RestartResult::default()];
    let mut calls = tokio::task::JoinSet::new();
    let mut beat = tokio::time::interval(BETWEEN_CALLS);
    loop {
        let complete = outcomes
            .iter()
            .all(|outcome| outcome.first_answer.is_some());
        tokio::select! {
            _ = beat.tick(), if !complete => {
                for (side, topic) in topics.into_iter().enumerate() {
                    let client = client.clone();
                    let target = Target::topic(topic).version(2, 3);
                    calls.spawn(async move {
                        let options = CallOptions { timeout: PATIENCE, ..CallOptions::default() };
                        let (none, method) = (Map::new(), "echo");
                        (side, client.call(&target, &none, method, &none, &options).await)
                    });
                }
            }
            ended = calls.join_next(), if !calls.is_empty() => {
                let (side, answer) = ended.unwrap().unwrap();
                let outcome = &mut outcomes[side];
                match answer {
                    Ok(_) => {
                        outcome.answered += 1;
                        outcome.first_answer.get_or_insert_with(|| began.elapsed());
                    }
                    Err(MessagingError::Undeliverable { .. }) => outcome.lost += 1,
                    Err(other) => outcome.failed.push(other),
                }
            }
            else => return outcomes,
        }
    }
}

/// Attempts of Python's server that fail before the broker comes back: a pause of ours that grew
/// with each attempt would be longer than Python's by then.
const FAILED_ATTEMPTS: usize = 6;

/// Returns at most a second before the next attempt of Python's server to connect, after
/// [`FAILED_ATTEMPTS`] that failed.
///
/// The pause between two attempts depends on the version. The server begins anew when its
/// listener's timeout has passed: after each second where that is 1 s, after 1, 2 and 4 s where it
/// is 5 s (`ACK_REQUEUE_EVERY_SECONDS_MAX` in oslo_messaging/_drivers/amqpdriver.py).
async fn until_a_second_before_its_next_attempt(python: &Peer) {
    let pauses = || -> Vec<u64> {
        let log = std::fs::read_to_string(python.process.log_path().unwrap()).unwrap();
        log.lines()
            .filter_map(|line| {
                line.split_once("Trying again in ")?
                    .1
                    .strip_suffix(" seconds.")
            })
            .map(|seconds| seconds.parse().unwrap())
            .collect()
    };
    let before = pauses().len();
    let pause = ebbtide_harness::eventually(PATIENCE, async || {
        let new = pauses().split_off(before);
        match new.get(FAILED_ATTEMPTS - 1..) {
            Some([.., pause]) => Ok(*pause),
            _ => Err(format!("{new:?}")),
        }
    })
    .await;
    tokio::time::sleep(Duration::from_secs(pause.saturating_sub(1))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_restart_of_the_broker_we_answer_no_later_and_lose_no_more_than_pythons_server() {
    const TOPICS: [&str; 2] = ["ours", "pythons"];
    let mut broker = private_broker().await;
    let direct = Place::on(&broker);
    let tap = Tap::start(&direct.address()).await;
    let behind = direct.through(tap.address());
    let folder = tempfile::tempdir().unwrap();

    let mut here = direct.through(tap.address());
    here.topic = TOPICS[0].to_owned();
    let (transport, book) = (production(&here, |_| {}), Book::default());
    let server = here
        .serve(&transport, "h1", ServerOptions::default(), &book)
        .await;
    let python = Peer::start(&["server", &behind.url, &behind.exchange, TOPICS[1], "h1"]).await;

    // A conductor for each server: it calls once now, and once while the broker is away.
    let signal = folder.path().join("the-broker-is-away");
    let mut conductors = Vec::new();
    for topic in TOPICS {
        let step =
            json!({"target": {"topic": topic, "version": "2.3"}, "method": "echo", "args": {}});
        let mut later = step.clone();
        later["after"] = json!(signal);
        let steps = json!([step, later]).to_string();
        let conductor = Peer::start(&["client", &behind.url, &behind.exchange, &steps]).await;
        conductor.wait_for("EVENT {\"result\"").await;
        conductors.push(conductor);
    }

    tap.vanish().await;
    std::fs::write(&signal, "").unwrap();
    broker.kill();
    broker.restart().await.unwrap();
    until_a_second_before_its_next_attempt(&python).await;
    let transport_of_calls = direct.transport();
    let client = RpcClient::new(&transport_of_calls);
    tap.come_back().await;
    let [ours, pythons] = soon(
        "both servers answer again",
        call_until_both_answer(&client, TOPICS),
    )
    .await;

    println!("ours:    {ours:?}\npythons: {pythons:?}");
    assert!(ours.failed.is_empty(), "{:?}", ours.failed);
    assert!(pythons.lost > 0, "Python's server was there first");
    assert!(ours.first_answer <= pythons.first_answer);
    assert!(ours.lost <= pythons.lost);

    // What a conductor published while the broker was away reaches us.
    let events = conductors[0].events().await;
    let answer = json!({"args": {}, "context": {"user": null}});
    assert_eq!(
        (&events[1]["result"], events.len()),
        (&answer, 2),
        "{}",
        events[1]
    );
    server.stop(Duration::from_secs(5)).await;
    for transport in [transport, transport_of_calls] {
        transport.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_that_is_deleted_is_declared_again_without_the_pause_for_lost_connections() {
    let place = Place::shared().await;
    // The connection is never lost, so that nothing has to wait for this.
    let transport = production(&place, |options| options.reconnect_delay = 10 * PATIENCE);
    let book = Book::default();
    let server = place
        .serve(&transport, "h1", ServerOptions::default(), &book)
        .await;
    let raw = Raw::open(&place).await;
    // A subscription that ends as soon as it has begun is tried again after the pause; this one has
    // lasted.
    tokio::time::sleep(Duration::from_secs(2)).await;
    raw.delete(&place.topic).await;
    ebbtide_harness::eventually(PATIENCE, async || match raw.look(&place.topic).await {
        Some((0, 1)) => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
    server.stop(Duration::from_secs(5)).await;
    transport.close().await;
}
