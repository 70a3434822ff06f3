//! The manager of the partition as a state machine: it takes figures and events with their times
//! and returns actions.
//!
//! Growth is aggressive: the controller requests all missing servers at once. Shrinking is
//! conservative: the controller drains at most one server within
//! [`ElasticPolicy::release_interval_us`], or at each load report if that is 0, and releases a
//! server only after it has drained. A server counts against the budget from its request until it
//! is known to be gone. The controller knows no clock, no cluster and no cloud: its caller reports
//! the events and carries out the actions.

mod server;

pub use server::{Census, ServerId, ServerState};

use crate::error::ElasticError;
use crate::policy::{ElasticPolicy, long_load_ratio};
use server::ServerEntry;
use std::collections::BTreeMap;

/// Something that happened, or was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControllerEvent {
    /// How loaded the cluster is now.
    Load {
        /// N_long: servers on which long tasks run or wait.
        long: u32,
        /// Servers of the cluster that are not preemptible, both partitions.
        on_demand: u32,
    },
    /// A server that was asked for can take tasks.
    Up(ServerId),
    /// A server that is being drained has nothing more to do.
    Drained(ServerId),
    /// The provider says that it is going to take a server: it is drained, and replaced at once if
    /// the budget has room for both.
    Notice(ServerId),
    /// A server does not exist any more: it was interrupted, its launch failed, or it was released.
    Gone(ServerId),
    /// Only time has passed.
    Tick,
}

/// What has to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControllerAction {
    /// Ask the cloud for a preemptible server; report [`ControllerEvent::Up`] or
    /// [`ControllerEvent::Gone`].
    Launch(ServerId),
    /// Give this server no new tasks; report [`ControllerEvent::Drained`] when it has none left.
    Drain(ServerId),
    /// This server is needed after all: give it tasks again.
    Keep(ServerId),
    /// Delete this server; report [`ControllerEvent::Gone`].
    Release(ServerId),
}

/// The manager.
#[derive(Debug, Clone)]
pub struct Controller {
    policy: ElasticPolicy,
    servers: BTreeMap<ServerId, ServerEntry>,
    census: Census,
    next: u64,
    now_us: u64,
    /// The last load that was reported: N_long and on-demand servers.
    load: Option<(u32, u32)>,
    /// From when on the next server may be released.
    release_from_us: u64,
}

impl Controller {
    /// A manager without servers.
    #[must_use]
    pub fn new(policy: ElasticPolicy) -> Self {
        Self {
            policy,
            servers: BTreeMap::new(),
            census: Census::default(),
            next: 0,
            now_us: 0,
            load: None,
            release_from_us: 0,
        }
    }

    /// Adopts a server that another controller has requested, for example after a restart. `up`
    /// says whether it takes tasks. The server counts against the budget even if the number of
    /// servers then exceeds it: only the load causes a release. The caller reports
    /// [`ControllerEvent::Up`] for a server that is not up yet.
    pub fn adopt(&mut self, now_us: u64, up: bool) -> ServerId {
        let id = ServerId(self.next);
        self.next += 1;
        let state = if up {
            ServerState::Active
        } else {
            ServerState::Provisioning
        };
        let since_us = now_us.max(self.now_us);
        self.servers.insert(id, ServerEntry { state, since_us });
        self.census.enter(state);
        id
    }

    /// The policy that it follows.
    #[must_use]
    pub fn policy(&self) -> &ElasticPolicy {
        &self.policy
    }

    /// How many servers are in which state.
    #[must_use]
    pub fn census(&self) -> Census {
        self.census
    }

    /// The state of a server; none if it is gone or never was.
    #[must_use]
    pub fn state(&self, server: ServerId) -> Option<ServerState> {
        self.servers.get(&server).map(|one| one.state)
    }

    /// All servers that are not gone, by age.
    pub fn servers(&self) -> impl Iterator<Item = (ServerId, ServerState)> {
        self.servers.iter().map(|(id, one)| (*id, one.state))
    }

    /// l_r = N_long / N_total of the last load that was reported, over servers that are up. Those
    /// that are being provisioned do no work yet.
    #[must_use]
    pub fn long_load_ratio(&self) -> Option<f64> {
        let (long, on_demand) = self.load?;
        Some(long_load_ratio(long, on_demand + self.census.up()))
    }

    /// How many preemptible servers there should be, by the last load that was reported.
    #[must_use]
    pub fn target(&self) -> u32 {
        self.load
            .map_or(0, |(long, on_demand)| self.policy.target(long, on_demand))
    }

    /// When it wants to be told [`ControllerEvent::Tick`] at the latest, microseconds; none if only
    /// events can change anything.
    #[must_use]
    pub fn wake_us(&self) -> Option<u64> {
        let paced = self.policy.release_interval_us() > 0;
        let shrink = (paced && self.surplus() > 0).then_some(self.release_from_us);
        // Servers are launched in the order of their ids, so the first that is not up is the first
        // to time out.
        let provisioning = |one: &&ServerEntry| one.state == ServerState::Provisioning;
        let oldest = if self.census.provisioning > 0 {
            self.servers.values().find(provisioning)
        } else {
            None
        };
        let timeout =
            oldest.map(|one| one.since_us.saturating_add(self.policy.launch_timeout_us()));
        match (shrink, timeout) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (one, other) => one.or(other),
        }
    }

    /// Takes in what happened at `now_us` and says what has to be done. `work` tells how much an
    /// active server still has to do, in any unit; it is only called when one of them is to be
    /// released: the one with least. One with [`u64::MAX`] is never released.
    ///
    /// # Errors
    /// [`ElasticError::Event`] if time runs backwards or the event cannot be; nothing has changed
    /// then.
    pub fn handle(
        &mut self,
        now_us: u64,
        event: ControllerEvent,
        work: &mut dyn FnMut(ServerId) -> u64,
    ) -> Result<Vec<ControllerAction>, ElasticError> {
        if now_us < self.now_us {
            let problem = format!("time ran backwards, it was {} µs before", self.now_us);
            return Err(ElasticError::Event {
                at_us: now_us,
                problem,
            });
        }
        let mut actions = Vec::new();
        match event {
            ControllerEvent::Load { long, on_demand } => self.load = Some((long, on_demand)),
            ControllerEvent::Up(id) => self.came_up(now_us, id)?,
            ControllerEvent::Drained(id) => self.drained(now_us, id, &mut actions)?,
            ControllerEvent::Notice(id) => self.noticed(now_us, id, &mut actions)?,
            ControllerEvent::Gone(id) => self.remove_server(now_us, id)?,
            ControllerEvent::Tick => {}
        }
        self.now_us = now_us;
        // Without a pace, the reports of the load set it.
        let paced = self.policy.release_interval_us() > 0;
        let may_shrink = paced || matches!(event, ControllerEvent::Load { .. });
        self.give_up(&mut actions);
        self.grow(&mut actions);
        if may_shrink {
            self.shrink(work, &mut actions);
        }
        Ok(actions)
    }

    /// Servers that are up or will be, above what is wanted, if one of them could be released.
    fn surplus(&self) -> u32 {
        let usable = self.census.provisioning + self.census.active;
        if self.load.is_none() || self.census.active == 0 {
            return 0;
        }
        usable.saturating_sub(self.target())
    }

    fn came_up(&mut self, now_us: u64, id: ServerId) -> Result<(), ElasticError> {
        match self.known(now_us, id)? {
            ServerState::Provisioning => self.set(id, ServerState::Active, now_us),
            // It was given up a moment before: the release is on its way.
            ServerState::Releasing => {}
            ServerState::Active | ServerState::Draining | ServerState::Leaving => {
                return Err(impossible(now_us, id, "came up a second time"));
            }
        }
        Ok(())
    }

    fn drained(
        &mut self,
        now_us: u64,
        id: ServerId,
        actions: &mut Vec<ControllerAction>,
    ) -> Result<(), ElasticError> {
        match self.known(now_us, id)? {
            ServerState::Draining | ServerState::Leaving => {
                self.set(id, ServerState::Releasing, now_us);
                actions.push(ControllerAction::Release(id));
            }
            // It was kept while the report was on its way, or reported twice.
            ServerState::Active | ServerState::Releasing => {}
            ServerState::Provisioning => {
                return Err(impossible(now_us, id, "is drained and was never up"));
            }
        }
        Ok(())
    }

    fn noticed(
        &mut self,
        now_us: u64,
        id: ServerId,
        actions: &mut Vec<ControllerAction>,
    ) -> Result<(), ElasticError> {
        match self.known(now_us, id)? {
            ServerState::Active => {
                self.set(id, ServerState::Leaving, now_us);
                actions.push(ControllerAction::Drain(id));
            }
            ServerState::Draining => self.set(id, ServerState::Leaving, now_us),
            // Nothing runs there yet: whatever it is good for is over before it begins.
            ServerState::Provisioning => {
                self.set(id, ServerState::Releasing, now_us);
                actions.push(ControllerAction::Release(id));
            }
            ServerState::Leaving | ServerState::Releasing => {}
        }
        Ok(())
    }

    fn remove_server(&mut self, now_us: u64, id: ServerId) -> Result<(), ElasticError> {
        let state = self.known(now_us, id)?;
        self.census.leave(state);
        self.servers.remove(&id);
        Ok(())
    }

    /// Gives up launches that take too long.
    fn give_up(&mut self, actions: &mut Vec<ControllerAction>) {
        if self.census.provisioning == 0 {
            return;
        }
        let timeout = self.policy.launch_timeout_us();
        let late = |one: &ServerEntry| {
            one.state == ServerState::Provisioning
                && one.since_us.saturating_add(timeout) <= self.now_us
        };
        // The oldest is the first: nothing to look through as long as it is in time.
        let each = self.servers.iter();
        let launches = each.filter(|(_, one)| one.state == ServerState::Provisioning);
        let ids: Vec<ServerId> = launches
            .take_while(|(_, one)| late(one))
            .map(|(id, _)| *id)
            .collect();
        for id in ids {
            self.set(id, ServerState::Releasing, self.now_us);
            actions.push(ControllerAction::Release(id));
        }
    }

    /// Obtains all missing servers at once: first the controller keeps draining servers, then it
    /// requests new ones.
    fn grow(&mut self, actions: &mut Vec<ControllerAction>) {
        let usable = self.census.provisioning + self.census.active;
        let mut missing = self.target().saturating_sub(usable);
        if missing == 0 {
            return;
        }
        if self.census.draining > 0 {
            let draining = self.servers.iter();
            let ids: Vec<ServerId> = draining
                .filter(|(_, one)| one.state == ServerState::Draining)
                .map(|(id, _)| *id)
                .take(missing as usize)
                .collect();
            for id in ids {
                self.set(id, ServerState::Active, self.now_us);
                actions.push(ControllerAction::Keep(id));
                missing -= 1;
            }
        }
        let room = self.policy.budget().saturating_sub(self.census.all());
        for _ in 0..missing.min(room) {
            let id = ServerId(self.next);
            self.next += 1;
            let server = ServerEntry {
                state: ServerState::Provisioning,
                since_us: self.now_us,
            };
            self.servers.insert(id, server);
            self.census.enter(ServerState::Provisioning);
            actions.push(ControllerAction::Launch(id));
        }
    }

    /// One server at most, the one with least to do; among equals the youngest, whose caches are
    /// coldest.
    fn shrink(
        &mut self,
        work: &mut dyn FnMut(ServerId) -> u64,
        actions: &mut Vec<ControllerAction>,
    ) {
        if self.surplus() == 0 || self.now_us < self.release_from_us {
            return;
        }
        let active = self.servers.iter();
        let idlest = active
            .filter(|(_, one)| one.state == ServerState::Active)
            .map(|(id, _)| (work(*id), std::cmp::Reverse(*id)))
            .filter(|(work, _)| *work < u64::MAX)
            .min();
        if let Some((_, std::cmp::Reverse(id))) = idlest {
            self.set(id, ServerState::Draining, self.now_us);
            self.release_from_us = self
                .now_us
                .saturating_add(self.policy.release_interval_us());
            actions.push(ControllerAction::Drain(id));
        }
    }

    fn known(&self, now_us: u64, id: ServerId) -> Result<ServerState, ElasticError> {
        self.state(id)
            .ok_or_else(|| impossible(now_us, id, "is not one of ours, or is gone"))
    }

    fn set(&mut self, id: ServerId, state: ServerState, since_us: u64) {
        if let Some(server) = self.servers.get_mut(&id) {
            self.census.leave(server.state);
            self.census.enter(state);
            *server = ServerEntry { state, since_us };
        }
    }
}

fn impossible(at_us: u64, id: ServerId, problem: &str) -> ElasticError {
    ElasticError::Event {
        at_us,
        problem: format!("server {id} {problem}"),
    }
}
