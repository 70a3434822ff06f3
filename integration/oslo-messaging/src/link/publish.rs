//! Messages of oslo.messaging, their confirmed publishing, and the declarations that they need.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ebbtide_amqp::{BrokerFault, ConfirmChannel, PublishOutcome, StepError};
use lapin::BasicProperties;
use lapin::options::QueueDeclareOptions;
use lapin::types::FieldTable;

use super::channel_error::ChannelError;
use super::connect::Link;
use super::declare::{declare_exchange, declare_queue};
use crate::MessagingError;
use crate::names::{ExchangeDeclaration, Queue};

/// AMQP's code for "write it to disk" (basic.delivery-mode); kombu's default.
const PERSISTENT: u8 = 2;

/// How long [`Publisher::consumers`] waits for an answer: nothing hangs on it.
const ASK_LIMIT: Duration = Duration::from_secs(5);

/// Channels on one connection; RabbitMQ's default limit is 2047.
const MAX_IN_FLIGHT: u16 = 256;

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

/// Publishes messages, and declares what they need.
#[derive(Debug)]
pub(crate) struct Publisher {
    channels: ebbtide_amqp::Publisher<MessagingError>,
    link: Arc<Link>,
    known: Mutex<Declarations>,
}

/// What has been declared on which connection.
#[derive(Debug, Default)]
struct Declarations {
    session: u64,
    declared: HashSet<String>,
    /// Exchanges that another program has declared without durability; kept across connections.
    not_durable: HashSet<String>,
}

impl Publisher {
    pub(crate) fn new(link: Arc<Link>) -> Self {
        Self {
            channels: ebbtide_amqp::Publisher::new(Arc::clone(&link), MAX_IN_FLIGHT),
            link,
            known: Mutex::new(Declarations::default()),
        }
    }

    /// Publishes until confirmed, over any number of connections. The deadline is the caller's, who
    /// drops this future.
    pub(crate) async fn publish(
        &self,
        message: &Publication,
    ) -> Result<PublishOutcome, MessagingError> {
        let publication = DeclaredMessage {
            publisher: self,
            message,
        };
        self.channels.publish(&publication).await
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

    async fn attempt(
        &self,
        channel: &ConfirmChannel,
        message: &Publication,
    ) -> Result<PublishOutcome, ChannelError> {
        self.declare(channel, message).await?;
        let (exchange, key) = (message.exchange_name(), message.routing_key.as_str());
        let describe = || format!("publish to exchange {exchange:?} with key {key:?}");
        let properties = properties(message);
        channel
            .publish(exchange, key, message.mandatory, &message.body, properties)
            .await
            .map_err(|fault| ChannelError::of(fault, describe))
    }

    /// Declares what the message needs, once on each connection.
    async fn declare(
        &self,
        channel: &ConfirmChannel,
        message: &Publication,
    ) -> Result<(), ChannelError> {
        let Some(exchange) = &message.exchange else {
            return Ok(());
        };
        let key = match &message.queue {
            Some(queue) => format!("{} {}", exchange.name, queue.name),
            None => exchange.name.clone(),
        };
        let durable = {
            let mut known = self.known();
            if known.session != channel.session() {
                known.session = channel.session();
                known.declared.clear();
            }
            if known.declared.contains(&key) {
                return Ok(());
            }
            exchange.durable && !known.not_durable.contains(&exchange.name)
        };
        match &message.queue {
            Some(queue) if durable => declare_queue(channel.channel(), queue).await?,
            Some(queue) => declare_queue(channel.channel(), &queue.not_durable()).await?,
            None => {
                let exchange = ExchangeDeclaration {
                    durable,
                    ..exchange.clone()
                };
                declare_exchange(channel.channel(), &exchange).await?;
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

    fn known(&self) -> std::sync::MutexGuard<'_, Declarations> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A message with the exchange and the queue that it needs.
struct DeclaredMessage<'a> {
    publisher: &'a Publisher,
    message: &'a Publication,
}

impl ebbtide_amqp::Publication<MessagingError> for DeclaredMessage<'_> {
    type Outcome = PublishOutcome;

    async fn publish_on(
        &self,
        channel: &ConfirmChannel,
    ) -> Result<PublishOutcome, StepError<MessagingError>> {
        let attempt = self.publisher.attempt(channel, self.message).await;
        attempt.map_err(|error| match error {
            ChannelError::Final(error) => StepError::Final(error),
            ChannelError::Again(problem) => StepError::Again(problem),
            ChannelError::NoExchange => {
                // An exchange that deletes itself with its last queue was deleted: declare it
                // again.
                self.publisher.known().declared.clear();
                StepError::Again("the exchange does not exist".to_owned())
            }
            ChannelError::Durability(detail) => {
                match self.publisher.note_not_durable(self.message, &detail) {
                    Ok(()) => StepError::Again(detail),
                    Err(error) => StepError::Final(error),
                }
            }
        })
    }

    fn failed(&self, problem: String) {
        tracing::debug!(
            exchange = self.message.exchange_name(), routing_key = self.message.routing_key, %problem,
            "publishing again"
        );
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
