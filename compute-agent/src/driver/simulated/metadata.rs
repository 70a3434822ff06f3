//! The metadata of simulated guests: a socket for each that runs, `DIR/SERVER_ID.metadata`, with
//! what a real guest would read.
//!
//! `curl --unix-socket DIR/SERVER_ID.metadata http://x/latest/meta-data/spot/instance-action` is
//! the guest's tool, and what it answers counts as the guest's word.

use super::state::{SimulatedGuest, SimulatedState};
use super::store::SimulatedStore;
use crate::clock::Clock;
use crate::metadata::serve::{DocumentSource, OpenListener};
use crate::metadata::{Document, PendingNotice};
use async_trait::async_trait;
use ebbtide_model::message::HostedState;
use ebbtide_model::{EvacuationId, Seconds, ServerId};
use ebbtide_runtime::task;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// The sockets of all guests.
#[derive(Debug)]
pub(super) struct Metadata {
    dir: PathBuf,
    source: Arc<dyn DocumentSource>,
    clock: Arc<dyn Clock>,
    open: Mutex<BTreeMap<ServerId, OpenListener>>,
}

impl Metadata {
    pub(super) fn new(dir: PathBuf, store: Arc<SimulatedStore>, clock: Arc<dyn Clock>) -> Self {
        let source = Arc::new(Guests {
            store,
            clock: Arc::clone(&clock),
        });
        Self {
            dir,
            source,
            clock,
            open: Mutex::new(BTreeMap::new()),
        }
    }

    /// Opens a socket for each guest that runs, and closes the others'.
    pub(super) fn serve(&self, running: &[ServerId]) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|server_id, _| {
            let keep = running.contains(server_id);
            if !keep {
                // The file may already be gone, for example after a manual cleanup.
                let _ = std::fs::remove_file(self.dir.join(file(*server_id)));
            }
            keep
        });
        for server_id in running {
            if open.contains_key(server_id) {
                continue;
            }
            let (source, clock) = (Arc::clone(&self.source), Arc::clone(&self.clock));
            let path = self.dir.join(file(*server_id));
            let opened = std::fs::create_dir_all(&self.dir)
                .and_then(|()| OpenListener::on_socket(&path, *server_id, source, clock));
            match opened {
                Ok(socket) => drop(open.insert(*server_id, socket)),
                Err(error) => {
                    tracing::warn!(%server_id, path = %path.display(), %error, "the guest's metadata cannot be served");
                }
            }
        }
    }
}

fn file(server_id: ServerId) -> String {
    format!("{server_id}.metadata")
}

#[derive(Debug)]
struct Guests {
    store: Arc<SimulatedStore>,
    clock: Arc<dyn Clock>,
}

#[async_trait]
impl DocumentSource for Guests {
    async fn document(&self, server_id: ServerId) -> io::Result<Option<Document>> {
        let (store, now) = (Arc::clone(&self.store), self.clock.now());
        let read = move |state: &mut SimulatedState| {
            state.live_on(now);
            let guest = state.servers.get(&server_id);
            let guest = guest.filter(|guest| guest.state == HostedState::Running);
            guest.map(|guest| document(server_id, guest))
        };
        task::blocking_io(move || store.change(read)).await
    }

    async fn release(&self, server_id: ServerId, evacuation_id: EvacuationId) -> io::Result<()> {
        let store = Arc::clone(&self.store);
        let release = move |state: &mut SimulatedState| {
            let guest = state.servers.get_mut(&server_id);
            let notice = guest.and_then(|guest| guest.notice.as_mut());
            if let Some(notice) = notice.filter(|n| n.evacuation_id == evacuation_id) {
                notice.released = true;
            }
        };
        task::blocking_io(move || store.change(release)).await
    }
}

fn document(server_id: ServerId, guest: &SimulatedGuest) -> Document {
    Document {
        server_id,
        name: guest.name.clone(),
        flavor: guest.flavor.clone(),
        preemptible: guest.preemptible,
        notice: guest.notice.as_ref().map(|notice| {
            let seconds = notice.not_before.millis_since(notice.at) / 1_000;
            PendingNotice {
                evacuation_id: notice.evacuation_id,
                behaviour: notice.behaviour,
                grace: Seconds(u32::try_from(seconds).unwrap_or(u32::MAX)),
                not_before: notice.not_before,
                at: notice.at,
                released: notice.released,
            }
        }),
    }
}
