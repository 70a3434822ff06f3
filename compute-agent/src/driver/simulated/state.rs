//! The servers of a simulated hypervisor, and the effects of actions on them. Pure: the time is an
//! argument.

use super::faults::{Faults, OnNotice};
use crate::driver::{DriverError, GuestNotice, NoticeOutcome, Occupancy, ServerView};
use ebbtide_model::message::{HostedFacts, HostedState, Start};
use ebbtide_model::{
    EvacuationId, InterruptionBehaviour, Inventory, ResourceClass, Resources, ServerId, Timestamp,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The state of the hypervisor: the content of its file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SimulatedState {
    pub servers: BTreeMap<ServerId, SimulatedGuest>,
    /// The faults to inject.
    pub faults: Faults,
}

/// One server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SimulatedGuest {
    pub name: String,
    /// Its owner.
    pub project_id: String,
    /// The name of its flavor.
    pub flavor: String,
    /// Its resources while it runs.
    pub resources: Resources,
    /// True if it may be evacuated.
    pub preemptible: bool,
    pub state: HostedState,
    /// Start time of its current or last run.
    pub since: Timestamp,
    #[serde(default)]
    pub notice: Option<SimulatedNotice>,
}

/// A guest's notice, and its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SimulatedNotice {
    pub evacuation_id: EvacuationId,
    /// How it will end.
    pub behaviour: InterruptionBehaviour,
    /// When it got the notice.
    pub at: Timestamp,
    /// The earliest time of its end, from the notice.
    pub not_before: Timestamp,
    /// The guest has released the rest of its time.
    #[serde(default)]
    pub released: bool,
}

impl SimulatedGuest {
    /// A server that begins to run.
    pub(super) fn of(start: &Start, now: Timestamp) -> Self {
        Self {
            name: start.name.clone(),
            project_id: start.project_id.clone(),
            flavor: start.flavor.clone(),
            resources: start.resources.clone(),
            preemptible: start.preemptible,
            state: HostedState::Running,
            since: now,
            notice: None,
        }
    }

    /// What the scheduler may have to know of it.
    fn facts(&self) -> HostedFacts {
        HostedFacts {
            name: self.name.clone(),
            project_id: self.project_id.clone(),
            flavor: self.flavor.clone(),
            resources: self.resources.clone(),
            preemptible: self.preemptible,
            since: self.since,
            evacuation_id: self.notice.as_ref().map(|notice| notice.evacuation_id),
        }
    }

    /// The resources that it keeps from others: all while it runs, otherwise only its disk.
    #[must_use]
    pub fn holds(&self) -> Resources {
        if self.state == HostedState::Running {
            return self.resources.clone();
        }
        let mut disk = Resources::new();
        let class = ResourceClass::disk_gb();
        let amount = self.resources.get(&class);
        // The amount comes out of another `Resources`, so it is within the range.
        let _ = disk.set(class, amount);
        disk
    }
}

impl SimulatedState {
    /// Applies the configured behaviour of the guests.
    pub(super) fn live_on(&mut self, now: Timestamp) {
        for (server_id, guest) in &mut self.servers {
            let habit = self.faults.habit(*server_id);
            let Some(notice) = guest.notice.as_mut() else {
                continue;
            };
            let waited = now.millis_since(notice.at);
            if guest.state != HostedState::Running || (waited as f64) < habit.after_seconds * 1e3 {
                continue;
            }
            match habit.on_notice {
                OnNotice::Ignore => {}
                OnNotice::Release => notice.released = true,
                OnNotice::PowerOff => guest.state = HostedState::Stopped,
            }
        }
    }

    pub(super) fn views(&self) -> Vec<ServerView> {
        let view = |(server_id, guest): (&ServerId, &SimulatedGuest)| ServerView {
            server_id: *server_id,
            state: guest.state,
            released: guest
                .notice
                .as_ref()
                .filter(|n| n.released)
                .map(|n| n.evacuation_id),
            facts: Some(Box::new(guest.facts())),
        };
        self.servers.iter().map(view).collect()
    }

    pub(super) fn occupancy(&self, server_id: ServerId) -> Occupancy {
        self.servers
            .get(&server_id)
            .map_or(Occupancy::Absent, |guest| Occupancy::Present {
                state: guest.state,
                holds: guest.holds(),
                since: guest.since,
            })
    }

    /// The amount of a class that all servers but one hold.
    fn used(&self, class: &ResourceClass, but: ServerId) -> u64 {
        let others = self.servers.iter().filter(|(id, _)| **id != but);
        others.map(|(_, guest)| guest.holds().get(class)).sum()
    }

    pub(super) fn start(
        &mut self,
        start: &Start,
        inventory: &BTreeMap<ResourceClass, Inventory>,
        now: Timestamp,
    ) -> Result<Timestamp, DriverError> {
        if let Some(guest) = self.servers.get(&start.server_id)
            && guest.state == HostedState::Running
        {
            return Ok(guest.since);
        }
        if start.resume && !self.servers.contains_key(&start.server_id) {
            let server_id = start.server_id;
            return Err(DriverError::NotFound { server_id });
        }
        for (class, asked) in start.resources.iter() {
            let capacity = inventory.get(class).map_or(0, Inventory::capacity);
            let free = capacity.saturating_sub(self.used(class, start.server_id));
            if asked > free {
                return Err(DriverError::NoRoom {
                    detail: format!("{class}: {asked} asked for, {free} of {capacity} free"),
                });
            }
        }
        let guest = SimulatedGuest::of(start, now);
        self.servers.insert(start.server_id, guest);
        Ok(now)
    }

    /// The server, or the error that it does not exist.
    ///
    /// # Errors
    /// [`DriverError::NotFound`].
    pub fn guest(&mut self, server_id: ServerId) -> Result<&mut SimulatedGuest, DriverError> {
        let gone = DriverError::NotFound { server_id };
        self.servers.get_mut(&server_id).ok_or(gone)
    }

    pub(super) fn give_notice(
        &mut self,
        server_id: ServerId,
        notice: &GuestNotice,
        now: Timestamp,
    ) -> Result<NoticeOutcome, DriverError> {
        let guest = self.guest(server_id)?;
        if guest.state != HostedState::Running {
            return Ok(NoticeOutcome::NotRunning);
        }
        let known = guest.notice.as_ref().map(|n| n.evacuation_id);
        if known != Some(notice.evacuation_id) {
            guest.notice = Some(SimulatedNotice {
                evacuation_id: notice.evacuation_id,
                behaviour: notice.behaviour,
                at: now,
                not_before: notice.not_before,
                released: false,
            });
        }
        Ok(NoticeOutcome::Delivered)
    }

    pub(super) fn withdraw(
        &mut self,
        server_id: ServerId,
        evacuation_id: EvacuationId,
    ) -> Result<(), DriverError> {
        let guest = self.guest(server_id)?;
        guest.notice.take_if(|n| n.evacuation_id == evacuation_id);
        Ok(())
    }

    pub(super) fn halt(
        &mut self,
        server_id: ServerId,
        state: HostedState,
    ) -> Result<(), DriverError> {
        let guest = self.guest(server_id)?;
        if guest.state == HostedState::Running {
            guest.state = state;
        }
        guest.notice = None;
        Ok(())
    }

    /// Removes a server; also what `simulate lose` does.
    ///
    /// # Errors
    /// [`DriverError::NotFound`].
    pub fn remove(&mut self, server_id: ServerId) -> Result<(), DriverError> {
        self.faults.guest.remove(&server_id);
        match self.servers.remove(&server_id) {
            Some(_) => Ok(()),
            None => Err(DriverError::NotFound { server_id }),
        }
    }
}
