//! Servers on shared storage. Their disk is there from the beginning, their memory is there while
//! they are hibernated, and their token says which host may define and start them.
//!
//! To keep a server, the driver ends the guest, writes the server's data, undefines the domain,
//! removes the host's own notes and releases the token. To resume it, the driver takes the token,
//! defines the domain, restores or boots the guest and removes its memory image. Each step checks
//! the current state, so a call that was interrupted continues there. QEMU's own lock on the disk
//! is a second protection.

use super::ending::has_memory;
use super::records::Note;
use super::virsh::VirshRefusal;
use super::{LibvirtDriver, names};
use crate::driver::storage::{SharedStorage, TokenClaim, unusable};
use crate::driver::{DriverError, Occupancy, ServerView};
use ebbtide_model::message::{HostedState, Start};
use ebbtide_model::{ResourceClass, Resources, ServerId, Timestamp};
use ebbtide_runtime::task;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const START: &str = "start the server";
/// libvirt's XML of the server, in its directory.
const DOMAIN: &str = "domain.xml";

/// The data that a host needs to resume a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ResumeData {
    note: Note,
    /// `running` while a host runs it: then nothing is kept of it.
    state: HostedState,
    /// Where its files are.
    dir: PathBuf,
    /// Where its sockets were on the host that defined it last.
    run_dir: PathBuf,
}

impl ResumeData {
    fn occupancy(&self) -> Occupancy {
        let mut holds = Resources::new();
        // The amount comes out of another `Resources`, so it is within the range.
        let _ = holds.set(
            ResourceClass::disk_gb(),
            self.note.start.resources.amount("DISK_GB"),
        );
        Occupancy::Present {
            state: self.state,
            holds,
            since: self.note.since,
        }
    }
}

impl LibvirtDriver {
    async fn on_storage<T: Send + 'static>(
        &self,
        storage: &Arc<SharedStorage>,
        what: &'static str,
        work: impl FnOnce(&SharedStorage) -> io::Result<T> + Send + 'static,
    ) -> Result<T, DriverError> {
        let storage = Arc::clone(storage);
        let done = task::blocking_io(move || work(&storage)).await;
        done.map_err(|error| unusable(what, &error))
    }

    /// The data of a server whose token this host holds.
    async fn held(
        &self,
        id: ServerId,
        what: &'static str,
    ) -> Result<Option<ResumeData>, DriverError> {
        match &self.storage {
            Some(storage) => self.on_storage(storage, what, move |s| s.held(id)).await,
            None => Ok(None),
        }
    }

    /// The directory on the storage of a server whose token this host holds.
    pub(super) async fn storage_dir(
        &self,
        id: ServerId,
        what: &'static str,
    ) -> Result<Option<PathBuf>, DriverError> {
        Ok(self.held(id, what).await?.map(|known| known.dir))
    }

    /// The kept state of a server that does not run and whose token this host holds or was the last
    /// to release.
    pub(super) async fn find_saved(
        &self,
        id: ServerId,
        what: &'static str,
    ) -> Result<Option<Occupancy>, DriverError> {
        let Some(storage) = &self.storage else {
            return Ok(None);
        };
        let known: Option<ResumeData> =
            self.on_storage(storage, what, move |s| s.known(id)).await?;
        let kept = known.filter(|known| known.state != HostedState::Running);
        Ok(kept.map(|known| known.occupancy()))
    }

    /// The same for all servers that libvirt does not have here.
    pub(super) async fn list_saved(
        &self,
        here: BTreeSet<ServerId>,
    ) -> Result<Vec<ServerView>, DriverError> {
        let Some(storage) = &self.storage else {
            return Ok(Vec::new());
        };
        let all = move |storage: &SharedStorage| {
            let mut views = Vec::new();
            for server_id in storage.ours()? {
                let known: Option<ResumeData> = match here.contains(&server_id) {
                    true => None,
                    false => storage.known(server_id)?,
                };
                if let Some(known) = known.filter(|k| k.state != HostedState::Running) {
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
        self.on_storage(storage, "list its servers", all).await
    }

    /// Prepares a new server: its token, and its directory if that is on the storage.
    pub(super) async fn hold_token(
        &self,
        start: &Start,
        since: Timestamp,
    ) -> Result<Option<PathBuf>, DriverError> {
        let Some(storage) = self.storage.as_ref().filter(|_| start.preemptible) else {
            return Ok(None);
        };
        let id = start.server_id;
        let known = ResumeData {
            note: Note {
                start: start.clone(),
                since,
                notice: None,
                ended_by: None,
            },
            state: HostedState::Running,
            dir: storage.dir_of(id),
            run_dir: self.settings.run_dir.clone(),
        };
        let dir = known.dir.clone();
        let hold = move |storage: &SharedStorage| storage.write(id, &known);
        self.on_storage(storage, START, hold).await?;
        Ok(Some(dir))
    }

    /// Takes the token of a server to be resumed here.
    pub(super) async fn take_token(&self, start: &Start) -> Result<(), DriverError> {
        let server_id = start.server_id;
        let named = start.storage.as_deref();
        // A server that is kept on a storage without access from this host cannot resume here.
        let storage = self.storage.as_ref();
        let storage = storage.filter(|s| named.is_none() || s.is_named(named));
        let Some(storage) = storage else {
            return Err(DriverError::NotFound { server_id });
        };
        match self
            .on_storage(storage, START, move |s| s.take(server_id))
            .await?
        {
            TokenClaim::Ours => Ok(()),
            TokenClaim::Theirs(host) => Err(DriverError::HeldElsewhere { server_id, host }),
            TokenClaim::Unclaimed => Err(DriverError::NotFound { server_id }),
        }
    }

    /// Defines a server whose token this host holds, and resumes it with its kept state.
    pub(super) async fn go_on_from_storage(
        &self,
        start: &Start,
        since: Timestamp,
    ) -> Result<(), DriverError> {
        let server_id = start.server_id;
        let known = self.held(server_id, START).await?;
        let known = known.ok_or(DriverError::NotFound { server_id })?;
        let ended_by = known.note.ended_by;
        let note = Note {
            start: start.clone(),
            since,
            notice: None,
            ended_by,
        };
        self.noted(START, move |records| records.put(&note)).await?;
        self.define_from_storage(server_id, &known).await?;
        let memory = known.dir.join(names::MEMORY);
        let hibernated = self.has_memory(&memory, START).await?;
        let started = if hibernated {
            self.restore(server_id, &known, &memory).await
        } else {
            let domain = names::domain(server_id);
            let begun = self.virsh.wait(&["start", &domain]).await;
            begun
                .map(drop)
                .map_err(|refused| super::starting::refusal(refused, server_id))
        };
        started?;
        self.runs_from_storage(server_id).await?;
        if let (Some(evacuation_id), true) = (ended_by, hibernated) {
            self.messengers.take_back(server_id, evacuation_id);
        }
        Ok(())
    }

    pub(super) async fn has_memory(
        &self,
        memory: &Path,
        what: &'static str,
    ) -> Result<bool, DriverError> {
        let memory = memory.to_owned();
        task::blocking_io(move || has_memory(&memory))
            .await
            .map_err(|error| unusable(what, &error))
    }

    /// Its domain with the socket paths of this host.
    fn moved_here(&self, known: &ResumeData, xml: &str) -> String {
        let from = format!("'{}/", known.run_dir.display());
        let to = format!("'{}/", self.settings.run_dir.display());
        xml.replace(&from, &to)
    }

    async fn define_from_storage(
        &self,
        id: ServerId,
        known: &ResumeData,
    ) -> Result<(), DriverError> {
        let from = known.dir.join(DOMAIN);
        let xml = task::blocking_io(move || fs::read_to_string(from)).await;
        let xml = xml.map_err(|error| unusable(START, &error))?;
        let file = self
            .write_xml(id, DOMAIN, self.moved_here(known, &xml))
            .await?;
        let defined = self.virsh.call(&["define", &file]).await;
        defined
            .map(drop)
            .map_err(|refused| refused.about(id, START))
    }

    async fn write_xml(
        &self,
        id: ServerId,
        name: &'static str,
        xml: String,
    ) -> Result<String, DriverError> {
        let path = self.records.dir_of(id).join(name);
        let file = path.clone();
        self.noted(START, move |_| fs::write(file, xml)).await?;
        Ok(path.display().to_string())
    }

    async fn restore(
        &self,
        id: ServerId,
        known: &ResumeData,
        memory: &Path,
    ) -> Result<(), DriverError> {
        let memory = memory.display().to_string();
        let saved = self.virsh.call(&["save-image-dumpxml", &memory]).await;
        let saved = saved.map_err(|refused| refused.failed(START))?;
        let file = self
            .write_xml(id, "restore.xml", self.moved_here(known, &saved))
            .await?;
        let words = ["restore", &memory, "--xml", &file, "--running"];
        self.virsh
            .wait(&words)
            .await
            .map(drop)
            .map_err(|refused| super::starting::refusal(refused, id))
    }

    /// Removes the memory image of a server that now runs here. Without effect for servers that are
    /// not on the storage.
    pub(super) async fn runs_from_storage(&self, id: ServerId) -> Result<(), DriverError> {
        let (Some(storage), Some(mut known)) = (&self.storage, self.held(id, START).await?) else {
            return Ok(());
        };
        if known.state == HostedState::Running {
            return Ok(());
        }
        // A start that was interrupted may not have defined the domain yet.
        self.define_from_storage(id, &known).await?;
        known.state = HostedState::Running;
        known.run_dir.clone_from(&self.settings.run_dir);
        // The order matters: the next host that resumes the server must not find a memory image
        // that is older than the disk.
        let end = move |storage: &SharedStorage| {
            remove_file(&known.dir.join(names::MEMORY))?;
            storage.write(id, &known)
        };
        self.on_storage(storage, START, end).await
    }

    /// Keeps a server that does not run and whose token this host holds: writes its data, undefines
    /// the domain and releases the token. True if the server is on the storage then.
    pub(super) async fn save_to_storage(
        &self,
        id: ServerId,
        what: &'static str,
    ) -> Result<bool, DriverError> {
        let Some(storage) = &self.storage else {
            return Ok(false);
        };
        let Some(mut known) = self.held(id, what).await? else {
            return Ok(self.find_saved(id, what).await?.is_some());
        };
        let domain = self.look(what).await?.servers.get(&id).copied();
        match domain.map(|domain| domain.state()) {
            Some(HostedState::Running) => return Ok(false),
            Some(_) => {
                // Otherwise a start has failed, and its data are already written.
                if known.state == HostedState::Running {
                    let memory = known.dir.join(names::MEMORY);
                    known.state = match self.has_memory(&memory, what).await? {
                        true => HostedState::Hibernated,
                        false => HostedState::Stopped,
                    };
                    if let Some(note) = self.note_of(id, what).await? {
                        known.note = note;
                    }
                    self.write_resume_data(storage, id, known, what).await?;
                }
                self.drop_definition(id, what).await?;
            }
            // It was lost while it ran, so it cannot resume.
            None if known.state == HostedState::Running => return Ok(false),
            None => {}
        }
        self.messengers.forget(id);
        self.metadata.shut(id);
        self.noted(what, move |records| records.remove(id)).await?;
        // A server that was started from outside in the meantime appears here, and keeps its token.
        let now = self.look(what).await?.servers.get(&id).copied();
        if now.is_some_and(|domain| domain.state() == HostedState::Running) {
            return Err(DriverError::Failed {
                what,
                detail: "it runs again although it had ended".to_owned(),
            });
        }
        self.on_storage(storage, what, move |s| s.release_token(id))
            .await?;
        Ok(true)
    }

    async fn write_resume_data(
        &self,
        storage: &Arc<SharedStorage>,
        id: ServerId,
        mut known: ResumeData,
        what: &'static str,
    ) -> Result<(), DriverError> {
        let domain = names::domain(id);
        let xml = self.virsh.call(&["dumpxml", &domain, "--inactive"]).await;
        let xml = xml.map_err(|refused| refused.about(id, what))?;
        known.run_dir.clone_from(&self.settings.run_dir);
        let write = move |storage: &SharedStorage| {
            fs::write(known.dir.join(DOMAIN), xml)?;
            storage.write(id, &known)
        };
        self.on_storage(storage, what, write).await
    }

    /// By its UUID, which is the server's: another domain may have the same name.
    async fn drop_definition(&self, id: ServerId, what: &'static str) -> Result<(), DriverError> {
        // The variables of its firmware, if any, are part of the kept state.
        let words = [
            "undefine",
            &id.to_string(),
            "--snapshots-metadata",
            "--checkpoints-metadata",
            "--keep-nvram",
        ];
        match self.virsh.call(&words).await {
            Ok(_) | Err(VirshRefusal::Gone) => Ok(()),
            Err(refused) => Err(refused.about(id, what)),
        }
    }

    /// Deletes what the storage has under the token that this host holds; with `named` also what
    /// any host has kept there. True if there was a token.
    pub(super) async fn clear_storage(
        &self,
        id: ServerId,
        named: Option<&str>,
        what: &'static str,
    ) -> Result<bool, DriverError> {
        let Some(storage) = &self.storage else {
            return Ok(false);
        };
        let all = storage.is_named(named);
        let clear = move |storage: &SharedStorage| {
            let grip = match all {
                true => storage.take(id)?,
                false if storage.take_own(id)? => TokenClaim::Ours,
                false => TokenClaim::Unclaimed,
            };
            let Some(known) = storage.held::<ResumeData>(id)? else {
                return Ok(match grip {
                    TokenClaim::Ours => TokenClaim::Unclaimed,
                    grip => grip,
                });
            };
            match fs::remove_dir_all(&known.dir) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => storage.delete_token(id)?,
            }
            Ok(TokenClaim::Ours)
        };
        match self.on_storage(storage, what, clear).await? {
            TokenClaim::Ours => Ok(true),
            TokenClaim::Unclaimed => Ok(false),
            TokenClaim::Theirs(host) => Err(DriverError::HeldElsewhere {
                server_id: id,
                host,
            }),
        }
    }
}

/// Removes a file that may not be there.
pub(super) fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
