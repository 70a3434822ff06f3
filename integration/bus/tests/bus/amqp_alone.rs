//! Readers that want to be the only one of their queue.

use std::time::{Duration, Instant};

use ebbtide_bus::{AmqpBus, AmqpConfig, Bus, QueueKind, Subscription, SubscriptionState};
use tokio::sync::watch;

use crate::proxy::{Mode, Proxy};
use crate::support::{PATIENCE, message, next, shared_broker, soon, text, unique_prefix};
use crate::transports::{config, host_and_port, with_host_and_port};

/// Two heartbeats of a second each, and the margin: how long a dead connection may be in the way.
const DEAD_AFTER: Duration = Duration::from_secs(8);

fn quick(url: &str, kind: QueueKind) -> AmqpConfig {
    let mut config = config(&[url]);
    config.heartbeat = Duration::from_secs(1);
    config.queue_kind = kind;
    config
}

async fn connect(url: &str, kind: QueueKind) -> AmqpBus {
    AmqpBus::connect(quick(url, kind), PATIENCE).await.unwrap()
}

async fn until(hold: &mut watch::Receiver<SubscriptionState>, wanted: SubscriptionState) {
    soon("the claim", hold.wait_for(|hold| *hold == wanted))
        .await
        .unwrap();
}

/// Keeps reading, so that the subscription repairs itself. Acknowledges each message and reports it
/// to the receiver.
fn reading(mut subscription: Subscription) -> tokio::sync::mpsc::UnboundedReceiver<String> {
    let (tell, told) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(delivery) = subscription.next().await {
            let said = text(&delivery).to_owned();
            delivery.ack().await;
            if tell.send(said).is_err() {
                return;
            }
        }
    });
    told
}

#[tokio::test]
async fn a_second_reader_is_refused_with_the_reason_and_comes_when_the_first_is_gone() {
    let broker = shared_broker().await;
    {
        // Quorum queues of RabbitMQ 3.10 let both read; the scheduler's alarm is for those.
        let kind = QueueKind::Classic;
        let queue = unique_prefix().agent("cloned").unwrap();
        let first = connect(broker.url(), kind).await;
        let mut subscription = first.consume_alone(&queue, 10).await.unwrap();
        assert_eq!(
            *subscription.hold().unwrap().borrow(),
            SubscriptionState::Held
        );

        let second = connect(broker.url(), kind).await;
        let began = Instant::now();
        let refused = soon("the refusal", second.consume_alone(&queue, 10)).await;
        let error = refused.unwrap_err();
        assert_eq!(error.code(), "EB-BUS-014", "{kind}: {error}");
        assert!(error.to_string().contains("same host name"), "{error}");
        assert!(began.elapsed() >= DEAD_AFTER, "{:?}", began.elapsed());

        // Nothing of it has disturbed the first.
        second
            .publish(&queue, &message("to the first"))
            .await
            .unwrap();
        let got = next(&mut subscription).await;
        assert_eq!(text(&got), "to the first");
        got.ack().await;

        // It ends while the second tries once more.
        let waiting = second.consume_alone(&queue, 10);
        let ending = async {
            drop(subscription);
            first.close().await;
        };
        let (taken, ()) = soon("the next reader", async { tokio::join!(waiting, ending) }).await;
        let mut subscription = taken.unwrap();
        second
            .publish(&queue, &message("to the second"))
            .await
            .unwrap();
        assert_eq!(text(&next(&mut subscription).await), "to the second");
        second.close().await;
    }
}

#[tokio::test]
async fn a_reader_gets_its_queue_back_after_a_cut_of_the_network() {
    let broker = shared_broker().await;
    let direct = broker.url();
    let proxy = Proxy::start(&host_and_port(direct), Mode::Forward).await;
    let url = with_host_and_port(direct, &proxy.address().to_string());
    let queue = unique_prefix().agent("cut").unwrap();
    let bus = connect(&url, QueueKind::Classic).await;
    let subscription = bus.consume_alone(&queue, 10).await.unwrap();
    let mut hold = subscription.hold().unwrap();
    let mut heard = reading(subscription);
    for round in 0..2 {
        // Silent first, so that the broker has to find out by itself; then refused, so that we have
        // to.
        proxy.set(Mode::Mute);
        until(&mut hold, SubscriptionState::Waiting).await;
        proxy.set(Mode::Forward);
        until(&mut hold, SubscriptionState::Held).await;
        let said = format!("after cut {round}");
        bus.publish(&queue, &message(&said)).await.unwrap();
        let mut next = soon("the message", heard.recv()).await;
        // The cut may have lost the acknowledgement of the message before: the broker sends it
        // again.
        if round == 1 && next.as_deref() == Some("after cut 0") {
            next = soon("the message", heard.recv()).await;
        }
        assert_eq!(next, Some(said));
    }
    bus.close().await;
}

#[tokio::test]
async fn the_reader_that_takes_the_queue_during_a_cut_keeps_it_until_its_end() {
    let broker = shared_broker().await;
    let direct = broker.url();
    let proxy = Proxy::start(&host_and_port(direct), Mode::Forward).await;
    let url = with_host_and_port(direct, &proxy.address().to_string());
    let queue = unique_prefix().agent("stolen").unwrap();
    let cut = connect(&url, QueueKind::Classic).await;
    let subscription = cut.consume_alone(&queue, 10).await.unwrap();
    let mut hold = subscription.hold().unwrap();
    let mut heard = reading(subscription);
    proxy.set(Mode::Mute);
    // The broker still has the claim of the connection that is cut; that is waited for.
    let other = connect(direct, QueueKind::Classic).await;
    let taken = soon("the queue", other.consume_alone(&queue, 10)).await;
    let mut subscription = taken.unwrap();
    proxy.set(Mode::Forward);
    until(&mut hold, SubscriptionState::Taken).await;
    other
        .publish(&queue, &message("for the other"))
        .await
        .unwrap();
    let got = next(&mut subscription).await;
    assert_eq!(text(&got), "for the other");
    got.ack().await;
    drop(subscription);
    other.close().await;
    until(&mut hold, SubscriptionState::Held).await;
    cut.publish(&queue, &message("for the first"))
        .await
        .unwrap();
    let said = soon("the message", heard.recv()).await;
    assert_eq!(said.as_deref(), Some("for the first"));
    cut.close().await;
}
