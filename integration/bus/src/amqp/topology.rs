//! Declaring queues.

use lapin::Channel;
use lapin::options::QueueDeclareOptions;
use lapin::types::{AMQPValue, FieldTable};

use ebbtide_amqp::{BrokerFault, BrokerSession, ConnectionLost};

use super::config::{AmqpConfig, QueueKind};
use super::identity;
use crate::{BusError, QueueName};

/// Why a step on a channel failed: for good, or in a way that a new channel may heal.
#[derive(Debug)]
pub(crate) enum StepError {
    Final(BusError),
    Again(String),
}

impl StepError {
    pub(crate) fn declaring(queue: &QueueName, error: &lapin::Error) -> Self {
        match BrokerFault::of(error) {
            BrokerFault::Precondition(detail) => Self::Final(BusError::QueueMismatch {
                queue: queue.as_str().to_owned(),
                detail,
            }),
            fault => Self::from_fault(fault, || format!("declare queue {queue}")),
        }
    }

    pub(crate) fn during(error: &lapin::Error, operation: impl FnOnce() -> String) -> Self {
        Self::from_fault(BrokerFault::of(error), operation)
    }

    fn from_fault(fault: BrokerFault, operation: impl FnOnce() -> String) -> Self {
        match fault {
            // 404: a queue that was deleted between our declare and our consume.
            BrokerFault::Transient(problem) | BrokerFault::NotFound(problem) => {
                Self::Again(problem)
            }
            BrokerFault::AccessRefused(detail)
            | BrokerFault::Precondition(detail)
            | BrokerFault::Refused(detail) => Self::Final(BusError::Refused {
                operation: operation(),
                detail,
            }),
        }
    }
}

impl From<ConnectionLost> for StepError {
    fn from(lost: ConnectionLost) -> Self {
        Self::Again(lost.to_string())
    }
}

/// Declares a queue, and for quorum queues the dead letter queue that they need.
///
/// On a channel of its own, because a refused declaration closes its channel.
pub(crate) async fn declare_queue(
    session: &BrokerSession,
    queue: &QueueName,
    config: &AmqpConfig,
) -> Result<(), StepError> {
    let opened = session.channel().await;
    let channel = &opened.map_err(|error| StepError::declaring(queue, &error))?;
    let (kind, identity) = (config.queue_kind, config.identity);
    let dead_letter = queue.dead_letter();
    // A quorum queue drops a message after too many redeliveries (RabbitMQ 4: 20) unless it has a
    // dead letter exchange. Ours is the default exchange, which routes by queue name.
    if kind == QueueKind::Quorum && *queue != dead_letter {
        if !identity::is_others(identity, &dead_letter) {
            declare_one(channel, &dead_letter, arguments(kind, None)).await?;
            identity::bind(channel, identity, &dead_letter).await?;
        }
        let way = identity::dead_letters(identity, config.user(), queue);
        declare_one(channel, queue, arguments(kind, Some(&way))).await?;
    } else {
        declare_one(channel, queue, arguments(kind, None)).await?;
    }
    identity::bind(channel, identity, queue).await
}

async fn declare_one(
    channel: &Channel,
    queue: &QueueName,
    arguments: FieldTable,
) -> Result<(), StepError> {
    channel
        .queue_declare(
            queue.as_str().into(),
            QueueDeclareOptions::durable(),
            arguments,
        )
        .await
        .map(|_| ())
        .map_err(|error| StepError::declaring(queue, &error))
}

fn arguments(kind: QueueKind, dead_letter: Option<&(String, String)>) -> FieldTable {
    let text = |value: &str| AMQPValue::LongString(value.into());
    let mut arguments = FieldTable::default();
    // Named even for classic queues: a vhost may have another default.
    arguments.insert("x-queue-type".into(), text(kind.as_str()));
    if let Some((exchange, key)) = dead_letter {
        arguments.insert("x-dead-letter-exchange".into(), text(exchange));
        arguments.insert("x-dead-letter-routing-key".into(), text(key));
    }
    arguments
}
