//! Reading from a queue, over reconnects.
//!
//! There is no background task: the subscription repairs itself inside `next`. Each repair makes a
//! new channel, declares the queue, sets the prefetch and starts a consumer; whatever had been
//! handed out on the old channel is redelivered by the broker, so the old acks may be forgotten.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use ebbtide_amqp::{Backoff, BrokerFault, BrokerSession, while_alive};
use ebbtide_runtime::clock;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use lapin::message::Delivery as LapinDelivery;
use lapin::options::{BasicAckOptions, BasicConsumeOptions, BasicNackOptions, BasicQosOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Acker, Channel, Consumer};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::Shared;
use super::publisher::{
    BYTES_HEADER, MAX_TRACE_BYTES, ORIGIN_HEADER, REASON_HEADER, TRACE_HEADER, USER_HEADER,
};
use super::topology::{StepError, declare_queue};
use crate::backoff::ExponentialBackoff;
use crate::bus::DeliverySource;
use crate::delivery::{ReceivedMessage, Settle};
use crate::{BusError, DeadLetterNote, Delivery, OutgoingMessage, QueueName, SubscriptionState};

/// The priority of a consumer (RabbitMQ, classic and quorum queues).
const RANK_ARGUMENT: &str = "x-priority";

/// A subscription on an AMQP queue.
pub(crate) struct AmqpSource {
    shared: Arc<Shared>,
    queue: QueueName,
    prefetch: u16,
    rank: i64,
    /// Told how the claim on the queue stands, if this wants to be its only reader.
    alone: Option<Arc<watch::Sender<SubscriptionState>>>,
    attached: Option<RunningConsumer>,
    /// A repair under way. It is kept while no caller waits for it, because half a repair may have
    /// left a consumer on the connection that takes messages and hands them to no reader. (The
    /// mutex makes the field `Sync`; it is never locked.)
    attaching: Mutex<Option<ConsumerFuture>>,
    /// Delays between repairs that fail while the connection itself is alive.
    backoff: ExponentialBackoff,
}

type ConsumerFuture = BoxFuture<'static, Result<RunningConsumer, BusError>>;

/// A running consumer on its own channel.
struct RunningConsumer {
    session: Arc<BrokerSession>,
    channel: Channel,
    consumer: Consumer,
}

/// What it takes to make a consumer.
struct Attacher {
    shared: Arc<Shared>,
    queue: QueueName,
    prefetch: u16,
    rank: i64,
    alone: Option<Arc<watch::Sender<SubscriptionState>>>,
    backoff: ExponentialBackoff,
}

impl Attacher {
    async fn attach(mut self) -> Result<RunningConsumer, BusError> {
        let mut failed_on = 0;
        // Since when the queue is seen in another reader's hands without a break.
        let mut taken: Option<Instant> = None;
        let patience = self.shared.config.dead_after();
        loop {
            let link = self.shared.consume_link();
            let session = link.session().await.ok_or(BusError::Closed)?;
            if session.id == failed_on {
                // The connection looks alive although the last attempt failed, so wait before the
                // next one.
                tokio::time::sleep(self.backoff.next_delay()).await;
            }
            failed_on = session.id;
            let limit = self.shared.config.operation_timeout;
            let step = while_alive(&session, self.attach_once(&session));
            match tokio::time::timeout(limit, step).await {
                Ok(Ok(attached)) => {
                    self.show(SubscriptionState::Held);
                    tracing::info!(queue = %self.queue, broker = %session.broker, "reading from queue");
                    return Ok(attached);
                }
                Ok(Err(StepError::Final(BusError::InUse { .. }))) => {
                    let now = clock::timer();
                    let since = *taken.get_or_insert(now);
                    self.show(SubscriptionState::Taken);
                    let waited = now.duration_since(since);
                    if waited >= patience {
                        return Err(in_use(&self.queue, waited));
                    }
                    if since == now {
                        tracing::warn!(
                            queue = %self.queue, patience_seconds = patience.as_secs(),
                            "another process reads from the queue; waiting in case its connection has died"
                        );
                    }
                }
                Ok(Err(StepError::Final(error))) => return Err(error),
                Ok(Err(StepError::Again(problem))) => {
                    taken = None;
                    self.show(SubscriptionState::Waiting);
                    tracing::warn!(queue = %self.queue, error = %problem, "cannot read from queue yet");
                }
                Err(_) => {
                    taken = None;
                    self.show(SubscriptionState::Waiting);
                    tracing::warn!(queue = %self.queue, "the broker does not answer; trying again");
                }
            }
        }
    }

    fn show(&self, hold: SubscriptionState) {
        if let Some(shown) = &self.alone {
            shown.send_replace(hold);
        }
    }

    async fn attach_once(
        &self,
        session: &Arc<BrokerSession>,
    ) -> Result<RunningConsumer, StepError> {
        let describe = || format!("read from queue {}", self.queue);
        let again = |error: lapin::Error| StepError::during(&error, describe);
        declare_queue(session, &self.queue, &self.shared.config).await?;
        let channel = session.channel().await.map_err(again)?;
        channel
            .basic_qos(self.prefetch, BasicQosOptions::default())
            .await
            .map_err(again)?;
        let mut arguments = FieldTable::default();
        if self.rank != 0 {
            arguments.insert(RANK_ARGUMENT.into(), AMQPValue::LongLongInt(self.rank));
        }
        let consumer = channel
            .basic_consume(
                self.queue.as_str().into(),
                // The broker makes up a unique tag.
                "".into(),
                BasicConsumeOptions {
                    exclusive: self.alone.is_some(),
                    ..BasicConsumeOptions::default()
                },
                arguments,
            )
            .await
            .map_err(|error| match BrokerFault::of(&error) {
                // RabbitMQ's words for both: another client reads, and another client reads alone.
                BrokerFault::AccessRefused(words) if words.contains("exclusive") => {
                    StepError::Final(in_use(&self.queue, Duration::ZERO))
                }
                _ => again(error),
            })?;
        Ok(RunningConsumer {
            session: Arc::clone(session),
            channel,
            consumer,
        })
    }
}

impl AmqpSource {
    pub(crate) fn new(
        shared: Arc<Shared>,
        queue: QueueName,
        prefetch: u16,
        rank: i64,
        alone: Option<Arc<watch::Sender<SubscriptionState>>>,
    ) -> Self {
        let backoff = ExponentialBackoff::new(shared.config.reconnect, shared.config.jitter_seed);
        Self {
            shared,
            queue,
            prefetch,
            rank,
            alone,
            attached: None,
            attaching: Mutex::new(None),
            backoff,
        }
    }

    /// Tries until the consumer runs. Only what no waiting can heal comes back as an error. Safe to
    /// cancel: the next call goes on.
    pub(crate) async fn attach(&mut self) -> Result<(), BusError> {
        let config = &self.shared.config;
        let backoff = ExponentialBackoff::new(config.reconnect, config.jitter_seed);
        let under_way = self.attaching.get_mut();
        let under_way = under_way.unwrap_or_else(PoisonError::into_inner);
        let attaching = under_way.get_or_insert_with(|| {
            let attacher = Attacher {
                shared: Arc::clone(&self.shared),
                queue: self.queue.clone(),
                prefetch: self.prefetch,
                rank: self.rank,
                alone: self.alone.clone(),
                backoff,
            };
            attacher.attach().boxed()
        });
        let attached = attaching.await;
        *under_way = None;
        self.attached = Some(attached?);
        Ok(())
    }

    /// Like `attach`, for a subscription that has been handed to its reader: no error may end it.
    async fn reattach(&mut self) {
        while let Err(error) = self.attach().await {
            if error == BusError::Closed {
                // `next` sees the same and returns.
                return std::future::pending().await;
            }
            tracing::error!(
                queue = %self.queue, code = error.code(), %error,
                "cannot read from the queue; trying again, but an operator has to look at this"
            );
            tokio::time::sleep(self.backoff.next_delay()).await;
        }
    }

    async fn next_delivery(&mut self) -> Delivery {
        loop {
            let Some(attached) = self.attached.as_mut() else {
                self.lose_hold();
                self.reattach().await;
                continue;
            };
            let item = tokio::select! {
                biased;
                item = attached.consumer.next() => item,
                () = attached.session.gone().cancelled() => {
                    tracing::debug!(queue = %self.queue, "reading was interrupted with its connection");
                    self.attached = None;
                    continue;
                }
            };
            match item {
                // lapin hands out what it had in its buffer when the channel died. Its ack could
                // not be sent any more and the broker redelivers it anyway, so it is left out.
                Some(Ok(delivery)) if delivery.acker.usable() => {
                    self.backoff.reset();
                    return deliver(&self.shared, &self.queue, attached, delivery);
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => {
                    tracing::warn!(queue = %self.queue, %error, "reading was interrupted");
                    self.detach().await;
                }
                None => {
                    tracing::warn!(
                        queue = %self.queue,
                        "the broker ended our subscription (was the queue deleted?); subscribing again"
                    );
                    self.detach().await;
                }
            }
        }
    }

    /// Until the queue is subscribed to again, another client may have it. (Not while it is known
    /// that one has.)
    fn lose_hold(&self) {
        if let Some(hold) = &self.alone {
            hold.send_if_modified(|hold| {
                let held = *hold == SubscriptionState::Held;
                if held {
                    *hold = SubscriptionState::Waiting;
                }
                held
            });
        }
    }

    /// Forgets a consumer that has ended, and pauses if the connection it ran on is still the
    /// current one.
    async fn detach(&mut self) {
        let Some(attached) = self.attached.take() else {
            return;
        };
        let connection_lives = attached.session.is_alive();
        drop(attached);
        if connection_lives {
            tokio::time::sleep(self.backoff.next_delay()).await;
        }
    }
}

#[async_trait]
impl DeliverySource for AmqpSource {
    async fn next(&mut self) -> Option<Delivery> {
        let closing = self.shared.closing.clone();
        // Everything inside keeps its state in `self`, so that cancelling it loses nothing.
        tokio::select! {
            biased;
            () = closing.cancelled() => {
                self.attached = None;
                None
            }
            delivery = self.next_delivery() => Some(delivery),
        }
    }
}

fn in_use(queue: &QueueName, waited: Duration) -> BusError {
    BusError::InUse {
        queue: queue.as_str().to_owned(),
        waited_seconds: waited.as_secs(),
    }
}

fn deliver(
    shared: &Arc<Shared>,
    queue: &QueueName,
    attached: &RunningConsumer,
    delivery: LapinDelivery,
) -> Delivery {
    let properties = &delivery.properties;
    let received = ReceivedMessage {
        message_id: properties
            .message_id()
            .as_ref()
            .and_then(|id| Uuid::parse_str(id.as_str()).ok()),
        content_type: properties
            .content_type()
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        dead_letter: properties.headers().as_ref().and_then(dead_letter_note),
        traceparent: properties.headers().as_ref().and_then(|headers| {
            text(headers, TRACE_HEADER).filter(|context| context.len() <= MAX_TRACE_BYTES)
        }),
        user: properties.user_id().as_ref().map(ToString::to_string),
        redelivered: delivery.redelivered,
        body: delivery.data,
    };
    let settle = AmqpSettle {
        shared: Arc::clone(shared),
        dead_letter_queue: queue.dead_letter(),
        acker: delivery.acker,
        gone: attached.session.gone().clone(),
        _channel: attached.channel.clone(),
    };
    Delivery::new(queue.clone(), received, Box::new(settle))
}

fn text(headers: &FieldTable, name: &str) -> Option<String> {
    match headers.inner().get(name)? {
        AMQPValue::LongString(value) => Some(value.to_string()),
        AMQPValue::ShortString(value) => Some(value.to_string()),
        _ => None,
    }
}

/// Our own note, or what RabbitMQ writes when a quorum queue gives a message up.
fn dead_letter_note(headers: &FieldTable) -> Option<DeadLetterNote> {
    let text = |name: &str| text(headers, name);
    if let Some(reason) = text(REASON_HEADER) {
        return Some(DeadLetterNote {
            reason,
            queue: text(ORIGIN_HEADER).unwrap_or_default(),
            user: text(USER_HEADER),
            cut_from_bytes: text(BYTES_HEADER).and_then(|bytes| bytes.parse().ok()),
        });
    }
    Some(DeadLetterNote {
        queue: text("x-first-death-queue")?,
        reason: format!(
            "the broker gave it up: {}",
            text("x-first-death-reason").unwrap_or_default()
        ),
        user: None,
        cut_from_bytes: None,
    })
}

struct AmqpSettle {
    shared: Arc<Shared>,
    dead_letter_queue: QueueName,
    acker: Acker,
    /// Set when the connection on which the message came is lost.
    gone: CancellationToken,
    /// Keeps the channel open while a delivery is out, even if its subscription is gone. Closing it
    /// would give the message to another reader while this one still works on it.
    _channel: Channel,
}

#[async_trait]
impl Settle for AmqpSettle {
    async fn ack(&mut self) {
        // `Ok(false)` and `Err` both mean that the channel is dead: the message comes again.
        tokio::select! {
            biased;
            sent = self.acker.ack(BasicAckOptions::default()) => match sent {
                Ok(true) => {}
                Ok(false) => tracing::debug!("an ack came too late: its channel is gone"),
                Err(error) => tracing::debug!(%error, "an ack was lost with its channel"),
            },
            () = self.gone.cancelled() => tracing::debug!("an ack was lost with its connection"),
        }
    }

    fn requeue(&mut self) {
        let requeue = BasicNackOptions {
            requeue: true,
            ..BasicNackOptions::default()
        };
        // lapin queues the frame in the first poll; only the wait until it is written is cut short.
        let _ = self.acker.nack(requeue).now_or_never();
    }

    async fn publish_dead_letter(
        &self,
        message: &OutgoingMessage,
        note: &DeadLetterNote,
    ) -> Result<(), BusError> {
        self.shared
            .publish_dead_letter(&self.dead_letter_queue, message, note)
            .await
    }
}
