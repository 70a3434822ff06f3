//! What a reader holds: a [`Subscription`] and the [`Delivery`]s that come out of it.
//!
//! Invariant: a [`Delivery`] is settled exactly once. However it leaves the reader (ack, retry,
//! dead letter, a panic, a forgotten branch), the transport is notified, because `Drop` gives it
//! back.

use std::fmt;

use async_trait::async_trait;
use tokio::sync::watch;
use uuid::Uuid;

use crate::bus::{DeliverySource, MAX_BODY_BYTES};
use crate::{BusError, OutgoingMessage, QueueName};

/// A dead letter's reason is cut to this many bytes: headers must fit one AMQP frame (RabbitMQ's
/// default is 128 KiB), and a reason is for people.
pub(crate) const MAX_REASON_BYTES: usize = 4096;

/// A dead letter keeps this much of the body (64 KiB): enough for a person to see what it was.
/// Every reader of a queue must be able to get rid of a message, however large the broker let it
/// be.
pub const DEAD_LETTER_BODY_BYTES: usize = 64 * 1024;

/// Namespace for the ids of messages that came without one.
const FOREIGN_MESSAGE: Uuid = Uuid::from_u128(0x6562_6275_7300_5000_8000_666f_7265_6967);

/// How a subscription that wants to be alone stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubscriptionState {
    /// Not known: the broker is away, or the queue is being subscribed to.
    Waiting,
    /// The queue is ours; no other client reads from it.
    Held,
    /// Another reader has it.
    Taken,
}

/// A queue being read. Dropping it stops the flow; deliveries already handed out stay valid.
pub struct Subscription {
    queue: QueueName,
    source: Box<dyn DeliverySource>,
    hold: Option<watch::Receiver<SubscriptionState>>,
}

impl Subscription {
    pub(crate) fn new(queue: QueueName, source: Box<dyn DeliverySource>) -> Self {
        Self {
            queue,
            source,
            hold: None,
        }
    }

    pub(crate) fn alone(mut self, hold: watch::Receiver<SubscriptionState>) -> Self {
        self.hold = Some(hold);
        self
    }

    /// Whether the queue is held, for a subscription that was opened with
    /// [`Bus::consume_alone`](crate::Bus::consume_alone). It changes while
    /// [`Subscription::next`] is waited for.
    #[must_use]
    pub fn hold(&self) -> Option<watch::Receiver<SubscriptionState>> {
        self.hold.clone()
    }

    /// The queue being read.
    #[must_use]
    pub fn queue(&self) -> &QueueName {
        &self.queue
    }

    /// Waits for the next message, over reconnects. `None` only after the bus was closed.
    ///
    /// Cancelling it (as in `tokio::select!`) loses nothing. The subscription repairs itself inside
    /// this call, so a reader that never calls it is not connected again after a failure.
    pub async fn next(&mut self) -> Option<Delivery> {
        self.source.next().await
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("queue", &self.queue.as_str())
            .finish_non_exhaustive()
    }
}

/// Why a message is in the dead letter queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterNote {
    /// What the reader could not do with it. At most 4096 bytes.
    pub reason: String,
    /// The name of the queue from which it came.
    pub queue: String,
    /// The user that published it, if the broker confirms the user.
    pub user: Option<String>,
    /// How long the body was, if only its first [`DEAD_LETTER_BODY_BYTES`] bytes are kept.
    pub cut_from_bytes: Option<u64>,
}

impl DeadLetterNote {
    /// A note without user and length.
    pub(crate) fn new(reason: &str, queue: &QueueName) -> Self {
        let mut end = reason.len().min(MAX_REASON_BYTES);
        while !reason.is_char_boundary(end) {
            end -= 1;
        }
        Self {
            reason: reason[..end].to_owned(),
            queue: queue.as_str().to_owned(),
            user: None,
            cut_from_bytes: None,
        }
    }
}

/// A message in the reader's hands, to be settled by exactly one of [`ack`](Self::ack),
/// [`retry`](Self::retry) and [`dead_letter`](Self::dead_letter). Dropping it is a
/// [`retry`](Self::retry).
#[must_use = "a delivery that is dropped goes back to its queue and comes again at once"]
pub struct Delivery {
    /// The id that the publisher gave it; derived from queue and body if there was none.
    pub message_id: Uuid,
    /// The media type of `body`; empty if the publisher gave none.
    pub content_type: String,
    /// The message itself.
    pub body: Vec<u8>,
    /// The user that published it, if the broker confirms the user.
    pub user: Option<String>,
    /// Whether the broker knows that it was handed out before.
    pub redelivered: bool,
    /// The queue from which it came.
    pub queue: QueueName,
    /// Why it is a dead letter, if it is one.
    pub dead_letter: Option<DeadLetterNote>,
    /// The context of the trace of which its sending was a part, if its publisher sent one. Not
    /// checked.
    pub traceparent: Option<String>,
    /// How long `body` was before [`Delivery::cut_short`].
    cut_from_bytes: Option<u64>,
    settle: Option<Box<dyn Settle>>,
}

/// How a transport settles one delivery. All of it is harmless on a connection that has died.
#[async_trait]
pub(crate) trait Settle: Send + Sync {
    /// Takes the message out of the queue for good. Must take effect in its first poll.
    async fn ack(&mut self);
    /// Gives the message back to the queue. Called from `Drop`, so it cannot wait.
    fn requeue(&mut self);
    /// Publishes to the dead letter queue, creating it if need be.
    async fn publish_dead_letter(
        &self,
        message: &OutgoingMessage,
        note: &DeadLetterNote,
    ) -> Result<(), BusError>;
}

/// What a transport knows about a message that it hands out.
pub(crate) struct ReceivedMessage {
    pub(crate) message_id: Option<Uuid>,
    pub(crate) content_type: String,
    pub(crate) body: Vec<u8>,
    pub(crate) user: Option<String>,
    pub(crate) redelivered: bool,
    pub(crate) dead_letter: Option<DeadLetterNote>,
    pub(crate) traceparent: Option<String>,
}

impl Delivery {
    pub(crate) fn new(
        queue: QueueName,
        received: ReceivedMessage,
        settle: Box<dyn Settle>,
    ) -> Self {
        let message_id = received
            .message_id
            .unwrap_or_else(|| derived_id(&queue, &received.body));
        Self {
            message_id,
            content_type: received.content_type,
            body: received.body,
            user: received.user,
            redelivered: received.redelivered,
            queue,
            dead_letter: received.dead_letter,
            traceparent: received.traceparent,
            cut_from_bytes: None,
            settle: Some(settle),
        }
    }

    /// Says that the effect of this message is done and durable: it need not come again.
    pub async fn ack(mut self) {
        if let Some(mut settle) = self.settle.take() {
            settle.ack().await;
        }
    }

    /// Gives the message back to its queue; it comes again at once, to this reader or another.
    ///
    /// A reader that cannot work now waits before it calls this, or it will be kept busy.
    pub async fn retry(mut self) {
        if let Some(mut settle) = self.settle.take() {
            settle.requeue();
        }
    }

    /// Lets go of all of the body but its first [`DEAD_LETTER_BODY_BYTES`] bytes, for a reader that
    /// will not use it and may have to hold the message for a while.
    pub fn cut_short(&mut self) {
        if self.body.len() > DEAD_LETTER_BODY_BYTES {
            self.cut_from_bytes.get_or_insert(self.body.len() as u64);
            self.body.truncate(DEAD_LETTER_BODY_BYTES);
            self.body.shrink_to_fit();
        }
    }

    /// Moves the message to the dead letter queue together with the reason, for people to look at.
    /// Of a long body only the beginning is kept; see [`DeadLetterNote::cut_from_bytes`].
    ///
    /// # Errors
    ///
    /// Those of [`Bus::publish`](crate::Bus::publish). The message is then back in its queue.
    pub async fn dead_letter(mut self, reason: &str) -> Result<(), BusError> {
        self.try_dead_letter(reason).await
    }

    /// The same, but after an error the message is still in hand: to wait a little before it goes
    /// back to its queue.
    ///
    /// # Errors
    ///
    /// Those of [`Bus::publish`](crate::Bus::publish).
    pub async fn try_dead_letter(&mut self, reason: &str) -> Result<(), BusError> {
        self.cut_short();
        let Some(settle) = self.settle.as_ref() else {
            return Ok(());
        };
        let mut note = DeadLetterNote::new(reason, &self.queue);
        note.user = self.user.clone();
        note.cut_from_bytes = self.cut_from_bytes;
        let message = OutgoingMessage {
            message_id: self.message_id,
            content_type: if self.content_type.is_empty() {
                "application/octet-stream".to_owned()
            } else {
                self.content_type.clone()
            },
            body: self.body.clone(),
            traceparent: self.traceparent.clone(),
        };
        settle.publish_dead_letter(&message, &note).await?;
        tracing::warn!(
            message_id = %self.message_id, queue = %self.queue, reason = %note.reason,
            "moved a message to the dead letter queue"
        );
        if let Some(mut settle) = self.settle.take() {
            settle.ack().await;
        }
        Ok(())
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        if let Some(mut settle) = self.settle.take() {
            settle.requeue();
        }
    }
}

impl fmt::Debug for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delivery")
            .field("message_id", &self.message_id)
            .field("queue", &self.queue.as_str())
            .field("content_type", &self.content_type)
            .field("body_bytes", &self.body.len())
            .field("redelivered", &self.redelivered)
            .field("dead_letter", &self.dead_letter)
            .finish_non_exhaustive()
    }
}

/// The id of a message that came without one: the same message gets the same id every time.
///
/// For a body that is longer than any that this bus publishes, only the beginning and the length
/// count. A foreign publisher chooses its size, and hashing all of it would delay the reader's
/// other messages.
fn derived_id(queue: &QueueName, body: &[u8]) -> Uuid {
    let (length, body) = match body.len() {
        0..=MAX_BODY_BYTES => (None, body),
        long => (Some(long.to_string()), &body[..DEAD_LETTER_BODY_BYTES]),
    };
    let mut name = Vec::with_capacity(queue.as_str().len() + 1 + body.len());
    name.extend_from_slice(queue.as_str().as_bytes());
    // No queue name contains a zero byte, so queue and body cannot run into each other.
    name.push(0);
    name.extend_from_slice(body);
    name.extend_from_slice(length.unwrap_or_default().as_bytes());
    Uuid::new_v5(&FOREIGN_MESSAGE, &name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::QueuePrefix;

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        let queue = QueuePrefix::default().scheduler();
        let note = DeadLetterNote::new(&"ä".repeat(3000), &queue);
        assert_eq!(note.reason.len(), MAX_REASON_BYTES);
        let note = DeadLetterNote::new(&format!("x{}", "ä".repeat(3000)), &queue);
        assert_eq!(note.reason.len(), MAX_REASON_BYTES - 1);
        assert_eq!(note.queue, "ebbtide.scheduler");
    }

    #[test]
    fn a_derived_id_depends_on_queue_and_body_only() {
        let prefix = QueuePrefix::default();
        let (one, two) = (prefix.scheduler(), prefix.dead_letter());
        assert_eq!(derived_id(&one, b"x"), derived_id(&one, b"x"));
        assert_ne!(derived_id(&one, b"x"), derived_id(&one, b"y"));
        assert_ne!(derived_id(&one, b"x"), derived_id(&two, b"x"));
    }
}
