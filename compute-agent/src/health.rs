//! What this process knows of its agents: for each host, whether its session is alive, whether it
//! takes commands, and what it did. Pages for Prometheus and load balancers ([`pages`]), and the
//! watchdog of systemd, read it.

mod metrics;
pub mod pages;

use crate::driver::DriverError;
use crate::error::AgentError;
use ebbtide_bus::BusStatus;
use ebbtide_runtime::clock;
use metrics::Metrics;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// A session shows a sign of life at each look at its servers. One that misses so many is stuck.
const MISSED_LOOKS: u32 = 4;
/// A session may be silent for this long in any case: a slow disk is not a stuck agent.
const SILENCE: Duration = Duration::from_secs(30);

/// The health of all agents of this process. Cheap to clone; all clones are one.
#[derive(Debug, Clone, Default)]
pub struct Health(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    hosts: Mutex<BTreeMap<String, HostState>>,
    metrics: Metrics,
    changed: Notify,
}

/// What is known of one host's agent.
#[derive(Debug)]
struct HostState {
    /// The last sign of life of the open session; `None` while no session is open or it is ending.
    beat: Option<Instant>,
    /// A session that is silent for so long is stuck.
    patience: Duration,
    bus: watch::Receiver<BusStatus>,
    /// Whether the agent is the consumer of its host's queue.
    consumes: bool,
    /// Why the hypervisor's servers could not be listed the last time.
    unlisted: Option<String>,
    /// Why there is no open session.
    closed: Option<String>,
}

impl Health {
    /// Hosts whose session shows no sign of life.
    #[must_use]
    pub fn stuck(&self) -> Vec<String> {
        let now = clock::timer();
        let hosts = self.hosts();
        let stuck = hosts.iter().filter(|(_, state)| {
            let silent = |beat| now.saturating_duration_since(beat) > state.patience;
            state.beat.is_some_and(silent)
        });
        stuck.map(|(host, _)| host.clone()).collect()
    }

    /// Why the agents cannot do all of their work now, one reason for each host concerned. No host
    /// at all is a reason, too.
    #[must_use]
    pub fn not_ready(&self) -> Vec<String> {
        let stuck = self.stuck();
        let hosts = self.hosts();
        if hosts.is_empty() {
            return vec!["no host is known yet".to_owned()];
        }
        let reasons = hosts.iter().filter_map(|(host, state)| {
            let why = state.not_ready(stuck.contains(host))?;
            Some(format!("{host}: {why}"))
        });
        reasons.collect()
    }

    /// Waits until at least one agent has an open session.
    pub async fn opened(&self) {
        loop {
            let changed = self.0.changed.notified();
            if self.hosts().values().any(|state| state.beat.is_some()) {
                return;
            }
            changed.await;
        }
    }

    /// The metrics as OpenMetrics text.
    #[must_use]
    pub fn metrics(&self) -> String {
        let stuck = self.stuck();
        for (host, state) in self.hosts().iter() {
            let ready = state.not_ready(stuck.contains(host)).is_none();
            self.0.metrics.set_ready(host, ready);
        }
        self.0.metrics.text()
    }

    /// A session of `host` opens. `poll_interval` is the time between two looks at its servers.
    pub(crate) fn open(
        &self,
        host: &str,
        poll_interval: Duration,
        bus: watch::Receiver<BusStatus>,
    ) -> HostHealth {
        let state = HostState {
            beat: Some(clock::timer()),
            patience: (poll_interval * MISSED_LOOKS).max(SILENCE),
            bus,
            consumes: false,
            unlisted: None,
            closed: None,
        };
        self.hosts().insert(host.to_owned(), state);
        self.0.metrics.begin(host);
        self.0.changed.notify_waiters();
        HostHealth {
            health: self.clone(),
            host: host.to_owned(),
        }
    }

    /// There is no session of `host` because of `error`.
    pub(crate) fn closed(&self, host: &str, error: &AgentError) {
        if let Some(state) = self.hosts().get_mut(host) {
            state.closed = Some(format!("{}: {error}", error.code()));
        }
    }

    fn hosts(&self) -> MutexGuard<'_, BTreeMap<String, HostState>> {
        let hosts = self.0.hosts.lock();
        hosts.unwrap_or_else(PoisonError::into_inner)
    }
}

impl HostState {
    fn not_ready(&self, stuck: bool) -> Option<String> {
        if let Some(why) = &self.closed {
            return Some(why.clone());
        }
        if self.beat.is_none() {
            return Some("it is ending".to_owned());
        }
        if stuck {
            return Some("its session shows no sign of life".to_owned());
        }
        match &*self.bus.borrow() {
            BusStatus::Connected => {}
            BusStatus::Blocked { reason, .. } => {
                return Some(format!("the broker takes no messages: {reason}"));
            }
            BusStatus::Reconnecting {
                attempts,
                last_error,
                ..
            } => {
                let why = last_error.as_deref().unwrap_or("connecting");
                return Some(format!("no broker after {attempts} attempts: {why}"));
            }
            BusStatus::Closed => return Some("the connection is closed".to_owned()),
        }
        if !self.consumes {
            return Some("it does not take the commands of its host".to_owned());
        }
        let unlisted = self.unlisted.as_ref();
        unlisted.map(|error| format!("the hypervisor does not list its servers: {error}"))
    }
}

/// The open session of one host. Dropping it says that the session has ended.
#[derive(Debug)]
pub(crate) struct HostHealth {
    health: Health,
    host: String,
}

impl HostHealth {
    /// A sign of life. `evacuations` are remembered by the agent.
    pub(crate) fn beat(&self, evacuations: usize) {
        self.change(|state| {
            // None: it is ending.
            if let Some(beat) = &mut state.beat {
                *beat = clock::timer();
            }
        });
        let metrics = &self.health.0.metrics;
        metrics.set_evacuations(&self.host, evacuations);
    }

    /// The session takes nothing more and ends what is under way: silence is no fault from now on.
    pub(crate) fn ending(&self) {
        self.change(|state| state.beat = None);
    }

    /// Whether the agent is the consumer of its host's queue.
    pub(crate) fn consumes(&self, consumes: bool) {
        self.change(|state| state.consumes = consumes);
    }

    /// The hypervisor listed its servers, or did not.
    pub(crate) fn listed(&self, error: Option<&DriverError>) {
        let unlisted = error.map(|error| format!("{}: {error}", error.code()));
        self.change(|state| state.unlisted = unlisted);
    }

    /// A command came.
    pub(crate) fn command(&self) {
        self.health.0.metrics.command(&self.host);
    }

    /// A call of the hypervisor ended.
    pub(crate) fn called(&self, good: bool) {
        self.health.0.metrics.called(&self.host, good);
    }

    /// The broker has confirmed a report.
    pub(crate) fn reported(&self) {
        self.health.0.metrics.reported(&self.host);
    }

    fn change(&self, change: impl FnOnce(&mut HostState)) {
        if let Some(state) = self.health.hosts().get_mut(&self.host) {
            change(state);
        }
    }
}

impl Drop for HostHealth {
    fn drop(&mut self) {
        self.change(|state| {
            state.beat = None;
            state.consumes = false;
        });
    }
}

#[cfg(test)]
mod tests;
