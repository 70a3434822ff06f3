//! The shell around the pure protocol: takes commands from the bus, calls the driver, writes the
//! journal, sends reports.
//!
//! One task owns the protocol's state and does one thing after the other (`session.rs`); a second
//! one publishes in order (`publisher.rs`); calls of the driver run beside them. A journal that
//! cannot be written ends the session like a crash would: all deliveries go back to their queue,
//! and the agent begins anew from what is durable.

mod drive;
mod fail_points;
mod lock;
mod publisher;
mod session;
mod steps;
mod traces;

use crate::clock::{Clock, SystemClock};
use crate::driver::Driver;
use crate::error::AgentError;
use crate::fence::Fence;
use crate::health::Health;
use crate::journal::{self, FileStorage, Storage};
use crate::protocol::AgentPolicy;
use ebbtide_bus::{Bus, QueuePrefix};
use ebbtide_runtime::ids;
use lock::StateLock;
use publisher::SenderIdentity;
use session::{AgentSession, SessionEnd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Pause before the agent tries again to write its journal.
const JOURNAL_RETRY: Duration = Duration::from_secs(5);

/// Settings of an agent. Start from [`AgentConfig::new`] and change what differs.
#[derive(Debug, Clone)]
pub struct AgentConfig {
    /// The host for which it speaks; see [`ebbtide_model::names::check_host_name`].
    pub host: String,
    /// Directory of journal and lock; created if it does not exist.
    pub state_dir: PathBuf,
    /// The first part of all queue names; the same as the scheduler's.
    pub queue_prefix: QueuePrefix,
    /// Maximum number of unsettled commands. A notice is unsettled until its victim has ended.
    pub prefetch: u16,
    /// Time between two heartbeats if nothing changes.
    pub heartbeat_interval: Duration,
    /// Time between two looks at the servers.
    pub poll_interval: Duration,
    /// A call of the driver that takes longer counts as failed.
    pub action_timeout: Duration,
    /// Time limit for running calls and reports at shutdown.
    pub shutdown_grace: Duration,
    /// Numbers of tries and time limits. Its `fence_tries` applies to `fence`.
    pub policy: AgentPolicy,
    /// The operator's fence, if there is one: it ends a victim that the driver cannot end.
    pub fence: Option<Fence>,
}

impl AgentConfig {
    /// The defaults of the configuration file.
    #[must_use]
    pub fn new(host: impl Into<String>, state_dir: impl Into<PathBuf>) -> Self {
        Self {
            host: host.into(),
            state_dir: state_dir.into(),
            queue_prefix: QueuePrefix::default(),
            prefetch: 4_096,
            heartbeat_interval: Duration::from_secs(10),
            poll_interval: Duration::from_secs(1),
            action_timeout: Duration::from_secs(120),
            shutdown_grace: Duration::from_secs(10),
            policy: AgentPolicy::default(),
            fence: None,
        }
    }
}

type StorageMaker = Box<dyn Fn(&Path) -> Box<dyn Storage> + Send + Sync>;

/// One compute agent.
pub struct Agent {
    config: AgentConfig,
    bus: Arc<dyn Bus>,
    driver: Arc<dyn Driver>,
    clock: Arc<dyn Clock>,
    storage: StorageMaker,
    health: Health,
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl Agent {
    /// An agent that drives `driver`, with the wall clock and its journal in a file.
    #[must_use]
    pub fn new(config: AgentConfig, bus: Arc<dyn Bus>, driver: Arc<dyn Driver>) -> Self {
        Self {
            config,
            bus,
            driver,
            clock: Arc::new(SystemClock),
            storage: Box::new(|path| Box::new(FileStorage::new(path))),
            health: Health::default(),
        }
    }

    /// With another clock.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Its health is told to `health`, which the agents of a process share.
    #[must_use]
    pub fn with_health(mut self, health: Health) -> Self {
        self.health = health;
        self
    }

    /// With its journal elsewhere than in a file; the function is given the path that the file
    /// would have.
    #[must_use]
    pub fn with_storage(
        mut self,
        storage: impl Fn(&Path) -> Box<dyn Storage> + Send + Sync + 'static,
    ) -> Self {
        self.storage = Box::new(storage);
        self
    }

    /// [`Agent::new`] and [`Agent::serve`] in one.
    ///
    /// # Errors
    /// Those of [`Agent::serve`].
    pub async fn run(
        config: AgentConfig,
        bus: Arc<dyn Bus>,
        driver: Arc<dyn Driver>,
        shutdown: CancellationToken,
    ) -> Result<(), AgentError> {
        Self::new(config, bus, driver).serve(shutdown).await
    }

    /// Works until `shutdown` is cancelled, then stops taking commands, lets what is under way end
    /// (within `shutdown_grace`) and closes the bus. Evacuations go on when an agent is started on
    /// the same state again.
    ///
    /// A broker that is away, at the start or later, is waited for; meanwhile evacuations that have
    /// begun go on.
    ///
    /// # Errors
    /// What waiting does not heal: [`AgentError::Config`], [`AgentError::AlreadyRunning`],
    /// [`AgentError::Io`], [`AgentError::JournalCorrupt`], [`AgentError::JournalForeign`],
    /// [`AgentError::Bus`].
    pub async fn serve(self, shutdown: CancellationToken) -> Result<(), AgentError> {
        let served = Box::pin(self.serve_locked(shutdown)).await;
        self.bus.close().await;
        served
    }

    async fn serve_locked(&self, shutdown: CancellationToken) -> Result<(), AgentError> {
        let host = &self.config.host;
        ebbtide_model::names::check_host_name(host)
            .map_err(|error| AgentError::config("host", error.to_string()))?;
        self.config
            .policy
            .check()
            .map_err(|(key, problem)| AgentError::config(format!("evacuation.{key}"), problem))?;
        let _lock = StateLock::take(&self.config.state_dir)?;
        let identity = SenderIdentity::new(host, ids::new());
        tracing::info!(
            host, driver = self.driver.name(), session = %identity.session,
            state_dir = %self.config.state_dir.display(), "the agent starts"
        );
        let path = journal::path_in(&self.config.state_dir);
        loop {
            let storage = (self.storage)(&path);
            let session = AgentSession::open(self, storage, identity.clone());
            let end = match Box::pin(session).await {
                Ok(session) => Box::pin(session.run(&shutdown)).await?,
                // Waiting does not resolve an error at the start; the operator has to act.
                Err(error) => return Err(error),
            };
            match end {
                SessionEnd::Shutdown => {
                    tracing::info!(host, "the agent has ended");
                    return Ok(());
                }
                SessionEnd::JournalBroken(error) => {
                    tracing::error!(code = error.code(), host, "{error}");
                    self.health.closed(host, &error);
                    tokio::select! {
                        () = tokio::time::sleep(JOURNAL_RETRY) => {}
                        () = shutdown.cancelled() => return Ok(()),
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
