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

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::{BrokerSession, ClientError, ConfirmChannel, Link, StepError, while_alive};

/// Pause before a publish is repeated on a connection that is alive, for example after a nack.
const PAUSE: Duration = Duration::from_millis(100);

/// One publish: what a client does on a channel with nothing in flight.
pub trait Publication<E>: Sync {
    /// The outcome that ends the repetitions.
    type Outcome: Send;

    /// Publishes once. The channel is used again only after a success.
    fn publish_on(
        &self,
        channel: &ConfirmChannel,
    ) -> impl Future<Output = Result<Self::Outcome, StepError<E>>> + Send;

    /// The last attempt failed for this reason, and there will be another one.
    fn failed(&self, problem: String);
}

/// A pool of channels in confirm mode.
#[derive(Debug)]
pub struct Publisher<E> {
    link: Arc<Link<E>>,
    permits: Semaphore,
    max_in_flight: u16,
    idle: Mutex<Vec<ConfirmChannel>>,
}

impl<E: ClientError> Publisher<E> {
    /// A publisher on `link`. At most `max_in_flight` publishes wait for their confirm; more wait
    /// their turn.
    pub fn new(link: Arc<Link<E>>, max_in_flight: u16) -> Self {
        Self {
            link,
            permits: Semaphore::new(usize::from(max_in_flight)),
            max_in_flight,
            idle: Mutex::new(Vec::new()),
        }
    }

    /// Publishes until confirmed, over any number of connections. The deadline is the caller's, who
    /// drops this future.
    ///
    /// # Errors
    ///
    /// The publication's own, and [`ClientError::closed`].
    pub async fn publish<P: Publication<E>>(&self, publication: &P) -> Result<P::Outcome, E> {
        let _permit = self.permits.acquire().await.map_err(|_| E::closed())?;
        let mut session = self.link.session().await.ok_or_else(E::closed)?;
        loop {
            match while_alive(&session, self.attempt(&session, publication)).await {
                Ok(outcome) => return Ok(outcome),
                Err(StepError::Final(error)) => return Err(error),
                Err(StepError::Again(problem)) => publication.failed(problem),
            }
            session = self.another_session(session).await.ok_or_else(E::closed)?;
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

    async fn attempt<P: Publication<E>>(
        &self,
        session: &BrokerSession,
        publication: &P,
    ) -> Result<P::Outcome, StepError<E>> {
        // If this future is dropped or fails before the confirm, the channel is dropped with it and
        // closes: a channel with something in flight never comes back into the pool.
        let channel = match self.idle_channel(session.id) {
            Some(channel) => channel,
            None => ConfirmChannel::open(session).await.map_err(|fault| {
                StepError::of(fault, || "open a channel for publishing".to_owned())
            })?,
        };
        let outcome = publication.publish_on(&channel).await?;
        self.idle().push(channel);
        Ok(outcome)
    }

    fn idle_channel(&self, session: u64) -> Option<ConfirmChannel> {
        let mut idle = self.idle();
        // Drops the channels of dead connections at the first publish on the new one.
        idle.retain(|channel| channel.session() == session && channel.is_open());
        idle.pop()
    }

    fn idle(&self) -> MutexGuard<'_, Vec<ConfirmChannel>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets publishes in flight finish, for at most `grace`, and refuses all others from then on.
    /// False if some were still in flight.
    pub async fn drain(&self, grace: Duration) -> bool {
        let all = self.permits.acquire_many(u32::from(self.max_in_flight));
        let finished = tokio::time::timeout(grace, all).await.is_ok();
        self.permits.close();
        self.idle().clear();
        finished
    }
}
