//! The servers that are not gone, and what the region knows of each beside its record.

use super::claims::ClaimQueues;
use super::deleted_servers::DeletedServers;
use super::lifetimes;
use super::pending_calls::PendingAgentCalls;
use super::resume_queue;
use ebbtide_evacuation::{Lifetimes, ResumeQueue};
use ebbtide_model::index::{Index, same};
use ebbtide_model::{Seconds, Server, ServerId, ServerStatus, Timestamp};
use std::collections::{BTreeMap, HashMap};

/// Servers that are not gone, and those that went recently.
#[derive(Debug)]
pub(crate) struct ServerBook {
    records: HashMap<ServerId, Server>,
    /// Number of servers of each project. No zero entries.
    by_project: HashMap<String, u32>,
    /// Servers by the host where they run or are placed.
    by_host: Index<String, ServerId>,
    claims: ClaimQueues,
    resume_queue: ResumeQueue,
    lifetimes: Lifetimes,
    /// Start and delete requests that agents have not answered yet.
    calls: PendingAgentCalls,
    /// When the agent reported each server as started, by the agent's clock. A heartbeat that the
    /// agent wrote before that time says nothing about the server. A server without an entry has
    /// not been reported since its start was requested.
    started_at: HashMap<ServerId, Timestamp>,
    /// Victims whose evacuation failed, with the time until which they are not selected again.
    /// Not an index: the evacuations say it, and a victim may be unknown.
    resting: BTreeMap<ServerId, Timestamp>,
    /// A repeated request must not create servers again that went recently.
    deleted: DeletedServers,
    /// The grace period of flavors that have none of their own.
    default_grace: Seconds,
}

impl ServerBook {
    /// An empty book.
    pub(crate) fn new(default_grace: Seconds) -> Self {
        Self {
            records: HashMap::new(),
            by_project: HashMap::new(),
            by_host: Index::default(),
            claims: ClaimQueues::default(),
            resume_queue: ResumeQueue::default(),
            lifetimes: Lifetimes::default(),
            calls: PendingAgentCalls::default(),
            started_at: HashMap::new(),
            resting: BTreeMap::new(),
            deleted: DeletedServers::default(),
            default_grace,
        }
    }

    /// Puts a server into the book, in place of its former state; one that is gone leaves the book.
    /// If it waits for capacity, `patience` is the time until which it waits when no evacuation is
    /// under way for it.
    pub(crate) fn put(&mut self, server: Server, patience: Timestamp) {
        let id = server.id;
        let old = self.records.get(&id);
        self.claims.put(old, &server, patience);
        self.resume_queue.put(id, resume_queue::entry(&server));
        let notice_at = lifetimes::notice_at(&server, self.default_grace);
        self.lifetimes.put(id, notice_at);
        if !is_called(&server) {
            self.calls.forget(id);
        }
        let gone = server.status.is_gone();
        let before = old.and_then(|old| old.host.as_deref());
        let now = server.host.as_deref().filter(|_| !gone);
        if before != now {
            if let Some(host) = before {
                self.by_host.remove(host, &id);
            }
            if let Some(host) = now {
                self.by_host.insert(host, id);
            }
        }
        let same_project = old.is_some_and(|old| old.project_id == server.project_id);
        if (gone || !same_project)
            && let Some(old) = self.records.remove(&id)
        {
            self.count_out(&old.project_id);
        }
        if gone {
            self.started_at.remove(&id);
            self.resting.remove(&id);
            return;
        }
        if !same_project {
            match self.by_project.get_mut(&server.project_id) {
                Some(count) => *count += 1,
                None => drop(self.by_project.insert(server.project_id.clone(), 1)),
            }
        }
        self.records.insert(id, server);
    }

    fn count_out(&mut self, project: &str) {
        if let Some(count) = self.by_project.get_mut(project) {
            *count -= 1;
            if *count == 0 {
                self.by_project.remove(project);
            }
        }
    }

    pub(crate) fn get(&self, id: &ServerId) -> Option<&Server> {
        self.records.get(id)
    }

    /// True if the server is known and not gone.
    pub(crate) fn contains_key(&self, id: &ServerId) -> bool {
        self.records.contains_key(id)
    }

    /// All servers, in no order.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Server> {
        self.records.values()
    }

    /// The number of servers.
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// The number of a project's servers.
    pub(crate) fn count_of(&self, project: &str) -> u32 {
        self.by_project.get(project).copied().unwrap_or(0)
    }

    /// Servers that are on a host or placed there, by id.
    pub(crate) fn on(&self, host: &str) -> impl Iterator<Item = &Server> {
        let ids = self.by_host.get(host);
        ids.filter_map(|id| self.records.get(id))
    }

    /// Servers that wait for capacity.
    pub(crate) fn claims(&self) -> &ClaimQueues {
        &self.claims
    }

    /// Lets all claims on a host wait until this time.
    pub(crate) fn extend_claims(&mut self, host: &str, patience: Timestamp) {
        self.claims.extend(host, patience);
    }

    /// Servers that wait to be resumed, and those that were resumed.
    pub(crate) fn resume_queue(&self) -> &ResumeQueue {
        &self.resume_queue
    }

    /// Notes that no other host is suitable for a server that waits to be resumed until this time.
    pub(crate) fn rest_elsewhere(&mut self, id: ServerId, until: Timestamp) {
        self.resume_queue.rest_elsewhere(id, until);
    }

    /// When notices are due because of maximum lifetimes.
    pub(crate) fn lifetimes(&self) -> &Lifetimes {
        &self.lifetimes
    }

    /// Start and delete requests that agents have not answered yet.
    pub(crate) fn calls(&self) -> &PendingAgentCalls {
        &self.calls
    }

    /// As [`Self::calls`], to note requests and confirmations.
    pub(crate) fn calls_mut(&mut self) -> &mut PendingAgentCalls {
        &mut self.calls
    }

    /// Servers that went recently.
    pub(crate) fn deleted(&self) -> &DeletedServers {
        &self.deleted
    }

    /// As [`Self::deleted`], to note or forget servers.
    pub(crate) fn deleted_mut(&mut self) -> &mut DeletedServers {
        &mut self.deleted
    }

    /// When the agent reported a server as started; `None` if not since its start was requested.
    pub(crate) fn started_at(&self, id: ServerId) -> Option<Timestamp> {
        self.started_at.get(&id).copied()
    }

    /// Notes that the agent has reported a server as started. True if it had not before.
    pub(crate) fn note_started(&mut self, id: ServerId, at: Timestamp) -> bool {
        self.started_at.insert(id, at).is_none()
    }

    /// As [`Self::note_started`], unless an earlier report is known.
    pub(crate) fn note_started_once(&mut self, id: ServerId, at: Timestamp) {
        self.started_at.entry(id).or_insert(at);
    }

    /// Notes that a server was not reported since its start was requested.
    pub(crate) fn forget_started(&mut self, id: ServerId) {
        self.started_at.remove(&id);
    }

    /// Limits the start times on a host to this time.
    pub(crate) fn limit_started(&mut self, host: &str, at: Timestamp) {
        for id in self.by_host.get(host) {
            if let Some(started) = self.started_at.get_mut(id) {
                *started = at.min(*started);
            }
        }
    }

    /// Until when a victim is not selected again, because its evacuation failed.
    pub(crate) fn rests_until(&self, id: ServerId) -> Option<Timestamp> {
        self.resting.get(&id).copied()
    }

    /// True while a victim is not selected again.
    pub(crate) fn rests(&self, id: ServerId, now: Timestamp) -> bool {
        self.rests_until(id).is_some_and(|until| until > now)
    }

    /// Sets until when a victim is not selected again; `None`: it may be at once.
    pub(crate) fn set_rest(&mut self, id: ServerId, until: Option<Timestamp>) {
        match until {
            Some(until) => drop(self.resting.insert(id, until)),
            None => drop(self.resting.remove(&id)),
        }
    }

    /// Lets a victim rest at least until this time.
    pub(crate) fn rest_at_least(&mut self, id: ServerId, until: Timestamp) {
        let rests = self.resting.entry(id).or_insert(until);
        *rests = until.max(*rests);
    }

    /// Removes rests that are over.
    pub(crate) fn forget_rests(&mut self, now: Timestamp) {
        self.resting.retain(|_, until| *until > now);
    }

    /// The number of rests.
    #[cfg(test)]
    pub(crate) fn rest_count(&self) -> usize {
        self.resting.len()
    }

    /// Checks that the indexes follow from the records.
    ///
    /// # Errors
    /// The first contradiction, as text.
    pub(crate) fn audit(&self) -> Result<(), String> {
        let all = || self.records.values();
        if let Some(gone) = all().find(|server| server.status.is_gone()) {
            return Err(format!("{} is {} and in the book", gone.id, gone.status));
        }
        let mut projects: HashMap<String, u32> = HashMap::new();
        for server in all() {
            *projects.entry(server.project_id.clone()).or_default() += 1;
        }
        same("projects", &self.by_project, &projects)?;
        let hosts = all().filter_map(|s| Some((s.host.clone()?, s.id)));
        same("hosts", &self.by_host, &hosts.collect())?;
        self.claims.audit(all())?;
        let entries = all().filter_map(|s| Some((s.id, resume_queue::entry(s)?)));
        self.resume_queue.audit(entries)?;
        lifetimes::audit(&self.lifetimes, all(), self.default_grace)?;
        self.deleted.audit()?;
        self.calls
            .audit(|id| self.get(&id).is_some_and(is_called))?;
        match self.started_at.keys().find(|id| !self.contains_key(id)) {
            None => Ok(()),
            Some(id) => Err(format!("the start of {id}, which is gone, is remembered")),
        }
    }
}

/// True for a server that its agent is to start or to delete.
fn is_called(server: &Server) -> bool {
    matches!(
        server.status,
        ServerStatus::Building | ServerStatus::Deleting
    )
}
