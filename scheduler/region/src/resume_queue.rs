//! Who waits to come back, by host, and who has come back, by project. Made from the servers alone.

use ebbtide_model::{Server, ServerId, ServerStatus, Timestamp};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Where a server is in the indexes.
#[derive(Debug, Clone)]
struct Place {
    host: String,
    project: String,
    state: State,
    resumed_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waits,
    /// Its agent was told, and has not answered.
    Returning,
    /// Anything else.
    Other,
}

/// The indexes.
#[derive(Debug, Default)]
pub(crate) struct ResumeQueue {
    places: HashMap<ServerId, Place>,
    /// No empty sets.
    waiting: BTreeMap<String, BTreeSet<ServerId>>,
    /// No zeros.
    returning: BTreeMap<String, usize>,
    /// When servers of a project were told to go on. No empty sets.
    resumed: HashMap<String, BTreeSet<(Timestamp, ServerId)>>,
    /// Until when other hosts are not asked again for a server, because none may have it. Known to nobody else: at worst it is asked again.
    resting: BTreeMap<ServerId, Timestamp>,
}

impl ResumeQueue {
    /// Takes note of a server as it is now.
    pub(crate) fn put(&mut self, server: &Server) {
        self.remove(server.id);
        let (Some(comeback), Some(host)) = (&server.comeback, &server.host) else {
            return;
        };
        if server.status.is_gone() {
            return;
        }
        let state = match server.status {
            _ if server.waits_to_come_back() => State::Waits,
            ServerStatus::Building => State::Returning,
            _ => State::Other,
        };
        match state {
            State::Waits => {
                let there = self.waiting.entry(host.clone()).or_default();
                there.insert(server.id);
            }
            State::Returning => *self.returning.entry(host.clone()).or_default() += 1,
            State::Other => {}
        }
        if let Some(at) = comeback.resumed_at {
            let of = self.resumed.entry(server.project_id.clone()).or_default();
            of.insert((at, server.id));
        }
        let place = Place {
            host: host.clone(),
            project: server.project_id.clone(),
            state,
            resumed_at: comeback.resumed_at,
        };
        self.places.insert(server.id, place);
    }

    fn remove(&mut self, id: ServerId) {
        self.resting.remove(&id);
        let Some(place) = self.places.remove(&id) else {
            return;
        };
        match place.state {
            State::Waits => {
                if let Some(there) = self.waiting.get_mut(&place.host) {
                    there.remove(&id);
                    if there.is_empty() {
                        self.waiting.remove(&place.host);
                    }
                }
            }
            State::Returning => {
                if let Some(there) = self.returning.get_mut(&place.host) {
                    *there = there.saturating_sub(1);
                    if *there == 0 {
                        self.returning.remove(&place.host);
                    }
                }
            }
            State::Other => {}
        }
        if let Some(at) = place.resumed_at
            && let Some(of) = self.resumed.get_mut(&place.project)
        {
            of.remove(&(at, id));
            if of.is_empty() {
                self.resumed.remove(&place.project);
            }
        }
    }

    /// No other host may have it for now.
    pub(crate) fn rest_elsewhere(&mut self, id: ServerId, until: Timestamp) {
        self.resting.insert(id, until);
    }

    /// Whether other hosts are left alone with it.
    pub(crate) fn rests_elsewhere(&self, id: ServerId, now: Timestamp) -> bool {
        self.resting.get(&id).is_some_and(|until| *until > now)
    }

    /// Hosts on which somebody waits to come back.
    pub(crate) fn hosts(&self) -> Vec<String> {
        self.waiting.keys().cloned().collect()
    }

    /// Who waits on a host.
    pub(crate) fn waiting_on(&self, host: &str) -> impl Iterator<Item = ServerId> {
        self.waiting.get(host).into_iter().flatten().copied()
    }

    /// How many on a host were told to go on and have not been heard of.
    pub(crate) fn returning_on(&self, host: &str) -> usize {
        self.returning.get(host).copied().unwrap_or(0)
    }

    /// How many servers of a project were told to go on after this time.
    pub(crate) fn resumed_since(&self, project: &str, since: Timestamp) -> usize {
        let of = self.resumed.get(project);
        of.map_or(0, |of| {
            of.iter().rev().take_while(|(at, _)| *at > since).count()
        })
    }
}
