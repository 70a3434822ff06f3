//! The broker dies in the middle of everything.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ebbtide_bus::{AmqpBus, Bus, BusStatus};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::proxy::{Mode, Proxy};
use crate::support::{
    PATIENCE, message, next, private_broker, shared_broker, soon, status, unique_prefix,
};
use crate::transports::{config, host_and_port, with_host_and_port};

/// Publishers and a reader that run through whatever happens, and keep book.
struct Traffic {
    bus: Arc<AmqpBus>,
    confirmed: Arc<Mutex<HashSet<Uuid>>>,
    received: watch::Receiver<HashSet<Uuid>>,
    stop: CancellationToken,
    publishers: JoinSet<()>,
    reader: tokio::task::JoinHandle<()>,
}

impl Traffic {
    const PUBLISHERS: usize = 16;

    async fn start(bus: AmqpBus) -> Self {
        let bus = Arc::new(bus);
        let queue = unique_prefix().scheduler();
        let mut subscription = bus.consume(&queue, 20).await.unwrap();
        let confirmed: Arc<Mutex<HashSet<Uuid>>> = Arc::default();
        let stop = CancellationToken::new();
        let mut publishers = JoinSet::new();
        for _ in 0..Self::PUBLISHERS {
            let (bus, queue) = (Arc::clone(&bus), queue.clone());
            let (confirmed, stop) = (Arc::clone(&confirmed), stop.clone());
            publishers.spawn(async move {
                while !stop.is_cancelled() {
                    let sent = message("{}");
                    // Over the failure, publish itself retries: an error here is a failure of the
                    // test.
                    bus.publish(&queue, &sent).await.unwrap();
                    confirmed.lock().unwrap().insert(sent.message_id);
                    // Leaves the machine some air; the book would be endless otherwise.
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            });
        }
        let (sender, received) = watch::channel(HashSet::new());
        let reader = tokio::spawn(async move {
            while let Some(delivery) = subscription.next().await {
                let id = delivery.message_id;
                delivery.ack().await;
                sender.send_modify(|seen| {
                    seen.insert(id);
                });
            }
        });
        Self {
            bus,
            confirmed,
            received,
            stop,
            publishers,
            reader,
        }
    }

    fn confirmed(&self) -> usize {
        self.confirmed.lock().unwrap().len()
    }

    /// Waits until publishers and reader have both made progress from now on.
    async fn flows(&mut self) {
        let (sent, seen) = (self.confirmed(), self.received.borrow().len());
        soon("messages flow through", async {
            self.received
                .wait_for(|ids| ids.len() >= seen + 200)
                .await
                .unwrap();
            while self.confirmed() < sent + 200 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }

    /// Stops the publishers and checks that everything confirmed was received.
    async fn settle(self) -> usize {
        self.settle_or(async || String::new()).await
    }

    /// As `settle`; a failure also shows what the broker reports about its queues.
    async fn settle_or(mut self, queues: impl AsyncFnOnce() -> String) -> usize {
        self.stop.cancel();
        while let Some(done) = soon("the publishers end", self.publishers.join_next()).await {
            done.unwrap();
        }
        let confirmed = self.confirmed.lock().unwrap().clone();
        let latest = self.received.clone();
        let all_there = self.received.wait_for(|ids| confirmed.is_subset(ids));
        match tokio::time::timeout(PATIENCE, all_there).await {
            Ok(seen) => drop(seen.unwrap()),
            Err(_) => {
                let lost = confirmed.difference(&latest.borrow()).count();
                panic!("{lost} confirmed messages were lost; {}", queues().await);
            }
        }
        soon("close", self.bus.close()).await;
        soon("the reader ends", self.reader).await.unwrap();
        confirmed.len()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_confirmed_is_lost_when_the_broker_is_killed_or_stopped_and_restarted() {
    let mut broker = private_broker().await;
    let bus = AmqpBus::connect(config(&[&broker.url()]), PATIENCE)
        .await
        .unwrap();
    let mut traffic = Traffic::start(bus).await;
    // RabbitMQ 3.10 writes a new queue to its disk some moments after it has confirmed it (Mnesia's
    // log). Killed before that, it forgets the queue with all that was confirmed: seen in 5 of 60
    // runs on a busy machine.
    broker
        .control(&["eval", "mnesia:sync_log()."])
        .await
        .unwrap();
    traffic.flows().await;
    // A crash, then an orderly end, then a crash right after it came back.
    for crash in [true, false, true] {
        if crash {
            broker.kill();
        } else {
            broker.stop().await.unwrap();
        }
        status(
            traffic.bus.as_ref(),
            "the loss is noticed",
            |s| matches!(s, BusStatus::Reconnecting { attempts, .. } if *attempts > 0),
        )
        .await;
        broker.restart().await.unwrap();
        traffic.flows().await;
    }
    let queues = [
        "list_queues",
        "name",
        "messages_ready",
        "messages_unacknowledged",
        "consumers",
    ];
    let confirmed = traffic
        .settle_or(async || broker.control(&queues).await.unwrap())
        .await;
    println!("{confirmed} messages confirmed and received");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_confirmed_is_lost_when_the_broker_freezes_and_thaws() {
    let broker = private_broker().await;
    let mut settings = config(&[&broker.url()]);
    settings.heartbeat = Duration::from_secs(1);
    settings.connect_timeout = Duration::from_secs(1);
    let bus = AmqpBus::connect(settings, PATIENCE).await.unwrap();
    let mut traffic = Traffic::start(bus).await;
    traffic.flows().await;
    broker.freeze().unwrap();
    status(
        traffic.bus.as_ref(),
        "the silence is noticed",
        |s| matches!(s, BusStatus::Reconnecting { attempts, .. } if *attempts > 1),
    )
    .await;
    broker.thaw().unwrap();
    traffic.flows().await;
    traffic.settle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bus_opened_before_its_broker_starts_works_when_it_is_there() {
    let mut broker = private_broker().await;
    broker.kill();
    let bus = Arc::new(AmqpBus::open(config(&[&broker.url()])).unwrap());
    let queue = unique_prefix().agent("host-1").unwrap();
    let publishing = {
        let (bus, queue) = (Arc::clone(&bus), queue.clone());
        tokio::spawn(async move {
            bus.declare(&queue).await?;
            bus.publish(&queue, &message("early")).await
        })
    };
    let reading = {
        let (bus, queue) = (Arc::clone(&bus), queue.clone());
        tokio::spawn(async move {
            let mut subscription = bus.consume(&queue, 1).await.unwrap();
            next(&mut subscription).await.ack().await;
        })
    };
    status(
        bus.as_ref(),
        "attempts without a broker",
        |s| matches!(s, BusStatus::Reconnecting { attempts, .. } if *attempts >= 3),
    )
    .await;
    assert!(!publishing.is_finished() && !reading.is_finished());
    broker.restart().await.unwrap();
    soon("the publish", publishing).await.unwrap().unwrap();
    soon("the delivery", reading).await.unwrap();
    status(bus.as_ref(), "connected", BusStatus::is_ready).await;
    bus.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_confirmed_is_lost_when_the_network_breaks_again_and_again() {
    let broker = shared_broker().await;
    let direct = broker.url();
    let proxy = Proxy::start(&host_and_port(direct), Mode::Forward).await;
    let url = with_host_and_port(direct, &proxy.address().to_string());
    let bus = AmqpBus::connect(config(&[&url]), PATIENCE).await.unwrap();
    let mut traffic = Traffic::start(bus).await;
    for _ in 0..8 {
        traffic.flows().await;
        proxy.sever();
    }
    traffic.flows().await;
    traffic.settle().await;
}

#[tokio::test]
async fn a_cancelled_publish_does_not_spoil_those_after_it() {
    let broker = shared_broker().await;
    let bus = AmqpBus::connect(config(&[broker.url()]), PATIENCE)
        .await
        .unwrap();
    let queue = unique_prefix().scheduler();
    bus.declare(&queue).await.unwrap();
    for microseconds in (0..2_000).step_by(20) {
        let patience = Duration::from_micros(microseconds);
        // It is unknown whether it arrived. The result of the next publish must be correct.
        let _ = tokio::time::timeout(patience, bus.publish(&queue, &message("cancelled"))).await;
        let missing = unique_prefix().scheduler();
        let error = bus
            .publish(&missing, &message("unroutable"))
            .await
            .unwrap_err();
        assert_eq!(error.code(), "EB-BUS-009", "{error}");
        bus.publish(&queue, &message("whole")).await.unwrap();
    }
    let mut subscription = bus.consume(&queue, 50).await.unwrap();
    let mut whole = 0;
    while whole < 100 {
        let got = next(&mut subscription).await;
        whole += usize::from(got.body == b"whole");
        got.ack().await;
    }
    bus.close().await;
}

#[tokio::test]
async fn closing_waits_for_publishes_in_flight() {
    let broker = shared_broker().await;
    let bus = Arc::new(
        AmqpBus::connect(config(&[broker.url()]), PATIENCE)
            .await
            .unwrap(),
    );
    let queue = unique_prefix().scheduler();
    bus.declare(&queue).await.unwrap();
    let mut publishes = JoinSet::new();
    for _ in 0..200 {
        let (bus, queue) = (Arc::clone(&bus), queue.clone());
        publishes.spawn(async move { bus.publish(&queue, &message("x")).await });
    }
    let first = publishes.join_next().await.unwrap().unwrap();
    assert_eq!(first, Ok(()));
    bus.close().await;
    let (mut stored, mut refused) = (1, 0);
    while let Some(done) = publishes.join_next().await {
        match done.unwrap() {
            Ok(()) => stored += 1,
            Err(error) => {
                assert_eq!(error.code(), "EB-BUS-011");
                refused += 1;
            }
        }
    }
    // Exactly the messages that were confirmed are stored.
    let reader = AmqpBus::connect(config(&[broker.url()]), PATIENCE)
        .await
        .unwrap();
    reader.publish(&queue, &message("end")).await.unwrap();
    let mut subscription = reader.consume(&queue, 50).await.unwrap();
    for _ in 0..stored {
        let got = next(&mut subscription).await;
        assert_eq!(got.body, b"x");
        got.ack().await;
    }
    let end = next(&mut subscription).await;
    assert_eq!(
        end.body, b"end",
        "{stored} stored, {refused} refused, and more arrived"
    );
    end.ack().await;
    reader.close().await;
}

#[tokio::test]
async fn questions_and_deletions_go_on_over_a_broken_connection() {
    let broker = shared_broker().await;
    let direct = broker.url();
    let proxy = Proxy::start(&host_and_port(direct), Mode::Forward).await;
    let url = with_host_and_port(direct, &proxy.address().to_string());
    let bus = AmqpBus::connect(config(&[&url]), PATIENCE).await.unwrap();
    let queue = unique_prefix().agent("gone").unwrap();
    for _ in 0..10 {
        bus.declare(&queue).await.unwrap();
        // The bus has not noticed yet that its connection is cut.
        proxy.sever();
        bus.delete(&queue).await.unwrap();
        proxy.sever();
        assert_eq!(bus.queue_use(queue.as_str()).await.unwrap(), None);
    }
    bus.close().await;
}
