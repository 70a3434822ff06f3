//! The libvirt driver: real virtual machines of QEMU, through `virsh`.
//!
//! The driver asks libvirt at each look what runs and remembers nothing: guests that powered
//! themselves off or were killed, rebooted hosts and restarted agents need no special care. A
//! server is the domain `ebbtide-UUID`; its disk and the driver's notes about it are in
//! `instances_dir/UUID`. Domains with other names are foreign: the driver never touches them and
//! reports what they hold as reserved.
//!
//! The power button (ACPI) is the end, not the notice: most guests shut down when it is pressed.
//! The driver sends the notice over the metadata that guests poll, the virtio channel
//! (`channel.rs`) and the guest agent (`agent.rs`).

mod agent;
mod channel;
mod disk;
mod ending;
mod guest_listeners;
mod inventory;
mod migrate;
mod names;
mod notice;
mod records;
mod settings;
mod shared;
mod snapshot;
mod starting;
mod template;
mod virsh;

pub use agent::returned;
pub use channel::{GuestMessage, understood};
pub use settings::{
    Correction, DiskFormat, DomainType, LibvirtSettings, MetadataSettings, NoticeSettings, Peer,
};
pub use snapshot::{Domain, Snapshot};

use super::registry::DriverContext;
use super::storage::SharedStorage;
use super::{Driver, DriverError, GuestNotice, HostFacts, NoticeOutcome, Occupancy, ServerView};
use crate::clock::Clock;
use crate::error::AgentError;
use async_trait::async_trait;
use ebbtide_model::message::{HostedState, Start};
use ebbtide_model::{EvacuationId, Resources, ServerId, Timestamp};
use ebbtide_runtime::task;
use guest_listeners::Metadata;
use notice::NoticeTasks;
use records::{Note, NoticeNote, Records};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use template::Template;
use virsh::Virsh;

/// Its name in the registry.
const NAME: &str = "libvirt";

/// libvirt on one host.
#[derive(Debug)]
pub struct LibvirtDriver {
    settings: LibvirtSettings,
    template: Template,
    virsh: Virsh,
    records: Arc<Records>,
    messengers: NoticeTasks,
    metadata: Metadata,
    /// The storage for preemptible servers, if this host shares one with others.
    storage: Option<Arc<SharedStorage>>,
    clock: Arc<dyn Clock>,
    /// Held while a start checks for free capacity and claims it.
    looking_for_room: tokio::sync::Mutex<()>,
    /// Resources of servers that are being started.
    claims: Mutex<BTreeMap<ServerId, Resources>>,
}

pub(super) fn build(context: &DriverContext) -> Result<Arc<dyn Driver>, AgentError> {
    let settings = LibvirtSettings::from_table(&context.settings)?;
    Ok(Arc::new(LibvirtDriver::open(
        settings,
        &context.host,
        Arc::clone(&context.clock),
    )?))
}

pub(super) fn check_settings(settings: &toml::Table) -> Result<(), AgentError> {
    LibvirtSettings::from_table(settings).map(drop)
}

impl LibvirtDriver {
    /// A driver with these settings for this host. libvirt need not be running yet.
    ///
    /// # Errors
    /// [`AgentError::Config`] for the template, [`AgentError::Io`] for the directories.
    pub fn open(
        settings: LibvirtSettings,
        host: &str,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, AgentError> {
        let template = Template::open(settings.template.as_deref())?;
        for dir in [&settings.instances_dir, &settings.run_dir] {
            std::fs::create_dir_all(dir).map_err(|source| AgentError::Io {
                what: "make the directory",
                path: dir.clone(),
                source,
            })?;
        }
        let storage = settings.storage.clone();
        let storage = storage.map(|s| SharedStorage::open(s, host)).transpose()?;
        let virsh = Virsh::new(
            settings.virsh.clone(),
            settings.uri.clone(),
            settings.command_limit(),
        );
        let records = Arc::new(Records::new(settings.instances_dir.clone()));
        let messengers = NoticeTasks::new(&settings, Arc::clone(&records), virsh.clone());
        let metadata = Metadata::new(&settings, Arc::clone(&records), Arc::clone(&clock));
        Ok(Self {
            settings,
            template,
            virsh,
            records,
            messengers,
            metadata,
            storage: storage.map(Arc::new),
            clock,
            looking_for_room: tokio::sync::Mutex::new(()),
            claims: Mutex::new(BTreeMap::new()),
        })
    }

    /// Reads the current state of the hypervisor.
    async fn look(&self, what: &'static str) -> Result<Snapshot, DriverError> {
        look(&self.virsh, what).await
    }

    /// The server's domain, which must exist.
    async fn domain(
        &self,
        server_id: ServerId,
        what: &'static str,
    ) -> Result<snapshot::Domain, DriverError> {
        let snapshot = self.look(what).await?;
        let domain = snapshot.servers.get(&server_id).copied();
        domain.ok_or(DriverError::NotFound { server_id })
    }

    /// Accesses the notes outside the async threads.
    async fn noted<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl FnOnce(&Records) -> io::Result<T> + Send + 'static,
    ) -> Result<T, DriverError> {
        let records = Arc::clone(&self.records);
        task::blocking_io(move || work(&records))
            .await
            .map_err(|error| DriverError::Failed {
                what,
                detail: format!("its files cannot be used: {error}"),
            })
    }

    async fn note_of(
        &self,
        server_id: ServerId,
        what: &'static str,
    ) -> Result<Option<Note>, DriverError> {
        self.noted(what, move |records| records.get(server_id))
            .await
    }

    async fn notes_of(
        &self,
        servers: Vec<ServerId>,
        what: &'static str,
    ) -> Result<BTreeMap<ServerId, Note>, DriverError> {
        self.noted(what, move |records| {
            let mut notes = BTreeMap::new();
            for server_id in servers {
                if let Some(note) = records.get(server_id)? {
                    notes.insert(server_id, note);
                }
            }
            Ok(notes)
        })
        .await
    }

    async fn facts(
        &self,
        snapshot: &Snapshot,
        what: &'static str,
    ) -> Result<HostFacts, DriverError> {
        let dir = self.settings.instances_dir.clone();
        let disk_gib = task::blocking_io(move || gib_of(&dir)).await;
        let disk_gib = disk_gib.map_err(|error| DriverError::Failed {
            what,
            detail: format!("cannot tell how large the disk of the servers is: {error}"),
        })?;
        Ok(inventory::facts(&self.settings, snapshot, disk_gib))
    }
}

async fn look(virsh: &Virsh, what: &'static str) -> Result<Snapshot, DriverError> {
    let said = virsh.call(&[snapshot::COMMANDS]).await;
    let said = said.map_err(|refused| refused.failed(what))?;
    Snapshot::read(&said).map_err(|detail| DriverError::Failed { what, detail })
}

fn gib_of(dir: &Path) -> io::Result<u64> {
    let system = rustix::fs::statvfs(dir)?;
    Ok(system.f_blocks.saturating_mul(system.f_frsize) >> 30)
}

#[async_trait]
impl Driver for LibvirtDriver {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn health(&self) -> Result<(), DriverError> {
        self.look("answer").await.map(drop)
    }

    async fn inventory(&self) -> Result<HostFacts, DriverError> {
        let what = "tell what it has";
        let snapshot = self.look(what).await?;
        self.facts(&snapshot, what).await
    }

    async fn list(&self) -> Result<Vec<ServerView>, DriverError> {
        let what = "list its servers";
        let snapshot = self.look(what).await?;
        let ids = snapshot.servers.keys().copied().collect();
        let notes = self.notes_of(ids, what).await?;
        let mut views = Vec::with_capacity(snapshot.servers.len());
        for (server_id, domain) in &snapshot.servers {
            let state = domain.state();
            let notice = notes.get(server_id).and_then(|note| note.notice.as_ref());
            if let Some(notice) = notice.filter(|n| state == HostedState::Running && !n.released) {
                // After a restart of the agent no task talks to this guest yet.
                self.messengers.send(*server_id, notice);
            }
            views.push(ServerView {
                server_id: *server_id,
                state,
                released: notice.filter(|n| n.released).map(|n| n.evacuation_id),
                facts: notes.get(server_id).and_then(Note::facts).map(Box::new),
            });
        }
        // The storage comes last: a server that is undefined meanwhile is on the storage before
        // that.
        let here = snapshot.servers.keys().copied().collect();
        views.extend(self.list_saved(here).await?);
        let running = views
            .iter()
            .filter(|view| view.state == HostedState::Running);
        let running: BTreeSet<ServerId> = running.map(|view| view.server_id).collect();
        self.messengers
            .tidy(|server_id| running.contains(&server_id));
        self.metadata.serve(&running);
        Ok(views)
    }

    async fn occupancy(&self, server_id: ServerId) -> Result<Occupancy, DriverError> {
        let what = "tell what the server holds";
        let snapshot = self.look(what).await?;
        let domain = snapshot.servers.get(&server_id);
        if domain.is_none_or(|domain| domain.state() != HostedState::Running)
            && self.find_saved(server_id, what).await?.is_some()
        {
            // The scheduler may ask another host as soon as it hears that the server does not run
            // here, so the driver releases the token first.
            self.save_to_storage(server_id, what).await?;
            let kept = self.find_saved(server_id, what).await?;
            return Ok(kept.unwrap_or(Occupancy::Absent));
        }
        let Some(domain) = domain else {
            return Ok(Occupancy::Absent);
        };
        let note = self.note_of(server_id, what).await?;
        Ok(Occupancy::Present {
            state: domain.state(),
            holds: inventory::holds(&snapshot, server_id, note.as_ref()),
            since: note.map_or_else(|| self.clock.now(), |note| note.since),
        })
    }

    async fn start(&self, start: &Start) -> Result<Timestamp, DriverError> {
        self.start_server(start).await
    }

    async fn give_notice(
        &self,
        server_id: ServerId,
        notice: &GuestNotice,
    ) -> Result<NoticeOutcome, DriverError> {
        let what = "give the guest its notice";
        let snapshot = self.look(what).await?;
        let domain = snapshot.servers.get(&server_id);
        let domain = domain.ok_or(DriverError::NotFound { server_id })?;
        if domain.state() != HostedState::Running {
            return Ok(NoticeOutcome::NotRunning);
        }
        let (told, now) = (NoticeNote::of(notice, self.clock.now()), self.clock.now());
        let unknown = inventory::adopted(&snapshot, server_id);
        let noted = self.noted(what, move |records| {
            let mut known = None;
            let there = records.change(server_id, |note| {
                let same = |n: &NoticeNote| n.evacuation_id == told.evacuation_id;
                if !note.notice.as_ref().is_some_and(same) {
                    note.notice = Some(told.clone());
                }
                known.clone_from(&note.notice);
            })?;
            if !there {
                let (start, since) = (unknown, now);
                records.put(&Note {
                    start,
                    since,
                    notice: Some(told.clone()),
                    ended_by: None,
                })?;
            }
            Ok(known.unwrap_or(told))
        });
        let noted = noted.await?;
        if !noted.released {
            self.messengers.send(server_id, &noted);
        }
        Ok(NoticeOutcome::Delivered)
    }

    async fn withdraw_notice(
        &self,
        server_id: ServerId,
        evacuation_id: EvacuationId,
    ) -> Result<(), DriverError> {
        let what = "tell the guest that it may stay";
        let domain = self.domain(server_id, what).await?;
        let taken = self.noted(what, move |records| {
            let mut taken = false;
            records.change(server_id, |note| {
                let fits = |n: &mut NoticeNote| n.evacuation_id == evacuation_id;
                taken = note.notice.take_if(fits).is_some();
            })?;
            Ok(taken)
        });
        if taken.await? && domain.state() == HostedState::Running {
            self.messengers.take_back(server_id, evacuation_id);
        }
        Ok(())
    }

    async fn terminate(&self, server_id: ServerId) -> Result<(), DriverError> {
        let what = "terminate the server";
        if let Err(error) = self.domain(server_id, what).await {
            // An interrupted call may have left its token on the storage.
            self.clear_storage(server_id, None, what).await?;
            return Err(error);
        }
        self.shut_down(server_id, what).await?;
        self.remove(server_id, what).await
    }

    async fn stop(&self, server_id: ServerId) -> Result<(), DriverError> {
        let what = "stop the server";
        if let Err(error) = self.domain(server_id, what).await {
            return self.find_saved_or(server_id, error, what).await;
        }
        self.shut_down(server_id, what).await?;
        self.forget_notice(server_id, what).await?;
        self.save_to_storage(server_id, what).await.map(drop)
    }

    async fn hibernate(&self, server_id: ServerId) -> Result<(), DriverError> {
        let what = "hibernate the server";
        if let Err(error) = self.domain(server_id, what).await {
            return self.find_saved_or(server_id, error, what).await;
        }
        self.save(server_id).await?;
        self.forget_notice(server_id, what).await?;
        self.save_to_storage(server_id, what).await.map(drop)
    }

    async fn saved_storage(&self, server_id: ServerId) -> Option<String> {
        let kept = self
            .find_saved(server_id, "tell where the server is kept")
            .await;
        let storage = self.storage.as_ref()?;
        kept.ok()?.map(|_| storage.name().to_owned())
    }

    async fn live_migrate(&self, server_id: ServerId) -> Result<(), DriverError> {
        self.migrate_to_peer(server_id).await
    }

    async fn delete(&self, server_id: ServerId) -> Result<(), DriverError> {
        self.delete_with(server_id, None).await
    }

    async fn delete_saved(&self, server_id: ServerId, storage: &str) -> Result<(), DriverError> {
        self.delete_with(server_id, Some(storage)).await
    }
}

impl LibvirtDriver {
    /// The answer for a server that is to be kept and is not here: it may have been kept already.
    async fn find_saved_or(
        &self,
        server_id: ServerId,
        error: DriverError,
        what: &'static str,
    ) -> Result<(), DriverError> {
        let gone = matches!(error, DriverError::NotFound { .. });
        match gone && self.save_to_storage(server_id, what).await? {
            true => Ok(()),
            false => Err(error),
        }
    }

    async fn delete_with(&self, id: ServerId, storage: Option<&str>) -> Result<(), DriverError> {
        let what = "delete the server";
        match self.domain(id, what).await {
            Ok(_) => {
                self.destroy(id, what).await?;
                self.remove(id, what).await
            }
            Err(DriverError::NotFound { server_id }) => {
                match self.clear_storage(id, storage, what).await? {
                    true => Ok(()),
                    false => Err(DriverError::NotFound { server_id }),
                }
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests;
