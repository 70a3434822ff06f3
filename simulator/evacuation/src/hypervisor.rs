//! A hypervisor as plain data. It does not refuse what has no room, unless its agent has lied about
//! that: that nothing is given twice is for the schedulers to see to.

use crate::shared_storage::StorageHandle;
use crate::violation::{BrokenInvariant, Invariant};
use ebbtide_agent_protocol::{
    DriverCall, DriverError, DriverResult, NoticeOutcome, Occupancy, ServerView,
};
use ebbtide_model::message::{HostedServer, HostedState};
use ebbtide_model::{
    EvacuationId, InterruptionBehaviour, Inventory, ResourceClass, Resources, ServerId, Timestamp,
};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone)]
pub(crate) struct WorldGuest {
    pub(crate) state: HostedState,
    pub(crate) takes: Resources,
    pub(crate) since: Timestamp,
    /// It goes on with what was kept of it on shared storage.
    pub(crate) resumed: bool,
}

/// How a call ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallFate {
    Works,
    Fails,
    /// It takes effect, but the answer is an error.
    WorksButFails,
    NoRoom,
    /// It does not end in time; it takes effect later, or never.
    TimesOut {
        later: bool,
    },
}

#[derive(Debug)]
pub(crate) struct Hypervisor {
    pub(crate) inventory: BTreeMap<ResourceClass, Inventory>,
    pub(crate) guests: BTreeMap<ServerId, WorldGuest>,
    /// Calls that timed out and take effect before the next one about the same server does.
    late: BTreeMap<ServerId, DriverCall>,
    /// Guests that were stopped or hibernated here, until they are deleted. A start must not create
    /// an empty machine under their name.
    saved_servers: BTreeSet<ServerId>,
    /// The hypervisor itself refuses starts that do not fit. Set after a wrong heartbeat: the
    /// scheduler may believe in more capacity than there is.
    pub(crate) guards: bool,
    /// What was seen to be wrong.
    pub(crate) broken: Option<BrokenInvariant>,
    /// Running guests that were ended by a call: for whom, and how often for each evacuation.
    pub(crate) ended: Vec<ServerId>,
    /// The storage that it shares with others.
    pub(crate) shared: Option<StorageHandle>,
}

impl Hypervisor {
    pub(crate) fn new(vcpus: u64) -> Self {
        let inventory = BTreeMap::from([
            (ResourceClass::vcpu(), Inventory::of(vcpus)),
            (ResourceClass::memory_mb(), Inventory::of(1000 * vcpus)),
            (ResourceClass::disk_gb(), Inventory::of(10 * vcpus)),
        ]);
        Self {
            inventory,
            guests: BTreeMap::new(),
            late: BTreeMap::new(),
            saved_servers: BTreeSet::new(),
            guards: false,
            broken: None,
            ended: Vec::new(),
            shared: None,
        }
    }

    /// Its own memory of what was kept here; true if there was any.
    pub(crate) fn delete_saved_state(&mut self, id: ServerId) -> bool {
        self.saved_servers.remove(&id)
    }

    pub(crate) fn vcpus(&self) -> u64 {
        let vcpus = self.inventory.get(&ResourceClass::vcpu());
        vcpus.map_or(0, Inventory::capacity)
    }

    pub(crate) fn runs(&self, id: ServerId) -> bool {
        self.guests
            .get(&id)
            .is_some_and(|g| g.state == HostedState::Running)
    }

    pub(crate) fn hosted(&self) -> Vec<HostedServer> {
        let each = self.guests.iter();
        let mut all: Vec<HostedServer> = each
            .map(|(id, guest)| HostedServer {
                server_id: *id,
                state: guest.state,
                facts: None,
            })
            .collect();
        let shelved = self.shared.iter().flat_map(StorageHandle::all_mine);
        all.extend(shelved.filter(|h| !self.guests.contains_key(&h.server_id)));
        all
    }

    pub(crate) fn views(&self, released: Option<EvacuationId>) -> Vec<ServerView> {
        let each = self.hosted().into_iter();
        each.map(|hosted| ServerView {
            server_id: hosted.server_id,
            state: hosted.state,
            released,
            facts: None,
        })
        .collect()
    }

    /// Ends a call.
    pub(crate) fn call(
        &mut self,
        id: ServerId,
        what: &DriverCall,
        fate: CallFate,
        now: Timestamp,
    ) -> Result<DriverResult, DriverError> {
        // A hypervisor does one thing after the other about a domain.
        self.settle_late(id, now);
        let failed = || DriverError::Failed {
            what: what.words(),
            detail: "so the world wants it".to_owned(),
        };
        match fate {
            CallFate::Works => self.act(id, what, now),
            CallFate::Fails => {
                self.cut_off(id, what, now);
                Err(failed())
            }
            // A fence that says that it has done it, and has not.
            CallFate::NoRoom if *what == DriverCall::Fence => Ok(DriverResult::Fenced),
            // What runs has its room.
            CallFate::NoRoom if self.runs(id) => self.act(id, what, now),
            CallFate::NoRoom => {
                self.release_unused_token(id);
                Err(no_room())
            }
            CallFate::WorksButFails => {
                let _ = self.act(id, what, now);
                Err(failed())
            }
            CallFate::TimesOut { later } => {
                if later {
                    self.late.insert(id, what.clone());
                }
                Err(DriverError::TimedOut {
                    what: what.words(),
                    seconds: 120,
                })
            }
        }
    }

    /// What was too late takes effect now.
    pub(crate) fn settle_late(&mut self, id: ServerId, now: Timestamp) {
        if let Some(action) = self.late.remove(&id) {
            let _ = self.act(id, &action, now);
        }
    }

    pub(crate) fn settle_all_late(&mut self, now: Timestamp) {
        while let Some(id) = self.late.keys().next().copied() {
            self.settle_late(id, now);
        }
    }

    fn act(
        &mut self,
        id: ServerId,
        what: &DriverCall,
        now: Timestamp,
    ) -> Result<DriverResult, DriverError> {
        if let Some(done) = self.act_on_shared_storage(id, what, now, None) {
            return done;
        }
        let gone = DriverError::NotFound { server_id: id };
        match what {
            DriverCall::GiveNotice(_) => {
                let guest = self.guests.get(&id).ok_or(gone)?;
                Ok(DriverResult::Noticed(match guest.state {
                    HostedState::Running => NoticeOutcome::Delivered,
                    _ => NoticeOutcome::NotRunning,
                }))
            }
            DriverCall::WithdrawNotice(_) => self
                .guests
                .get(&id)
                .ok_or(gone)
                .map(|_| DriverResult::Withdrawn),
            DriverCall::Interrupt(behaviour) => {
                let guest = self.guests.get_mut(&id).ok_or(gone)?;
                if guest.state == HostedState::Running {
                    self.ended.push(id);
                }
                match behaviour {
                    InterruptionBehaviour::Terminate | InterruptionBehaviour::LiveMigrate => {
                        drop(self.guests.remove(&id));
                    }
                    InterruptionBehaviour::Stop => guest.state = HostedState::Stopped,
                    InterruptionBehaviour::Hibernate => guest.state = HostedState::Hibernated,
                }
                if self.guests.contains_key(&id) {
                    self.saved_servers.insert(id);
                }
                Ok(DriverResult::Interrupted)
            }
            DriverCall::Fence => {
                // A fence does not know which guests the hypervisor has, so it also succeeds
                // without a guest.
                if self.runs(id) {
                    self.ended.push(id);
                }
                drop(self.guests.remove(&id));
                Ok(DriverResult::Fenced)
            }
            DriverCall::Look => Ok(DriverResult::from_occupancy(self.look(id))),
            DriverCall::Start(start) if start.resume && !self.guests.contains_key(&id) => Err(gone),
            DriverCall::Start(start) => {
                if self.saved_servers.contains(&id) && !self.guests.contains_key(&id) {
                    let what = "a server that was kept is made anew".to_owned();
                    self.broken.get_or_insert((Invariant::ExactlyOnce, what));
                }
                let runs = self.runs(id);
                if !runs && self.guards && !self.fits(&start.resources, id) {
                    return Err(no_room());
                }
                let guest = self.guests.entry(id).or_insert_with(|| WorldGuest {
                    state: HostedState::Stopped,
                    takes: start.resources.clone(),
                    since: now,
                    resumed: false,
                });
                if !runs {
                    guest.state = HostedState::Running;
                    guest.since = now;
                }
                let since = guest.since;
                self.check_room();
                Ok(DriverResult::Started(since))
            }
            DriverCall::Delete(_) => {
                self.saved_servers.remove(&id);
                self.guests
                    .remove(&id)
                    .ok_or(gone)
                    .map(|_| DriverResult::Deleted)
            }
        }
    }

    /// Nova starts an instance.
    pub(crate) fn boot(&mut self, id: ServerId, takes: Resources, now: Timestamp) {
        let guest = WorldGuest {
            state: HostedState::Running,
            takes,
            since: now,
            resumed: false,
        };
        self.guests.insert(id, guest);
        self.check_room();
    }

    fn look(&self, id: ServerId) -> Occupancy {
        match self.guests.get(&id) {
            None => Occupancy::Absent,
            Some(guest) => Occupancy::Present {
                state: guest.state,
                holds: match guest.state {
                    HostedState::Running => guest.takes.clone(),
                    _ => guest.takes.only(&ResourceClass::disk_gb()),
                },
                since: guest.since,
            },
        }
    }

    fn used(&self, class: &ResourceClass, without: Option<ServerId>) -> u64 {
        // Disks are there whether their guests run or not.
        let disk = *class == ResourceClass::disk_gb();
        self.guests
            .iter()
            .filter(|(id, g)| Some(**id) != without && (disk || g.state == HostedState::Running))
            .map(|(_, g)| g.takes.get(class))
            .sum()
    }

    pub(crate) fn fits(&self, wanted: &Resources, id: ServerId) -> bool {
        wanted.iter().all(|(class, amount)| {
            let capacity = self.inventory.get(class).map_or(0, Inventory::capacity);
            self.used(class, Some(id)) + amount <= capacity
        })
    }

    pub(crate) fn check_room(&mut self) {
        for (class, inventory) in &self.inventory {
            let (used, capacity) = (self.used(class, None), inventory.capacity());
            if used > capacity && self.broken.is_none() {
                let what = format!("{used} of {capacity} {class} run on one host");
                self.broken = Some((Invariant::NoRoomTwice, what));
            }
        }
    }
}

pub(crate) fn no_room() -> DriverError {
    DriverError::NoRoom {
        detail: "so the world wants it".to_owned(),
    }
}
