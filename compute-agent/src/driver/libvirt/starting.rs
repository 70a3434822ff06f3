//! Starts and resumes servers.

use super::records::Note;
use super::snapshot::Snapshot;
use super::virsh::VirshRefusal;
use super::{LibvirtDriver, disk, inventory, names};
use crate::driver::DriverError;
use ebbtide_model::message::{HostedState, Start};
use ebbtide_model::{Resources, ServerId, Timestamp};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

const WHAT: &str = "start the server";

/// Capacity that is reserved for a running start. Released when the start ends or is dropped.
#[derive(Debug)]
struct Claim<'a> {
    claims: &'a Mutex<BTreeMap<ServerId, Resources>>,
    server_id: ServerId,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        claims.remove(&self.server_id);
    }
}

impl LibvirtDriver {
    pub(super) async fn start_server(&self, start: &Start) -> Result<Timestamp, DriverError> {
        let begun = self.begin_or_go_on(start).await;
        match begun {
            Err(error) if start.resume => {
                // Releases the token before it reports that the server does not run here, so that
                // another host can take it.
                self.save_to_storage(start.server_id, WHAT).await?;
                Err(match self.storage_dir(start.server_id, WHAT).await? {
                    Some(_) => DriverError::Failed {
                        what: WHAT,
                        detail: error.to_string(),
                    },
                    None => error,
                })
            }
            begun => begun,
        }
    }

    async fn begin_or_go_on(&self, start: &Start) -> Result<Timestamp, DriverError> {
        let server_id = start.server_id;
        let (snapshot, claim, from_storage) = {
            let _one_at_a_time = self.looking_for_room.lock().await;
            let snapshot = self.look(WHAT).await?;
            // A scheduler without support for shared storage asks the host that has kept the
            // server.
            let is_here = snapshot.servers.contains_key(&server_id);
            let from_storage = start.resume && (start.storage.is_some() || !is_here);
            if let Some(since) = self.already_running(&snapshot, start).await? {
                self.runs_from_storage(server_id).await?;
                return Ok(since);
            }
            if from_storage {
                self.take_token(start).await?;
            }
            let claim = self.claim(&snapshot, start).await?;
            (snapshot, claim, from_storage)
        };
        let since = self.clock.now();
        match snapshot.servers.get(&server_id) {
            _ if from_storage => self.go_on_from_storage(start, since).await?,
            Some(domain) => self.go_on(start, since, domain.state()).await?,
            None => self.begin(start, since).await?,
        }
        drop(claim);
        Ok(since)
    }

    /// The start time of a running server. Resumes a guest that was paused from outside.
    async fn already_running(
        &self,
        snapshot: &Snapshot,
        start: &Start,
    ) -> Result<Option<Timestamp>, DriverError> {
        let server_id = start.server_id;
        let running = snapshot.servers.get(&server_id);
        let Some(domain) = running.filter(|d| d.state() == HostedState::Running) else {
            return Ok(None);
        };
        if domain.is_paused() {
            let resumed = self
                .virsh
                .call(&["resume", &names::domain(server_id)])
                .await;
            resumed.map_err(|refused| refused.about(server_id, WHAT))?;
        }
        if let Some(note) = self.note_of(server_id, WHAT).await? {
            return Ok(Some(note.since));
        }
        let since = self.clock.now();
        self.write_down(start, since).await?;
        Ok(Some(since))
    }

    async fn claim(&self, snapshot: &Snapshot, start: &Start) -> Result<Claim<'_>, DriverError> {
        let others = snapshot.servers.keys().copied();
        let others: Vec<ServerId> = others.filter(|id| *id != start.server_id).collect();
        let notes = self.notes_of(others.clone(), WHAT).await?;
        let mut held: BTreeMap<ServerId, Resources> = BTreeMap::new();
        for id in others {
            held.insert(id, inventory::holds(snapshot, id, notes.get(&id)));
        }
        let facts = self.facts(snapshot, WHAT).await?;
        let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        for (id, resources) in claims.iter().filter(|(id, _)| **id != start.server_id) {
            held.insert(*id, resources.clone());
        }
        inventory::check_room(start, &facts, &held)?;
        claims.insert(start.server_id, start.resources.clone());
        Ok(Claim {
            claims: &self.claims,
            server_id: start.server_id,
        })
    }

    async fn write_down(&self, start: &Start, since: Timestamp) -> Result<(), DriverError> {
        let note = Note {
            start: start.clone(),
            since,
            notice: None,
            ended_by: None,
        };
        self.noted(WHAT, move |records| records.put(&note)).await
    }

    /// Boots a server that exists here and does not run, or resumes it with its memory.
    async fn go_on(
        &self,
        start: &Start,
        since: Timestamp,
        was: HostedState,
    ) -> Result<(), DriverError> {
        let server_id = start.server_id;
        let before = self.note_of(server_id, WHAT).await?;
        let ended_by = before.and_then(|note| note.ended_by);
        let note = Note {
            start: start.clone(),
            since,
            notice: None,
            // The note keeps this until the start has succeeded, for a start that is repeated after
            // an interruption.
            ended_by,
        };
        self.noted(WHAT, move |records| records.put(&note)).await?;
        let started = self.virsh.wait(&["start", &names::domain(server_id)]).await;
        started.map_err(|refused| refusal(refused, server_id))?;
        if let (Some(evacuation_id), HostedState::Hibernated) = (ended_by, was) {
            self.messengers.take_back(server_id, evacuation_id);
        }
        Ok(())
    }

    /// A new server.
    async fn begin(&self, start: &Start, since: Timestamp) -> Result<(), DriverError> {
        let server_id = start.server_id;
        let dir = self.hold_token(start, since).await?;
        let dir = dir.unwrap_or_else(|| self.records.dir_of(server_id));
        self.write_down(start, since).await?;
        let begun = self.define_and_start(start, &dir).await;
        if begun.is_err() {
            // Leaves nothing behind. The next start or deletion removes what cannot be removed now.
            let removed = match self.remove(server_id, WHAT).await {
                Err(DriverError::NotFound { .. }) => {
                    self.clear_storage(server_id, None, WHAT).await.map(drop)
                }
                removed => removed,
            };
            if let Err(error) = removed {
                tracing::warn!(%server_id, %error, "what is left of a server that could not be started cannot be removed");
            }
        }
        begun
    }

    async fn define_and_start(&self, start: &Start, dir: &Path) -> Result<(), DriverError> {
        let server_id = start.server_id;
        let disk = dir.join(names::DISK);
        let made = disk::make(&self.settings, start, disk).await;
        made.map_err(|detail| DriverError::Failed { what: WHAT, detail })?;
        let xml = self.template.fill(&self.settings, start, dir);
        let path = self.records.dir_of(server_id).join("domain.xml");
        let file = path.clone();
        self.noted(WHAT, move |_| std::fs::write(file, xml)).await?;
        let path = path.display().to_string();
        let defined = self.virsh.call(&["define", &path, "--validate"]).await;
        defined.map_err(|refused| refused.about(server_id, WHAT))?;
        let started = self.virsh.wait(&["start", &names::domain(server_id)]).await;
        started
            .map(drop)
            .map_err(|refused| refusal(refused, server_id))
    }
}

pub(super) fn refusal(refused: VirshRefusal, server_id: ServerId) -> DriverError {
    match refused {
        // QEMU's error text if the host lacks memory.
        VirshRefusal::Because(detail) if detail.contains("annot allocate memory") => {
            DriverError::NoRoom { detail }
        }
        refused => refused.about(server_id, WHAT),
    }
}
