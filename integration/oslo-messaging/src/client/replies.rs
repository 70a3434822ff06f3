//! The queue on which replies come back, shared by all calls of a client (`ReplyWaiter`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ebbtide_runtime::task::{self, Task};
use futures::StreamExt;
use lapin::message::Delivery;
use lapin::options::BasicAckOptions;
use lapin::types::AMQPValue;
use tokio::sync::{mpsc, watch};

use crate::MessagingError;
use crate::link::{ChannelError, QueueConsumers, subscribe};
use crate::names::Queue;
use crate::transport::TransportState;
use crate::wire::{Properties, RpcReply, decode_reply};

/// Larger replies are thrown away; RabbitMQ 4 does not even take them by default. Its callers time
/// out.
const MAX_REPLY_BYTES: usize = 64 * 1024 * 1024;

/// Limit for declaring and subscribing, so that a mute broker is noticed.
const SUBSCRIBE_LIMIT: Duration = Duration::from_secs(30);

type Waiters = Arc<Mutex<HashMap<String, mpsc::UnboundedSender<RpcReply>>>>;

/// The reader of the reply queue.
pub(super) struct Replies {
    queue: Queue,
    waiters: Waiters,
    reading: watch::Receiver<ReplyState>,
    _reader: Task,
}

/// Whether replies can come.
#[derive(Debug, Clone, PartialEq)]
enum ReplyState {
    NotYet(Option<MessagingError>),
    Now,
    Closed,
}

/// A call that waits for its replies. Dropping it ends the wait.
pub(super) struct PendingCall {
    message_id: String,
    waiters: Waiters,
    replies: mpsc::UnboundedReceiver<RpcReply>,
}

impl Replies {
    pub(super) fn start(shared: Arc<TransportState>) -> Self {
        let queue = Queue::reply(shared.options());
        let waiters = Waiters::default();
        let (sender, reading) = watch::channel(ReplyState::NotYet(None));
        let reader = task::spawn_for(
            "rpc-replies",
            &queue.name,
            run(shared, queue.clone(), Arc::clone(&waiters), sender),
        );
        Self {
            queue,
            waiters,
            reading,
            _reader: reader,
        }
    }

    /// The queue's name.
    pub(super) fn queue(&self) -> &str {
        &self.queue.name
    }

    /// Why no replies can come now, for people.
    pub(super) fn describe(&self) -> String {
        match &*self.reading.borrow() {
            ReplyState::Now => "the connection to the broker is up".to_owned(),
            ReplyState::NotYet(Some(error)) => error.to_string(),
            ReplyState::NotYet(None) => "there is no connection to the broker".to_owned(),
            ReplyState::Closed => "the transport is closed".to_owned(),
        }
    }

    /// Registers a call, and waits until its replies can come.
    pub(super) async fn expect(&self, message_id: &str) -> Result<PendingCall, MessagingError> {
        let (sender, replies) = mpsc::unbounded_channel();
        self.waiters
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(message_id.to_owned(), sender);
        let waiting = PendingCall {
            message_id: message_id.to_owned(),
            waiters: Arc::clone(&self.waiters),
            replies,
        };
        let mut reading = self.reading.clone();
        let settled = reading
            .wait_for(|state| !matches!(state, ReplyState::NotYet(None)))
            .await
            .map_err(|_| MessagingError::Closed)?
            .clone();
        match settled {
            ReplyState::Now => Ok(waiting),
            ReplyState::NotYet(Some(error)) => Err(error),
            ReplyState::NotYet(None) | ReplyState::Closed => Err(MessagingError::Closed),
        }
    }
}

impl PendingCall {
    /// The next message to this call.
    pub(super) async fn next(&mut self) -> Result<RpcReply, MessagingError> {
        self.replies.recv().await.ok_or(MessagingError::Closed)
    }
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        self.waiters
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.message_id);
    }
}

async fn run(
    shared: Arc<TransportState>,
    queue: Queue,
    waiters: Waiters,
    reading: watch::Sender<ReplyState>,
) {
    let mut durable_elsewhere = false;
    let pause = shared
        .options()
        .reconnect_delay
        .max(Duration::from_millis(100));
    let mut last_failed = 0;
    while let Some(session) = shared.consume_link().session().await {
        if session.id == last_failed {
            tokio::time::sleep(pause).await;
        }
        last_failed = session.id;
        let queues = std::slice::from_ref(&queue);
        let attempt = subscribe(&session, queues, 0, &mut durable_elsewhere);
        match tokio::time::timeout(SUBSCRIBE_LIMIT, attempt).await {
            Ok(Ok(subscribed)) => {
                reading.send_replace(ReplyState::Now);
                read(subscribed, &waiters).await;
                reading.send_replace(ReplyState::NotYet(None));
            }
            Ok(Err(ChannelError::Final(error))) => {
                tracing::error!(code = error.code(), %error, queue = queue.name, "cannot read replies; trying again");
                reading.send_replace(ReplyState::NotYet(Some(error)));
            }
            Ok(Err(error)) => {
                let error = error.into_error(&session.broker);
                tracing::warn!(code = error.code(), %error, queue = queue.name, "cannot read replies yet");
            }
            Err(_) => tracing::warn!(
                queue = queue.name,
                "the broker does not answer; trying again"
            ),
        }
    }
    reading.send_replace(ReplyState::Closed);
    // Wakes all who wait.
    waiters
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clear();
}

/// Reads until the consumer ends.
async fn read(subscribed: QueueConsumers, waiters: &Waiters) {
    let QueueConsumers {
        session,
        channel: _open,
        mut consumers,
    } = subscribed;
    let Some(mut consumer) = consumers.pop() else {
        return;
    };
    loop {
        let item = tokio::select! {
            biased;
            item = consumer.next() => item,
            () = session.gone().cancelled() => return,
        };
        match item {
            Some(Ok(delivery)) => {
                hand_out(&delivery, waiters);
                tokio::select! {
                    _ = delivery.acker.ack(BasicAckOptions::default()) => {}
                    () = session.gone().cancelled() => return,
                }
            }
            Some(Err(error)) => {
                tracing::warn!(%error, "reading replies was interrupted");
                return;
            }
            None => {
                tracing::warn!(
                    "the broker ended the subscription to the reply queue; subscribing again"
                );
                return;
            }
        }
    }
}

fn hand_out(delivery: &Delivery, waiters: &Waiters) {
    let properties = &delivery.properties;
    let compression = match properties
        .headers()
        .as_ref()
        .and_then(|headers| headers.inner().get("compression"))
    {
        Some(AMQPValue::LongString(text)) => Some(text.to_string()),
        _ => None,
    };
    let said = Properties {
        content_type: properties.content_type().as_ref().map(|text| text.as_str()),
        compression: compression.as_deref(),
    };
    match decode_reply(&delivery.data, said, MAX_REPLY_BYTES) {
        Ok(reply) => {
            let waiters = waiters.lock().unwrap_or_else(PoisonError::into_inner);
            match waiters.get(&reply.message_id) {
                // It fails only if the call has just ended.
                Some(waiter) => drop(waiter.send(reply)),
                None => tracing::info!(
                    message_id = reply.message_id,
                    "a reply came for a call that does not wait any more"
                ),
            }
        }
        Err(error) => tracing::error!(code = error.code(), %error, "a reply was rejected"),
    }
}
