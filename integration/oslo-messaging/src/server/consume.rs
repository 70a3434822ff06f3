//! Reading from the server's three queues, over reconnects.

use std::sync::Arc;
use std::time::Duration;

use ebbtide_amqp::BrokerSession;
use ebbtide_runtime::clock;
use futures::{FutureExt, StreamExt};
use lapin::message::Delivery;
use lapin::options::BasicCancelOptions;
use lapin::{Channel, Consumer};
use tokio::sync::{Semaphore, oneshot, watch};

use super::receipt::Receipt;
use super::{Inner, work};
use crate::link::{ChannelError, QueueConsumers, subscribe};
use crate::{ArrivalQueue, MessagingError};

/// The queues of a server, in the order in which they are declared.
const SOURCES: [ArrivalQueue; 3] = [
    ArrivalQueue::Topic,
    ArrivalQueue::Server,
    ArrivalQueue::Fanout,
];

/// Limit for declaring and subscribing, so that a mute broker is noticed.
const SUBSCRIBE_LIMIT: Duration = Duration::from_secs(30);

/// The pause before the same connection is tried again, even if `kombu_reconnect_delay` is zero.
const LEAST_PAUSE: Duration = Duration::from_millis(100);

/// A subscription that lasted this long was a good one: after it the server subscribes again
/// without a pause. Requests that are published while a deleted queue is missing are lost.
const PROVEN: Duration = Duration::from_secs(1);

/// Limit for cancelling a consumer at a stop.
const CANCEL_LIMIT: Duration = Duration::from_secs(2);

/// Reads until the server is stopped. Tells `first` whether the first subscription worked.
pub(super) async fn run(
    inner: Arc<Inner>,
    first: oneshot::Sender<Result<(), MessagingError>>,
    reading: watch::Sender<bool>,
) {
    // Whatever way this ends, no work begins after it.
    let _quiet = inner.quiet.clone().drop_guard();
    let mut first = Some(first);
    // One set of permits over all connections: what still works from the last one counts.
    let permits: Arc<[Arc<Semaphore>; 3]> = Arc::new([
        Arc::new(Semaphore::new(inner.options.prefetch.into())),
        Arc::new(Semaphore::new(inner.options.prefetch.into())),
        Arc::new(Semaphore::new(inner.options.fanout_prefetch.into())),
    ]);
    let mut durable_elsewhere = false;
    // The connection on which the last attempt failed, or ended soon after it began.
    let mut last_failed = 0;
    loop {
        let session = tokio::select! {
            biased;
            () = inner.stopping.cancelled() => return,
            session = inner.transport.consume_link().session() => match session {
                Some(session) => session,
                // The transport is closed.
                None => return,
            },
        };
        if session.id == last_failed {
            // The connection looks alive and yet the last attempt failed: not too eagerly.
            let pause = inner.transport.options().reconnect_delay;
            tokio::select! {
                () = inner.stopping.cancelled() => return,
                () = tokio::time::sleep(pause.max(LEAST_PAUSE)) => {}
            }
        }
        last_failed = session.id;
        let attempt = subscribe(
            &session,
            &inner.queues,
            inner.options.prefetch,
            &mut durable_elsewhere,
        );
        let attempt = tokio::select! {
            () = inner.stopping.cancelled() => return,
            attempt = tokio::time::timeout(SUBSCRIBE_LIMIT, attempt) => attempt,
        };
        match attempt {
            Ok(Ok(subscribed)) => {
                tracing::info!(queue = %inner.queues[1].name, broker = %session.broker, "reading requests");
                if let Some(first) = first.take() {
                    let _ = first.send(Ok(()));
                }
                reading.send_replace(true);
                let began = clock::timer();
                read_all(&inner, subscribed, &permits).await;
                reading.send_replace(false);
                if began.elapsed() >= PROVEN {
                    last_failed = 0;
                }
                if inner.stopping.is_cancelled() {
                    return;
                }
            }
            Ok(Err(ChannelError::Final(error))) => match first.take() {
                Some(first) => {
                    let _ = first.send(Err(error));
                    return;
                }
                // The service already runs, and the operator may repair the broker meanwhile.
                None => {
                    tracing::error!(code = error.code(), %error, "cannot read requests; trying again")
                }
            },
            Ok(Err(error)) => {
                let error = error.into_error(&session.broker);
                tracing::warn!(code = error.code(), %error, "cannot read requests yet");
            }
            Err(_) => {
                tracing::warn!(broker = %session.broker, "the broker does not answer; trying again")
            }
        }
    }
}

/// Reads from all queues until one of them ends, the connection is lost, or the server stops.
async fn read_all(inner: &Arc<Inner>, subscribed: QueueConsumers, permits: &[Arc<Semaphore>; 3]) {
    let QueueConsumers {
        session,
        channel,
        consumers,
    } = subscribed;
    let tags: Vec<_> = consumers.iter().map(Consumer::tag).collect();
    let mut readers: Vec<_> = consumers
        .into_iter()
        .zip(SOURCES)
        .zip(permits)
        .map(|((consumer, source), permits)| {
            Box::pin(read(inner, &session, &channel, consumer, source, permits))
        })
        .collect();
    tokio::select! {
        biased;
        () = session.gone().cancelled() => {}
        () = inner.stopping.cancelled() => {}
        _ = futures::future::select_all(readers.iter_mut()) => {}
    }
    drop(readers);
    if !inner.stopping.is_cancelled() {
        return;
    }
    inner.quiet.cancel();
    // No new requests from here on. What was on the way and not begun is given back when the
    // channel closes; the channel must stay open for those that are being worked on, so wait for
    // them.
    for tag in tags {
        let cancel = channel.basic_cancel(tag, BasicCancelOptions::default());
        tokio::select! {
            _ = tokio::time::timeout(CANCEL_LIMIT, cancel) => {}
            () = session.gone().cancelled() => return,
        }
    }
    tokio::select! {
        () = inner.drained.cancelled() => {}
        () = session.gone().cancelled() => {}
    }
    if let Some(Err(error)) = channel.close(200, "stopped".into()).now_or_never() {
        tracing::debug!(%error, "the channel was closed already");
    }
}

/// Reads from one queue until its consumer ends.
async fn read(
    inner: &Arc<Inner>,
    session: &Arc<BrokerSession>,
    channel: &Channel,
    mut consumer: Consumer,
    source: ArrivalQueue,
    permits: &Arc<Semaphore>,
) {
    while let Some(item) = consumer.next().await {
        let delivery = match item {
            // lapin hands out what it had in its buffer when the channel died; the broker
            // redelivers it.
            Ok(delivery) if delivery.acker.usable() => delivery,
            Ok(_) => continue,
            Err(error) => {
                tracing::warn!(?source, %error, "reading requests was interrupted");
                return;
            }
        };
        accept(inner, session, channel, delivery, source, permits).await;
    }
    tracing::warn!(
        ?source,
        "the broker ended our subscription (was the queue deleted?); subscribing again"
    );
}

/// Begins with a delivery as soon as there is room for it.
async fn accept(
    inner: &Arc<Inner>,
    session: &Arc<BrokerSession>,
    channel: &Channel,
    delivery: Delivery,
    source: ArrivalQueue,
    permits: &Arc<Semaphore>,
) {
    let receipt = Receipt::new(delivery.acker.clone(), Arc::clone(session), channel.clone());
    work::accept(inner, delivery, receipt, source, permits).await;
}
