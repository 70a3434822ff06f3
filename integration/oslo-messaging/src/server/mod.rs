//! The RPC server: reads requests, gives them to endpoints, and answers.

mod consume;
mod heartbeat;
mod receipt;
mod reply;
mod work;

use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ebbtide_runtime::task::{self, Task};
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::dedup::MessageMemory;
use crate::dispatch::Dispatcher;
use crate::names::Queue;
use crate::target::check_name;
use crate::transport::TransportState;
use crate::{Endpoint, MessagingError, Target, Transport};
use receipt::Receipt;
use reply::GoneQueues;

/// How long the reader may take to say goodbye once all work is done.
const READER_LIMIT: Duration = Duration::from_secs(5);

/// How long work that was given up may take to notice it.
const GIVE_UP_LIMIT: Duration = Duration::from_secs(2);

/// When a request is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AckMode {
    /// After the reply is confirmed by the broker, for a cast after the work. A server that dies
    /// loses no request: they go to another server. Work may be done twice, so it must bear that.
    #[default]
    Late,
    /// Before the work, as Python's oslo.messaging does. No request is done twice, and those of a
    /// dead server are lost: their callers find out by the missing heartbeats.
    Early,
}

/// What a server is to those who call it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ServerRole {
    /// It shares the queue of the topic with the other servers, and answers.
    #[default]
    Worker,
    /// It gets a copy of each message to the topic and answers none: the workers do. What it misses
    /// is lost for it, and for no other server.
    Observer,
}

/// How a server reads and works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerOptions {
    /// Whether it answers.
    pub role: ServerRole,
    /// When a request is acknowledged.
    pub ack: AckMode,
    /// How many requests of the topic, and as many of the server's own queue, are worked on at
    /// once; the broker holds the others back. Unless `rabbit_qos_prefetch_count` says something
    /// else. At least 1.
    pub prefetch: u16,
    /// How many fanout casts are worked on at once. With 1 they are done in the order in which they
    /// came, which casts that report changes need. At least 1.
    pub fanout_prefetch: u16,
    /// Larger messages are rejected.
    pub max_message_bytes: usize,
    /// How many finished requests are remembered, to recognise those that are delivered again.
    pub remembered: usize,
    /// Answer `oslo_rpc_server_ping` (`[DEFAULT] rpc_ping_enabled`).
    pub ping: bool,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            role: ServerRole::Worker,
            ack: AckMode::Late,
            // As many as Python's `executor_thread_pool_size`.
            prefetch: 64,
            fanout_prefetch: 1,
            // RabbitMQ 4 takes no larger messages by default.
            max_message_bytes: 16 * 1024 * 1024,
            // A minute of a hundred requests a second, in about 1 MB.
            remembered: 6000,
            ping: false,
        }
    }
}

/// What a stopped server left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopReport {
    /// Requests that were not finished in time. With [`AckMode::Late`] they have been given back to
    /// the broker for another server; with [`AckMode::Early`] they are lost.
    pub unfinished: usize,
}

/// A running server. Dropping it stops it at once and gives unfinished requests back;
/// [`RpcServer::stop`] is kinder.
pub struct RpcServer {
    inner: Arc<Inner>,
    reader: Option<Task>,
    reading: watch::Receiver<bool>,
}

/// What the reader and all work share.
struct Inner {
    transport: Arc<TransportState>,
    dispatcher: Dispatcher,
    options: ServerOptions,
    /// Topic, server, fanout.
    queues: [Queue; 3],
    seen: Mutex<MessageMemory<Receipt>>,
    gone_queues: Mutex<GoneQueues>,
    tracker: TaskTracker,
    /// No new requests; those being worked on are told to hurry.
    stopping: CancellationToken,
    /// The reader has seen `stopping`: no work begins any more.
    quiet: CancellationToken,
    /// Time is up: work ends where it is.
    given_up: CancellationToken,
    /// All work has ended: the reader lets go of its channel.
    drained: CancellationToken,
    unfinished: AtomicUsize,
    anonymous: AtomicU64,
}

impl RpcServer {
    /// Declares the queues of `target.topic` and `target.server` and begins to read. Waits until
    /// the broker has said yes once; if it cannot be reached that takes as long as it takes. From
    /// then on the server comes back by itself whenever it loses its connection.
    ///
    /// # Errors
    ///
    /// If `target` has no server name, or the broker refuses for a reason that waiting does not
    /// heal: missing permissions, or queues that exist with other properties.
    pub async fn start(
        transport: &Transport,
        target: &Target,
        options: ServerOptions,
        endpoints: Vec<Arc<dyn Endpoint>>,
    ) -> Result<Self, MessagingError> {
        target.check()?;
        let Some(server) = &target.server else {
            return Err(MessagingError::InvalidTarget {
                reason: "a server needs topic and server name".to_owned(),
            });
        };
        check_name("server", server)?;
        let shared = Arc::clone(transport.shared());
        let mut options = options;
        if shared.options().prefetch_count > 0 {
            options.prefetch = shared.options().prefetch_count;
        }
        options.prefetch = options.prefetch.max(1);
        options.fanout_prefetch = options.fanout_prefetch.max(1);
        let exchange = target.exchange.as_deref().unwrap_or(&shared.exchange);
        let topic = &target.topic;
        let queue = match options.role {
            ServerRole::Worker => Queue::topic,
            ServerRole::Observer => Queue::copy,
        };
        let queues = [
            queue(topic, exchange, shared.options()),
            queue(&format!("{topic}.{server}"), exchange, shared.options()),
            Queue::fanout(topic, shared.options()),
        ];
        let inner = Arc::new(Inner {
            dispatcher: Dispatcher::new(endpoints, options.ping),
            queues,
            seen: Mutex::new(MessageMemory::new(options.remembered)),
            gone_queues: Mutex::new(GoneQueues::default()),
            tracker: TaskTracker::new(),
            stopping: CancellationToken::new(),
            quiet: CancellationToken::new(),
            given_up: CancellationToken::new(),
            drained: CancellationToken::new(),
            unfinished: AtomicUsize::new(0),
            anonymous: AtomicU64::new(0),
            options,
            transport: shared,
        });
        let (first, outcome) = oneshot::channel();
        let (is_reading, reading) = watch::channel(false);
        let reader = task::spawn_for(
            "rpc-server",
            topic,
            consume::run(Arc::clone(&inner), first, is_reading),
        );
        let server = Self {
            inner,
            reader: Some(reader),
            reading,
        };
        // If this future is dropped, so is `server`, and the reader ends.
        match outcome.await {
            Ok(Ok(())) => Ok(server),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(MessagingError::Closed),
        }
    }

    /// Whether the server reads from its queues now. It does not while its connection is lost.
    #[must_use]
    pub fn is_reading(&self) -> bool {
        *self.reading.borrow()
    }

    /// For waiting until it does, or does not.
    #[must_use]
    pub fn watch_reading(&self) -> watch::Receiver<bool> {
        self.reading.clone()
    }

    /// How many requests are being worked on.
    #[must_use]
    pub fn in_progress(&self) -> usize {
        self.inner.tracker.len()
    }

    /// Stops: takes no more requests, waits up to `limit` for those being worked on, and gives the
    /// rest back to the broker. The work is told by
    /// [`CallState::stopping`](crate::CallState::stopping).
    pub async fn stop(mut self, limit: Duration) -> StopReport {
        let inner = Arc::clone(&self.inner);
        inner.stopping.cancel();
        // Only then is it certain that nothing is added to what is waited for below.
        if tokio::time::timeout(READER_LIMIT, inner.quiet.cancelled())
            .await
            .is_err()
        {
            tracing::warn!("the reader does not stop in time");
        }
        inner.tracker.close();
        if tokio::time::timeout(limit, inner.tracker.wait())
            .await
            .is_err()
        {
            tracing::warn!(
                in_progress = inner.tracker.len(),
                "stopping with requests in progress; they are given back to the broker"
            );
            inner.given_up.cancel();
            // Only a handler that blocks its thread does not see this.
            let _ = tokio::time::timeout(GIVE_UP_LIMIT, inner.tracker.wait()).await;
        }
        inner.drained.cancel();
        if let Some(reader) = self.reader.take() {
            reader.finish(READER_LIMIT).await;
        }
        StopReport {
            unfinished: inner.unfinished.load(Ordering::Relaxed),
        }
    }
}

impl Drop for RpcServer {
    fn drop(&mut self) {
        // After `stop` these are set already.
        self.inner.stopping.cancel();
        self.inner.given_up.cancel();
        self.inner.drained.cancel();
    }
}

impl fmt::Debug for RpcServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RpcServer")
            .field("queue", &self.inner.queues[1].name)
            .field("is_reading", &self.is_reading())
            .field("in_progress", &self.in_progress())
            .finish_non_exhaustive()
    }
}

impl Inner {
    fn seen(&self) -> std::sync::MutexGuard<'_, MessageMemory<Receipt>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn gone_queues(&self) -> std::sync::MutexGuard<'_, GoneQueues> {
        self.gone_queues
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// A key in the memory of requests for one without `_unique_id`: it is never recognised again.
    fn anonymous_id(&self) -> String {
        // A blank is in no identifier from outside that we would mind.
        format!(
            "anonymous {}",
            self.anonymous.fetch_add(1, Ordering::Relaxed)
        )
    }
}
