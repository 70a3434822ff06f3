//! Indexes of servers that wait to be resumed, by host, and of resumed servers, by project. Derived
//! from the servers alone.

use super::index::{Index, same};
use ebbtide_model::{Server, ServerId, ServerStatus, Timestamp};
use std::collections::{BTreeMap, HashMap};

/// A server's entries in the indexes.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// Servers that wait to be resumed, by host.
    waiting: Index<String, ServerId>,
    /// Servers being resumed, by host.
    returning: Index<String, ServerId>,
    /// When servers of a project were resumed.
    resumed: Index<String, (Timestamp, ServerId)>,
    /// Until when the region does not look for another host for a server, because none was
    /// suitable. Only in memory: after a restart the region looks once more than necessary.
    resting: BTreeMap<ServerId, Timestamp>,
}

/// The entries of a server; `None` if it has none.
fn place(server: &Server) -> Option<Place> {
    let (comeback, host) = (server.comeback.as_ref()?, server.host.clone()?);
    if server.status.is_gone() {
        return None;
    }
    Some(Place {
        host,
        project: server.project_id.clone(),
        state: match server.status {
            _ if server.waits_to_come_back() => State::Waits,
            ServerStatus::Building => State::Returning,
            _ => State::Other,
        },
        resumed_at: comeback.resumed_at,
    })
}

impl ResumeQueue {
    /// Updates the indexes for a server.
    pub(super) fn put(&mut self, server: &Server) {
        let id = server.id;
        self.remove(id);
        let Some(place) = place(server) else {
            return;
        };
        match place.state {
            State::Waits => self.waiting.insert(place.host.as_str(), id),
            State::Returning => self.returning.insert(place.host.as_str(), id),
            State::Other => {}
        }
        if let Some(at) = place.resumed_at {
            self.resumed.insert(place.project.as_str(), (at, id));
        }
        self.places.insert(id, place);
    }

    fn remove(&mut self, id: ServerId) {
        self.resting.remove(&id);
        let Some(place) = self.places.remove(&id) else {
            return;
        };
        match place.state {
            State::Waits => self.waiting.remove(&place.host, &id),
            State::Returning => self.returning.remove(&place.host, &id),
            State::Other => {}
        }
        if let Some(at) = place.resumed_at {
            self.resumed.remove(&place.project, &(at, id));
        }
    }

    /// Notes that no other host is suitable for a server until this time.
    pub(super) fn rest_elsewhere(&mut self, id: ServerId, until: Timestamp) {
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
        self.waiting.get(host).copied()
    }

    /// Number of servers on a host that are being resumed.
    pub(crate) fn returning_on(&self, host: &str) -> usize {
        self.returning.get(host).count()
    }

    /// Number of a project's servers that were resumed after this time.
    pub(crate) fn resumed_since(&self, project: &str, since: Timestamp) -> usize {
        let newest_first = self.resumed.get(project).rev();
        newest_first.take_while(|(at, _)| *at > since).count()
    }

    /// Checks that the indexes follow from the servers.
    pub(super) fn audit<'s>(
        &self,
        servers: impl Iterator<Item = &'s Server>,
    ) -> Result<(), String> {
        let places = servers.filter_map(|server| Some((server.id, place(server)?)));
        let places: HashMap<ServerId, Place> = places.collect();
        same("comebacks", &self.places, &places)?;
        let with = |state: State| {
            let these = places.iter().filter(move |(_, place)| place.state == state);
            these.map(|(id, place)| (place.host.clone(), *id)).collect()
        };
        same("servers to be resumed", &self.waiting, &with(State::Waits))?;
        same(
            "servers being resumed",
            &self.returning,
            &with(State::Returning),
        )?;
        let resumed = places.iter();
        let resumed = resumed
            .filter_map(|(id, place)| Some((place.project.clone(), (place.resumed_at?, *id))));
        same("resumed servers", &self.resumed, &resumed.collect())
    }
}
