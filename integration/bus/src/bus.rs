//! The contract of the message bus. Both transports keep it; `tests/bus/suite.rs` checks it.
//!
//! **Queues.** A queue belongs to one reader: an agent, the scheduler, or the person who looks
//! after dead letters. [`Bus::declare`] creates it durably; declaring it again changes nothing.
//!
//! **Publishing.** [`Bus::publish`] returns `Ok` only when the broker has taken responsibility: the
//! message was routed to the queue, marked persistent, and confirmed. Until then the bus retries by
//! itself, over reconnects, up to its deadline. Then it returns [`BusError::Unavailable`], and it
//! is unknown whether the message arrived. The caller repeats it with the same message id. A
//! publish that is cancelled (its future dropped) is in the same unknown state. A queue that does
//! not exist is an error ([`BusError::Unroutable`]), with one exception: the bus declares a queue
//! again that it has declared before and that was deleted since.
//!
//! **Order.** Messages that one task publishes one after the other reach the queue in that order,
//! and a subscription hands them out in the order of the queue. Concurrent publishes have no order
//! among themselves. A message that comes back (see below) takes its old place as far as the broker
//! can; readers must not depend on it, because messages behind it may already be out.
//!
//! **Delivery.** At least once. A message is handed to one subscription at a time and stays in the
//! queue until it is settled: by [`Delivery::ack`], or by [`Delivery::dead_letter`]. It is
//! delivered again, with `redelivered` set, after [`Delivery::retry`], after a [`Delivery`] was
//! dropped, after the connection died, and after the reader's process died. Readers therefore
//! recognise repeated message ids. `redelivered == false` proves nothing: the publisher may have
//! repeated the message.
//!
//! **What an ack means.** That the effect of the message is done and durable at the reader. It
//! travels without an answer: a crash right after it may bring the message back. An ack on a
//! connection that has died meanwhile does nothing, and the message comes back.
//!
//! **Prefetch.** A subscription has at most `prefetch` unsettled messages in hand, counted with
//! those that the transport holds ready for the next call of [`Subscription::next`].
//!
//! **Alone.** [`Bus::consume_alone`] makes its reader the only one of the queue. Another one is
//! refused ([`BusError::InUse`]), and so is an ordinary [`Bus::consume`]. A reader whose connection
//! dies keeps its claim until the broker notices (about two heartbeats); so a second one waits for
//! that long before it is refused, and the same reader gets its queue back after a cut.
//! [`Subscription::hold`] tells whether the queue is held at this moment. A broker may not keep
//! this for every kind of queue: RabbitMQ 3.10 lets several read from a quorum queue.
//!
//! **Dead letters.** [`Delivery::dead_letter`] first publishes the message to `PREFIX.dead-letter`
//! with the reason and the queue it came from, and only then acks it. A crash in between makes a
//! duplicate, never a loss. The dead letter queue can be read like any other; there,
//! [`Delivery::dead_letter`](field@crate::Delivery::dead_letter) tells reason and origin. Of a body
//! of more than [`DEAD_LETTER_BODY_BYTES`](crate::DEAD_LETTER_BODY_BYTES) only the beginning is
//! kept, so that a reader gets rid of every message that the broker let in, also of one that is
//! larger than any that [`Bus::publish`] takes. The queue shall be bounded ([`MAX_DEAD_LETTERS`],
//! [`MAX_DEAD_LETTERS_BYTES`]), so that the oldest letters go when it is full: in-process by
//! itself, at a broker by a policy ([`Definitions::scheduler`](crate::Definitions::scheduler)),
//! because a queue that exists cannot change its arguments.
//!
//! **Durability.** With [`AmqpBus`](crate::AmqpBus): messages and queues survive a crash of the
//! broker, with one exception. RabbitMQ with Mnesia writes a new queue to its disk some moments
//! after it has confirmed the declaration; a crash in between takes the queue and what was
//! confirmed in it. (Notices are repeated until the agent answers.) With
//! [`InProcessBus`](crate::InProcessBus): they live as long as the process; the embedded mode
//! relies on the outbox for anything longer.
//!
//! **Message id.** Travels beside the body. A message of a foreign publisher that carries none, or
//! one that is no UUID, gets one derived from queue and body, the same at every redelivery.
//!
//! **Errors.** [`BusError::is_transient`] errors may heal by themselves; all others need a person
//! or a change in the caller. No operation waits without end, except [`Subscription::next`].
//!
//! **Closing.** [`Bus::close`] refuses new work, lets publishes in flight finish (within a limit),
//! and disconnects. Unsettled deliveries go back to their queues; settling them afterwards does
//! nothing.

use async_trait::async_trait;
use tokio::sync::watch;
use uuid::Uuid;

use crate::{BusError, BusStatus, Delivery, QueueName, QueuePrefix, Subscription};

/// The largest body that is accepted, in bytes (4 MiB).
///
/// A notice is below 2 KiB. The limit keeps a runaway caller from filling the broker's disk;
/// RabbitMQ itself would take 128 MiB.
pub const MAX_BODY_BYTES: usize = 4 * 1024 * 1024;

/// Limit of the dead letter queue; the oldest letters are dropped first.
pub const MAX_DEAD_LETTERS: usize = 10_000;

/// Limit of all bodies in the dead letter queue, in bytes (64 MiB); the oldest letters are dropped
/// first.
pub const MAX_DEAD_LETTERS_BYTES: usize = 64 * 1024 * 1024;

/// AMQP 0-9-1 carries the content type as a short string.
const MAX_CONTENT_TYPE_BYTES: usize = 255;

/// The largest body that the broker takes from any client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyLimit {
    /// Not more than this, in bytes.
    AtMost(u64),
    /// More than [`MAX_BODY_BYTES`]; how much more is not known.
    Larger,
}

/// A message on its way out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutgoingMessage {
    /// Identifies the message for ever; the same at every repetition.
    pub message_id: Uuid,
    /// The media type of `body`, usually `application/cloudevents+json`. At most 255 bytes.
    pub content_type: String,
    /// The message itself. At most [`MAX_BODY_BYTES`].
    pub body: Vec<u8>,
    /// The context of the trace of which sending this is a part, for the header `traceparent` (W3C
    /// Trace Context). Not sent without one.
    pub traceparent: Option<String>,
}

impl OutgoingMessage {
    /// The media type of a CloudEvent in its structured JSON form (CloudEvents 1.0, HTTP and AMQP
    /// bindings).
    pub const CLOUD_EVENT: &'static str = "application/cloudevents+json";

    /// A message whose body is one CloudEvent in structured JSON.
    #[must_use]
    pub fn cloud_event(message_id: Uuid, body: Vec<u8>) -> Self {
        Self {
            message_id,
            content_type: Self::CLOUD_EVENT.to_owned(),
            body,
            traceparent: None,
        }
    }

    /// The same as a part of a trace.
    #[must_use]
    pub fn traced(mut self, traceparent: Option<String>) -> Self {
        self.traceparent = traceparent;
        self
    }

    /// Checks the limits that hold on every transport, so that no message works in one mode only.
    pub(crate) fn validate(&self) -> Result<(), BusError> {
        let invalid = |reason: String| BusError::InvalidMessage {
            message_id: self.message_id,
            reason,
        };
        if self.body.len() > MAX_BODY_BYTES {
            return Err(invalid(format!(
                "its body has {} bytes, at most {MAX_BODY_BYTES} are possible",
                self.body.len()
            )));
        }
        if self.content_type.is_empty() || self.content_type.len() > MAX_CONTENT_TYPE_BYTES {
            return Err(invalid(format!(
                "its content type has {} bytes, 1 to {MAX_CONTENT_TYPE_BYTES} are possible",
                self.content_type.len()
            )));
        }
        Ok(())
    }
}

/// A message bus. See the module for what its operations promise.
#[async_trait]
pub trait Bus: Send + Sync + std::fmt::Debug {
    /// Makes sure that the queue exists, durably. Idempotent.
    ///
    /// # Errors
    ///
    /// [`BusError::Unavailable`] at the deadline, [`BusError::QueueMismatch`] if it exists with
    /// other properties, [`BusError::Refused`], [`BusError::Closed`].
    async fn declare(&self, queue: &QueueName) -> Result<(), BusError>;

    /// Publishes a message durably, and returns when the broker has confirmed it.
    ///
    /// # Errors
    ///
    /// [`BusError::Unavailable`] at the deadline (the message may have arrived; repeat it),
    /// [`BusError::Unroutable`] if there is no such queue, [`BusError::InvalidMessage`],
    /// [`BusError::Refused`], [`BusError::Closed`].
    async fn publish(&self, queue: &QueueName, message: &OutgoingMessage) -> Result<(), BusError>;

    /// Declares the queue and reads from it, with at most `prefetch` unsettled messages in hand.
    ///
    /// If the broker is away, the subscription is returned all the same after the deadline, and
    /// starts to deliver when the broker is back; [`Bus::status`] tells.
    ///
    /// # Errors
    ///
    /// What waiting cannot heal: [`BusError::InvalidPrefetch`], [`BusError::QueueMismatch`],
    /// [`BusError::Refused`], [`BusError::Closed`].
    async fn consume(&self, queue: &QueueName, prefetch: u16) -> Result<Subscription, BusError>;

    /// As [`Bus::consume`], with a rank. While several readers read from a queue, the broker gives
    /// its messages to the readers of the highest rank, as long as these take any. A reader that
    /// replaces another one therefore need not wait until the broker notices that the old one is
    /// dead.
    ///
    /// Where only one reader ever reads, the rank has no effect.
    ///
    /// # Errors
    ///
    /// As [`Bus::consume`].
    async fn consume_before(
        &self,
        queue: &QueueName,
        prefetch: u16,
        rank: i64,
    ) -> Result<Subscription, BusError> {
        let _ = rank;
        self.consume(queue, prefetch).await
    }

    /// The same as [`Bus::consume`], as the only reader of the queue.
    ///
    /// # Errors
    ///
    /// As [`Bus::consume`], and [`BusError::InUse`] if another client reads from it, for longer
    /// than a connection that has died can be in the way.
    async fn consume_alone(
        &self,
        queue: &QueueName,
        prefetch: u16,
    ) -> Result<Subscription, BusError>;

    /// Finds out how large a body the broker takes from others: readers have to hold what it takes.
    /// Costs the way of one large message.
    ///
    /// # Errors
    ///
    /// As [`Bus::publish`].
    async fn body_limit(&self, prefix: &QueuePrefix) -> Result<BodyLimit, BusError> {
        let _ = prefix;
        Ok(BodyLimit::AtMost(MAX_BODY_BYTES as u64))
    }

    /// Whether any client reads from a queue. A transport that cannot tell says yes.
    ///
    /// # Errors
    ///
    /// [`BusError::Refused`], [`BusError::Unavailable`].
    async fn is_read(&self, queue: &QueueName) -> Result<bool, BusError> {
        let _ = queue;
        Ok(true)
    }

    /// Deletes a queue that has no reader, with the messages in it. A queue that does not exist is
    /// deleted already.
    ///
    /// # Errors
    ///
    /// [`BusError::Refused`] if a client reads from it, if this login may not delete it, or if the
    /// carrier deletes no queues; [`BusError::Unavailable`], [`BusError::Closed`].
    async fn delete(&self, queue: &QueueName) -> Result<(), BusError> {
        Err(BusError::Refused {
            operation: format!("delete queue {queue}"),
            detail: "this carrier deletes no queues".to_owned(),
        })
    }

    /// How the connection to the broker is, now and at every change. For health checks and metrics.
    fn status(&self) -> watch::Receiver<BusStatus>;

    /// Closes the bus. Idempotent. Every [`Subscription::next`] returns `None` from now on.
    async fn close(&self);
}

/// Tells subscriptions and transports apart from what the user holds; see `delivery.rs`.
#[async_trait]
pub(crate) trait DeliverySource: Send + Sync {
    /// The next delivery; `None` only after close. Must be safe to cancel.
    async fn next(&mut self) -> Option<Delivery>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(content_type: &str, bytes: usize) -> OutgoingMessage {
        OutgoingMessage {
            message_id: Uuid::nil(),
            content_type: content_type.to_owned(),
            body: vec![0; bytes],
            traceparent: None,
        }
    }

    #[test]
    fn limits_are_checked_before_any_transport_sees_the_message() {
        assert_eq!(message("text/plain", MAX_BODY_BYTES).validate(), Ok(()));
        for bad in [
            message("text/plain", MAX_BODY_BYTES + 1),
            message("", 1),
            message(&"x".repeat(256), 1),
        ] {
            assert_eq!(bad.validate().unwrap_err().code(), "EB-BUS-004");
        }
    }
}
