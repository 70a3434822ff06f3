//! The simulated driver: a stand-in hypervisor that lives in a file.
//!
//! It keeps its servers across restarts of the agent, takes time to act, gives away no more than it
//! has, and misbehaves on request: see [`faults`] and `ebbtide-agent simulate --help`. Its file is
//! changed under a lock and replaced atomically, so that a person, a test and the agent can work on
//! it at the same time.

pub mod faults;
mod metadata;
mod settings;
mod shared;
mod state;
mod store;

pub use faults::{Faults, FaultyAction, GuestHabit, OnNotice};
pub use settings::SimulatedSettings;
pub use state::{SimulatedGuest, SimulatedNotice, SimulatedState};
pub use store::SimulatedStore;

use super::registry::DriverContext;
use super::storage::SharedStorage;
use super::{Driver, DriverError, GuestNotice, HostFacts, NoticeOutcome, Occupancy, ServerView};
use crate::clock::Clock;
use crate::error::AgentError;
use async_trait::async_trait;
use ebbtide_model::message::{HostedState, Start};
use ebbtide_model::{EvacuationId, ServerId, Timestamp};
use ebbtide_runtime::task;
use metadata::Metadata;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// The simulated hypervisor of one host.
#[derive(Debug)]
pub struct SimulatedDriver {
    settings: SimulatedSettings,
    store: Arc<SimulatedStore>,
    metadata: Option<Metadata>,
    storage: Option<Arc<SharedStorage>>,
    clock: Arc<dyn Clock>,
}

pub(super) fn build(context: &DriverContext) -> Result<Arc<dyn Driver>, AgentError> {
    let settings = SimulatedSettings::from_table(&context.settings)?;
    let dir = settings.dir.as_deref().unwrap_or(&context.state_dir);
    let store = SimulatedStore::open(dir)?;
    let clock = Arc::clone(&context.clock);
    let storage = settings.storage.clone();
    let storage = storage.map(|s| SharedStorage::open(s, &context.host));
    let mut driver = SimulatedDriver::new(settings, store, clock);
    driver.storage = storage.transpose()?.map(Arc::new);
    Ok(Arc::new(driver))
}

pub(super) fn check_settings(settings: &toml::Table) -> Result<(), AgentError> {
    SimulatedSettings::from_table(settings).map(drop)
}

impl SimulatedDriver {
    /// A hypervisor with these settings on this file.
    #[must_use]
    pub fn new(settings: SimulatedSettings, store: SimulatedStore, clock: Arc<dyn Clock>) -> Self {
        let store = Arc::new(store);
        let metadata = settings
            .metadata_dir
            .clone()
            .map(|dir| Metadata::new(dir, Arc::clone(&store), Arc::clone(&clock)));
        Self {
            settings,
            store,
            metadata,
            storage: None,
            clock,
        }
    }

    /// The same with a storage that it shares with others.
    #[must_use]
    pub fn sharing(mut self, storage: SharedStorage) -> Self {
        self.storage = Some(Arc::new(storage));
        self
    }

    /// Reads or changes the state outside the async threads. First applies what guests have done by
    /// themselves meanwhile.
    async fn change<T: Send + 'static>(
        &self,
        what: FaultyAction,
        change: impl FnOnce(&mut SimulatedState, Timestamp) -> T + Send + 'static,
    ) -> Result<T, DriverError> {
        let store = Arc::clone(&self.store);
        let now = self.clock.now();
        let changed = task::blocking_io(move || {
            store.change(|state| {
                state.live_on(now);
                change(state, now)
            })
        });
        changed.await.map_err(|error| Self::broken(what, &error))
    }

    fn broken(what: FaultyAction, error: &io::Error) -> DriverError {
        DriverError::Failed {
            what: what.words(),
            detail: format!("its state file cannot be used: {error}"),
        }
    }

    /// Waits as long as the action takes, or injects the configured fault.
    async fn begin(&self, what: FaultyAction) -> Result<(), DriverError> {
        let plan = self
            .change(what, move |state, _| state.faults.next(what))
            .await?;
        if plan.hangs {
            tracing::info!(action = %what, "the simulated hypervisor hangs, as it was told to");
            return std::future::pending().await;
        }
        let duration = self.settings.duration(what) + plan.extra;
        if duration > Duration::ZERO {
            tokio::time::sleep(duration).await;
        }
        if plan.fails {
            return Err(DriverError::Failed {
                what: what.words(),
                detail: "it was told to fail (ebbtide-agent simulate … fail)".to_owned(),
            });
        }
        Ok(())
    }

    async fn act<T: Send + 'static>(
        &self,
        what: FaultyAction,
        effect: impl FnOnce(&mut SimulatedState, Timestamp) -> Result<T, DriverError> + Send + 'static,
    ) -> Result<T, DriverError> {
        self.begin(what).await?;
        self.change(what, effect).await?
    }
}

impl SimulatedDriver {
    async fn begin_or_go_on(&self, start: &Start) -> Result<Timestamp, DriverError> {
        let (server_id, named) = (start.server_id, start.storage.as_deref());
        // A scheduler without support for shared storage asks the host that has kept the server.
        let ours = start.resume
            && named.is_none()
            && self
                .find_saved(server_id, FaultyAction::Start)
                .await?
                .is_some();
        match &self.storage {
            Some(storage) if start.resume && (ours || storage.is_named(named)) => {
                self.take_over(storage, server_id).await?;
            }
            // A server that is kept on a storage without access from this host cannot resume here.
            _ if start.resume && named.is_some() => {
                return Err(DriverError::NotFound { server_id });
            }
            _ if start.resume => {}
            _ => self.hold_token(start).await?,
        }
        let (id, start) = (start.server_id, start.clone());
        let inventory = self.settings.facts().inventory;
        // The capacity is checked when the start takes effect, not when it is requested.
        let effect = move |state: &mut SimulatedState, now| state.start(&start, &inventory, now);
        let since = self.act(FaultyAction::Start, effect).await?;
        self.runs_now(id).await?;
        Ok(since)
    }

    async fn halt(
        &self,
        id: ServerId,
        what: FaultyAction,
        state: HostedState,
    ) -> Result<(), DriverError> {
        let end = move |hypervisor: &mut SimulatedState, _| hypervisor.halt(id, state);
        match self.act(what, end).await {
            Ok(()) => self.save_to_storage(id, what).await.map(drop),
            // The server was dropped here, and its token may still have to be released.
            Err(DriverError::NotFound { .. }) if self.save_to_storage(id, what).await? => Ok(()),
            refused => refused,
        }
    }

    async fn delete_with(&self, id: ServerId, storage: Option<&str>) -> Result<(), DriverError> {
        let end = move |state: &mut SimulatedState, _| state.remove(id);
        let ended = self.act(FaultyAction::Delete, end).await;
        match ended {
            Ok(()) | Err(DriverError::NotFound { .. }) => {}
            failed => return failed,
        }
        match self.delete_saved_server(id, storage).await? {
            true => Ok(()),
            false => ended,
        }
    }
}

#[async_trait]
impl Driver for SimulatedDriver {
    fn name(&self) -> &'static str {
        "simulated"
    }

    async fn health(&self) -> Result<(), DriverError> {
        self.change(FaultyAction::List, |_, _| ()).await
    }

    async fn inventory(&self) -> Result<HostFacts, DriverError> {
        let mut facts = self.settings.facts();
        facts.storage = self.storage.as_ref().map(|s| s.name().to_owned());
        Ok(facts)
    }

    async fn list(&self) -> Result<Vec<ServerView>, DriverError> {
        let list = |state: &mut SimulatedState, _| Ok(state.views());
        // A server is on the storage before it is dropped here, so the hypervisor is asked first.
        let mut views = self.act(FaultyAction::List, list).await?;
        for kept in self.list_saved().await? {
            if !views.iter().any(|view| view.server_id == kept.server_id) {
                views.push(kept);
            }
        }
        if let Some(metadata) = &self.metadata {
            let running = views.iter().filter(|v| v.state == HostedState::Running);
            let running: Vec<ServerId> = running.map(|view| view.server_id).collect();
            metadata.serve(&running);
        }
        Ok(views)
    }

    async fn occupancy(&self, server_id: ServerId) -> Result<Occupancy, DriverError> {
        let look = move |state: &mut SimulatedState, _| Ok(state.occupancy(server_id));
        match self.act(FaultyAction::Look, look).await? {
            Occupancy::Present {
                state: HostedState::Running,
                holds,
                since,
            } => Ok(Occupancy::Present {
                state: HostedState::Running,
                holds,
                since,
            }),
            here => self.look_on_storage(server_id, here).await,
        }
    }

    async fn start(&self, start: &Start) -> Result<Timestamp, DriverError> {
        let id = start.server_id;
        let begun = self.begin_or_go_on(start).await;
        match begun {
            Err(error) if start.resume => {
                // Releases the token before it reports that the server does not run here, so that
                // another host can take it.
                self.save_to_storage(id, FaultyAction::Start).await?;
                Err(self.unless_held(id, error).await?)
            }
            begun => begun,
        }
    }

    async fn give_notice(
        &self,
        server_id: ServerId,
        notice: &GuestNotice,
    ) -> Result<NoticeOutcome, DriverError> {
        let notice = notice.clone();
        let tell =
            move |state: &mut SimulatedState, now| state.give_notice(server_id, &notice, now);
        self.act(FaultyAction::Notice, tell).await
    }

    async fn withdraw_notice(
        &self,
        server_id: ServerId,
        evacuation_id: EvacuationId,
    ) -> Result<(), DriverError> {
        let tell = move |state: &mut SimulatedState, _| state.withdraw(server_id, evacuation_id);
        self.act(FaultyAction::Withdraw, tell).await
    }

    async fn terminate(&self, server_id: ServerId) -> Result<(), DriverError> {
        let end = move |state: &mut SimulatedState, _| state.remove(server_id);
        self.act(FaultyAction::Terminate, end).await?;
        self.delete_saved_server(server_id, None).await.map(drop)
    }

    async fn stop(&self, server_id: ServerId) -> Result<(), DriverError> {
        self.halt(server_id, FaultyAction::Stop, HostedState::Stopped)
            .await
    }

    async fn hibernate(&self, server_id: ServerId) -> Result<(), DriverError> {
        self.halt(server_id, FaultyAction::Hibernate, HostedState::Hibernated)
            .await
    }

    async fn delete(&self, server_id: ServerId) -> Result<(), DriverError> {
        self.delete_with(server_id, None).await
    }

    async fn delete_saved(&self, server_id: ServerId, storage: &str) -> Result<(), DriverError> {
        self.delete_with(server_id, Some(storage)).await
    }

    async fn saved_storage(&self, server_id: ServerId) -> Option<String> {
        let kept = self.find_saved(server_id, FaultyAction::Look).await.ok()?;
        let storage = self.storage.as_ref()?;
        kept.map(|_| storage.name().to_owned())
    }
}

#[cfg(test)]
mod tests;
