//! Measures confirmed publishes on a real broker, and the way from publish to ack.
//!
//! `cargo run -p ebbtide-bus --example throughput -- amqp://guest:guest@127.0.0.1 64 20000`
//! (broker URL, publishes in flight, messages). Uses a queue of its own and leaves it empty.

// A measuring tool: it prints and stops at any error.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;
use std::time::Duration;

use ebbtide_bus::{AmqpBus, AmqpConfig, Bus, OutgoingMessage, QueuePrefix};
use ebbtide_runtime::{clock, ids};

/// About the size of an eviction notice.
const BODY_BYTES: usize = 600;

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let url = arguments
        .next()
        .expect("the first argument is the broker URL");
    let in_flight: u16 = arguments
        .next()
        .map_or(64, |n| n.parse().expect("a number"));
    let messages: usize = arguments
        .next()
        .map_or(20_000, |n| n.parse().expect("a number"));

    let mut config = AmqpConfig::new(vec![url.parse().unwrap()], "ebbtide throughput");
    config.max_in_flight = in_flight;
    let bus = Arc::new(
        AmqpBus::connect(config, Duration::from_secs(10))
            .await
            .unwrap(),
    );
    let prefix = QueuePrefix::new(&format!("throughput-{}", std::process::id())).unwrap();
    let queue = prefix.scheduler();
    bus.declare(&queue).await.unwrap();
    // Opens the channels, so that only publishing is measured.
    publish_all(&bus, &queue, in_flight, usize::from(in_flight)).await;

    let began = clock::instant();
    let mut latencies = publish_all(&bus, &queue, in_flight, messages).await;
    let elapsed = began.elapsed();
    latencies.sort_unstable();
    let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize];
    println!(
        "published {messages} messages of {BODY_BYTES} bytes, {in_flight} in flight: {:.0}/s, \
         confirm after {:?} (p50), {:?} (p99)",
        messages as f64 / elapsed.as_secs_f64(),
        at(0.5),
        at(0.99),
    );

    let began = clock::instant();
    let mut subscription = bus.consume(&queue, 200).await.unwrap();
    let total = messages + usize::from(in_flight);
    for _ in 0..total {
        subscription.next().await.expect("open").ack().await;
    }
    println!(
        "received and acked one by one: {:.0}/s",
        total as f64 / began.elapsed().as_secs_f64()
    );
    bus.close().await;
}

async fn publish_all(
    bus: &Arc<AmqpBus>,
    queue: &ebbtide_bus::QueueName,
    in_flight: u16,
    messages: usize,
) -> Vec<Duration> {
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..usize::from(in_flight) {
        let (bus, queue) = (Arc::clone(bus), queue.clone());
        let share = (task..messages).step_by(usize::from(in_flight)).count();
        tasks.spawn(async move {
            let mut latencies = Vec::with_capacity(share);
            for _ in 0..share {
                let message = OutgoingMessage::cloud_event(ids::random(), vec![b'x'; BODY_BYTES]);
                let began = clock::instant();
                bus.publish(&queue, &message).await.unwrap();
                latencies.push(began.elapsed());
            }
            latencies
        });
    }
    tasks.join_all().await.into_iter().flatten().collect()
}
