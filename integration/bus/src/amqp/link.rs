//! A link: one connection that is kept alive for ever by a supervisor task.
//!
//! The supervisor tries the brokers one after the other, waits (capped exponential backoff) after
//! each full round, publishes the living [`BrokerSession`] through a watch channel, and begins
//! again when it dies. A task that needs the broker takes the current session and, when it fails,
//! waits for the next one.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ebbtide_runtime::clock;
use ebbtide_runtime::task::{self, Task};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::config::AmqpConfig;
use super::dial::{BrokerSession, SessionEvent, dial};
use crate::backoff::Backoff;
use crate::status::{ConnectionPurpose, StatusBoard};
use crate::{BusError, BusStatus};

/// A connection that lived this long was a good one: the next failure starts with short delays
/// again.
const PROVEN: Duration = Duration::from_secs(5);

/// The state of a link, as its users see it.
#[derive(Debug, Clone)]
pub(crate) enum LinkState {
    /// No connection; `last_error` is the outcome of the last full round over all brokers.
    Down {
        last_error: Option<BusError>,
        /// All brokers answered in that round, and all of them refused us.
        refused_by_all: bool,
    },
    Up(Arc<BrokerSession>),
    Closed,
}

/// A handle on a supervised connection.
#[derive(Debug)]
pub(crate) struct Link {
    state: watch::Receiver<LinkState>,
    supervisor: Mutex<Option<Task>>,
}

impl Link {
    /// Starts the supervisor. It ends when `stop` is cancelled.
    pub(crate) fn start(
        config: Arc<AmqpConfig>,
        purpose: ConnectionPurpose,
        board: Arc<StatusBoard>,
        stop: CancellationToken,
    ) -> Self {
        let (sender, state) = watch::channel(LinkState::Down {
            last_error: None,
            refused_by_all: false,
        });
        // The connection for reading opens while the bus is already in use. Its start is therefore
        // not shown as a problem; a failed attempt is.
        if purpose == ConnectionPurpose::Publish {
            board.set(purpose, StatusBoard::connecting());
        }
        let supervisor = Supervisor {
            backoff: Backoff::new(config.reconnect, config.jitter_seed ^ purpose as u64),
            config,
            purpose,
            board,
            stop,
            state: sender,
            next_id: 1,
            preferred: 0,
        };
        let task = task::spawn_for("bus-link", purpose.as_str(), supervisor.run());
        Self {
            state,
            supervisor: Mutex::new(Some(task)),
        }
    }

    /// Waits for a living session. `None` when the link is closed.
    pub(crate) async fn session(&self) -> Option<Arc<BrokerSession>> {
        self.session_where(|_| true).await
    }

    /// Waits for a session that is younger than the one with this id. `None` when the link is
    /// closed.
    pub(crate) async fn session_after(&self, id: u64) -> Option<Arc<BrokerSession>> {
        self.session_where(|session| session.id > id).await
    }

    async fn session_where(
        &self,
        wanted: impl Fn(&BrokerSession) -> bool,
    ) -> Option<Arc<BrokerSession>> {
        let mut state = self.state.clone();
        let found = state
            .wait_for(|state| match state {
                LinkState::Up(session) => wanted(session),
                LinkState::Closed => true,
                LinkState::Down { .. } => false,
            })
            .await;
        match found.as_deref() {
            Ok(LinkState::Up(session)) => Some(Arc::clone(session)),
            _ => None,
        }
    }

    /// The state of the link, for callers that need more than living sessions.
    pub(crate) fn watch(&self) -> watch::Receiver<LinkState> {
        self.state.clone()
    }

    /// Why the link is down, if it is down and the reason is known.
    pub(crate) fn problem(&self) -> Option<String> {
        match &*self.state.borrow() {
            LinkState::Down { last_error, .. } => last_error.as_ref().map(BusError::cause),
            LinkState::Up(_) | LinkState::Closed => None,
        }
    }

    /// Waits for the supervisor, which has been told to stop.
    pub(crate) async fn finish(&self, grace: Duration) {
        let task = self
            .supervisor
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(task) = task {
            task.finish(grace).await;
        }
    }
}

struct Supervisor {
    config: Arc<AmqpConfig>,
    purpose: ConnectionPurpose,
    board: Arc<StatusBoard>,
    stop: CancellationToken,
    state: watch::Sender<LinkState>,
    backoff: Backoff,
    next_id: u64,
    /// Index of the broker that is tried first: the one that worked last.
    preferred: usize,
}

impl Supervisor {
    async fn run(mut self) {
        let stop = self.stop.clone();
        // Dropping the loop at any await is sound: sessions cut their socket when they are dropped.
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.keep_connected() => {}
        }
        let last = self.state.send_replace(LinkState::Closed);
        self.board.set(self.purpose, BusStatus::Closed);
        if let LinkState::Up(session) = last {
            session.close().await;
        }
    }

    async fn keep_connected(&mut self) {
        loop {
            let session = self.connect().await;
            let why = self.watch_over(&session).await;
            tracing::warn!(
                broker = %session.broker, purpose = self.purpose.as_str(), error = %why,
                "lost the connection to the broker; reconnecting"
            );
            session.discard();
            self.board.failed(self.purpose, why.clone(), false);
            let lost = BusError::Unavailable {
                operation: "keep the connection".to_owned(),
                waited_seconds: 0,
                brokers: session.broker.clone(),
                last_problem: why,
            };
            self.down(lost, false);
            tokio::time::sleep(self.backoff.next_delay()).await;
        }
    }

    /// Tries all brokers, round after round, until one accepts us.
    async fn connect(&mut self) -> Arc<BrokerSession> {
        loop {
            let mut last_error = None;
            let mut all_refused = true;
            for offset in 0..self.config.brokers.len() {
                let index = (self.preferred + offset) % self.config.brokers.len();
                let url = &self.config.brokers[index];
                match dial(url, &self.config, self.purpose, self.next_id).await {
                    Ok(session) => {
                        self.next_id += 1;
                        self.preferred = index;
                        tracing::info!(
                            broker = %session.broker, purpose = self.purpose.as_str(),
                            "connected to the broker"
                        );
                        return Arc::new(session);
                    }
                    Err(error) => {
                        tracing::warn!(
                            broker = %url, purpose = self.purpose.as_str(),
                            code = error.code(), %error, "cannot connect to the broker"
                        );
                        self.board
                            .failed(self.purpose, format!("{url}: {}", error.cause()), true);
                        all_refused &= !error.is_transient();
                        last_error = Some(error);
                    }
                }
            }
            if let Some(error) = last_error {
                self.down(error, all_refused);
            }
            tokio::time::sleep(self.backoff.next_delay()).await;
        }
    }

    /// Shows the session to its users until it is lost, and says why it was.
    async fn watch_over(&mut self, session: &Arc<BrokerSession>) -> String {
        let mut events = session.events();
        self.board.set(self.purpose, BusStatus::Connected);
        self.state.send_replace(LinkState::Up(Arc::clone(session)));
        let mut proven = std::pin::pin!(tokio::time::sleep(PROVEN));
        let mut is_proven = false;
        loop {
            tokio::select! {
                () = &mut proven, if !is_proven => {
                    is_proven = true;
                    self.backoff.reset();
                }
                event = session.wait(&mut events) => match event {
                    SessionEvent::Lost(why) => return why,
                    SessionEvent::Blocked(reason) => {
                        tracing::warn!(broker = %session.broker, %reason, "the broker takes no messages for now");
                        let since = clock::wall();
                        self.board.set(self.purpose, BusStatus::Blocked { since, reason });
                    }
                    SessionEvent::Unblocked => {
                        tracing::info!(broker = %session.broker, "the broker takes messages again");
                        self.board.set(self.purpose, BusStatus::Connected);
                    }
                }
            }
        }
    }

    fn down(&self, error: BusError, refused_by_all: bool) {
        self.state.send_replace(LinkState::Down {
            last_error: Some(error),
            refused_by_all,
        });
    }
}
