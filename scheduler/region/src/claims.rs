//! Claims that wait: started when their room is really free, placed elsewhere when it will not be; and their victims, spared as
//! soon as they are not needed.
//!
//! After every step each host on which something has changed is looked at ([`Region::reconcile`]), so that no event can be
//! forgotten that frees room or ends a need. Afterwards holds, for every host:
//!
//! - what is promised fits once everybody has left who is leaving (and is not being spared);
//! - nobody waits for whom there is room beside what the others who wait keep for themselves;
//! - nobody is leaving who could stay without breaking a promise;
//! - every evacuation whose victim has not been spared is for a server that waits on that host.

use crate::state::Queue;
use crate::transition::Transition;
use crate::{Event, Region, room, servers};
use ebbtide_model::record::Change;
use ebbtide_model::server::Fault;
use ebbtide_model::{
    Evacuation, EvacuationCause, EvacuationId, Outcome, PlacementRequest, ResourceClass, Resources,
    ServerId, ServerStatus,
};
use std::collections::BTreeMap;

/// A victim did not leave.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Failure<'a> {
    /// For whom it was to leave, if for anybody.
    pub(crate) preemptor: Option<ServerId>,
    /// Why it did not.
    pub(crate) why: &'a str,
    /// The host's agent said so itself: the host is there, and others on it may leave more easily.
    pub(crate) host_answers: bool,
}

impl Region {
    /// Holds claims and victims against each other on every host that the step has touched. A host on which that changes something is
    /// looked at again; each round moves, starts or spares somebody, so it ends.
    pub(crate) fn reconcile(&mut self, transition: &mut Transition<'_>) {
        while let Some(host) = transition.touched.pop_first() {
            if self.waiting.contains_key(&host) || self.leaving.contains_key(&host) {
                self.settle(transition, &host, None);
            }
        }
    }

    /// Sets one host right. If room has got lost, then first at the cost of the server whose victim did not leave.
    pub(crate) fn settle(
        &mut self,
        transition: &mut Transition<'_>,
        host: &str,
        failed: Option<Failure<'_>>,
    ) {
        self.move_those_without_room(transition, host, failed);
        self.start_those_with_room(transition, host);
        self.spare_those_not_needed(transition, host);
        self.hand_victims_over(transition, host);
    }

    /// As long as more is promised than there will be, somebody who waits for that goes elsewhere: whoever lost a victim, else the youngest.
    fn move_those_without_room(
        &mut self,
        transition: &mut Transition<'_>,
        host: &str,
        failed: Option<Failure<'_>>,
    ) {
        while let Some(usage) = self.table.usage(host)
            && let Some(class) = room::overpromised(&usage)
        {
            let claimants = self.claimants(host, class);
            let whose = failed.and_then(|f| f.preemptor);
            let preferred = whose.filter(|id| claimants.contains(id));
            let Some(id) = preferred.or_else(|| claimants.last().copied()) else {
                return;
            };
            match failed {
                Some(failure) => {
                    self.place_anew(transition, id, host, failure.why, failure.host_answers);
                }
                None => {
                    let why = "the host has less room than it had when the place was promised";
                    self.place_elsewhere(transition, id, host, why);
                }
            }
        }
    }

    /// Those who wait on the host for room of this class, the oldest first.
    fn claimants(&self, host: &str, class: &ResourceClass) -> Vec<ServerId> {
        let takes = |id: &ServerId| self.needs(*id).is_some_and(|r| r.get(class) > 0);
        self.queue(host).filter(takes).collect()
    }

    fn queue(&self, host: &str) -> impl Iterator<Item = ServerId> {
        self.waiting
            .get(host)
            .into_iter()
            .flat_map(Queue::keys)
            .map(|(_, id)| *id)
    }

    fn needs(&self, id: ServerId) -> Option<Resources> {
        let properties = self.servers.get(&id)?.flavor.properties();
        properties.ok().map(|p| p.resources)
    }

    /// What the end of a victim frees: its disk, if that stays, is counted already.
    fn frees(&self, id: ServerId) -> Option<Resources> {
        let properties = self.servers.get(&id)?.flavor.properties();
        properties.ok().map(|p| p.resources.without(&p.retained()))
    }

    /// Starts those who wait on a host and for whom there is room now.
    pub(crate) fn start_those_with_room(&mut self, transition: &mut Transition<'_>, host: &str) {
        while let Some(id) = self.next_with_room(host) {
            let Some(mut server) = self.servers.get(&id).cloned() else {
                return;
            };
            self.start(transition, &mut server);
            if server.status == ServerStatus::Waiting {
                // Its flavor cannot be read: it goes with its patience.
                return;
            }
        }
    }

    /// Who of those who wait on a host is to start now.
    ///
    /// First those whose own victims have left, the oldest request first: one long grace period does not hold up others whose room is free.
    /// Who cannot be served yet keeps for itself what its victims will not free: otherwise small requests could keep a large one
    /// waiting for ever. What is left over serves those whose victims are still leaving, who can then be spared.
    pub(crate) fn next_with_room(&self, host: &str) -> Option<ServerId> {
        let usage = self.table.usage(host)?;
        let frees = self.will_be_freed(host);
        let mut waiting = Vec::new();
        for id in self.queue(host) {
            let Some(needs) = self.needs(id) else {
                continue;
            };
            let own = frees.get(&id);
            let keeps = own.map_or_else(|| needs.clone(), |own| needs.without(own));
            waiting.push((id, own.is_none(), needs, keeps));
        }
        let fits = |needs: &Resources, kept: &BTreeMap<ResourceClass, i64>| {
            needs.iter().all(|(class, amount)| {
                let kept = kept.get(class).copied().unwrap_or(0);
                room::physical(&usage, class) - kept >= room::units(amount)
            })
        };
        let mut kept: BTreeMap<ResourceClass, i64> = BTreeMap::new();
        for (id, ready, needs, keeps) in &waiting {
            if *ready && fits(needs, &kept) {
                return Some(*id);
            }
            keep(&mut kept, keeps, 1);
        }
        for (id, _, needs, keeps) in &waiting {
            // What all others keep.
            keep(&mut kept, keeps, -1);
            if fits(needs, &kept) {
                return Some(*id);
            }
            keep(&mut kept, keeps, 1);
        }
        None
    }

    /// What those who are leaving on a host will free, by the server for which they leave.
    fn will_be_freed(&self, host: &str) -> BTreeMap<ServerId, Resources> {
        let mut freed: BTreeMap<ServerId, Resources> = BTreeMap::new();
        for evacuation in self.needed_victims(host) {
            let room = self.frees(evacuation.victim_id).unwrap_or_default();
            let Some(preemptor) = evacuation.preemptor_id else {
                continue;
            };
            let sum = freed.entry(preemptor).or_default();
            for (class, amount) in room.iter() {
                let both = sum.get(class).saturating_add(amount);
                // Each was checked by itself; a sum beyond the range of the model frees enough as it is.
                let _ = sum.set(class.clone(), both);
            }
        }
        freed
    }

    /// Spares whoever could stay, the dearest first: the server that needed the room is gone, has started without it, or has got
    /// room from elsewhere.
    fn spare_those_not_needed(&mut self, transition: &mut Transition<'_>, host: &str) {
        let mut leaving = self.needed_victims(host);
        // Whoever has to leave for another reason leaves, whoever needs the room.
        leaving.retain(|e| e.cause == EvacuationCause::Preemption);
        leaving.sort_by(|a, b| b.cost.total_cmp(&a.cost).then(a.id.cmp(&b.id)));
        for evacuation in leaving {
            let (Some(usage), Some(frees)) =
                (self.table.usage(host), self.frees(evacuation.victim_id))
            else {
                continue;
            };
            if room::may_stay(&usage, &frees) {
                let why = self.why_not_needed(&evacuation);
                self.spare(transition, evacuation, why);
            }
        }
    }

    /// Evacuations on a host whose victims are to leave: neither being spared, nor deleted by their owners meanwhile.
    pub(crate) fn needed_victims(&self, host: &str) -> Vec<Evacuation> {
        let ids = self.leaving.get(host).into_iter().flatten();
        ids.filter_map(|id: &EvacuationId| self.evacuations.get(id))
            .filter(|e| !e.spare_requested)
            .filter(|e| {
                let victim = self.servers.get(&e.victim_id);
                victim.is_some_and(|v| v.status == ServerStatus::Evacuating)
            })
            .cloned()
            .collect()
    }

    fn why_not_needed(&self, evacuation: &Evacuation) -> &'static str {
        let preemptor = evacuation.preemptor_id.as_ref();
        match preemptor.and_then(|id| self.servers.get(id)) {
            None => "the server that needed the room was deleted",
            Some(s) if s.host.as_ref() != Some(&evacuation.host) => {
                "the server that needed the room goes to another host, or has none"
            }
            Some(s) if s.status == ServerStatus::Waiting => "other room became free",
            Some(s) if s.status == ServerStatus::Deleting => {
                "the server that needed the room is being deleted"
            }
            Some(_) => "the room became free without it",
        }
    }

    /// Who is still leaving although the server that it was to make room for does not wait here any more, leaves for somebody else
    /// who was promised that room. Whose claim it is stays written down, so that its end can spare the victim.
    fn hand_victims_over(&mut self, transition: &mut Transition<'_>, host: &str) {
        for mut evacuation in self.needed_victims(host) {
            let waits_here = |id: ServerId| self.queue(host).any(|waiting| waiting == id);
            if evacuation.preemptor_id.is_some_and(waits_here) {
                continue;
            }
            let frees = self.frees(evacuation.victim_id).unwrap_or_default();
            let heir = self.queue(host).find(|id| {
                self.needs(*id)
                    .is_some_and(|needs| needs.iter().any(|(class, _)| frees.get(class) > 0))
            });
            if let Some(heir) = heir {
                evacuation.preemptor_id = Some(heir);
                self.save_evacuation(transition, evacuation);
            }
        }
    }

    /// Places a server that cannot have the room it was promised: the next best host, or an error that says why.
    pub(crate) fn place_elsewhere(
        &mut self,
        transition: &mut Transition<'_>,
        id: ServerId,
        refused: &str,
        why: &str,
    ) {
        self.place_anew(transition, id, refused, why, false);
    }

    /// The same. `again`: the host itself may be tried once more if it is the best one still, with other victims: those who did not leave are
    /// left alone for a while.
    fn place_anew(
        &mut self,
        transition: &mut Transition<'_>,
        id: ServerId,
        refused: &str,
        why: &str,
        again: bool,
    ) {
        let Some(mut server) = self.servers.get(&id).cloned() else {
            return;
        };
        if !matches!(
            server.status,
            ServerStatus::Waiting | ServerStatus::Building
        ) {
            return;
        }
        let again = again && !server.refused_hosts.iter().any(|host| host == refused);
        server.refused_hosts.push(refused.to_owned());
        // Out of the table first: its own claim must not stand in its way.
        server.status = ServerStatus::Error;
        server.host = None;
        server.fault = Some(Fault {
            code: servers::NO_VALID_HOST.to_owned(),
            message: format!("host {refused}: {why}"),
            at: transition.now,
        });
        self.save_server(transition, server.clone());
        if server.refused_hosts.len()
            >= usize::try_from(self.config.max_attempts).unwrap_or(usize::MAX)
        {
            return;
        }
        let mut ignore_hosts = server.ignore_hosts.clone();
        let others = server.refused_hosts.iter();
        ignore_hosts.extend(others.filter(|host| !again || *host != refused).cloned());
        let request = PlacementRequest {
            server_ids: vec![id],
            project_id: server.project_id.clone(),
            flavor: server.flavor.clone(),
            availability_zone: server.availability_zone.clone(),
            group_id: server.group_id,
            ignore_hosts,
            force_hosts: server.force_hosts.clone(),
            alternates: 0,
        };
        let decision = match self.decide(transition, &request) {
            Ok(decision) => decision,
            Err(error) => {
                transition.ignored(format!(
                    "server {id} could not be placed elsewhere: {error}"
                ));
                return;
            }
        };
        transition
            .effects
            .changes
            .push(Change::PutDecision(Box::new(decision.clone())));
        transition
            .effects
            .events
            .push(Event::Decision(Box::new(decision.clone())));
        match &decision.outcome {
            Outcome::Placed(placements) => {
                for placement in placements {
                    self.claim(transition, &mut server, placement, decision.id);
                }
            }
            Outcome::NoValidHost(none) => {
                server.decision_id = Some(decision.id);
                server.fault = Some(Fault {
                    code: servers::NO_VALID_HOST.to_owned(),
                    message: format!("host {refused}: {why}; after that: {}", none.reason),
                    at: transition.now,
                });
                self.save_server(transition, server);
            }
        }
    }

    /// A server that an agent did not start, or said that it could not: it is tried elsewhere. The room stays taken until the
    /// agent has confirmed that nothing of it is there.
    pub(crate) fn start_failed(
        &mut self,
        transition: &mut Transition<'_>,
        id: ServerId,
        host: &str,
        why: &str,
    ) {
        if let Some(server) = self.servers.get(&id).cloned() {
            self.leave_remains(transition, &server, host, why);
        }
        self.place_elsewhere(transition, id, host, why);
    }
}

/// Adds an amount to what is kept, or takes it away again.
fn keep(kept: &mut BTreeMap<ResourceClass, i64>, amounts: &Resources, times: i64) {
    for (class, amount) in amounts.iter() {
        *kept.entry(class.clone()).or_default() += times * room::units(amount);
    }
}
