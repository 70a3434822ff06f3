//! Indexes of servers that wait to be resumed, by host, and of resumed servers, by project. Derived
//! from the servers alone.

use ebbtide_model::{Server, ServerId, ServerStatus, Timestamp};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A server's entries in the indexes.
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
    /// The agent was asked to resume it and has not answered.
    Returning,
    /// Any other state.
    Other,
}

/// The indexes.
#[derive(Debug, Default)]
pub(crate) struct ResumeQueue {
    places: HashMap<ServerId, Place>,
    /// Servers that wait to be resumed, by host. No empty sets.
    waiting: BTreeMap<String, BTreeSet<ServerId>>,
    /// Number of servers being resumed, by host. No zero entries.
    returning: BTreeMap<String, usize>,
    /// When servers of a project were resumed. No empty sets.
    resumed: HashMap<String, BTreeSet<(Timestamp, ServerId)>>,
    /// Until when the region does not look for another host for a server, because none was
    /// suitable. Only in memory: after a restart the region looks once more than necessary.
    resting: BTreeMap<ServerId, Timestamp>,
}

impl ResumeQueue {
    /// Updates the indexes for a server.
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

    /// Notes that no other host is suitable for a server until this time.
    pub(crate) fn rest_elsewhere(&mut self, id: ServerId, until: Timestamp) {
        self.resting.insert(id, until);
    }

    /// True while the region does not look for another host for a server.
    pub(crate) fn rests_elsewhere(&self, id: ServerId, now: Timestamp) -> bool {
        self.resting.get(&id).is_some_and(|until| *until > now)
    }

    /// Hosts on which servers wait to be resumed.
    pub(crate) fn hosts(&self) -> Vec<String> {
        self.waiting.keys().cloned().collect()
    }

    /// Servers that wait on a host.
    pub(crate) fn waiting_on(&self, host: &str) -> impl Iterator<Item = ServerId> {
        self.waiting.get(host).into_iter().flatten().copied()
    }

    /// Number of servers on a host that are being resumed.
    pub(crate) fn returning_on(&self, host: &str) -> usize {
        self.returning.get(host).copied().unwrap_or(0)
    }

    /// Number of a project's servers that were resumed after this time.
    pub(crate) fn resumed_since(&self, project: &str, since: Timestamp) -> usize {
        let of = self.resumed.get(project);
        of.map_or(0, |of| {
            of.iter().rev().take_while(|(at, _)| *at > since).count()
        })
    }
}
