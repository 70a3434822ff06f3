//! The AMQP transport: RabbitMQ through lapin.
//!
//! Two connections are used, one to publish and one to consume (opened at the first subscription).
//! When a broker runs short of memory or disk it stops reading from connections that publish. On a
//! shared connection our acks would be stuck behind that, the queues could not drain, and the
//! shortage would never end; RabbitMQ's documentation recommends the same separation.
//!
//! `ebbtide-amqp` keeps the connections alive. `dial` names the brokers, `hosts` their order, and
//! `link` shows the state of the connections as the status of the bus. `topology` declares queues;
//! `publisher` and `consumer` work on whatever session the link has now.

mod config;
mod consumer;
mod dial;
mod hosts;
mod identity;
mod limit;
mod link;
mod publisher;
mod topology;
mod url;

use std::collections::HashSet;
use std::future::Future;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use ebbtide_amqp::{BrokerSession, ConnectionPurpose, Dialer, LinkState, while_alive};
use ebbtide_runtime::login::Renewal;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub use config::{AmqpConfig, QueueKind};
pub use identity::BusIdentity;
pub use url::BrokerUrl;

use self::consumer::AmqpSource;
use self::link::Link;
use self::publisher::Publisher;
use self::topology::{StepError, declare_queue, delete_queue, look_at_queue};
use crate::status::StatusBoard;
use crate::{
    BodyLimit, Bus, BusError, BusStatus, DeadLetterNote, OutgoingMessage, QueueName, QueuePrefix,
    QueueUse, Subscription, SubscriptionState,
};

/// A supervisor that is stopped closes its connection (2 s at most) and ends.
const SUPERVISOR_GRACE: Duration = Duration::from_secs(3);

/// A bus on RabbitMQ that reconnects by itself without end. Dropping it cuts its connections;
/// [`Bus::close`] ends them in order.
#[derive(Debug)]
pub struct AmqpBus {
    shared: Arc<Shared>,
}

/// What subscriptions and deliveries share with the bus.
#[derive(Debug)]
struct Shared {
    config: Arc<AmqpConfig>,
    dialer: Arc<Dialer>,
    board: Arc<StatusBoard>,
    publish_link: Arc<Link>,
    consume_link: OnceLock<Link>,
    publisher: Publisher,
    /// Queues that this bus has declared. It declares them again if they are deleted.
    declared: Mutex<HashSet<QueueName>>,
    /// No new work.
    closing: CancellationToken,
    /// No connections any more.
    stopped: CancellationToken,
}

impl AmqpBus {
    /// Opens a bus at once, whether or not a broker is there. To be called inside a tokio runtime.
    ///
    /// # Errors
    ///
    /// [`BusError::InvalidConfig`].
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub fn open(config: AmqpConfig) -> Result<Self, BusError> {
        config.validate()?;
        let config = Arc::new(config);
        let board = Arc::new(StatusBoard::new(StatusBoard::connecting()));
        let stopped = CancellationToken::new();
        let dialer = Arc::new(dial::dialer(&config));
        let publish_link = Arc::new(link::start(
            Arc::clone(&dialer),
            &config,
            ConnectionPurpose::Publish,
            Arc::clone(&board),
            stopped.clone(),
        ));
        let publisher = Publisher::new(Arc::clone(&publish_link), Arc::clone(&config));
        Ok(Self {
            shared: Arc::new(Shared {
                config,
                dialer,
                board,
                publish_link,
                consume_link: OnceLock::new(),
                publisher,
                declared: Mutex::new(HashSet::new()),
                closing: CancellationToken::new(),
                stopped,
            }),
        })
    }

    /// Opens a bus and waits until it is connected, for at most `deadline`.
    ///
    /// # Errors
    ///
    /// [`BusError::InvalidConfig`]; [`BusError::LoginRefused`] or [`BusError::Refused`] as soon as
    /// every broker has refused us (a wrong password does not get right by waiting);
    /// [`BusError::Unavailable`] at the deadline.
    pub async fn connect(config: AmqpConfig, deadline: Duration) -> Result<Self, BusError> {
        let bus = Self::open(config)?;
        let mut state = bus.shared.publish_link.watch();
        let settled = state.wait_for(|state| match state {
            LinkState::Up(_) | LinkState::Blocked(..) | LinkState::Closed => true,
            LinkState::Down { refused_by_all, .. } => *refused_by_all,
        });
        let refusal = match tokio::time::timeout(deadline, settled).await {
            Ok(Ok(state)) => match &*state {
                LinkState::Up(_) | LinkState::Blocked(..) => None,
                LinkState::Down { problem, .. } => problem.clone(),
                LinkState::Closed => Some(BusError::Closed),
            },
            Ok(Err(_)) => Some(BusError::Closed),
            Err(_) => {
                let problem = Mutex::new(String::new());
                Some(
                    bus.shared
                        .unavailable("connect".to_owned(), deadline, &problem),
                )
            }
        };
        match refusal {
            None => Ok(bus),
            Some(error) => {
                bus.close().await;
                Err(error)
            }
        }
    }
}

/// The logins of an [`AmqpBus`], to be renewed by a reload. Cheap to clone; does not keep the bus
/// open.
#[derive(Debug, Clone)]
pub struct BusLogins {
    config: Arc<AmqpConfig>,
    dialer: Arc<Dialer>,
}

impl BusLogins {
    /// Tests new logins for the same brokers, and uses them for all connections that are opened
    /// from now on. Those that are open go on.
    ///
    /// # Errors
    ///
    /// [`BusError::LoginRefused`], [`BusError::Refused`], [`BusError::InvalidConfig`]: the old
    /// logins stay.
    pub async fn renew(&self, brokers: &[BrokerUrl]) -> Result<Renewal, BusError> {
        let user = self.config.user();
        if self.config.identity == BusIdentity::Agent && brokers.iter().any(|b| b.user() != user) {
            return Ok(Renewal::NextStart("the user, which speaks for the host"));
        }
        let brokers = dial::brokers(&self.config, brokers);
        Ok(self.dialer.renew_logins(brokers).await?)
    }
}

impl AmqpBus {
    /// The logins, which a reload can renew.
    #[must_use]
    pub fn logins(&self) -> BusLogins {
        BusLogins {
            config: Arc::clone(&self.shared.config),
            dialer: Arc::clone(&self.shared.dialer),
        }
    }

    /// Whether a queue of the broker exists, any one of this virtual host, and what is in it.
    /// Changes nothing.
    ///
    /// # Errors
    ///
    /// [`BusError::Refused`] if the login may not see the queue; [`BusError::Unavailable`] if the
    /// broker does not answer in time.
    pub async fn queue_use(&self, queue: &str) -> Result<Option<QueueUse>, BusError> {
        let shared = &self.shared;
        shared.ensure_open()?;
        let problem = Mutex::new(String::new());
        let step =
            |session: Arc<BrokerSession>| async move { look_at_queue(&session, queue).await };
        let look = shared.until_done(&problem, step);
        let what = || format!("look at queue {queue}");
        shared.limited(look, what, &problem).await
    }
}

impl Drop for AmqpBus {
    fn drop(&mut self) {
        self.shared.closing.cancel();
        self.shared.stopped.cancel();
    }
}

#[async_trait]
impl Bus for AmqpBus {
    async fn declare(&self, queue: &QueueName) -> Result<(), BusError> {
        self.shared.declare(queue).await
    }

    async fn publish(&self, queue: &QueueName, message: &OutgoingMessage) -> Result<(), BusError> {
        self.shared.publish(queue, message, None).await
    }

    async fn consume(&self, queue: &QueueName, prefetch: u16) -> Result<Subscription, BusError> {
        self.consume_before(queue, prefetch, 0).await
    }

    async fn consume_before(
        &self,
        queue: &QueueName,
        prefetch: u16,
        rank: i64,
    ) -> Result<Subscription, BusError> {
        let source = self.shared.consume(queue, prefetch, rank, None).await?;
        Ok(Subscription::new(queue.clone(), Box::new(source)))
    }

    async fn consume_alone(
        &self,
        queue: &QueueName,
        prefetch: u16,
    ) -> Result<Subscription, BusError> {
        let (hold, shown) = watch::channel(SubscriptionState::Waiting);
        let hold = Some(Arc::new(hold));
        let source = self.shared.consume(queue, prefetch, 0, hold).await?;
        Ok(Subscription::new(queue.clone(), Box::new(source)).alone(shown))
    }

    async fn body_limit(&self, prefix: &QueuePrefix) -> Result<BodyLimit, BusError> {
        let problem = Mutex::new(String::new());
        let step = |session: Arc<BrokerSession>| async move { limit::look(&session, prefix).await };
        let look = self.shared.until_done(&problem, step);
        let what = || "find out how large a message the broker takes".to_owned();
        self.shared.limited(look, what, &problem).await
    }

    async fn is_read(&self, queue: &QueueName) -> Result<bool, BusError> {
        let used = self.queue_use(queue.as_str()).await?;
        Ok(used.is_some_and(|used| used.consumers > 0))
    }

    async fn delete(&self, queue: &QueueName) -> Result<(), BusError> {
        self.shared.delete(queue).await
    }

    fn status(&self) -> watch::Receiver<BusStatus> {
        self.shared.board.subscribe()
    }

    async fn close(&self) {
        let shared = &self.shared;
        shared.closing.cancel();
        shared.publisher.drain(shared.config.close_timeout).await;
        shared.stopped.cancel();
        shared.publish_link.finish(SUPERVISOR_GRACE).await;
        if let Some(link) = shared.consume_link.get() {
            link.finish(SUPERVISOR_GRACE).await;
        }
    }
}

impl Shared {
    fn ensure_open(&self) -> Result<(), BusError> {
        if self.closing.is_cancelled() {
            return Err(BusError::Closed);
        }
        Ok(())
    }

    async fn consume(
        self: &Arc<Self>,
        queue: &QueueName,
        prefetch: u16,
        rank: i64,
        alone: Option<Arc<watch::Sender<SubscriptionState>>>,
    ) -> Result<AmqpSource, BusError> {
        self.ensure_open()?;
        if prefetch == 0 {
            return Err(BusError::InvalidPrefetch);
        }
        let taken = alone.clone();
        let is_taken = || {
            let hold = taken.as_ref().map(|hold| *hold.borrow());
            hold == Some(SubscriptionState::Taken)
        };
        let mut source = AmqpSource::new(Arc::clone(self), queue.clone(), prefetch, rank, alone);
        let limit = self.config.operation_timeout;
        loop {
            let attached = tokio::select! {
                biased;
                () = self.closing.cancelled() => return Err(BusError::Closed),
                attached = tokio::time::timeout(limit, source.attach()) => attached,
            };
            match attached {
                Ok(Ok(())) => {
                    self.remember(queue);
                    return Ok(source);
                }
                Ok(Err(error)) => return Err(error),
                // The broker is there, and so is another reader; that comes to an end by itself.
                Err(_) if is_taken() => {}
                Err(_) => {
                    tracing::warn!(
                        %queue, brokers = %self.config.brokers_shown(),
                        "the broker is away; reading begins when it is back"
                    );
                    return Ok(source);
                }
            }
        }
    }

    /// The connection for reading, opened at first use.
    fn consume_link(&self) -> &Link {
        self.consume_link.get_or_init(|| {
            link::start(
                Arc::clone(&self.dialer),
                &self.config,
                ConnectionPurpose::Consume,
                Arc::clone(&self.board),
                self.stopped.clone(),
            )
        })
    }

    fn remember(&self, queue: &QueueName) {
        self.lock_declared().insert(queue.clone());
    }

    fn has_declared(&self, queue: &QueueName) -> bool {
        self.lock_declared().contains(queue)
    }

    fn lock_declared(&self) -> std::sync::MutexGuard<'_, HashSet<QueueName>> {
        self.declared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn declare(&self, queue: &QueueName) -> Result<(), BusError> {
        self.ensure_open()?;
        if identity::scheduler_declares(self.config.identity, queue) {
            // Made by the scheduler; until it has run, reports find no exchange and are tried
            // again.
            return Ok(());
        }
        let problem = Mutex::new(String::new());
        let work = self.declare_until_done(queue, &problem);
        self.limited(work, || format!("declare queue {queue}"), &problem)
            .await?;
        self.remember(queue);
        Ok(())
    }

    async fn delete(&self, queue: &QueueName) -> Result<(), BusError> {
        self.ensure_open()?;
        // A later publish must not declare the queue again.
        self.lock_declared().remove(queue);
        let problem = Mutex::new(String::new());
        let step = |session: Arc<BrokerSession>| async move { delete_queue(&session, queue).await };
        let work = self.until_done(&problem, step);
        self.limited(work, || format!("delete queue {queue}"), &problem)
            .await
    }

    async fn declare_until_done(
        &self,
        queue: &QueueName,
        last_problem: &Mutex<String>,
    ) -> Result<(), BusError> {
        let config = &self.config;
        let step = |session: Arc<BrokerSession>| async move {
            declare_queue(&session, queue, config).await
        };
        self.until_done(last_problem, step).await
    }

    /// Repeats a step, on a new connection if the last one broke, until it succeeds or is refused.
    async fn until_done<T, F>(
        &self,
        last_problem: &Mutex<String>,
        step: impl Fn(Arc<BrokerSession>) -> F,
    ) -> Result<T, BusError>
    where
        F: Future<Output = Result<T, StepError>>,
    {
        let mut pause =
            crate::backoff::ExponentialBackoff::new(self.config.reconnect, self.config.jitter_seed);
        loop {
            let session = self.publish_link.session().await.ok_or(BusError::Closed)?;
            match while_alive(&session, step(Arc::clone(&session))).await {
                Ok(done) => return Ok(done),
                Err(StepError::Final(error)) => return Err(error),
                Err(StepError::Again(problem)) => {
                    *last_problem.lock().unwrap_or_else(PoisonError::into_inner) = problem;
                }
            }
            tokio::time::sleep(pause.next_delay()).await;
        }
    }

    async fn publish(
        &self,
        queue: &QueueName,
        message: &OutgoingMessage,
        note: Option<&DeadLetterNote>,
    ) -> Result<(), BusError> {
        self.ensure_open()?;
        message.validate()?;
        let problem = Mutex::new(String::new());
        let work = async {
            match self.publisher.publish(queue, message, note, &problem).await {
                Err(BusError::Unroutable { .. }) if self.has_declared(queue) => {
                    tracing::warn!(%queue, "a queue has vanished from the broker; declaring it anew");
                    self.declare_until_done(queue, &problem).await?;
                    self.publisher.publish(queue, message, note, &problem).await
                }
                outcome => outcome,
            }
        };
        self.limited(work, || format!("publish to {queue}"), &problem)
            .await
    }

    async fn publish_dead_letter(
        &self,
        queue: &QueueName,
        message: &OutgoingMessage,
        note: &DeadLetterNote,
    ) -> Result<(), BusError> {
        if !self.has_declared(queue) {
            self.declare(queue).await?;
        }
        self.publish(queue, message, Some(note)).await
    }

    /// Puts the operation timeout on a piece of work that otherwise tries for ever.
    async fn limited<T>(
        &self,
        work: impl Future<Output = Result<T, BusError>>,
        operation: impl FnOnce() -> String,
        last_problem: &Mutex<String>,
    ) -> Result<T, BusError> {
        let limit = self.config.operation_timeout;
        match tokio::time::timeout(limit, work).await {
            Ok(outcome) => outcome,
            Err(_) => Err(self.unavailable(operation(), limit, last_problem)),
        }
    }

    fn unavailable(
        &self,
        operation: String,
        waited: Duration,
        last_problem: &Mutex<String>,
    ) -> BusError {
        let seen = last_problem
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let last_problem = match self.board.current() {
            BusStatus::Blocked { reason, .. } => {
                format!("the broker takes no messages for now ({reason})")
            }
            BusStatus::Reconnecting {
                last_error: Some(error),
                ..
            } => error,
            _ if !seen.is_empty() => seen,
            _ => self
                .publish_link
                .problem()
                .map(|error| error.cause())
                .unwrap_or_else(|| "the broker did not answer".to_owned()),
        };
        BusError::Unavailable {
            operation,
            waited_seconds: waited.as_secs_f64().ceil() as u64,
            brokers: self.config.brokers_shown(),
            last_problem,
        }
    }
}
