//! Storage that several hypervisors share: what it keeps, and which host has the token of it.
//! Models the drivers' rules (`compute-agent/src/driver/storage.rs`) step by step, so that a host
//! can die between any two steps.
//!
//! The host that runs a server takes the token of that server, if the server may be kept. To keep
//! the server, the host ends the guest, writes the saved state, drops its own copy and puts the
//! token down. To resume the server, a host takes the token and starts the guest. A host that holds
//! a token without running the guest puts the token down again when it is asked what it has of the
//! server.

use crate::hypervisor::{Hypervisor, WorldGuest, no_room};
use crate::violation::{BrokenInvariant, Invariant};
use ebbtide_agent_protocol::{DriverCall, DriverError, DriverResult, Occupancy};
use ebbtide_model::message::{HostedServer, HostedState, Start};
use ebbtide_model::{InterruptionBehaviour, ResourceClass, Resources, ServerId, Timestamp};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Its name.
pub(crate) const STORAGE: &str = "shared-storage";

/// What is kept of a server.
#[derive(Debug, Clone)]
pub(crate) struct SavedServer {
    state: HostedState,
    takes: Resources,
    since: Timestamp,
}

/// All that is kept.
#[derive(Debug, Default)]
pub(crate) struct SharedStorage {
    /// Tokens that any host may take: what is kept, and which host has put the token down.
    saved_servers: BTreeMap<ServerId, (String, SavedServer)>,
    /// Tokens that a host has taken, by server and host, with what is kept while the guest does not
    /// run.
    taken: BTreeMap<(ServerId, String), Option<SavedServer>>,
}

impl SharedStorage {
    pub(crate) fn list_saved(&self) -> Vec<ServerId> {
        self.saved_servers.keys().copied().collect()
    }

    pub(crate) fn is_saved(&self, id: ServerId) -> bool {
        self.saved_servers.contains_key(&id)
    }
}

/// A hypervisor's end of it.
#[derive(Debug, Clone)]
pub(crate) struct StorageHandle {
    pub(crate) storage: Rc<RefCell<SharedStorage>>,
    pub(crate) host: String,
    /// Broken on purpose: hosts do not take tokens.
    pub(crate) without_token: bool,
    /// How far the next call goes that is cut off.
    cuts: u32,
}

/// How far a call goes: all of it, or so many steps.
type Steps = Option<u32>;

fn cut(steps: &mut Steps) -> bool {
    match steps {
        Some(0) => true,
        Some(n) => {
            *n -= 1;
            false
        }
        None => false,
    }
}

fn cut_off() -> DriverError {
    DriverError::Failed {
        what: "end what it has begun",
        detail: "so the world wants it".to_owned(),
    }
}

impl StorageHandle {
    pub(crate) fn new(storage: &Rc<RefCell<SharedStorage>>, host: &str) -> Self {
        Self {
            storage: Rc::clone(storage),
            host: host.to_owned(),
            without_token: false,
            cuts: 0,
        }
    }

    fn key(&self, id: ServerId) -> (ServerId, String) {
        (id, self.host.clone())
    }

    /// Its token is taken here.
    pub(crate) fn is_taken(&self, id: ServerId) -> bool {
        self.storage.borrow().taken.contains_key(&self.key(id))
    }

    /// Its token is taken here, and nothing is kept under it: it runs, or was lost.
    pub(crate) fn has_lost(&self, id: ServerId) -> bool {
        matches!(self.storage.borrow().taken.get(&self.key(id)), Some(None))
    }

    /// What is kept under the token that is taken here, if it does not run.
    fn saved(&self, id: ServerId) -> Option<SavedServer> {
        self.storage.borrow().taken.get(&self.key(id)).cloned()?
    }

    /// The token goes down, with what is kept.
    fn release_token(&self, id: ServerId, saved: SavedServer) -> Option<BrokenInvariant> {
        let mut storage = self.storage.borrow_mut();
        storage.taken.remove(&self.key(id));
        let before = storage.saved_servers.insert(id, (self.host.clone(), saved));
        before.map(|(who, _)| {
            let what = format!(
                "a server that {who} has kept is kept once more by {}",
                self.host
            );
            (Invariant::ExactlyOnce, what)
        })
    }

    /// What this host has put down last, or holds without running it.
    fn mine(&self, id: ServerId) -> Option<SavedServer> {
        let storage = self.storage.borrow();
        let kept = storage
            .saved_servers
            .get(&id)
            .filter(|(who, _)| *who == self.host);
        let kept = kept.map(|(_, saved)| saved.clone());
        drop(storage);
        kept.or_else(|| self.saved(id))
    }

    /// The same of all servers.
    pub(crate) fn all_mine(&self) -> Vec<HostedServer> {
        let storage = self.storage.borrow();
        let kept = storage.saved_servers.iter();
        let kept = kept.filter(|(_, (who, _))| *who == self.host);
        let kept = kept.map(|(id, (_, saved))| (*id, saved.state));
        let taken = storage
            .taken
            .iter()
            .filter(|((_, who), _)| *who == self.host);
        let taken = taken.filter_map(|((id, _), saved)| Some((*id, saved.as_ref()?.state)));
        let all = kept.chain(taken);
        all.map(|(server_id, state)| HostedServer {
            server_id,
            state,
            facts: None,
        })
        .collect()
    }
}

impl Hypervisor {
    /// A call about a server whose place is on the shared storage. `None`: it is not, and is dealt
    /// with as on any other host.
    pub(crate) fn act_on_shared_storage(
        &mut self,
        id: ServerId,
        what: &DriverCall,
        now: Timestamp,
        steps: Steps,
    ) -> Option<Result<DriverResult, DriverError>> {
        let shared = self.shared.clone()?;
        let ours = shared.is_taken(id) || shared.mine(id).is_some();
        match what {
            DriverCall::Start(start) if start.storage.as_deref() == Some(STORAGE) => {
                Some(self.resume(&shared, start, now, steps))
            }
            DriverCall::Start(start) if start.preemptible && !start.resume => {
                // What another one has kept is not meant: this is an attempt that was given up, and
                // comes late.
                if shared.mine(id).is_some() {
                    let what = "a server that is kept is made anew".to_owned();
                    self.broken.get_or_insert((Invariant::ExactlyOnce, what));
                }
                let mut storage = shared.storage.borrow_mut();
                storage.taken.entry(shared.key(id)).or_insert(None);
                None
            }
            DriverCall::Interrupt(
                behaviour @ (InterruptionBehaviour::Stop | InterruptionBehaviour::Hibernate),
            ) if ours => Some(self.keep(&shared, id, *behaviour, steps)),
            DriverCall::Look if ours && !self.guests.contains_key(&id) => {
                self.release_unused_token(id);
                let saved = shared.mine(id)?;
                Some(Ok(DriverResult::Seen {
                    occupancy: Occupancy::Present {
                        state: saved.state,
                        holds: saved.takes.only(&ResourceClass::disk_gb()),
                        since: saved.since,
                    },
                    unbilled: None,
                    storage: Some(STORAGE.to_owned()),
                }))
            }
            DriverCall::Delete(storage) => Some(self.clear(&shared, id, storage.is_some())),
            DriverCall::Interrupt(_) => {
                shared.storage.borrow_mut().taken.remove(&shared.key(id));
                None
            }
            _ => None,
        }
    }

    fn keep(
        &mut self,
        shared: &StorageHandle,
        id: ServerId,
        behaviour: InterruptionBehaviour,
        mut steps: Steps,
    ) -> Result<DriverResult, DriverError> {
        if let Some(guest) = self.guests.get_mut(&id) {
            if guest.state == HostedState::Running {
                self.ended.push(id);
                guest.state = match behaviour {
                    InterruptionBehaviour::Hibernate => HostedState::Hibernated,
                    _ => HostedState::Stopped,
                };
            }
            if cut(&mut steps) {
                return Err(cut_off());
            }
            let saved = SavedServer {
                state: guest.state,
                takes: guest.takes.clone(),
                since: guest.since,
            };
            let mut storage = shared.storage.borrow_mut();
            storage.taken.insert(shared.key(id), Some(saved));
            if cut(&mut steps) {
                return Err(cut_off());
            }
            self.guests.remove(&id);
        }
        if cut(&mut steps) {
            return Err(cut_off());
        }
        if let Some(saved) = shared.saved(id) {
            let broken = shared.release_token(id, saved);
            self.broken = self.broken.take().or(broken);
        } else if shared.mine(id).is_none() {
            return Err(DriverError::NotFound { server_id: id });
        }
        Ok(DriverResult::Interrupted)
    }

    fn resume(
        &mut self,
        shared: &StorageHandle,
        start: &Start,
        now: Timestamp,
        mut steps: Steps,
    ) -> Result<DriverResult, DriverError> {
        let id = start.server_id;
        if let Some(guest) = self.guests.get_mut(&id) {
            if guest.state != HostedState::Running {
                (guest.state, guest.since) = (HostedState::Running, now);
            }
            shared
                .storage
                .borrow_mut()
                .taken
                .insert(shared.key(id), None);
            return Ok(DriverResult::Started(guest.since));
        }
        if self.guards && !self.fits(&start.resources, id) {
            self.release_unused_token(id);
            return Err(no_room());
        }
        if shared.saved(id).is_none() {
            let mut storage = shared.storage.borrow_mut();
            let Some((_, saved)) = storage.saved_servers.get(&id).cloned() else {
                let other = storage.taken.keys().find(|(server, _)| *server == id);
                return Err(match other {
                    Some((_, who)) if *who != shared.host => DriverError::Failed {
                        what: "start the server",
                        detail: format!("host {who} has its token"),
                    },
                    // With nothing under our own token it was lost while it ran.
                    _ => DriverError::NotFound { server_id: id },
                });
            };
            if shared.without_token {
                drop(storage);
                self.boot_resumed(id, &saved, now);
                return Ok(DriverResult::Started(now));
            }
            storage.saved_servers.remove(&id);
            storage.taken.insert(shared.key(id), Some(saved));
        }
        if cut(&mut steps) {
            return Err(cut_off());
        }
        if let Some(saved) = shared.saved(id) {
            self.boot_resumed(id, &saved, now);
            if cut(&mut steps) {
                return Err(cut_off());
            }
            shared
                .storage
                .borrow_mut()
                .taken
                .insert(shared.key(id), None);
        }
        Ok(DriverResult::Started(now))
    }

    /// A token that is held for nothing goes down.
    pub(crate) fn release_unused_token(&mut self, id: ServerId) {
        if !self.guests.contains_key(&id)
            && let Some(shared) = &self.shared
            && let Some(saved) = shared.saved(id)
        {
            let broken = shared.release_token(id, saved);
            self.broken = self.broken.take().or(broken);
        }
    }

    fn boot_resumed(&mut self, id: ServerId, saved: &SavedServer, now: Timestamp) {
        let guest = WorldGuest {
            state: HostedState::Running,
            takes: saved.takes.clone(),
            since: now,
            resumed: true,
        };
        self.guests.insert(id, guest);
        self.check_room();
    }

    fn clear(
        &mut self,
        shared: &StorageHandle,
        id: ServerId,
        all: bool,
    ) -> Result<DriverResult, DriverError> {
        let mut storage = shared.storage.borrow_mut();
        // Sent before it was kept, it does not say where.
        let own = storage
            .saved_servers
            .get(&id)
            .is_some_and(|(who, _)| *who == shared.host);
        let here = storage.taken.contains_key(&shared.key(id)) || storage.is_saved(id);
        let other = storage
            .taken
            .keys()
            .find(|(server, who)| *server == id && *who != shared.host);
        if let Some((_, who)) = other.filter(|_| all && !here) {
            return Err(DriverError::Failed {
                what: "delete the server",
                detail: format!("host {who} has its token"),
            });
        }
        let had = [
            self.guests.remove(&id).is_some(),
            storage.taken.remove(&shared.key(id)).is_some(),
            (all || own) && storage.saved_servers.remove(&id).is_some(),
            self.delete_saved_state(id),
        ];
        match had.contains(&true) {
            true => Ok(DriverResult::Deleted),
            false => Err(DriverError::NotFound { server_id: id }),
        }
    }

    /// A call is cut off between two steps: its process has died, or it failed.
    pub(crate) fn cut_off(&mut self, id: ServerId, what: &DriverCall, now: Timestamp) {
        let far = match &mut self.shared {
            Some(shared) => {
                shared.cuts += 1;
                shared.cuts % 4
            }
            None => return,
        };
        let begins = matches!(what, DriverCall::Start(s) if s.storage.is_some());
        let keeps = matches!(
            what,
            DriverCall::Interrupt(InterruptionBehaviour::Stop | InterruptionBehaviour::Hibernate)
        );
        if far > 0 && (begins || keeps) {
            let _ = self.act_on_shared_storage(id, what, now, Some(far - 1));
        }
    }

    /// True if what was kept of a server can go on here.
    pub(crate) fn can_go_on(&self, id: ServerId) -> bool {
        let shelved = self.shared.as_ref().is_some_and(|shared| {
            shared.storage.borrow().is_saved(id) || shared.saved(id).is_some()
        });
        shelved || self.guests.contains_key(&id)
    }
}
