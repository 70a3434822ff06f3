//! Declaring exchanges and queues, and beginning to read.

use std::sync::Arc;

use ebbtide_amqp::{BrokerSession, while_alive};
use lapin::options::{
    BasicConsumeOptions, BasicQosOptions, ExchangeDeclareOptions, QueueBindOptions,
    QueueDeclareOptions,
};
use lapin::types::FieldTable;
use lapin::{Channel, Consumer};

use super::channel_error::ChannelError;
use crate::MessagingError;
use crate::names::{ExchangeDeclaration, ExchangeKind, Queue};

/// Consumers of some queues on one channel.
pub(crate) struct QueueConsumers {
    pub(crate) session: Arc<BrokerSession>,
    pub(crate) channel: Channel,
    /// In the order of the queues.
    pub(crate) consumers: Vec<Consumer>,
}

/// Declares the queues with their exchanges and bindings, and begins to read from them. The order
/// of commands is that of Python's server, plus the prefetch, which Python omits unless an option
/// asks for it.
///
/// `durable_elsewhere` is set when another program has declared the exchange or a queue without
/// durability. They are then used as they are, as in Python (`_declare_fallback_nondurable`).
pub(crate) async fn subscribe(
    session: &Arc<BrokerSession>,
    queues: &[Queue],
    prefetch: u16,
    durable_elsewhere: &mut bool,
) -> Result<QueueConsumers, ChannelError> {
    let queues: Vec<Queue> = if *durable_elsewhere {
        queues.iter().map(Queue::not_durable).collect()
    } else {
        queues.to_vec()
    };
    match while_alive(session, try_subscribe(session, &queues, prefetch)).await {
        Err(ChannelError::Durability(detail))
            if !*durable_elsewhere && queues.iter().any(|queue| queue.durable) =>
        {
            tracing::warn!(
                detail,
                "an exchange or a queue exists that is not durable; it is used as it is"
            );
            *durable_elsewhere = true;
            Err(ChannelError::Again(detail))
        }
        other => other.map_err(|error| error.plain(|| "a queue or its exchange".to_owned())),
    }
}

async fn try_subscribe(
    session: &Arc<BrokerSession>,
    queues: &[Queue],
    prefetch: u16,
) -> Result<QueueConsumers, ChannelError> {
    let channel = session
        .channel()
        .await
        .map_err(|error| ChannelError::during(&error, || "open a channel".to_owned()))?;
    if prefetch > 0 {
        channel
            .basic_qos(prefetch, BasicQosOptions::default())
            .await
            .map_err(|error| ChannelError::during(&error, || "set the prefetch".to_owned()))?;
    }
    for queue in queues {
        declare_queue(&channel, queue).await?;
    }
    let mut consumers = Vec::with_capacity(queues.len());
    for (index, queue) in queues.iter().enumerate() {
        let consumer = channel
            .basic_consume(
                queue.name.as_str().into(),
                (index + 1).to_string().into(),
                BasicConsumeOptions::default(),
                FieldTable::default(),
            )
            .await
            .map_err(|error| {
                ChannelError::during(&error, || format!("read from queue {}", queue.name))
            })?;
        consumers.push(consumer);
    }
    Ok(QueueConsumers {
        session: Arc::clone(session),
        channel,
        consumers,
    })
}

/// Declares a queue, its exchange, and its binding. A failure closes the channel.
pub(crate) async fn declare_queue(channel: &Channel, queue: &Queue) -> Result<(), ChannelError> {
    if let Some((exchange, _)) = &queue.binding {
        declare_exchange(channel, exchange).await?;
    }
    let options = QueueDeclareOptions {
        durable: queue.durable,
        auto_delete: queue.auto_delete,
        ..QueueDeclareOptions::default()
    };
    channel
        .queue_declare(queue.name.as_str().into(), options, queue.table())
        .await
        .map_err(|error| ChannelError::during(&error, || format!("queue {}", queue.name)))?;
    if let Some((exchange, key)) = &queue.binding {
        channel
            .queue_bind(
                queue.name.as_str().into(),
                exchange.name.as_str().into(),
                key.as_str().into(),
                QueueBindOptions::default(),
                FieldTable::default(),
            )
            .await
            .map_err(|error| {
                ChannelError::during(&error, || {
                    format!("bind queue {} to exchange {}", queue.name, exchange.name)
                })
            })?;
    }
    Ok(())
}

/// Declares an exchange. A failure closes the channel.
pub(crate) async fn declare_exchange(
    channel: &Channel,
    exchange: &ExchangeDeclaration,
) -> Result<(), ChannelError> {
    let options = ExchangeDeclareOptions {
        durable: exchange.durable,
        auto_delete: exchange.auto_delete,
        ..ExchangeDeclareOptions::default()
    };
    let kind = match exchange.kind {
        ExchangeKind::Topic => lapin::ExchangeKind::Topic,
        ExchangeKind::Fanout => lapin::ExchangeKind::Fanout,
    };
    channel
        .exchange_declare(
            exchange.name.as_str().into(),
            kind,
            options,
            FieldTable::default(),
        )
        .await
        .map_err(|error| ChannelError::during(&error, || format!("exchange {}", exchange.name)))
}

/// What a subscription that cannot be had for good looks like to its owner.
impl ChannelError {
    pub(crate) fn into_error(self, brokers: &str) -> MessagingError {
        match self {
            Self::Final(error) => error,
            Self::Again(last_problem) | Self::Durability(last_problem) => {
                MessagingError::Unavailable {
                    operation: "read from the queues".to_owned(),
                    brokers: brokers.to_owned(),
                    last_problem,
                }
            }
            Self::NoExchange => MessagingError::Unavailable {
                operation: "read from the queues".to_owned(),
                brokers: brokers.to_owned(),
                last_problem: "an exchange was deleted".to_owned(),
            },
        }
    }
}
