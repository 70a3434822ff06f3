//! A host and what the region knows of its agent.

use super::agent_sessions::AgentSessions;
use ebbtide_model::message::{Heartbeat, HostedServer};
use ebbtide_model::{Host, HostHealth, ServerId, Timestamp};
use std::collections::BTreeSet;

/// A host and what the region knows of its agent.
#[derive(Debug, Clone)]
pub(crate) struct HostEntry {
    pub(crate) host: Host,
    pub(crate) health: HostHealth,
    /// Sequence number of the newest heartbeat of the present session.
    sequence: u64,
    /// When the agent wrote that heartbeat, by its own clock.
    sent_at: Timestamp,
    /// The `last_seen` in the database, which is not written at every heartbeat.
    pub(super) stored_seen: Option<Timestamp>,
    /// Until when the host counts as up without a heartbeat, because the scheduler itself was not
    /// running.
    trusted_until: Timestamp,
    /// Servers that should run and were not in the last heartbeat.
    pub(super) missing: BTreeSet<ServerId>,
    /// The agent sessions heard so far, to detect two agents with one host name.
    agent_sessions: AgentSessions,
    /// The last result of [`HostEntry::is_contested`].
    pub(crate) contested: bool,
    /// What the last heartbeat reported of the hypervisor, and when this scheduler received it.
    hosted: Option<(Timestamp, Vec<HostedServer>)>,
    /// Generation counter. Every change that affects decisions about the host increments it; a
    /// speculative decision with another value is made again.
    pub(crate) generation: u64,
}

impl HostEntry {
    fn new(host: Host) -> Self {
        Self {
            health: HostHealth::Up,
            sequence: 0,
            sent_at: Timestamp::default(),
            stored_seen: None,
            trusted_until: Timestamp::default(),
            missing: BTreeSet::new(),
            agent_sessions: AgentSessions::default(),
            contested: false,
            hosted: None,
            generation: 0,
            host,
        }
    }

    /// The host as the database has it.
    pub(crate) fn restored(host: Host, trusted_until: Timestamp) -> Self {
        let stored_seen = host.last_seen;
        Self {
            stored_seen,
            trusted_until,
            // The scheduler's clock, because the agent's time is not stored. This is accurate
            // enough for operations that began long ago.
            sent_at: stored_seen.unwrap_or_default(),
            ..Self::new(host)
        }
    }

    /// The host with the record that another scheduler has written. The newer `last_seen` of both
    /// wins.
    pub(crate) fn with_record(&self, mut host: Host) -> Self {
        if self.host.last_seen > host.last_seen {
            host.last_seen = self.host.last_seen;
            host.agent_session = self.host.agent_session;
        }
        Self {
            stored_seen: self.stored_seen.max(host.last_seen),
            host,
            ..self.clone()
        }
    }

    /// What the last heartbeat that this scheduler received reported, and when it was received.
    pub(crate) fn last_heartbeat(&self) -> Option<(Timestamp, &[HostedServer])> {
        let (at, hosted) = self.hosted.as_ref()?;
        Some((*at, hosted))
    }

    /// Counts the host as up until this time without a heartbeat.
    pub(crate) fn trust_until(&mut self, until: Timestamp) {
        self.trusted_until = until;
    }

    /// Whether the host may get new servers.
    pub(crate) fn health_at(&self, now: Timestamp, down_after_millis: i64) -> HostHealth {
        match self.host.health(now, down_after_millis) {
            HostHealth::Down if now < self.trusted_until => HostHealth::Up,
            // It is unknown which of the two machines would get a server.
            HostHealth::Up if self.is_contested(now) => HostHealth::Down,
            health => health,
        }
    }

    /// True while two agents report for the host. What either reports about missing servers may be
    /// true of another machine.
    pub(crate) fn is_contested(&self, now: Timestamp) -> bool {
        now < self.agent_sessions.contested_until
    }

    /// True if the agent is alive and can receive messages, even if an operator has disabled the
    /// host.
    pub(crate) fn is_reachable(&self, now: Timestamp, down_after_millis: i64) -> bool {
        let seen = self.host.last_seen;
        let lately = seen.is_some_and(|seen| now.millis_since(seen) <= down_after_millis);
        lately || now < self.trusted_until
    }

    /// True if a heartbeat is older than one that was received before it.
    ///
    /// Sessions have no order of their own, and reports can overtake one another across any number
    /// of sessions. The region therefore accepts another session if its heartbeat is newer than the
    /// last one, or if the present session is silent. So a live agent is never shut out for longer
    /// than a host may be silent, even if its clock was set back. The same rule applies to the
    /// present session while its sequence number is unknown because the scheduler has just started.
    pub(crate) fn is_newer_than(
        &self,
        beat: &Heartbeat,
        sent_at: Timestamp,
        now: Timestamp,
        down_after_millis: i64,
    ) -> bool {
        if self.host.agent_session == Some(beat.session) && self.sequence > 0 {
            return beat.sequence <= self.sequence;
        }
        let seen = self.host.last_seen;
        let is_heard = seen.is_some_and(|seen| now.millis_since(seen) <= down_after_millis);
        sent_at <= self.sent_at && is_heard
    }

    /// True if the same agent's clock says that a heartbeat was written before the last one.
    pub(crate) fn is_set_back(&self, beat: &Heartbeat, sent_at: Timestamp) -> bool {
        let same = self.host.agent_session == Some(beat.session);
        // After a restart of the scheduler the agent's last time is unknown.
        same && self.sequence > 0 && sent_at < self.sent_at
    }

    /// The entry after a heartbeat, with the host as the heartbeat describes it. `sent_at` is the
    /// agent's time.
    pub(crate) fn heard(
        before: Option<&Self>,
        host: Host,
        beat: &Heartbeat,
        sent_at: Timestamp,
        now: Timestamp,
        down_after_millis: i64,
    ) -> HeartbeatUpdate {
        let mut entry = match before {
            Some(before) => before.clone(),
            None => Self::new(host.clone()),
        };
        let former = before.map(|b| (b.host.agent_session, b.host.last_seen));
        let is_proof = former.is_some_and(|former| {
            let sessions = &mut entry.agent_sessions;
            sessions.record(beat.session, former, now, down_after_millis)
        });
        if entry.host.agent_session != host.agent_session {
            // What the former agent reported says nothing about the reports of the new session.
            entry.missing.clear();
        }
        entry.contested = entry.is_contested(now);
        entry.host = host;
        if let Some(before) = before.filter(|_| entry.contested) {
            // The reports of two machines alternate; neither describes the host, so the record
            // keeps the former values.
            entry.host.inventory.clone_from(&before.host.inventory);
            entry.host.traits.clone_from(&before.host.traits);
            entry.host.storage.clone_from(&before.host.storage);
        }
        (entry.sequence, entry.sent_at) = (beat.sequence, sent_at);
        entry.hosted = Some((now, beat.servers.clone()));
        entry.health = entry.health_at(now, down_after_millis);
        let same = |what: &dyn Fn(&Self) -> bool| before.is_some_and(what);
        let same_capacity = same(&|old| {
            old.host.inventory == entry.host.inventory
                && old.host.traits == entry.host.traits
                && old.host.storage == entry.host.storage
        });
        let same_health = same(&|old| old.health == entry.health);
        let same_session = same(&|old| old.host.agent_session == entry.host.agent_session);
        // A restarted scheduler takes the stored time for the agent's last heartbeat, so the stored
        // time must stay recent.
        let seen = entry.stored_seen;
        let fresh = seen.is_some_and(|seen| now.millis_since(seen) <= down_after_millis / 4);
        let to_store = !(same_capacity && same_health && same_session && fresh);
        if to_store {
            entry.stored_seen = Some(now);
        }
        HeartbeatUpdate {
            entry,
            new_capacity: !same_capacity,
            new_health: !same_health,
            to_store,
            proves_two_agents: is_proof,
        }
    }

    /// True while servers that the present agent does not have may run where the former one is.
    pub(crate) fn former_may_live(&self, now: Timestamp, down_after_millis: i64) -> bool {
        self.agent_sessions.former_may_live(now, down_after_millis)
    }
}

/// A host after a heartbeat, and what is new.
pub(crate) struct HeartbeatUpdate {
    pub(crate) entry: HostEntry,
    /// The inventory, the traits or the storage are new.
    pub(crate) new_capacity: bool,
    pub(crate) new_health: bool,
    /// The record has to be written.
    pub(crate) to_store: bool,
    /// The heartbeat proves that two agents report for the host.
    pub(crate) proves_two_agents: bool,
}
