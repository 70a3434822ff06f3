//! A link: one connection that is kept alive for ever by a supervisor task.
//!
//! The supervisor tries the brokers one after the other, waits after each full round, publishes the
//! living [`BrokerSession`] through a watch channel, and begins again when it dies. A task that
//! needs the broker takes the current session and, when that fails, waits for the next one.
//!
//! A pause between two rounds ends early when a port that refused connections begins to accept
//! them. After a restart of the broker the queues of a server exist only when the server has
//! declared them again; a request that is published before that is lost. The back-off stays for
//! what it is good for: brokers that accept a connection and then refuse us.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ebbtide_runtime::ids;
use ebbtide_runtime::task::{self, Task};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::dial::{
    BrokerSession, ConnectionPurpose, DialFailure, Dialer, SessionEvent, accepts_connections,
};
use crate::{FailoverStrategy, MessagingError};

/// A connection that lived this long was a good one: the next failure starts with short pauses
/// again.
const PROVEN: Duration = Duration::from_secs(5);

/// Interval between two looks at a port that refused the last connection. A refused connection
/// costs microseconds, and every request that is published between the broker's start and our
/// declaration is lost.
const LOOK_AT_PORT: Duration = Duration::from_millis(100);

/// The state of a link, as its users see it.
#[derive(Debug, Clone)]
pub(crate) enum LinkState {
    /// No connection; `problem` is the outcome of the last attempt.
    Down {
        problem: Option<MessagingError>,
    },
    Up(Arc<BrokerSession>),
    /// Connected, but the broker takes no messages for now.
    Blocked(Arc<BrokerSession>, String),
    Closed,
}

impl LinkState {
    fn session(&self) -> Option<&Arc<BrokerSession>> {
        match self {
            Self::Up(session) | Self::Blocked(session, _) => Some(session),
            Self::Down { .. } | Self::Closed => None,
        }
    }
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
        dialer: Arc<Dialer>,
        purpose: ConnectionPurpose,
        stop: CancellationToken,
    ) -> Self {
        let (sender, state) = watch::channel(LinkState::Down { problem: None });
        let supervisor = Supervisor {
            order: (0..dialer.url.hosts().len()).collect(),
            dialer,
            purpose,
            stop,
            state: sender,
            next_id: 1,
            failures: 0,
        };
        let task = task::spawn_for("messaging-link", purpose.as_str(), supervisor.run());
        Self {
            state,
            supervisor: Mutex::new(Some(task)),
        }
    }

    /// Waits for a living session. `None` when the link is closed.
    pub(crate) async fn session(&self) -> Option<Arc<BrokerSession>> {
        self.session_after(0).await
    }

    /// Waits for a session that is younger than the one with this id. `None` when the link is
    /// closed.
    pub(crate) async fn session_after(&self, id: u64) -> Option<Arc<BrokerSession>> {
        let mut state = self.state.clone();
        let found = state
            .wait_for(|state| match state {
                LinkState::Closed => true,
                other => other.session().is_some_and(|session| session.id > id),
            })
            .await;
        found.ok()?.session().cloned()
    }

    /// The session that lives now, if one does.
    pub(crate) fn current(&self) -> Option<Arc<BrokerSession>> {
        self.state.borrow().session().cloned()
    }

    /// For those who want to see more than living sessions.
    pub(crate) fn watch(&self) -> watch::Receiver<LinkState> {
        self.state.clone()
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
    dialer: Arc<Dialer>,
    purpose: ConnectionPurpose,
    stop: CancellationToken,
    state: watch::Sender<LinkState>,
    next_id: u64,
    /// Full rounds without success in a row.
    failures: u32,
    /// In which order the brokers are tried; the first is the one that worked last.
    order: Vec<usize>,
}

impl Supervisor {
    async fn run(mut self) {
        let stop = self.stop.clone();
        shuffle(&mut self.order);
        // Dropping the loop at any await is sound: sessions cut their socket when they are dropped.
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.keep_connected() => {}
        }
        let last = self.state.send_replace(LinkState::Closed);
        if let Some(session) = last.session() {
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
            let problem = MessagingError::Unavailable {
                operation: "keep the connection".to_owned(),
                brokers: session.broker.clone(),
                last_problem: why,
            };
            self.state.send_replace(LinkState::Down {
                problem: Some(problem),
            });
            let options = &self.dialer.options;
            // What was lost is tried last, and all services come back at different times if asked
            // to.
            tokio::time::sleep(options.reconnect_delay + part_of(options.reconnect_splay)).await;
        }
    }

    /// Tries all brokers, round after round, until one accepts us.
    async fn connect(&mut self) -> Arc<BrokerSession> {
        loop {
            if self.dialer.options.failover == FailoverStrategy::Shuffle {
                shuffle(&mut self.order);
            }
            let mut unreached = Vec::new();
            for _ in 0..self.order.len() {
                let host = &self.dialer.url.hosts()[self.order[0]];
                match self.dialer.dial(host, self.purpose, self.next_id).await {
                    Ok(session) => {
                        self.next_id += 1;
                        tracing::info!(
                            broker = %session.broker, purpose = self.purpose.as_str(),
                            "connected to the broker"
                        );
                        return Arc::new(session);
                    }
                    Err(DialFailure { error, reached }) => {
                        tracing::warn!(
                            broker = %host, purpose = self.purpose.as_str(), code = error.code(), %error,
                            "cannot connect to the broker"
                        );
                        if !reached {
                            unreached.push(self.order[0]);
                        }
                        self.state.send_replace(LinkState::Down {
                            problem: Some(error),
                        });
                        self.order.rotate_left(1);
                    }
                }
            }
            let pause = pause(&self.dialer.options, self.failures);
            self.failures = self.failures.saturating_add(1);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                back = self.first_to_accept(&unreached) => {
                    // A broker that comes back starts with short pauses, and is tried first.
                    self.failures = 0;
                    self.order.retain(|place| *place != back);
                    self.order.insert(0, back);
                    let splay = part_of(self.dialer.options.reconnect_splay);
                    tokio::time::sleep(splay).await;
                }
            }
        }
    }

    /// Waits until one of these brokers, whose ports refused the last connection, accepts
    /// connections.
    async fn first_to_accept(&self, unreached: &[usize]) -> usize {
        loop {
            tokio::time::sleep(LOOK_AT_PORT).await;
            for place in unreached {
                if accepts_connections(&self.dialer.url.hosts()[*place]).await {
                    return *place;
                }
            }
        }
    }

    /// Shows the session to its users until it is lost, and says why it was.
    async fn watch_over(&mut self, session: &Arc<BrokerSession>) -> String {
        let mut events = session.events();
        self.state.send_replace(LinkState::Up(Arc::clone(session)));
        let mut proven = std::pin::pin!(tokio::time::sleep(PROVEN));
        let mut is_proven = false;
        loop {
            tokio::select! {
                () = &mut proven, if !is_proven => {
                    is_proven = true;
                    self.failures = 0;
                }
                event = session.wait(&mut events) => match event {
                    SessionEvent::Lost(why) => {
                        // Another broker first, if there is one.
                        self.order.rotate_left(1);
                        return why;
                    }
                    SessionEvent::Blocked(reason) => {
                        tracing::warn!(broker = %session.broker, %reason, "the broker takes no messages for now");
                        self.state.send_replace(LinkState::Blocked(Arc::clone(session), reason));
                    }
                    SessionEvent::Unblocked => {
                        tracing::info!(broker = %session.broker, "the broker takes messages again");
                        self.state.send_replace(LinkState::Up(Arc::clone(session)));
                    }
                }
            }
        }
    }
}

/// The pause after this many full rounds without success, as kombu counts it.
fn pause(options: &crate::RabbitOptions, failures: u32) -> Duration {
    let longest = options.interval_max.max(options.retry_interval);
    (options.retry_interval + options.retry_backoff.saturating_mul(failures)).min(longest)
}

/// A random part of a time.
fn part_of(whole: Duration) -> Duration {
    whole.mul_f64(ids::fraction())
}

/// Fisher and Yates.
fn shuffle(order: &mut [usize]) {
    for last in (1..order.len()).rev() {
        let bound = u64::try_from(last).unwrap_or(u64::MAX - 1) + 1;
        let other = usize::try_from(ids::seed() % bound).unwrap_or(0);
        order.swap(last, other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RabbitOptions;

    #[test]
    fn a_random_part_can_be_short_or_long() {
        let whole = Duration::from_secs(4);
        let parts: Vec<Duration> = (0..1000).map(|_| part_of(whole)).collect();
        assert!(parts.iter().any(|part| *part < whole / 4));
        assert!(parts.iter().any(|part| *part > whole / 4 * 3));
        assert!(parts.iter().all(|part| *part < whole));
    }

    #[test]
    fn pauses_grow_by_the_backoff_up_to_the_longest() {
        let options = RabbitOptions::default();
        let seconds: Vec<u64> = (0..17).map(|n| pause(&options, n).as_secs()).collect();
        assert_eq!(seconds[..4], [1, 3, 5, 7]);
        assert_eq!(seconds[15..], [30, 30]);
        assert_eq!(pause(&options, u32::MAX).as_secs(), 30);
    }

    #[test]
    fn a_shuffled_order_still_names_every_broker_once() {
        for count in 0..6 {
            let mut order: Vec<usize> = (0..count).collect();
            shuffle(&mut order);
            order.sort_unstable();
            assert_eq!(order, (0..count).collect::<Vec<_>>());
        }
        assert!(part_of(Duration::from_secs(3)) < Duration::from_secs(3));
    }
}
