//! Waiting claims. The region starts a claim when its capacity is physically free, places it
//! elsewhere if that capacity will not become free, and spares its victims as soon as they are not
//! needed.
//!
//! After every step the region settles each host on which something has changed
//! ([`Region::reconcile`]), so that no event that frees capacity or ends a need is missed.
//! Afterwards the following holds for every host:
//!
//! - the promised capacity is available once all leaving victims (except those being spared) have
//!   left;
//! - a waiting claim starts as soon as the host has enough free capacity beyond what the other
//!   waiting claims reserve;
//! - no victim leaves that could stay without breaking a promise;
//! - every preemption whose victim is not being spared is for a server that waits on that host.

use crate::transition::Transition;
use crate::{Region, capacity, servers};
use ebbtide_model::record::Change;
use ebbtide_model::server::ServerFailure;
use ebbtide_model::{
    CloudEvent, DecisionOutcome, Evacuation, EvacuationCause, PlacementRequest, ResourceClass,
    Resources, ServerId, ServerStatus,
};
use std::collections::BTreeMap;

/// A victim that did not leave.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VictimFailure<'a> {
    /// The server that needed the victim's capacity, if there is one.
    pub(crate) preemptor: Option<ServerId>,
    /// Why the victim did not leave.
    pub(crate) why: &'a str,
    /// True if the host's agent reported the failure itself: the host works, and other victims on
    /// it may leave more easily.
    pub(crate) host_answers: bool,
}

impl Region {
    /// Settles claims and victims on every host that the step has touched. A host that changes is
    /// settled again. Each round moves, starts or spares a server, so the loop ends.
    pub(crate) fn reconcile(&mut self, transition: &mut Transition<'_>) {
        while let Some(host) = transition.touched.pop_first() {
            if self.servers.claims().contains(&host) || self.evacuations.is_leaving(&host) {
                self.settle(transition, &host, None);
            }
        }
    }

    /// Settles one host. If capacity is missing, the server whose victim did not leave is moved
    /// first.
    pub(crate) fn settle(
        &mut self,
        transition: &mut Transition<'_>,
        host: &str,
        failed: Option<VictimFailure<'_>>,
    ) {
        self.move_those_without_room(transition, host, failed);
        self.start_those_with_room(transition, host);
        self.spare_those_not_needed(transition, host);
        self.hand_victims_over(transition, host);
    }

    /// As long as more is promised than will become free, moves a waiting server to another host:
    /// the one that lost a victim, else the youngest.
    fn move_those_without_room(
        &mut self,
        transition: &mut Transition<'_>,
        host: &str,
        failed: Option<VictimFailure<'_>>,
    ) {
        while let Some(usage) = self.table.usage(host)
            && let Some(class) = capacity::overpromised(&usage)
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
                    let why = "the host has less free capacity than when this start was promised";
                    self.place_elsewhere(transition, id, host, why);
                }
            }
        }
    }

    /// Servers that wait on the host for capacity of this class, the oldest first.
    fn claimants(&self, host: &str, class: &ResourceClass) -> Vec<ServerId> {
        let takes = |id: &ServerId| self.needs(*id).is_some_and(|r| r.get(class) > 0);
        self.queue(host).filter(takes).collect()
    }

    fn queue(&self, host: &str) -> impl Iterator<Item = ServerId> {
        self.servers.claims().on(host)
    }

    fn needs(&self, id: ServerId) -> Option<Resources> {
        let properties = self.servers.get(&id)?.flavor.properties();
        properties.ok().map(|p| p.resources)
    }

    /// What the end of a victim frees. A disk that stays on the host is already accounted for and
    /// not included.
    fn frees(&self, id: ServerId) -> Option<Resources> {
        let properties = self.servers.get(&id)?.flavor.properties();
        properties.ok().map(|p| p.resources.without(&p.retained()))
    }

    /// Starts the servers that wait on a host and fit now.
    pub(crate) fn start_those_with_room(&mut self, transition: &mut Transition<'_>, host: &str) {
        while let Some(id) = self.next_with_room(host) {
            let Some(mut server) = self.servers.get(&id).cloned() else {
                return;
            };
            self.start(transition, &mut server);
            if server.status == ServerStatus::Waiting {
                // Its flavor cannot be read; it leaves the queue at its time limit.
                return;
            }
        }
    }

    /// The waiting server on a host that starts next.
    ///
    /// First come the servers whose own victims have all left, the oldest request first, so that
    /// one long grace period does not delay others. A server that cannot start yet reserves what
    /// its victims will not free; otherwise small requests could keep a large one waiting for ever.
    /// What is left can start servers whose victims are still leaving; those victims are then
    /// spared.
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
                capacity::physical(&usage, class) - kept >= capacity::units(amount)
            })
        };
        let mut kept: BTreeMap<ResourceClass, i64> = BTreeMap::new();
        for (id, ready, needs, keeps) in &waiting {
            if *ready && fits(needs, &kept) {
                return Some(*id);
            }
            reserve(&mut kept, keeps, 1);
        }
        for (id, _, needs, keeps) in &waiting {
            // What all other waiting servers reserve.
            reserve(&mut kept, keeps, -1);
            if fits(needs, &kept) {
                return Some(*id);
            }
            reserve(&mut kept, keeps, 1);
        }
        None
    }

    /// What the leaving victims on a host will free, by the server for which they leave.
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
                // Each amount was checked when it was created. A sum beyond the model's range is
                // large enough.
                let _ = sum.set(class.clone(), both);
            }
        }
        freed
    }

    /// Spares victims that could stay, the most expensive first. The server that needed the
    /// capacity is gone, has started without it, or has got capacity from elsewhere.
    fn spare_those_not_needed(&mut self, transition: &mut Transition<'_>, host: &str) {
        let mut leaving = self.needed_victims(host);
        leaving.retain(|e| !self.leaves_anyway(e));
        leaving.sort_by(|a, b| b.cost.total_cmp(&a.cost).then(a.id.cmp(&b.id)));
        for evacuation in leaving {
            let (Some(usage), Some(frees)) =
                (self.table.usage(host), self.frees(evacuation.victim_id))
            else {
                continue;
            };
            if capacity::may_stay(&usage, &frees) {
                let why = self.why_not_needed(&evacuation);
                self.spare(transition, evacuation, why);
            }
        }
    }

    /// True if a victim leaves whether or not a claim needs its capacity.
    pub(crate) fn leaves_anyway(&self, evacuation: &Evacuation) -> bool {
        match evacuation.cause {
            EvacuationCause::Preemption => false,
            EvacuationCause::Reclaim => self.is_reclaimed(&evacuation.host),
            EvacuationCause::MaxLifetime
            | EvacuationCause::OutOfBid
            | EvacuationCause::Headroom => true,
        }
    }

    /// Evacuations on a host whose victims are to leave: not being spared, and not deleted by their
    /// owners.
    pub(crate) fn needed_victims(&self, host: &str) -> Vec<Evacuation> {
        let leaving = self.evacuations.leaving(host);
        leaving
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
        if evacuation.cause == EvacuationCause::Reclaim && preemptor.is_none() {
            return "the host was returned by its owner";
        }
        match preemptor.and_then(|id| self.servers.get(id)) {
            None => "the server that needed the capacity was deleted",
            Some(s) if s.host.as_ref() != Some(&evacuation.host) => {
                "the server that needed the capacity goes to another host, or has none"
            }
            Some(s) if s.status == ServerStatus::Waiting => "other capacity became free",
            Some(s) if s.status == ServerStatus::Deleting => {
                "the server that needed the capacity is being deleted"
            }
            Some(_) => "the capacity became free without it",
        }
    }

    /// Assigns victims whose preemptor no longer waits here to another waiting server that was
    /// promised their capacity. The evacuation records the new preemptor, so that the end of that
    /// claim can spare the victim.
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

    /// Places a server that cannot have its promised capacity on the next best host, or sets it to
    /// error with the reason.
    pub(crate) fn place_elsewhere(
        &mut self,
        transition: &mut Transition<'_>,
        id: ServerId,
        refused: &str,
        why: &str,
    ) {
        self.place_anew(transition, id, refused, why, false);
    }

    /// As [`Self::place_elsewhere`]. With `again` the same host may be selected once more if it is
    /// still the best one, with other victims: those that did not leave are not selected for a
    /// while.
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
        // Remove it from the table first, so that its own claim does not block its new placement.
        server.status = ServerStatus::Error;
        server.host = None;
        server.fault = Some(ServerFailure {
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
            .push(CloudEvent::Decision(Box::new(decision.clone())));
        match &decision.outcome {
            DecisionOutcome::Placed(placements) => {
                for placement in placements {
                    self.claim(transition, &mut server, placement, decision.id);
                }
            }
            DecisionOutcome::NoValidHost(none) => {
                server.decision_id = Some(decision.id);
                server.fault = Some(ServerFailure {
                    code: servers::NO_VALID_HOST.to_owned(),
                    message: format!("host {refused}: {why}; after that: {}", none.reason),
                    at: transition.now,
                });
                self.save_server(transition, server);
            }
        }
    }

    /// Places a server elsewhere that an agent failed to start, in time or at all. The capacity
    /// stays occupied until the agent has confirmed that nothing of the server is left.
    pub(crate) fn start_failed(
        &mut self,
        transition: &mut Transition<'_>,
        id: ServerId,
        host: &str,
        why: &str,
    ) {
        if let Some(server) = self.servers.get(&id).cloned() {
            self.leave_orphaned_start(transition, &server, host, why);
        }
        self.place_elsewhere(transition, id, host, why);
    }
}

/// Adds `times` the amounts to the reserved capacity; -1 removes them.
fn reserve(kept: &mut BTreeMap<ResourceClass, i64>, amounts: &Resources, times: i64) {
    for (class, amount) in amounts.iter() {
        *kept.entry(class.clone()).or_default() += times * capacity::units(amount);
    }
}
