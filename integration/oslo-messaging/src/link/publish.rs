//! Confirmed publishing, many at a time.
//!
//! Every publish in flight has a channel to itself, taken from a pool and given back after the
//! confirm. The confirms still overlap: all channels share one connection. Sharing one channel
//! would be wrong with lapin 4.12 in two ways: it numbers a publish before it queues its frames, so
//! two tasks can get each other's confirm; and it hands a returned message to the next confirm that
//! completes, which may be another's. With one publish on a channel both are impossible.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lapin::options::{BasicPublishOptions, ConfirmSelectOptions, QueueDeclareOptions};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Confirmation};
use tokio::sync::Semaphore;

use ebbtide_amqp::{BrokerFault, BrokerSession, while_alive};

use super::connect::Link;
use super::declare::{declare_exchange, declare_queue};
use super::step::StepError;
use crate::MessagingError;
use crate::names::{ExchangeDeclaration, Queue};

/// AMQP's code for "write it to disk" (basic.delivery-mode); kombu's default.
const PERSISTENT: u8 = 2;

/// Pause before a publish is repeated on a connection that is alive, for example after a nack.
const PAUSE: Duration = Duration::from_millis(100);

/// How long [`Publisher::consumers`] waits for an answer: nothing hangs on it.
const ASK_LIMIT: Duration = Duration::from_secs(5);

/// Channels on one connection; RabbitMQ's default limit is 2047.
const MAX_IN_FLIGHT: usize = 256;

/// A message to be published.
#[derive(Debug, Clone)]
pub(crate) struct Publication {
    /// `None` for the default exchange, which routes by queue name.
    pub(crate) exchange: Option<ExchangeDeclaration>,
    /// A queue that is made if it is not there, so that a notification waits for its first reader.
    pub(crate) queue: Option<Queue>,
    pub(crate) routing_key: String,
    pub(crate) mandatory: bool,
    pub(crate) expiration: Option<Duration>,
    pub(crate) body: Vec<u8>,
}

impl Publication {
    pub(crate) fn exchange_name(&self) -> &str {
        self.exchange.as_ref().map_or("", |exchange| &exchange.name)
    }
}

/// What became of a message that the broker has confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Published {
    /// The message is in a queue, or it was not mandatory.
    Routed,
    /// It was mandatory, and there was no queue.
    Unroutable,
}

/// A pool of channels in confirm mode.
#[derive(Debug)]
pub(crate) struct Publisher {
    link: Arc<Link>,
    permits: Semaphore,
    idle: Mutex<Vec<Lane>>,
    known: Mutex<Known>,
}

/// What has been declared on which connection.
#[derive(Debug, Default)]
struct Known {
    session: u64,
    declared: HashSet<String>,
    /// Exchanges that another program has declared without durability; kept across connections.
    not_durable: HashSet<String>,
}

/// A channel with nothing in flight.
#[derive(Debug)]
struct Lane {
    session: u64,
    channel: Channel,
}

impl Publisher {
    pub(crate) fn new(link: Arc<Link>) -> Self {
        Self {
            link,
            permits: Semaphore::new(MAX_IN_FLIGHT),
            idle: Mutex::new(Vec::new()),
            known: Mutex::new(Known::default()),
        }
    }

    /// Publishes until confirmed, over any number of connections. The deadline is the caller's, who
    /// drops this future.
    pub(crate) async fn publish(&self, message: &Publication) -> Result<Published, MessagingError> {
        let _permit = self
            .permits
            .acquire()
            .await
            .map_err(|_| MessagingError::Closed)?;
        let mut session = self.link.session().await.ok_or(MessagingError::Closed)?;
        loop {
            let problem = match while_alive(&session, self.attempt(&session, message)).await {
                Ok(published) => return Ok(published),
                Err(StepError::Final(error)) => return Err(error),
                Err(StepError::Again(problem)) => problem,
                Err(StepError::NoExchange) => {
                    // An exchange that deletes itself with its last queue was deleted: declare it
                    // again.
                    self.known().declared.clear();
                    "the exchange does not exist".to_owned()
                }
                Err(StepError::Durability(detail)) => {
                    self.note_not_durable(message, &detail)?;
                    detail
                }
            };
            tracing::debug!(
                exchange = message.exchange_name(), routing_key = message.routing_key, %problem, "publishing again"
            );
            session = self
                .another_session(session)
                .await
                .ok_or(MessagingError::Closed)?;
        }
    }

    /// Number of consumers of a queue: `None` if the broker does not answer in time, `Some(None)`
    /// if the queue does not exist.
    pub(crate) async fn consumers(&self, queue: &str) -> Option<Option<u32>> {
        let session = self.link.current()?;
        let ask = async {
            let channel = session.channel().await.ok()?;
            let options = QueueDeclareOptions {
                passive: true,
                ..QueueDeclareOptions::default()
            };
            match channel
                .queue_declare(queue.into(), options, FieldTable::default())
                .await
            {
                Ok(found) => Some(Some(found.consumer_count())),
                Err(error) => match BrokerFault::of(&error) {
                    BrokerFault::NotFound(_) => Some(None),
                    _ => None,
                },
            }
        };
        tokio::select! {
            answer = tokio::time::timeout(ASK_LIMIT, ask) => answer.ok().flatten(),
            () = session.gone().cancelled() => None,
        }
    }

    /// The same session after a pause if it is alive, else the next one.
    async fn another_session(&self, session: Arc<BrokerSession>) -> Option<Arc<BrokerSession>> {
        if session.is_alive() {
            tokio::time::sleep(PAUSE).await;
        }
        if session.is_alive() {
            Some(session)
        } else {
            self.link.session_after(session.id).await
        }
    }

    async fn attempt(
        &self,
        session: &BrokerSession,
        message: &Publication,
    ) -> Result<Published, StepError> {
        // If this future is dropped before the confirm, the lane is dropped with it and its channel
        // closes: a lane with something in flight never comes back into the pool.
        let lane = self.lane(session).await?;
        self.declare(&lane, message).await?;
        let options = BasicPublishOptions {
            mandatory: message.mandatory,
            ..BasicPublishOptions::default()
        };
        let describe = || {
            format!(
                "publish to exchange {:?} with key {:?}",
                message.exchange_name(),
                message.routing_key
            )
        };
        let confirm = lane
            .channel
            .basic_publish(
                message.exchange_name().into(),
                message.routing_key.as_str().into(),
                options,
                &message.body,
                properties(message),
            )
            .await
            .map_err(|error| StepError::during(&error, describe))?;
        match confirm
            .await
            .map_err(|error| StepError::during(&error, describe))?
        {
            Confirmation::Ack(None) => {
                self.give_back(lane);
                Ok(Published::Routed)
            }
            Confirmation::Ack(Some(_)) | Confirmation::Nack(Some(_)) => {
                self.give_back(lane);
                Ok(Published::Unroutable)
            }
            Confirmation::Nack(None) => {
                self.give_back(lane);
                Err(StepError::Again(
                    "the broker could not store the message (basic.nack)".to_owned(),
                ))
            }
            // Confirm mode was switched on, so this cannot be; the channel is not to be trusted.
            Confirmation::NotRequested => Err(StepError::Again(
                "a channel was not in confirm mode".to_owned(),
            )),
        }
    }

    /// Declares what the message needs, once on each connection.
    async fn declare(&self, lane: &Lane, message: &Publication) -> Result<(), StepError> {
        let Some(exchange) = &message.exchange else {
            return Ok(());
        };
        let key = match &message.queue {
            Some(queue) => format!("{} {}", exchange.name, queue.name),
            None => exchange.name.clone(),
        };
        let durable = {
            let mut known = self.known();
            if known.session != lane.session {
                known.session = lane.session;
                known.declared.clear();
            }
            if known.declared.contains(&key) {
                return Ok(());
            }
            exchange.durable && !known.not_durable.contains(&exchange.name)
        };
        match &message.queue {
            Some(queue) if durable => declare_queue(&lane.channel, queue).await?,
            Some(queue) => declare_queue(&lane.channel, &queue.not_durable()).await?,
            None => {
                let exchange = ExchangeDeclaration {
                    durable,
                    ..exchange.clone()
                };
                declare_exchange(&lane.channel, &exchange).await?;
            }
        }
        self.known().declared.insert(key);
        Ok(())
    }

    /// Takes an exchange or queue as it is if we wanted it durable and it is not. The other way
    /// round is an error.
    fn note_not_durable(&self, message: &Publication, detail: &str) -> Result<(), MessagingError> {
        let mismatch = || MessagingError::Mismatch {
            name: format!(
                "exchange {:?} or a queue behind it",
                message.exchange_name()
            ),
            detail: detail.to_owned(),
        };
        match &message.exchange {
            Some(exchange) if exchange.durable => {
                if self.known().not_durable.insert(exchange.name.clone()) {
                    tracing::warn!(exchange = %exchange.name, detail, "the exchange is not durable; it is used as it is");
                    Ok(())
                } else {
                    Err(mismatch())
                }
            }
            _ => Err(mismatch()),
        }
    }

    async fn lane(&self, session: &BrokerSession) -> Result<Lane, StepError> {
        if let Some(lane) = self.idle_lane(session.id) {
            return Ok(lane);
        }
        let describe = || "open a channel for publishing".to_owned();
        let channel = session
            .channel()
            .await
            .map_err(|error| StepError::during(&error, describe))?;
        channel
            .confirm_select(ConfirmSelectOptions::default())
            .await
            .map_err(|error| StepError::during(&error, describe))?;
        Ok(Lane {
            session: session.id,
            channel,
        })
    }

    fn idle_lane(&self, session: u64) -> Option<Lane> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        // Lanes of dead connections are let go here, at the first publish on the new one.
        idle.retain(|lane| lane.session == session && lane.channel.status().connected());
        idle.pop()
    }

    fn give_back(&self, lane: Lane) {
        self.idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(lane);
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What kombu sends with every message.
fn properties(message: &Publication) -> BasicProperties {
    let properties = BasicProperties::default()
        .with_content_type("application/json".into())
        .with_content_encoding("utf-8".into())
        .with_headers(FieldTable::default())
        .with_delivery_mode(PERSISTENT)
        .with_priority(0);
    match message.expiration {
        Some(expiration) => properties.with_expiration(expiration.as_millis().to_string().into()),
        None => properties,
    }
}
