//! The agent's notes about a server beside the hypervisor's data: its start time, its start order
//! and its notice. One small file in each server's directory, replaced atomically.
//!
//! Only the hypervisor says which servers exist. A note without a domain has no meaning; a domain
//! without a note is a server about which less is known.

use crate::driver::GuestNotice;
use ebbtide_model::message::{HostedFacts, Start};
use ebbtide_model::{EvacuationId, InterruptionBehaviour, Seconds, ServerId, Timestamp};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// The note's name in the server's directory.
const FILE: &str = "instance.json";

/// The note about one server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Note {
    /// Its start order.
    pub(super) start: Start,
    /// Start time of its current or last run.
    pub(super) since: Timestamp,
    /// The guest's notice; `None` if there is none or it was withdrawn.
    #[serde(default)]
    pub(super) notice: Option<NoticeNote>,
    /// The evacuation that stopped or hibernated it. A guest that resumes with its memory still
    /// believes in its notice, and the driver has to withdraw that.
    #[serde(default)]
    pub(super) ended_by: Option<EvacuationId>,
}

/// A guest's notice, and its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NoticeNote {
    pub(super) evacuation_id: EvacuationId,
    pub(super) behaviour: InterruptionBehaviour,
    pub(super) grace: Seconds,
    pub(super) not_before: Timestamp,
    /// When it got the notice.
    pub(super) at: Timestamp,
    /// The guest has released the rest of its time.
    #[serde(default)]
    pub(super) released: bool,
}

impl NoticeNote {
    pub(super) fn of(notice: &GuestNotice, at: Timestamp) -> Self {
        Self {
            evacuation_id: notice.evacuation_id,
            behaviour: notice.behaviour,
            grace: notice.grace,
            not_before: notice.not_before,
            at,
            released: false,
        }
    }
}

impl Note {
    /// What the scheduler may have to know of the server; `None` if the agent found it without its
    /// start order.
    pub(super) fn facts(&self) -> Option<HostedFacts> {
        let start = &self.start;
        (!start.flavor.is_empty()).then(|| HostedFacts {
            name: start.name.clone(),
            project_id: start.project_id.clone(),
            flavor: start.flavor.clone(),
            resources: start.resources.clone(),
            preemptible: start.preemptible,
            since: self.since,
            evacuation_id: self.notice.as_ref().map(|notice| notice.evacuation_id),
        })
    }
}

/// All notes of a host.
#[derive(Debug)]
pub(super) struct Records {
    dir: PathBuf,
    /// Held while a note is read, changed and written.
    changing: Mutex<()>,
}

impl Records {
    pub(super) fn new(dir: PathBuf) -> Self {
        Self {
            dir,
            changing: Mutex::new(()),
        }
    }

    pub(super) fn dir_of(&self, server_id: ServerId) -> PathBuf {
        self.dir.join(server_id.to_string())
    }

    /// The note about a server; `None` if there is none that can be read.
    pub(super) fn get(&self, server_id: ServerId) -> io::Result<Option<Note>> {
        let path = self.dir_of(server_id).join(FILE);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        match serde_json::from_slice(&bytes) {
            Ok(note) => Ok(Some(note)),
            Err(error) => {
                // An unreadable note is dropped; the server itself is not affected.
                tracing::warn!(path = %path.display(), %error, "not a note about a server; it is passed over");
                Ok(None)
            }
        }
    }

    /// Writes a new note.
    pub(super) fn put(&self, note: &Note) -> io::Result<()> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        self.write(note)
    }

    /// Changes a note, if there is one. True if there is one.
    pub(super) fn change(
        &self,
        server_id: ServerId,
        change: impl FnOnce(&mut Note),
    ) -> io::Result<bool> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(before) = self.get(server_id)? else {
            return Ok(false);
        };
        let mut after = before.clone();
        change(&mut after);
        if after != before {
            self.write(&after)?;
        }
        Ok(true)
    }

    fn write(&self, note: &Note) -> io::Result<()> {
        let dir = self.dir_of(note.start.server_id);
        fs::create_dir_all(&dir)?;
        let (path, temporary) = (dir.join(FILE), dir.join("instance.json.new"));
        let mut file = File::create(&temporary)?;
        file.write_all(&serde_json::to_vec_pretty(note)?)?;
        file.sync_all()?;
        fs::rename(&temporary, &path)?;
        File::open(&dir)?.sync_all()
    }

    /// Removes all that a server had.
    pub(super) fn remove(&self, server_id: ServerId) -> io::Result<()> {
        match fs::remove_dir_all(self.dir_of(server_id)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}
