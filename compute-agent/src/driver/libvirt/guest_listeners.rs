//! The guests' metadata: a listener for each guest that runs, on its socket in `run_dir` and on its
//! metadata interface.

use super::names;
use super::records::Records;
use super::settings::LibvirtSettings;
use crate::clock::Clock;
use crate::metadata::serve::{DocumentSource, OpenListener};
use crate::metadata::{Document, PendingNotice};
use async_trait::async_trait;
use ebbtide_model::{EvacuationId, ServerId};
use ebbtide_runtime::task;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// What stands open for one guest.
#[derive(Debug, Default)]
struct GuestListeners {
    socket: Option<OpenListener>,
    /// With the number of the interface: one that was made anew has the old name and another
    /// number.
    interface: Option<(u32, OpenListener)>,
    /// Said once, not each second.
    complained: bool,
}

/// The listeners of all guests.
#[derive(Debug)]
pub(super) struct Metadata {
    source: Arc<dyn DocumentSource>,
    clock: Arc<dyn Clock>,
    run_dir: PathBuf,
    interface: bool,
    port: u16,
    listeners: Mutex<BTreeMap<ServerId, GuestListeners>>,
}

impl Metadata {
    pub(super) fn new(
        settings: &LibvirtSettings,
        records: Arc<Records>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            source: Arc::new(Notes(records)),
            clock,
            run_dir: settings.run_dir.clone(),
            interface: settings.metadata.interface,
            port: settings.metadata.port,
            listeners: Mutex::new(BTreeMap::new()),
        }
    }

    /// Opens what is shut for these guests, and closes the others.
    pub(super) fn serve(&self, running: &BTreeSet<ServerId>) {
        let mut listeners = self
            .listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|server_id, _| running.contains(server_id));
        for server_id in running {
            let listeners = listeners.entry(*server_id).or_default();
            if let Err(error) = self.open(*server_id, listeners)
                && !std::mem::replace(&mut listeners.complained, true)
            {
                tracing::warn!(%server_id, %error, "the guest's metadata cannot be served on every way to it");
            }
        }
    }

    /// Also after one of them could not be opened, the other one is tried.
    fn open(&self, server_id: ServerId, listeners: &mut GuestListeners) -> io::Result<()> {
        let again = || (Arc::clone(&self.source), Arc::clone(&self.clock));
        let mut outcome = Ok(());
        if listeners.socket.is_none() {
            let path = names::metadata_socket(&self.run_dir, server_id);
            let (source, clock) = again();
            match OpenListener::on_socket(&path, server_id, source, clock) {
                Ok(open) => listeners.socket = Some(open),
                Err(error) => outcome = Err(error),
            }
        }
        if !self.interface {
            return outcome;
        }
        let tap = names::tap(server_id);
        let Some(number) = index_of(&tap)? else {
            // A domain of another template has none.
            listeners.interface = None;
            return outcome;
        };
        if listeners
            .interface
            .as_ref()
            .is_none_or(|(known, _)| *known != number)
        {
            listeners.interface = None;
            let (source, clock) = again();
            let open = OpenListener::on_interface(&tap, self.port, server_id, source, clock)?;
            listeners.interface = Some((number, open));
        }
        outcome
    }

    pub(super) fn shut(&self, server_id: ServerId) {
        self.listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&server_id);
    }
}

/// The number of a network interface; `None` if there is none of this name. Not from /sys, which
/// may show another network than this process is in.
fn index_of(name: &str) -> io::Result<Option<u32>> {
    use rustix::net::{AddressFamily, SocketType};
    let any = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    match rustix::net::netdevice::name_to_index(&any, name) {
        Ok(number) => Ok(Some(number)),
        Err(rustix::io::Errno::NODEV) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Documents out of what is noted.
#[derive(Debug)]
struct Notes(Arc<Records>);

#[async_trait]
impl DocumentSource for Notes {
    async fn document(&self, server_id: ServerId) -> io::Result<Option<Document>> {
        let records = Arc::clone(&self.0);
        let note = task::blocking_io(move || records.get(server_id)).await?;
        Ok(note.map(|note| Document {
            server_id,
            name: note.start.name,
            flavor: note.start.flavor,
            preemptible: note.start.preemptible,
            notice: note.notice.map(|notice| PendingNotice {
                evacuation_id: notice.evacuation_id,
                behaviour: notice.behaviour,
                grace: notice.grace,
                not_before: notice.not_before,
                at: notice.at,
                released: notice.released,
            }),
        }))
    }

    async fn release(&self, server_id: ServerId, evacuation_id: EvacuationId) -> io::Result<()> {
        let records = Arc::clone(&self.0);
        super::notice::note_release(records, server_id, evacuation_id)
            .await
            .map(drop)
    }
}
