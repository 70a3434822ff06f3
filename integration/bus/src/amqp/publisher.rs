//! Messages of the bus on the wire, and their confirmed publishing.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ebbtide_amqp::{ConfirmChannel, Publication, PublishOutcome};
use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable};

use super::config::AmqpConfig;
use super::identity::{self, BusIdentity};
use super::link::Link;
use super::topology::StepError;
use crate::{BusError, DeadLetterNote, OutgoingMessage, QueueName};

/// Header with [`DeadLetterNote::reason`].
pub(crate) const REASON_HEADER: &str = "ebbtide-dead-letter-reason";
/// Header with [`DeadLetterNote::queue`].
pub(crate) const ORIGIN_HEADER: &str = "ebbtide-dead-letter-queue";
/// Header with [`DeadLetterNote::user`].
pub(crate) const USER_HEADER: &str = "ebbtide-dead-letter-user";
/// Header with [`DeadLetterNote::cut_from_bytes`], as text.
pub(crate) const BYTES_HEADER: &str = "ebbtide-dead-letter-bytes";

/// Header with [`OutgoingMessage::traceparent`], by the name that W3C's Trace Context for AMQP
/// gives it.
pub(crate) const TRACE_HEADER: &str = "traceparent";
/// A longer text is no context: that of version 00 has 55 bytes, and later versions may add parts.
pub(crate) const MAX_TRACE_BYTES: usize = 256;

/// AMQP's code for "write it to disk" (basic.delivery-mode).
const PERSISTENT: u8 = 2;

/// Publishes to queues.
#[derive(Debug)]
pub(crate) struct Publisher {
    channels: ebbtide_amqp::Publisher<BusError>,
    config: Arc<AmqpConfig>,
}

impl Publisher {
    pub(crate) fn new(link: Arc<Link>, config: Arc<AmqpConfig>) -> Self {
        Self {
            channels: ebbtide_amqp::Publisher::new(link, config.max_in_flight),
            config,
        }
    }

    /// Publishes until confirmed, over any number of connections. The deadline is the caller's;
    /// when it drops this future, `last_problem` holds what went wrong last.
    pub(crate) async fn publish(
        &self,
        queue: &QueueName,
        message: &OutgoingMessage,
        note: Option<&DeadLetterNote>,
        last_problem: &Mutex<String>,
    ) -> Result<(), BusError> {
        let publication = QueuedMessage {
            config: &self.config,
            queue,
            message,
            note,
            last_problem,
        };
        match self.channels.publish(&publication).await? {
            PublishOutcome::Routed => Ok(()),
            PublishOutcome::Unroutable => Err(BusError::Unroutable {
                queue: queue.as_str().to_owned(),
                message_id: message.message_id,
            }),
        }
    }

    /// Lets publishes in flight finish, for at most `grace`, and refuses all others from then on.
    pub(crate) async fn drain(&self, grace: Duration) {
        if !self.channels.drain(grace).await {
            tracing::warn!("closing the bus with publishes in flight; their callers are told");
        }
    }
}

/// A message on its way to a queue.
struct QueuedMessage<'a> {
    config: &'a AmqpConfig,
    queue: &'a QueueName,
    message: &'a OutgoingMessage,
    note: Option<&'a DeadLetterNote>,
    last_problem: &'a Mutex<String>,
}

impl Publication<BusError> for QueuedMessage<'_> {
    type Outcome = PublishOutcome;

    async fn publish_on(&self, channel: &ConfirmChannel) -> Result<PublishOutcome, StepError> {
        let (identity, user) = (self.config.identity, self.config.user());
        let (exchange, key) = identity::route(identity, user, self.queue);
        let user = (identity == BusIdentity::Agent).then_some(user);
        let properties = properties(self.message, self.note, user);
        let published = channel
            .publish(&exchange, &key, true, &self.message.body, properties)
            .await
            .map_err(|fault| StepError::of(fault, || format!("publish to {}", self.queue)))?;
        if published == PublishOutcome::Unroutable
            && identity::scheduler_declares(identity, self.queue)
        {
            return Err(StepError::Again(format!(
                "nothing is bound to the exchange {exchange} yet; has the scheduler run with bus.agent_identity = \"user-id\"?"
            )));
        }
        Ok(published)
    }

    fn failed(&self, problem: String) {
        tracing::debug!(
            message_id = %self.message.message_id, queue = %self.queue, %problem, "publishing again"
        );
        let last = self.last_problem.lock();
        *last.unwrap_or_else(PoisonError::into_inner) = problem;
    }
}

fn properties(
    message: &OutgoingMessage,
    note: Option<&DeadLetterNote>,
    user: Option<&str>,
) -> BasicProperties {
    let properties = BasicProperties::default()
        .with_delivery_mode(PERSISTENT)
        .with_message_id(message.message_id.to_string().into())
        // At most 255 bytes: `OutgoingMessage::validate` has seen to it.
        .with_content_type(message.content_type.as_str().into());
    let properties = match user {
        Some(user) => properties.with_user_id(user.into()),
        None => properties,
    };
    let cut_from = note.and_then(|note| note.cut_from_bytes);
    let bytes = cut_from.map(|bytes| bytes.to_string());
    let headers = [
        (TRACE_HEADER, message.traceparent.as_ref()),
        (REASON_HEADER, note.map(|note| &note.reason)),
        (ORIGIN_HEADER, note.map(|note| &note.queue)),
        (USER_HEADER, note.and_then(|note| note.user.as_ref())),
        (BYTES_HEADER, bytes.as_ref()),
    ];
    if headers.iter().all(|(_, value)| value.is_none()) {
        return properties;
    }
    let mut table = FieldTable::default();
    for (name, value) in headers {
        if let Some(value) = value {
            table.insert(name.into(), AMQPValue::LongString(value.as_str().into()));
        }
    }
    properties.with_headers(table)
}
