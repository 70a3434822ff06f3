//! A channel in confirm mode, for one publish at a time.

use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::{BasicProperties, Channel, Confirmation};

use crate::{BrokerFault, BrokerSession};

/// The fate of a message that the broker has confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublishOutcome {
    /// The message is in a queue, or it was not mandatory.
    Routed,
    /// It was mandatory, and there was no queue. Nothing was stored.
    Unroutable,
}

/// A channel in confirm mode. It closes when it is dropped.
#[derive(Debug)]
pub struct ConfirmChannel {
    session: u64,
    channel: Channel,
}

impl ConfirmChannel {
    /// Opens a channel on a session.
    ///
    /// # Errors
    ///
    /// The broker's or lapin's.
    pub async fn open(session: &BrokerSession) -> Result<Self, BrokerFault> {
        let fault = |error: lapin::Error| BrokerFault::of(&error);
        let channel = session.channel().await.map_err(fault)?;
        let options = ConfirmSelectOptions::default();
        channel.confirm_select(options).await.map_err(fault)?;
        Ok(Self {
            session: session.id,
            channel,
        })
    }

    /// The id of the session.
    #[must_use]
    pub fn session(&self) -> u64 {
        self.session
    }

    /// The channel itself, for declarations before the publish. A failed one closes it.
    #[must_use]
    pub fn channel(&self) -> &Channel {
        &self.channel
    }

    /// False after a failure on the channel or its connection.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.channel.status().connected()
    }

    /// Publishes a message and waits for the broker's confirm.
    ///
    /// # Errors
    ///
    /// The broker's or lapin's; the channel cannot be used any more.
    pub async fn publish(
        &self,
        exchange: &str,
        routing_key: &str,
        mandatory: bool,
        body: &[u8],
        properties: BasicProperties,
    ) -> Result<PublishOutcome, BrokerFault> {
        let fault = |error: lapin::Error| BrokerFault::of(&error);
        let options = BasicPublishOptions {
            mandatory,
            ..BasicPublishOptions::default()
        };
        let (exchange, key) = (exchange.into(), routing_key.into());
        let sent = self
            .channel
            .basic_publish(exchange, key, options, body, properties);
        let confirm = sent.await.map_err(fault)?;
        match confirm.await.map_err(fault)? {
            Confirmation::Ack(None) => Ok(PublishOutcome::Routed),
            Confirmation::Ack(Some(_)) | Confirmation::Nack(Some(_)) => {
                Ok(PublishOutcome::Unroutable)
            }
            Confirmation::Nack(None) => Err(BrokerFault::Transient(
                "the broker could not store the message (basic.nack)".to_owned(),
            )),
            // Confirm mode was switched on, so this cannot be; the channel is not to be trusted.
            Confirmation::NotRequested => Err(BrokerFault::Transient(
                "a channel was not in confirm mode".to_owned(),
            )),
        }
    }
}
