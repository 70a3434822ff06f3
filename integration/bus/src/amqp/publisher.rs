//! Confirmed publishing, many at a time.
//!
//! Every publish in flight has a channel to itself, taken from a pool and given back after the
//! confirm. The confirms still overlap: all channels share one connection, and the broker syncs its
//! disk once for all of them. Sharing one channel would be wrong with lapin 4.12, in two ways:
//!
//! - lapin numbers a publish before it queues its frames, in two steps. Two tasks on one channel
//!   can be numbered in one order and written in the other; each then gets the other's confirm.
//! - The broker returns an unroutable message before it confirms it. lapin hands the returned
//!   message to the next confirm that completes on the channel, which (after a `multiple` ack) is
//!   any of those pending. An unroutable publish could so be reported as stored.
//!
//! With one publish on a channel both are impossible by construction. It also isolates failures: a
//! message that the broker refuses closes its own channel and disturbs no other.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Confirmation};
use tokio::sync::Semaphore;

use ebbtide_amqp::{BrokerSession, while_alive};

use super::config::AmqpConfig;
use super::identity::{self, BusIdentity};
use super::link::Link;
use super::topology::StepError;
use crate::{BusError, DeadLetterNote, Outgoing, QueueName};

/// Header with [`DeadLetterNote::reason`].
pub(crate) const REASON_HEADER: &str = "ebbtide-dead-letter-reason";
/// Header with [`DeadLetterNote::queue`].
pub(crate) const ORIGIN_HEADER: &str = "ebbtide-dead-letter-queue";
/// Header with [`DeadLetterNote::user`].
pub(crate) const USER_HEADER: &str = "ebbtide-dead-letter-user";
/// Header with [`DeadLetterNote::cut_from_bytes`], as text.
pub(crate) const BYTES_HEADER: &str = "ebbtide-dead-letter-bytes";

/// AMQP's code for "write it to disk" (basic.delivery-mode).
const PERSISTENT: u8 = 2;

/// Pause before a publish is repeated on a connection that is alive, for example after a nack.
const PAUSE: Duration = Duration::from_millis(100);

/// A pool of channels in confirm mode.
#[derive(Debug)]
pub(crate) struct Publisher {
    link: Arc<Link>,
    permits: Semaphore,
    config: Arc<AmqpConfig>,
    capacity: u16,
    idle: Mutex<Vec<Lane>>,
}

/// A channel with nothing in flight.
#[derive(Debug)]
struct Lane {
    session: u64,
    channel: Channel,
}

impl Publisher {
    pub(crate) fn new(link: Arc<Link>, config: Arc<AmqpConfig>) -> Self {
        let max_in_flight = config.max_in_flight;
        Self {
            config,
            link,
            permits: Semaphore::new(usize::from(max_in_flight)),
            capacity: max_in_flight,
            idle: Mutex::new(Vec::new()),
        }
    }

    /// Publishes until confirmed, over any number of connections. The deadline is the caller's;
    /// when it drops this future, `last_problem` holds what went wrong last.
    pub(crate) async fn publish(
        &self,
        queue: &QueueName,
        message: &Outgoing,
        note: Option<&DeadLetterNote>,
        last_problem: &Mutex<String>,
    ) -> Result<(), BusError> {
        let _permit = self.permits.acquire().await.map_err(|_| BusError::Closed)?;
        let mut session = self.link.session().await.ok_or(BusError::Closed)?;
        loop {
            let attempt = self.attempt(&session, queue, message, note);
            match while_alive(&session, attempt).await {
                Ok(()) => return Ok(()),
                Err(StepError::Final(error)) => return Err(error),
                Err(StepError::Again(problem)) => {
                    tracing::debug!(
                        message_id = %message.message_id, %queue, %problem, "publishing again"
                    );
                    *last_problem.lock().unwrap_or_else(PoisonError::into_inner) = problem;
                }
            }
            session = self
                .another_session(session)
                .await
                .ok_or(BusError::Closed)?;
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
        queue: &QueueName,
        message: &Outgoing,
        note: Option<&DeadLetterNote>,
    ) -> Result<(), StepError> {
        // If this future is dropped before the confirm, the lane is dropped with it and its channel
        // closes: a lane with something in flight never comes back into the pool.
        let lane = self.lane(session).await?;
        let mandatory = BasicPublishOptions {
            mandatory: true,
            ..BasicPublishOptions::default()
        };
        let describe = || format!("publish to {queue}");
        let (identity, user) = (self.config.identity, self.config.user());
        let (exchange, key) = identity::route(identity, user, queue);
        let user = (identity == BusIdentity::Agent).then_some(user);
        let confirm = lane
            .channel
            .basic_publish(
                exchange.as_str().into(),
                key.as_str().into(),
                mandatory,
                &message.body,
                properties(message, note, user),
            )
            .await
            .map_err(|error| StepError::during(&error, describe))?;
        let confirmation = confirm
            .await
            .map_err(|error| StepError::during(&error, describe))?;
        match confirmation {
            Confirmation::Ack(None) => {
                self.give_back(lane);
                Ok(())
            }
            Confirmation::Ack(Some(_)) | Confirmation::Nack(Some(_)) => {
                self.give_back(lane);
                if identity::is_others(identity, queue) {
                    return Err(StepError::Again(format!(
                        "nothing is bound to the exchange {exchange} yet; has the scheduler run with bus.agent_identity = \"user-id\"?"
                    )));
                }
                Err(StepError::Final(BusError::Unroutable {
                    queue: queue.as_str().to_owned(),
                    message_id: message.message_id,
                }))
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
        // Drops the lanes of dead connections at the first publish on the new one.
        idle.retain(|lane| lane.session == session && lane.channel.status().connected());
        idle.pop()
    }

    fn give_back(&self, lane: Lane) {
        self.idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(lane);
    }

    /// Lets publishes in flight finish, for at most `grace`, and refuses all others from then on.
    pub(crate) async fn drain(&self, grace: Duration) {
        let all = self.permits.acquire_many(u32::from(self.capacity));
        if tokio::time::timeout(grace, all).await.is_err() {
            tracing::warn!("closing the bus with publishes in flight; their callers are told");
        }
        self.permits.close();
        self.idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }
}

fn properties(
    message: &Outgoing,
    note: Option<&DeadLetterNote>,
    user: Option<&str>,
) -> BasicProperties {
    let properties = BasicProperties::default()
        .with_delivery_mode(PERSISTENT)
        .with_message_id(message.message_id.to_string().into())
        // At most 255 bytes: `Outgoing::validate` has seen to it.
        .with_content_type(message.content_type.as_str().into());
    let properties = match user {
        Some(user) => properties.with_user_id(user.into()),
        None => properties,
    };
    match note {
        None => properties,
        Some(note) => {
            let mut headers = FieldTable::default();
            let bytes = note.cut_from_bytes.map(|bytes| bytes.to_string());
            for (name, value) in [
                (REASON_HEADER, Some(&note.reason)),
                (ORIGIN_HEADER, Some(&note.queue)),
                (USER_HEADER, note.user.as_ref()),
                (BYTES_HEADER, bytes.as_ref()),
            ] {
                if let Some(value) = value {
                    headers.insert(name.into(), AMQPValue::LongString(value.as_str().into()));
                }
            }
            properties.with_headers(headers)
        }
    }
}
