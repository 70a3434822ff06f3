//! Automatic resumption of servers that were stopped or hibernated for a preemptor.
//!
//! The state of a waiting server is in its record ([`Comeback`]) and nowhere else. At each tick the
//! region looks at every host that is up. It resumes a server that is due, where it was kept, if it
//! fits into what is free in h_f beyond everything promised. No server is preempted for a
//! resumption, and requests are decided before it and regardless of it.
//!
//! - **Fair.** The project with the fewest resumptions within the window goes first, then the
//!   server that has waited longest. A server that does not fit is overtaken. In every second
//!   `hold_seconds` of its wait, however, the first of these reserves the free capacity, so that
//!   neither small servers keep a large one waiting for ever nor the other way round.
//! - **No thrashing.** A server that is evicted again before it has run for `window_seconds` stays
//!   away twice as long as the last time, up to `max_seconds`. So does one whose resumption fails.
//!   A server is resumed only if `reserve_percent` of the host stays free for the next request,
//!   unless the host has no other server.
//! - **Where.** On the host that keeps its disk or memory. If that host has no capacity and several
//!   hosts share the storage, on another one of them (`relocation.rs`).
//! - **Never twice.** While its agent has not answered, a server holds its capacity, however long
//!   that takes: the region repeats the request and does not give up. Each start has a number, so
//!   that a late answer to an earlier start is not taken for the answer to this one.

use crate::transition::Transition;
use crate::{ComebackConfig, Region, RegionEvent, capacity};
use ebbtide_engine::HostUsage;
use ebbtide_evacuation::agent_text;
use ebbtide_model::message::StartFailed;
use ebbtide_model::record::Change;
use ebbtide_model::{
    Comeback, DecisionOutcome, HostHealth, PlacementRequest, ResourceClass, Resources, SavedState,
    Seconds, Server, ServerId, ServerStatus, Timestamp,
};
use std::collections::BTreeMap;

/// Capacity that is reserved for a waiting server, by class.
pub(crate) type ReservedCapacity = BTreeMap<ResourceClass, i64>;

impl ComebackConfig {
    /// How long a server stays away for the `n`th time in a row, counted from 1.
    #[must_use]
    pub fn waiting_time(&self, n: u32) -> Seconds {
        // 31 doublings exceed any limit; more would overflow the shift.
        let doublings = n.saturating_sub(1).min(31);
        let long = u64::from(self.first_seconds.0) << doublings;
        let limit = u64::from(self.max_seconds.0);
        Seconds(u32::try_from(long.min(limit)).unwrap_or(self.max_seconds.0))
    }

    /// True in the periods in which the first server in the queue reserves the free capacity.
    fn holds(&self, since: Timestamp, now: Timestamp) -> bool {
        let period = self.hold_seconds.as_millis().max(1);
        (now.millis_since(since).max(0) / period) % 2 == 1
    }
}

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
        let config = &self.config.comeback;
        let ran = victim.launched_at.map_or(0, |at| now.millis_since(at));
        let before = victim.comeback.take();
        let preempted = match &before {
            Some(before) if ran < config.window_seconds.as_millis() => {
                before.preempted.saturating_add(1)
            }
            _ => 1,
        };
        victim.comeback = Some(Comeback {
            saved_state,
            since: now,
            not_before: now.plus(config.waiting_time(preempted)),
            preempted,
            tries: 0,
            reason: None,
            resumed_at: before.and_then(|b| b.resumed_at),
            storage: storage.map(str::to_owned),
        });
    }

    /// Resumes waiting servers that are due and fit.
    pub(crate) fn look_after_comebacks(&mut self, transition: &mut Transition<'_>) {
        if !self.config.comeback.enabled {
            return;
        }
        for host in self.servers.resume_queue().hosts() {
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
        let limit = usize::try_from(self.config.comeback.at_once).unwrap_or(usize::MAX);
        if self.servers.resume_queue().returning_on(host) >= limit {
            return false;
        }
        let Some(usage) = self.table.usage(host) else {
            return false;
        };
        // The reserve applies unless no server holds capacity on the host.
        let alone = self.is_alone(host);
        let mut held: Option<ReservedCapacity> = None;
        for id in self.in_turn(host, transition.now) {
            let Some(needs) = self.takes_again(id) else {
                continue;
            };
            let none = ReservedCapacity::new();
            if self.has_room(&usage, &needs, held.as_ref().unwrap_or(&none), alone) {
                self.try_to_bring_back(transition, id, host);
                return true;
            }
            if held.is_none() {
                held = Some(self.held_for(id, &needs, transition.now));
            }
        }
        false
    }

    /// True if no server holds capacity on the host, promised capacity included.
    pub(crate) fn is_alone(&self, host: &str) -> bool {
        !self.servers_on(host).any(|s| s.status.holds_room())
    }

    /// Capacity that the first waiting server reserves for itself now.
    fn held_for(&self, id: ServerId, needs: &Resources, now: Timestamp) -> ReservedCapacity {
        let waits = self.servers.get(&id).and_then(|s| s.comeback.as_ref());
        let holds = waits.is_some_and(|c| self.config.comeback.holds(c.since, now));
        let amounts = needs.iter().filter(|_| holds);
        amounts
            .map(|(c, n)| (c.clone(), capacity::units(n)))
            .collect()
    }

    /// Capacity on a host that is reserved for the first server that waits there.
    pub(crate) fn held_on(&self, host: &str, now: Timestamp) -> ReservedCapacity {
        let first = self.in_turn(host, now).into_iter();
        let first = first
            .filter_map(|id| Some((id, self.takes_again(id)?)))
            .next();
        first.map_or_else(ReservedCapacity::new, |(id, needs)| {
            self.held_for(id, &needs, now)
        })
    }

    /// Servers that are due on a host, in fair order.
    fn in_turn(&self, host: &str, now: Timestamp) -> Vec<ServerId> {
        let recent = now.minus(self.config.comeback.window_seconds);
        let mut of_project: BTreeMap<&str, usize> = BTreeMap::new();
        let mut due: Vec<(usize, Timestamp, ServerId)> = Vec::new();
        for id in self.servers.resume_queue().waiting_on(host) {
            let Some(server) = self.servers.get(&id) else {
                continue;
            };
            let Some(comeback) = server.comeback.as_ref().filter(|c| c.not_before <= now) else {
                continue;
            };
            if !self.pays(server) {
                continue;
            }
            let project = server.project_id.as_str();
            let had = *of_project
                .entry(project)
                .or_insert_with(|| self.servers.resume_queue().resumed_since(project, recent));
            due.push((had, comeback.since, id));
        }
        due.sort_unstable();
        due.into_iter().map(|(_, _, id)| id).collect()
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
        let percent = i64::from(self.config.comeback.reserve_percent);
        needs.iter().all(|(class, amount)| {
            let capacity = usage.classes.iter().find(|c| c.class == *class);
            let capacity = capacity.map_or(0, |c| c.capacity);
            let reserve = match alone {
                true => 0,
                false => capacity.saturating_mul(percent) / 100,
            };
            let held = held.get(class).copied().unwrap_or(0);
            capacity::full(usage, class) - held - reserve >= capacity::units(amount)
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
                    let event = RegionEvent::Decision(Box::new(decision));
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
            comeback.tries = comeback.tries.saturating_add(1);
            let wait = self.config.comeback.waiting_time(comeback.tries);
            comeback.not_before = transition.now.plus(wait);
            comeback.reason = Some(why.to_owned());
        }
        self.save_server(transition, server);
    }
}
