//! Declaring queues.

use ebbtide_amqp::{BrokerFault, BrokerSession};
use lapin::Channel;
use lapin::options::{QueueDeclareOptions, QueueDeleteOptions};
use lapin::types::{AMQPValue, FieldTable};

use super::config::{AmqpConfig, QueueKind};
use super::identity;
use crate::{BusError, QueueName, QueueUse};

/// The reason why a step of the bus on a channel failed.
pub(crate) type StepError = ebbtide_amqp::StepError<BusError>;

/// The meaning of an error while `queue` is declared.
fn declaring(queue: &QueueName, error: &lapin::Error) -> StepError {
    match BrokerFault::of(error) {
        BrokerFault::Precondition(detail) => StepError::Final(BusError::QueueMismatch {
            queue: queue.as_str().to_owned(),
            detail,
        }),
        fault => StepError::of(fault, || format!("declare queue {queue}")),
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
    let channel = &opened.map_err(|error| declaring(queue, &error))?;
    let (kind, identity) = (config.queue_kind, config.identity);
    let dead_letter = queue.dead_letter();
    // A quorum queue drops a message after too many redeliveries (RabbitMQ 4: 20) unless it has a
    // dead letter exchange. Ours is the default exchange, which routes by queue name.
    if kind == QueueKind::Quorum && *queue != dead_letter {
        if !identity::scheduler_declares(identity, &dead_letter) {
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

/// Whether a queue exists, and what is in it. A missing one closes the channel, which is of this
/// question only.
pub(crate) async fn look_at_queue(
    session: &BrokerSession,
    queue: &str,
) -> Result<Option<QueueUse>, StepError> {
    let failed = |error: &lapin::Error| {
        StepError::of(BrokerFault::of(error), || format!("look at queue {queue}"))
    };
    let channel = session.channel().await.map_err(|error| failed(&error))?;
    let options = QueueDeclareOptions {
        passive: true,
        ..QueueDeclareOptions::default()
    };
    let found = channel
        .queue_declare(queue.into(), options, FieldTable::default())
        .await;
    match found {
        Ok(found) => Ok(Some(QueueUse {
            messages: found.message_count(),
            consumers: found.consumer_count(),
        })),
        Err(error) => match BrokerFault::of(&error) {
            BrokerFault::NotFound(_) => Ok(None),
            _ => Err(failed(&error)),
        },
    }
}

/// Deletes a queue without a reader. Since RabbitMQ 3.2 it is no error if there is no such queue.
pub(crate) async fn delete_queue(
    session: &BrokerSession,
    queue: &QueueName,
) -> Result<(), StepError> {
    let failed = |error: &lapin::Error| {
        StepError::of(BrokerFault::of(error), || format!("delete queue {queue}"))
    };
    let channel = session.channel().await.map_err(|error| failed(&error))?;
    let options = QueueDeleteOptions {
        if_unused: true,
        ..QueueDeleteOptions::default()
    };
    let deleted = channel.queue_delete(queue.as_str().into(), options).await;
    deleted.map(|_| ()).map_err(|error| failed(&error))
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
        .map_err(|error| declaring(queue, &error))
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
