//! The controller's hands: what it says is done here, and what happens is reported to it.

use super::event::QueuedEvent;
use super::server::{Activity, Admission, SimulatedServer};
use super::watch::{ServerRole, WatchEvent};
use super::world::ClusterSimulation;
use crate::controller::{ControllerAction, ControllerEvent, ServerId};
use crate::error::ElasticError;
use std::collections::VecDeque;

impl ClusterSimulation<'_> {
    /// The number of a transient server: they come after all others, in the order in which they are
    /// asked for.
    fn number(&self, id: ServerId) -> u32 {
        self.on_demand_servers() + id.0 as u32
    }

    fn id(&self, number: u32) -> Option<ServerId> {
        let behind = number.checked_sub(self.on_demand_servers())?;
        Some(ServerId(u64::from(behind)))
    }

    fn at(&mut self, id: ServerId) -> Option<&mut SimulatedServer> {
        let number = self.number(id);
        self.servers.get_mut(number as usize)
    }

    pub(super) fn report_load(&mut self) -> Result<(), ElasticError> {
        self.measure();
        let (long, on_demand) = (self.long_servers(), self.on_demand_servers());
        self.report(ControllerEvent::Load { long, on_demand })
    }

    pub(super) fn tick(&mut self) -> Result<(), ElasticError> {
        if self.tick_us.is_some_and(|tick| tick <= self.now_us) {
            self.tick_us = None;
        }
        self.report(ControllerEvent::Tick)
    }

    pub(super) fn up(&mut self, id: ServerId) -> Result<(), ElasticError> {
        let now_us = self.now_us;
        let Some(server) = self.at(id).filter(|one| one.standing == Admission::Coming) else {
            return Ok(());
        };
        server.standing = Admission::Open;
        server.up_us = now_us;
        let number = self.number(id);
        self.transients.insert(number);
        self.record(WatchEvent::Up { server: number });
        self.take_shared(number);
        if let Some(elastic) = &self.setup.elastic
            && let Some(lifetime) = &elastic.lifetime
        {
            let hours = lifetime.sample(&mut self.fate) * elastic.life_scale;
            // What is longer than a simulation can be never happens in it.
            let life_us = (hours * 3.6e9).min(1e18) as u64;
            let end_us = now_us + life_us;
            if elastic.notice_us > 0 {
                let notice_us = end_us.saturating_sub(elastic.notice_us).max(now_us);
                self.agenda.put(notice_us, QueuedEvent::Notice(id));
            }
            self.agenda.put(end_us, QueuedEvent::Interrupted(id));
        }
        self.report(ControllerEvent::Up(id))
    }

    /// A server is told of its end.
    pub(super) fn noticed(&mut self, id: ServerId) -> Result<(), ElasticError> {
        match self.at(id) {
            Some(server) if server.standing != Admission::Gone => {
                self.report(ControllerEvent::Notice(id))
            }
            _ => Ok(()),
        }
    }

    /// The provider takes a server: what runs there begins anew elsewhere, what waits there has its
    /// copies elsewhere.
    pub(super) fn interrupted(&mut self, id: ServerId) -> Result<(), ElasticError> {
        let Some(server) = self.at(id).filter(|one| one.standing != Admission::Gone) else {
            return Ok(());
        };
        let doing = std::mem::replace(&mut server.doing, Activity::Idle);
        let waited = std::mem::take(&mut server.shorts);
        let number = self.number(id);
        self.tally.interrupted += 1;
        self.record(WatchEvent::Interrupted { server: number });
        self.transients.remove(number);
        self.no_longer_idle(number);
        if let Activity::Short {
            job,
            began_us,
            task,
        } = doing
        {
            self.lose(number, job, began_us, task);
        }
        self.send_elsewhere(&waited);
        self.leave(id);
        self.report(ControllerEvent::Gone(id))
    }

    /// The provider takes all servers that are up, at one moment: none of them gets the tasks of
    /// another one.
    pub(super) fn outage(&mut self) -> Result<(), ElasticError> {
        let up = self.servers.iter().enumerate().filter(|(_, server)| {
            server.place == ServerRole::Transient
                && matches!(server.standing, Admission::Open | Admission::Draining)
        });
        let taken: Vec<u32> = up.map(|(number, _)| number as u32).collect();
        for number in &taken {
            self.transients.remove(*number);
            self.no_longer_idle(*number);
        }
        for number in taken {
            if let Some(id) = self.id(number) {
                self.interrupted(id)?;
            }
        }
        // With nothing else to come the simulation is over.
        if let Some(elastic) = &self.setup.elastic
            && !self.agenda.is_empty()
        {
            let at_us = self.now_us + elastic.outage_us;
            self.agenda.put(at_us, QueuedEvent::Outage);
        }
        Ok(())
    }

    /// A server without tasks: idle, or drained.
    pub(super) fn report_drained(&mut self, number: u32) -> Result<(), ElasticError> {
        let draining = self
            .servers
            .get(number as usize)
            .is_some_and(|server| server.standing == Admission::Draining);
        match self.id(number) {
            Some(id) if draining => self.report(ControllerEvent::Drained(id)),
            _ => Ok(()),
        }
    }

    /// Tells the controller, and does what it says. Reports of what that leads to follow in turn.
    fn report(&mut self, event: ControllerEvent) -> Result<(), ElasticError> {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let Some(controller) = &mut self.controller else {
                return Ok(());
            };
            let (servers, first) = (
                &self.servers,
                self.setup.general() + self.setup.short_on_demand(),
            );
            let mut work = |id: ServerId| {
                let server = servers.get(first as usize + id.0 as usize);
                server.map_or(0, |server| {
                    server.shorts.len() as u64 + u64::from(server.doing != Activity::Idle)
                })
            };
            for action in controller.handle(self.now_us, event, &mut work)? {
                self.act(action, &mut events);
            }
            let all = self.controller.as_ref().map_or(0, |c| c.census().all());
            self.tally.most = self.tally.most.max(all);
        }
        self.measure();
        self.wake();
        Ok(())
    }

    fn act(&mut self, action: ControllerAction, events: &mut VecDeque<ControllerEvent>) {
        match action {
            ControllerAction::Launch(id) => self.launch(id),
            ControllerAction::Drain(id) => {
                let number = self.number(id);
                self.transients.remove(number);
                self.no_longer_idle(number);
                self.record(WatchEvent::Draining { server: number });
                let Some(server) = self.at(id) else { return };
                server.standing = Admission::Draining;
                if server.doing == Activity::Idle {
                    events.push_back(ControllerEvent::Drained(id));
                }
            }
            ControllerAction::Keep(id) => {
                let number = self.number(id);
                self.transients.insert(number);
                self.record(WatchEvent::Kept { server: number });
                if let Some(server) = self.at(id) {
                    server.standing = Admission::Open;
                }
            }
            ControllerAction::Release(id) => {
                let server = self.number(id);
                self.record(WatchEvent::Released { server });
                self.leave(id);
                events.push_back(ControllerEvent::Gone(id));
            }
        }
    }

    fn launch(&mut self, id: ServerId) {
        let server = SimulatedServer::new(ServerRole::Transient, Admission::Coming, self.now_us);
        debug_assert_eq!(self.servers.len(), self.number(id) as usize);
        self.servers.push(server);
        self.tally.launched += 1;
        let server = self.number(id);
        self.record(WatchEvent::Launched { server });
        if let Some(elastic) = &self.setup.elastic {
            let at_us = self.now_us + elastic.provisioning_us;
            self.agenda.put(at_us, QueuedEvent::Up(id));
        }
    }

    /// A server is no more, however it came to that.
    fn leave(&mut self, id: ServerId) {
        let now_us = self.now_us;
        let number = self.number(id);
        self.transients.remove(number);
        self.no_longer_idle(number);
        let Some(server) = self.at(id) else { return };
        let was_up = server.standing != Admission::Coming;
        server.standing = Admission::Gone;
        let (launched_us, up_us) = (server.launched_us, server.up_us);
        self.tally.paid_us += now_us - launched_us;
        if was_up {
            self.tally.lives.push(now_us - up_us);
        }
    }

    /// Counts those that are still there at the end.
    pub(super) fn settle(&mut self) {
        let mut alive: Vec<ServerId> = Vec::new();
        if let Some(controller) = &self.controller {
            alive.extend(controller.servers().map(|(id, _)| id));
        }
        alive.into_iter().for_each(|id| self.leave(id));
    }

    /// Sees to it that the controller is told when it wants to be.
    fn wake(&mut self) {
        let Some(at_us) = self.controller.as_ref().and_then(|c| c.wake_us()) else {
            return;
        };
        let at_us = at_us.max(self.now_us);
        if self.tick_us.is_none_or(|tick| at_us < tick) {
            self.tick_us = Some(at_us);
            self.agenda.put(at_us, QueuedEvent::Tick);
        }
    }
}
