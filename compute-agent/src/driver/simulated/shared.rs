//! Servers of a simulated hypervisor whose place is on shared storage. Called while the
//! hypervisor's file is locked; what is in the file rules, and the token says what is kept.

use super::SimulatedDriver;
use super::faults::FaultyAction;
use super::state::SimulatedGuest;
use crate::driver::storage::{SharedStorage, TokenClaim, unusable};
use crate::driver::{DriverError, Occupancy, ServerView};
use ebbtide_model::ServerId;
use ebbtide_model::message::{HostedState, Start};
use ebbtide_runtime::task;
use std::io;
use std::sync::Arc;

/// The data of a server under its token. `state` is `running` while a host runs it: then it cannot
/// resume from these data.
pub(super) type StoredGuest = SimulatedGuest;

impl SimulatedDriver {
    /// Accesses the storage outside the async threads. Only with a storage.
    async fn on_storage<T: Send + 'static>(
        &self,
        storage: &Arc<SharedStorage>,
        what: FaultyAction,
        work: impl FnOnce(&SharedStorage) -> io::Result<T> + Send + 'static,
    ) -> Result<T, DriverError> {
        let storage = Arc::clone(storage);
        let done = task::blocking_io(move || work(&storage)).await;
        done.map_err(|error| unusable(what.words(), &error))
    }

    /// Creates the token of a server that begins here.
    pub(super) async fn hold_token(&self, start: &Start) -> Result<(), DriverError> {
        let Some(storage) = self.storage.as_ref().filter(|_| start.preemptible) else {
            return Ok(());
        };
        let (id, guest) = (start.server_id, SimulatedGuest::of(start, self.clock.now()));
        let hold = move |storage: &SharedStorage| match storage.held::<StoredGuest>(id)? {
            Some(_) => Ok(()),
            None => storage.write(id, &guest),
        };
        self.on_storage(storage, FaultyAction::Start, hold).await
    }

    /// Takes the token of a server to be resumed, and adds the server to the hypervisor's file,
    /// where it does not run yet.
    pub(super) async fn take_over(
        &self,
        storage: &Arc<SharedStorage>,
        id: ServerId,
    ) -> Result<(), DriverError> {
        let take = move |storage: &SharedStorage| match storage.take(id)? {
            TokenClaim::Ours => Ok(Ok(storage.held::<StoredGuest>(id)?)),
            TokenClaim::Theirs(host) => Ok(Err(DriverError::HeldElsewhere {
                server_id: id,
                host,
            })),
            TokenClaim::Unclaimed => Ok(Err(DriverError::NotFound { server_id: id })),
        };
        let known = self.on_storage(storage, FaultyAction::Start, take);
        let known = known.await??;
        let here = self
            .change(FaultyAction::Start, move |state, _| {
                state.servers.contains_key(&id)
            })
            .await?;
        // It was lost while it ran, so it cannot resume.
        let known = known.filter(|known| here || known.state != HostedState::Running);
        let Some(known) = known else {
            return Err(DriverError::NotFound { server_id: id });
        };
        self.change(FaultyAction::Start, move |state, _| {
            state.servers.entry(id).or_insert(known);
        })
        .await
    }

    /// Records that the server runs here, so that its kept state is obsolete.
    pub(super) async fn runs_now(&self, id: ServerId) -> Result<(), DriverError> {
        let Some(storage) = &self.storage else {
            return Ok(());
        };
        let note = move |storage: &SharedStorage| match storage.held::<StoredGuest>(id)? {
            Some(mut known) => {
                known.state = HostedState::Running;
                storage.write(id, &known)
            }
            None => Ok(()),
        };
        self.on_storage(storage, FaultyAction::Start, note).await
    }

    /// Keeps a server that does not run and whose token this host holds: writes its data, drops it
    /// here and releases the token. True if it is kept on the storage.
    pub(super) async fn save_to_storage(
        &self,
        id: ServerId,
        what: FaultyAction,
    ) -> Result<bool, DriverError> {
        let Some(storage) = &self.storage else {
            return Ok(false);
        };
        let held = move |storage: &SharedStorage| storage.held::<StoredGuest>(id);
        let Some(held) = self.on_storage(storage, what, held).await? else {
            let known = move |storage: &SharedStorage| storage.known::<StoredGuest>(id);
            return Ok(self.on_storage(storage, what, known).await?.is_some());
        };
        let guest = self
            .change(what, move |state, _| state.servers.get(&id).cloned())
            .await?;
        match guest {
            Some(guest) if guest.state == HostedState::Running => return Ok(false),
            Some(guest) => {
                let write = move |storage: &SharedStorage| storage.write(id, &guest);
                self.on_storage(storage, what, write).await?;
                self.change(what, move |state, _| drop(state.servers.remove(&id)))
                    .await?;
            }
            // It was lost while it ran, so it cannot resume.
            None if held.state == HostedState::Running => return Ok(false),
            None => {}
        }
        let release_token = move |storage: &SharedStorage| storage.release_token(id);
        self.on_storage(storage, what, release_token).await?;
        Ok(true)
    }

    /// The error of a failed start; a passing one as long as this host holds the token.
    pub(super) async fn unless_held(
        &self,
        id: ServerId,
        error: DriverError,
    ) -> Result<DriverError, DriverError> {
        let what = FaultyAction::Start;
        let Some(storage) = &self.storage else {
            return Ok(error);
        };
        let held = move |storage: &SharedStorage| storage.held::<StoredGuest>(id);
        Ok(match self.on_storage(storage, what, held).await? {
            Some(_) => DriverError::Failed {
                what: what.words(),
                detail: error.to_string(),
            },
            None => error,
        })
    }

    /// The kept state of a server that does not run and whose token this host holds or was the last
    /// to release.
    pub(super) async fn find_saved(
        &self,
        id: ServerId,
        what: FaultyAction,
    ) -> Result<Option<StoredGuest>, DriverError> {
        let Some(storage) = &self.storage else {
            return Ok(None);
        };
        let known = move |storage: &SharedStorage| storage.known::<StoredGuest>(id);
        let known = self.on_storage(storage, what, known).await?;
        Ok(known.filter(|known| known.state != HostedState::Running))
    }

    /// The same for all servers.
    pub(super) async fn list_saved(&self) -> Result<Vec<ServerView>, DriverError> {
        let Some(storage) = &self.storage else {
            return Ok(Vec::new());
        };
        let all = |storage: &SharedStorage| {
            let mut views = Vec::new();
            for server_id in storage.ours()? {
                if let Some(known) = storage.known::<StoredGuest>(server_id)?
                    && known.state != HostedState::Running
                {
                    views.push(ServerView {
                        server_id,
                        state: known.state,
                        released: None,
                        facts: None,
                    });
                }
            }
            Ok(views)
        };
        self.on_storage(storage, FaultyAction::List, all).await
    }

    /// Result of a look for a server that does not run here. Releases an unused token first: the
    /// scheduler may ask another host as soon as it hears that the server does not run here.
    pub(super) async fn look_on_storage(
        &self,
        id: ServerId,
        here: Occupancy,
    ) -> Result<Occupancy, DriverError> {
        let what = FaultyAction::Look;
        if self.find_saved(id, what).await?.is_none() {
            return Ok(here);
        }
        self.save_to_storage(id, what).await?;
        let known = self.find_saved(id, what).await?;
        Ok(known.map_or(Occupancy::Absent, |known| Occupancy::Present {
            state: known.state,
            holds: known.holds(),
            since: known.since,
        }))
    }

    /// Takes the token of a server that is to be deleted with its kept state, and deletes it. True
    /// if there was one.
    pub(super) async fn delete_saved_server(
        &self,
        id: ServerId,
        named: Option<&str>,
    ) -> Result<bool, DriverError> {
        let Some(storage) = &self.storage else {
            return Ok(false);
        };
        let all = storage.is_named(named);
        let clear = move |storage: &SharedStorage| {
            let held = match all {
                true => storage.take(id)?,
                false if storage.take_own(id)? => TokenClaim::Ours,
                false => TokenClaim::Unclaimed,
            };
            if held == TokenClaim::Ours {
                storage.delete_token(id)?;
            }
            Ok(held)
        };
        match self
            .on_storage(storage, FaultyAction::Delete, clear)
            .await?
        {
            TokenClaim::Ours => Ok(true),
            TokenClaim::Unclaimed => Ok(false),
            TokenClaim::Theirs(host) => Err(DriverError::HeldElsewhere {
                server_id: id,
                host,
            }),
        }
    }
}
