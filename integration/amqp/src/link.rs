//! A link: one connection that is kept alive for ever by a supervisor task.
//!
//! The link shows the living [`BrokerSession`] through a watch channel. A task that needs the
//! broker takes the current session and, when it fails, waits for the next one.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ebbtide_runtime::task::{self, Task};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::supervise::Supervisor;
use crate::{Backoff, BrokerSession, ClientError, ConnectionPurpose, Dialer, HostChoice};

/// The state of a link, as its users see it.
#[derive(Debug, Clone)]
pub enum LinkState<E> {
    /// No connection.
    Down {
        /// The outcome of the last attempt, or why the connection was lost.
        problem: Option<E>,
        /// All hosts answered in the last round, and all of them refused the client.
        refused_by_all: bool,
    },
    /// Connected.
    Up(Arc<BrokerSession>),
    /// Connected, but the broker takes no messages for now; with its reason.
    Blocked(Arc<BrokerSession>, String),
    /// The supervisor has ended.
    Closed,
}

impl<E> LinkState<E> {
    /// The living session, if there is one.
    #[must_use]
    pub fn session(&self) -> Option<&Arc<BrokerSession>> {
        match self {
            Self::Up(session) | Self::Blocked(session, _) => Some(session),
            Self::Down { .. } | Self::Closed => None,
        }
    }
}

/// A change of a link, for a client that reports its status. It comes before the state shows it.
#[derive(Debug)]
pub enum LinkEvent<'a, E> {
    /// Connected, or the broker takes messages again.
    Ready,
    /// The broker takes no messages for now, for this reason.
    Blocked(&'a str),
    /// An attempt to connect to this broker has failed.
    Failed(&'a str, &'a E),
    /// The connection was lost, for this reason.
    Lost(&'a str),
    /// The supervisor ends.
    Closed,
}

/// What distinguishes one link from another.
pub struct LinkPolicy {
    /// The name of the supervisor's task.
    pub task: &'static str,
    /// The use of the connection.
    pub purpose: ConnectionPurpose,
    /// The pauses between attempts.
    pub backoff: Box<dyn Backoff>,
    /// The order of the hosts.
    pub hosts: Box<dyn HostChoice>,
    /// Interval of probes of the ports that refused the last connection. A pause between two rounds
    /// ends early when one of them accepts connections. `None`: no probes.
    pub port_probe: Option<Duration>,
}

/// A handle on a supervised connection.
#[derive(Debug)]
pub struct Link<E> {
    state: watch::Receiver<LinkState<E>>,
    supervisor: Mutex<Option<Task>>,
}

impl<E: ClientError> Link<E> {
    /// Starts the supervisor. It ends when `stop` is cancelled. To be called inside a tokio
    /// runtime.
    pub fn start(
        dialer: Arc<Dialer>,
        policy: LinkPolicy,
        observer: impl Fn(LinkEvent<'_, E>) + Send + Sync + 'static,
        stop: CancellationToken,
    ) -> Self {
        let (sender, state) = watch::channel(LinkState::Down {
            problem: None,
            refused_by_all: false,
        });
        let (name, purpose) = (policy.task, policy.purpose.as_str());
        let supervisor = Supervisor {
            dialer,
            policy,
            observer,
            stop,
            state: sender,
            next_id: 1,
        };
        let task = task::spawn_for(name, purpose, supervisor.run());
        Self {
            state,
            supervisor: Mutex::new(Some(task)),
        }
    }

    /// Waits for a living session. `None` when the link is closed.
    pub async fn session(&self) -> Option<Arc<BrokerSession>> {
        // Ids begin at 1.
        self.session_after(0).await
    }

    /// Waits for a session that is younger than the one with this id. `None` when the link is
    /// closed.
    pub async fn session_after(&self, id: u64) -> Option<Arc<BrokerSession>> {
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
    #[must_use]
    pub fn current(&self) -> Option<Arc<BrokerSession>> {
        self.state.borrow().session().cloned()
    }

    /// The state of the link, for callers that need more than living sessions.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<LinkState<E>> {
        self.state.clone()
    }

    /// Why the link is down, if it is down and the reason is known.
    #[must_use]
    pub fn problem(&self) -> Option<E> {
        match &*self.state.borrow() {
            LinkState::Down { problem, .. } => problem.clone(),
            LinkState::Up(_) | LinkState::Blocked(..) | LinkState::Closed => None,
        }
    }

    /// Waits for the supervisor, whose token has been cancelled.
    pub async fn finish(&self, grace: Duration) {
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
