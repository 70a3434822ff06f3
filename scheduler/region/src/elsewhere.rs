//! A server that was kept on storage which several hosts share goes on on another of them when its own has no room, is down or disabled.
//!
//! Whoever still waits after its own host has been looked at is held against all hosts that say that they have its storage, and the engine
//! picks one of those that have room, by the same filters and weights as for any request. The claim moves with it: from then on the
//! server belongs to that host, with all it takes; on its former host it takes nothing any more. Should it not begin there, it waits there,
//! and that host is its own.
//!
//! That two hosts run it at the same time is not for the region to prevent: whoever lets it go on has to have its token, of which there is
//! one (`docs/evacuation.md`). But nobody else is asked before the one that was asked has said that it does not run there.

use crate::comeback::Held;
use crate::transition::Transition;
use crate::{Event, Region};
use ebbtide_engine::HostUsage;
use ebbtide_model::record::Change;
use ebbtide_model::{HostHealth, Outcome, Resources, Server, ServerId, ServerStatus, Timestamp};
use std::collections::BTreeMap;

/// A host that could take somebody.
struct Candidate {
    name: String,
    usage: HostUsage,
    /// What it keeps free for somebody who waits there.
    held: Held,
    /// Nobody runs there.
    alone: bool,
}

impl Region {
    /// Lets those go on on other hosts who wait and could not go on on their own.
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

    /// Who is due and kept on shared storage, by storage, whose turn it is first.
    fn waiting_by_storage(&self, now: Timestamp) -> BTreeMap<String, Vec<ServerId>> {
        let recent = now.minus(self.config.comeback.window_seconds);
        let mut due: BTreeMap<String, Vec<(Timestamp, ServerId)>> = BTreeMap::new();
        for host in self.resume_queue.hosts() {
            for id in self.resume_queue.waiting_on(&host) {
                let server = self.servers.get(&id);
                let paying = server.filter(|s| self.pays(s));
                let Some(comeback) = paying.and_then(|s| s.comeback.as_ref()) else {
                    continue;
                };
                if let Some(storage) = &comeback.storage
                    && comeback.not_before <= now
                    && !self.resume_queue.rests_elsewhere(id, now)
                {
                    let there = due.entry(storage.clone()).or_default();
                    there.push((comeback.since, id));
                }
            }
        }
        let in_turn = due.into_iter().map(|(storage, mut waiting)| {
            waiting.sort_unstable();
            // Each one that goes on counts for its project, so that one with many does not go before all others.
            let mut of_project: BTreeMap<&str, usize> = BTreeMap::new();
            let mut ordered: Vec<(usize, Timestamp, ServerId)> = Vec::new();
            for (since, id) in waiting {
                let project = self.servers.get(&id).map_or("", |s| s.project_id.as_str());
                let had = of_project
                    .entry(project)
                    .or_insert_with(|| self.resume_queue.resumed_since(project, recent));
                ordered.push((*had, since, id));
                *had += 1;
            }
            ordered.sort_unstable();
            (storage, ordered.into_iter().map(|(_, _, id)| id).collect())
        });
        in_turn.collect()
    }

    /// Hosts that have this storage and may take somebody.
    fn candidates(&self, storage: &str, now: Timestamp) -> Vec<Candidate> {
        let sharing = self
            .hosts
            .iter()
            .filter(|(_, entry)| entry.host.storage.as_deref() == Some(storage));
        sharing
            .filter_map(|(name, _)| self.candidate(name, now))
            .collect()
    }

    fn candidate(&self, name: &str, now: Timestamp) -> Option<Candidate> {
        let up = self
            .hosts
            .get(name)
            .is_some_and(|entry| entry.health == HostHealth::Up);
        let limit = usize::try_from(self.config.comeback.at_once).unwrap_or(usize::MAX);
        if !up || self.resume_queue.returning_on(name) >= limit {
            return None;
        }
        Some(Candidate {
            name: name.to_owned(),
            usage: self.table.usage(name)?,
            held: self.held_on(name, now),
            alone: self.is_alone(name),
        })
    }

    /// Where it goes on from now on, if anywhere.
    fn move_to_one_of(
        &mut self,
        transition: &mut Transition<'_>,
        id: ServerId,
        candidates: &[Candidate],
    ) -> Option<String> {
        let server = self.servers.get(&id)?;
        let properties = server.flavor.properties().ok()?;
        // Nothing of it is accounted there, so it takes all.
        let needs: Resources = properties.resources;
        let fit: Vec<&str> = candidates
            .iter()
            .filter(|c| may_be_on(server, &c.name))
            .filter(|c| self.has_room(&c.usage, &needs, &c.held, c.alone))
            .map(|c| c.name.as_str())
            .collect();
        if fit.is_empty() {
            return None;
        }
        let mut server = server.clone();
        let request = Self::comeback_request(&server);
        // Out of the table first: what is kept of it must not stand in its way.
        self.table.remove_instance(id);
        let decided = self.decide_on(transition, &request, Some(&fit));
        if let Err(error) = self.show_to_table(id) {
            transition.ignored(format!("the host table refused a server: {error}"));
            return None;
        }
        let placed = match &decided {
            Ok(decision) => match &decision.outcome {
                Outcome::Placed(placements) => placements.first().map(|p| p.host.clone()),
                Outcome::NoValidHost(_) => None,
            },
            Err(_) => None,
        };
        let (Some(host), Ok(decision)) = (placed, decided) else {
            // Its own host may have room before that, and is not kept waiting for this.
            let until = transition.now.plus(self.config.comeback.hold_seconds);
            self.resume_queue.rest_elsewhere(id, until);
            return None;
        };
        let changes = &mut transition.effects.changes;
        changes.push(Change::PutDecision(Box::new(decision.clone())));
        server.decision_id = Some(decision.id);
        transition
            .effects
            .events
            .push(Event::Decision(Box::new(decision)));
        server.host = Some(host.clone());
        self.resume(transition, server);
        Some(host)
    }
}

/// How and where a server is kept still that waits, or was on its way back and of whose start nothing has been heard. A host that has nothing of it
/// says that it is gone already; but what was kept of it is where it was, for any host that shares the storage.
pub(crate) fn still_kept(server: &Server) -> Option<(ServerStatus, String)> {
    let comeback = server.comeback.as_ref()?;
    let storage = comeback.storage.clone()?;
    let runs = server.launched_at.is_some() && !server.waits_to_come_back();
    (!runs).then(|| (comeback.kept.status(), storage))
}

/// Whether its owner, and what has happened so far, let it be there. Its own host has been asked already.
fn may_be_on(server: &Server, host: &str) -> bool {
    let named = |hosts: &[String]| hosts.iter().any(|name| name.eq_ignore_ascii_case(host));
    server.host.as_deref() != Some(host)
        && !named(&server.ignore_hosts)
        && !named(&server.refused_hosts)
        && (server.force_hosts.is_empty() || named(&server.force_hosts))
}
