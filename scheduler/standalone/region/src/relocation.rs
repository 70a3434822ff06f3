//! Resumption on another host: a server that is kept on shared storage can be resumed on any host
//! that shares it when its own host has no capacity, is down or is disabled.
//!
//! The region first tries each waiting server's own host. For those that still wait, it considers
//! all hosts that report the same storage. The engine selects one of those with enough capacity,
//! with the same filters and weighers as for any request. The claim moves too: from then on the
//! server belongs to the new host with all its resources, and uses nothing on its former host. If
//! it does not start on the new host, it waits there.
//!
//! The region does not have to prevent two hosts from running the server at the same time: a host
//! may resume it only with the server's token, of which there is one
//! (`docs/operate/evacuation.md`). But the region asks another host only after the one that was
//! asked before has reported that the server does not run there.

use crate::Region;
use crate::transition::Transition;
use ebbtide_engine::HostUsage;
use ebbtide_evacuation::ReservedCapacity;
use ebbtide_model::record::Change;
use ebbtide_model::{
    CloudEvent, DecisionOutcome, HostHealth, Resources, Server, ServerId, ServerStatus, Timestamp,
};
use std::collections::BTreeMap;

/// A host that could resume a server.
struct Candidate {
    name: String,
    usage: HostUsage,
    /// Capacity that is reserved for the first server that waits there.
    reserved: ReservedCapacity,
    /// True if no other server holds capacity there.
    alone: bool,
}

impl Region {
    /// Resumes waiting servers on other hosts if their own host cannot resume them.
    pub(crate) fn look_elsewhere(&mut self, transition: &mut Transition<'_>) {
        for (storage, waiting) in self.waiting_by_storage(transition.now) {
            let mut candidates = self.candidates(&storage, transition.now);
            for id in waiting {
                if candidates.is_empty() {
                    break;
                }
                if let Some(host) = self.move_to_one_of(transition, id, &candidates) {
                    let place = candidates.iter().position(|c| c.name == host);
                    if let Some(place) = place {
                        match self.candidate(&host, transition.now) {
                            Some(now) => candidates[place] = now,
                            None => drop(candidates.remove(place)),
                        }
                    }
                }
            }
        }
    }

    /// Servers on shared storage whose resumption is due, by storage, in fair order.
    fn waiting_by_storage(&self, now: Timestamp) -> BTreeMap<String, Vec<ServerId>> {
        let recent = now.minus(self.config.comeback.window_seconds);
        let mut due: BTreeMap<String, Vec<(Timestamp, ServerId)>> = BTreeMap::new();
        for host in self.servers.resume_queue().places() {
            for id in self.servers.resume_queue().waiting_at(&host) {
                let server = self.servers.get(&id);
                let paying = server.filter(|s| self.pays(s));
                let Some(comeback) = paying.and_then(|s| s.comeback.as_ref()) else {
                    continue;
                };
                if let Some(storage) = &comeback.storage
                    && comeback.not_before <= now
                    && !self.servers.resume_queue().rests_elsewhere(id, now)
                {
                    let there = due.entry(storage.clone()).or_default();
                    there.push((comeback.since, id));
                }
            }
        }
        let in_turn = due.into_iter().map(|(storage, mut waiting)| {
            waiting.sort_unstable();
            // Each resumption counts for its project, so that a project with many servers does not
            // go before all others.
            let mut of_project: BTreeMap<&str, usize> = BTreeMap::new();
            let mut ordered: Vec<(usize, Timestamp, ServerId)> = Vec::new();
            for (since, id) in waiting {
                let project = self.servers.get(&id).map_or("", |s| s.project_id.as_str());
                let had = of_project
                    .entry(project)
                    .or_insert_with(|| self.servers.resume_queue().resumed_since(project, recent));
                ordered.push((*had, since, id));
                *had += 1;
            }
            ordered.sort_unstable();
            (storage, ordered.into_iter().map(|(_, _, id)| id).collect())
        });
        in_turn.collect()
    }

    /// Hosts that share this storage and can resume a server.
    fn candidates(&self, storage: &str, now: Timestamp) -> Vec<Candidate> {
        let sharing = self.hosts.sharing(storage);
        sharing
            .filter_map(|(name, _)| self.candidate(name, now))
            .collect()
    }

    fn candidate(&self, name: &str, now: Timestamp) -> Option<Candidate> {
        let up = self
            .hosts
            .get(name)
            .is_some_and(|entry| entry.health == HostHealth::Up);
        let limit = self.config.comeback.most_at_once();
        if !up || self.servers.resume_queue().returning_at(name) >= limit {
            return None;
        }
        Some(Candidate {
            name: name.to_owned(),
            usage: self.table.usage(name)?,
            reserved: self.held_on(name, now),
            alone: self.is_alone(name),
        })
    }

    /// Moves a server to one of the candidates. Returns that host, if there is one.
    fn move_to_one_of(
        &mut self,
        transition: &mut Transition<'_>,
        id: ServerId,
        candidates: &[Candidate],
    ) -> Option<String> {
        let server = self.servers.get(&id)?;
        let properties = server.flavor.properties().ok()?;
        // It uses nothing on the new host yet, so it needs all its resources.
        let needs: Resources = properties.resources;
        let fit: Vec<&str> = candidates
            .iter()
            .filter(|c| may_be_on(server, &c.name))
            .filter(|c| self.has_room(&c.usage, &needs, &c.reserved, c.alone))
            .map(|c| c.name.as_str())
            .collect();
        if fit.is_empty() {
            return None;
        }
        let mut server = server.clone();
        let request = Self::comeback_request(&server);
        // Remove it from the table first, so that its kept part does not block its own placement.
        self.table.remove_instance(id);
        let decided = self.decide_on(transition, &request, Some(&fit));
        if let Err(error) = self.show_to_table(id) {
            transition.ignored(format!("the host table refused a server: {error}"));
            return None;
        }
        let placed = match &decided {
            Ok(decision) => match &decision.outcome {
                DecisionOutcome::Placed(placements) => placements.first().map(|p| p.host.clone()),
                DecisionOutcome::NoValidHost(_) => None,
            },
            Err(_) => None,
        };
        let (Some(host), Ok(decision)) = (placed, decided) else {
            // Its own host may get capacity earlier; this pause does not affect that.
            let until = transition.now.plus(self.config.comeback.hold_seconds);
            self.servers.rest_elsewhere(id, until);
            return None;
        };
        let changes = &mut transition.effects.changes;
        changes.push(Change::PutDecision(Box::new(decision.clone())));
        server.decision_id = Some(decision.id);
        transition
            .effects
            .events
            .push(CloudEvent::Decision(Box::new(decision)));
        server.host = Some(host.clone());
        self.resume(transition, server);
        Some(host)
    }
}

/// How and on which shared storage a server is still kept: one that waits to be resumed, or that is
/// being resumed and has not been reported since. A host without anything of it reports that it is
/// gone already; what was kept is still on the storage, for any host that shares it.
pub(crate) fn saved_on_storage(server: &Server) -> Option<(ServerStatus, String)> {
    let comeback = server.comeback.as_ref()?;
    let storage = comeback.storage.clone()?;
    let runs = server.launched_at.is_some() && !server.waits_to_come_back();
    (!runs).then(|| (comeback.saved_state.status(), storage))
}

/// True if the request's host lists and the refusals so far allow this host. The server's own host
/// has been tried already.
fn may_be_on(server: &Server, host: &str) -> bool {
    let named = |hosts: &[String]| hosts.iter().any(|name| name.eq_ignore_ascii_case(host));
    server.host.as_deref() != Some(host)
        && !named(&server.ignore_hosts)
        && !named(&server.refused_hosts)
        && (server.force_hosts.is_empty() || named(&server.force_hosts))
}
