//! Automatic resumption of servers that were stopped or hibernated for a preemptor.
//!
//! The state of a waiting server is in its record ([`Comeback`]) and nowhere else. At each tick the
//! region looks at every host that is up. It resumes a server that is due, where it was kept, if it
//! fits into what is free in h_f beyond everything promised. No server is preempted for a
//! resumption, and requests are decided before it and regardless of it.
//!
//! - **Which server, and whether.** `ebbtide_evacuation` has the rules, which are the same on an
//!   OpenStack: fair order, reserve, and longer waits for servers that leave again soon.
//! - **Where.** On the host that keeps its disk or memory. If that host has no capacity and several
//!   hosts share the storage, on another one of them (`relocation.rs`).
//! - **Never twice.** While its agent has not answered, a server holds its capacity, however long
//!   that takes: the region repeats the request and does not give up. Each start has a number, so
//!   that a late answer to an earlier start is not taken for the answer to this one.

use crate::transition::Transition;
use crate::{Region, capacity};
use ebbtide_engine::HostUsage;
use ebbtide_evacuation::{ClassCapacity, ReservedCapacity, agent_text, failed_attempt, saved};
use ebbtide_model::message::StartFailed;
use ebbtide_model::record::Change;
use ebbtide_model::{
    CloudEvent, DecisionOutcome, HostHealth, PlacementRequest, Resources, SavedState, Server,
    ServerId, ServerStatus, Timestamp,
};

impl Region {
    /// Records how a victim was kept, and the earliest time of its resumption.
    pub(crate) fn record_saved(
        &self,
        victim: &mut Server,
        status: ServerStatus,
        storage: Option<&str>,
        now: Timestamp,
    ) {
        let Some(saved_state) = SavedState::of(status) else {
            return;
        };
        let ran = victim.launched_at.map_or(0, |at| now.millis_since(at));
        let before = victim.comeback.take();
        let storage = storage.map(str::to_owned);
        let config = &self.config.comeback;
        victim.comeback = Some(saved(before, saved_state, storage, ran, now, config));
    }

    /// Resumes waiting servers that are due and fit.
    pub(crate) fn look_after_comebacks(&mut self, transition: &mut Transition<'_>) {
        if !self.config.comeback.enabled {
            return;
        }
        for host in self.servers.resume_queue().places() {
            let up = self
                .hosts
                .get(&host)
                .is_some_and(|h| h.health == HostHealth::Up);
            // Each round resumes a server or delays one, which is then not due any more.
            while up && self.bring_one_back(transition, &host) {}
        }
        self.look_elsewhere(transition);
    }

    /// Tries to resume the first server that is due and fits. True if one was tried: the free
    /// capacity and the order have then changed.
    fn bring_one_back(&mut self, transition: &mut Transition<'_>, host: &str) -> bool {
        let config = &self.config.comeback;
        let queue = self.servers.resume_queue();
        if queue.returning_at(host) >= config.most_at_once() {
            return false;
        }
        let Some(usage) = self.table.usage(host) else {
            return false;
        };
        // The reserve applies unless no server holds capacity on the host.
        let alone = self.is_alone(host);
        let turn = self.in_turn(host, transition.now).into_iter();
        let turn = turn.filter_map(|id| Some((id, self.takes_again(id)?)));
        let now = transition.now;
        let next = queue.first_that_fits(turn, now, config, |_, needs, reserved| {
            self.has_room(&usage, needs, reserved, alone)
        });
        if let Some(id) = next {
            self.try_to_bring_back(transition, id, host);
        }
        next.is_some()
    }

    /// True if no server holds capacity on the host, promised capacity included.
    pub(crate) fn is_alone(&self, host: &str) -> bool {
        !self.servers_on(host).any(|s| s.status.holds_room())
    }

    /// Capacity on a host that is reserved for the first server that waits there.
    pub(crate) fn held_on(&self, host: &str, now: Timestamp) -> ReservedCapacity {
        let mut turn = self.in_turn(host, now).into_iter();
        let first = turn.find_map(|id| Some((id, self.takes_again(id)?)));
        let (queue, config) = (self.servers.resume_queue(), &self.config.comeback);
        first.map_or_else(ReservedCapacity::new, |(id, needs)| {
            queue.reserved_by(id, &needs, now, config)
        })
    }

    /// Servers that are due on a host, in fair order.
    fn in_turn(&self, host: &str, now: Timestamp) -> Vec<ServerId> {
        let pays = |id| self.servers.get(&id).is_some_and(|s| self.pays(s));
        let queue = self.servers.resume_queue();
        queue.in_turn(host, now, &self.config.comeback, pays)
    }

    /// What a server needs beyond what it has kept.
    fn takes_again(&self, id: ServerId) -> Option<Resources> {
        let properties = self.servers.get(&id)?.flavor.properties().ok()?;
        Some(properties.resources.without(&properties.retained()))
    }

    /// True if these resources fit into what is free in h_f beyond all promises, beside what is
    /// held for another server and with the reserve left.
    pub(crate) fn has_room(
        &self,
        usage: &HostUsage,
        needs: &Resources,
        held: &ReservedCapacity,
        alone: bool,
    ) -> bool {
        self.config.comeback.fits(needs, held, alone, |class| {
            let known = usage.classes.iter().find(|c| c.class == *class);
            ClassCapacity {
                free: capacity::full(usage, class),
                capacity: known.map_or(0, |known| known.capacity),
            }
        })
    }

    /// The placement request for a server that is to be resumed.
    pub(crate) fn comeback_request(server: &Server) -> PlacementRequest {
        PlacementRequest {
            server_ids: vec![server.id],
            project_id: server.project_id.clone(),
            flavor: server.flavor.clone(),
            availability_zone: server.availability_zone.clone(),
            group_id: server.group_id,
            ignore_hosts: Vec::new(),
            force_hosts: Vec::new(),
            alternates: 0,
        }
    }

    /// Resumes a server if the engine accepts the host: aggregates, traits or groups may have
    /// changed.
    fn try_to_bring_back(&mut self, transition: &mut Transition<'_>, id: ServerId, host: &str) {
        let Some(mut server) = self.servers.get(&id).cloned() else {
            return;
        };
        let request = Self::comeback_request(&server);
        // Remove it from the table first, so that its kept part does not block its own placement.
        self.table.remove_instance(id);
        let decided = self.decide_on(transition, &request, Some(&[host]));
        if let Err(error) = self.show_to_table(id) {
            return transition.ignored(format!("the host table refused a server: {error}"));
        }
        let refused = match decided {
            Ok(decision) => match &decision.outcome {
                DecisionOutcome::Placed(_) => {
                    let changes = &mut transition.effects.changes;
                    changes.push(Change::PutDecision(Box::new(decision.clone())));
                    server.decision_id = Some(decision.id);
                    let event = CloudEvent::Decision(Box::new(decision));
                    transition.effects.events.push(event);
                    return self.resume(transition, server);
                }
                DecisionOutcome::NoValidHost(none) => none.reason.clone(),
            },
            Err(error) => error.to_string(),
        };
        self.put_back(transition, server, &refused);
    }

    /// Asks the agent to resume a server, which holds its capacity from now on.
    pub(crate) fn resume(&mut self, transition: &mut Transition<'_>, mut server: Server) {
        // Reports about its earlier life do not apply to this one.
        self.servers.forget_started(server.id);
        server.ended_at = None;
        server.launched_at = None;
        server.reported_at = None;
        server.evacuation_id = None;
        if let Some(comeback) = &mut server.comeback {
            comeback.resumed_at = Some(transition.now);
        }
        self.start(transition, &mut server);
    }

    /// Repeats a resume request when the agent has not answered or could not tell; the capacity
    /// stays occupied.
    pub(crate) fn resume_again(&mut self, transition: &mut Transition<'_>, mut server: Server) {
        self.start(transition, &mut server);
    }

    /// Handles a failed resumption. The server does not run; it waits again, and longer.
    pub(crate) fn resume_failed(
        &mut self,
        transition: &mut Transition<'_>,
        mut server: Server,
        m: &StartFailed,
    ) {
        if m.may_run {
            let patience = transition.now.plus(self.config.act_timeout_seconds);
            self.servers.calls_mut().waits(server.id, patience);
            return;
        }
        if let Some(saved_state) = server.comeback.as_ref().map(|c| c.saved_state) {
            server.status = saved_state.status();
            server.ended_at = Some(transition.now);
        }
        self.put_back(transition, server, &agent_text(&m.reason));
    }

    fn put_back(&mut self, transition: &mut Transition<'_>, mut server: Server, why: &str) {
        if let Some(comeback) = &mut server.comeback {
            failed_attempt(comeback, why, transition.now, &self.config.comeback);
        }
        self.save_server(transition, server);
    }
}
