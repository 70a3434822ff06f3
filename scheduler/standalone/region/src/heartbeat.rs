//! Heartbeats: which hosts exist, whether their agents are alive, and what their hypervisors run.

use crate::transition::Transition;
use crate::{Region, RegionEvent, servers};
use ebbtide_model::message::{Heartbeat, HostedServer, HostedState};
use ebbtide_model::record::Change;
use ebbtide_model::server::ServerFailure;
use ebbtide_model::{
    EvacuationState, Host, HostHealth, Server, ServerId, ServerStatus, Timestamp, names,
};
use std::collections::BTreeSet;
use uuid::Uuid;

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
    stored_seen: Option<Timestamp>,
    /// Until when the host counts as up without a heartbeat, because the scheduler itself was not
    /// running.
    trusted_until: Timestamp,
    /// Servers that should run and were not in the last heartbeat.
    missing: BTreeSet<ServerId>,
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
    fn is_old(&self, beat: &Heartbeat, sent_at: Timestamp, present_is_heard: bool) -> bool {
        if self.host.agent_session == Some(beat.session) && self.sequence > 0 {
            beat.sequence <= self.sequence
        } else {
            sent_at <= self.sent_at && present_is_heard
        }
    }
}

impl Region {
    pub(crate) fn heartbeat(
        &mut self,
        transition: &mut Transition<'_>,
        beat: Heartbeat,
        sent_at: Timestamp,
    ) {
        let down_after = self.config.host_down_seconds.as_millis();
        let known = self.hosts.get(&beat.host);
        let old = known.is_some_and(|entry| {
            let seen = entry.host.last_seen;
            let heard = seen.is_some_and(|seen| transition.now.millis_since(seen) <= down_after);
            entry.is_old(&beat, sent_at, heard)
        });
        if old {
            return;
        }
        let before = known.cloned();
        let host = Host {
            name: beat.host,
            inventory: beat.inventory,
            traits: beat.traits,
            disabled_reason: before.as_ref().and_then(|b| b.host.disabled_reason.clone()),
            agent_session: Some(beat.session),
            last_seen: Some(transition.now),
            storage: beat.storage,
            created_at: before
                .as_ref()
                .map_or(transition.now, |b| b.host.created_at),
        };
        if let Err(error) = host.check() {
            transition.ignored(format!(
                "heartbeat of {}: {error}",
                names::shorten(&host.name)
            ));
            return;
        }
        let name = host.name.clone();
        let mut agent_sessions = before
            .as_ref()
            .map(|b| b.agent_sessions.clone())
            .unwrap_or_default();
        let alarm = before.as_ref().is_some_and(|before| {
            let former = (before.host.agent_session, before.host.last_seen);
            agent_sessions.record(beat.session, former, transition.now, down_after)
        });
        let contested = transition.now < agent_sessions.contested_until;
        let mut host = host;
        if let Some(before) = before.as_ref().filter(|_| contested) {
            // The reports of two machines alternate; neither describes the host, so the record
            // keeps the former values.
            host.inventory.clone_from(&before.host.inventory);
            host.traits.clone_from(&before.host.traits);
            host.storage.clone_from(&before.host.storage);
        }
        if alarm {
            transition.alarm(
                "EB-REGION-007",
                format!(
                    "two agents speak for host {name} (sessions {} and another): nothing is placed there and nothing that it has is given away \
                     until one of them has been silent for a while. A cloned image? Give each machine a name of its own",
                    beat.session
                ),
            );
        }
        let mut entry = match &before {
            Some(before) => HostEntry {
                host,
                ..before.clone()
            }
            .after(before),
            None => HostEntry::new(host),
        };
        if is_earlier_from_same_agent(before.as_ref(), &entry, sent_at) {
            self.trust_again(&name, sent_at);
        }
        (entry.sequence, entry.sent_at) = (beat.sequence, sent_at);
        (entry.agent_sessions, entry.contested) = (agent_sessions, contested);
        entry.hosted = Some((transition.now, beat.servers.clone()));
        let health = entry.health_at(transition.now, down_after);
        let same = |what: &dyn Fn(&HostEntry) -> bool| before.as_ref().is_some_and(what);
        let same_room = same(&|old| {
            old.host.inventory == entry.host.inventory
                && old.host.traits == entry.host.traits
                && old.host.storage == entry.host.storage
        });
        let same_health = same(&|old| old.health == health);
        let same_session = same(&|old| old.host.agent_session == entry.host.agent_session);
        // A restarted scheduler takes the stored time for the agent's last heartbeat, so the stored
        // time must stay recent.
        let fresh = entry
            .stored_seen
            .is_some_and(|seen| transition.now.millis_since(seen) <= down_after / 4);
        if !(same_room && same_health && same_session && fresh) {
            entry.stored_seen = Some(transition.now);
            transition
                .effects
                .changes
                .push(Change::PutHost(Box::new(entry.host.clone())));
        }
        if !same_room {
            self.table.put_host(&entry.host);
            transition.touch(&name);
        }
        if !same_room || !same_health {
            self.improvements += 1;
        }
        if !same_health {
            self.table.set_health(&name, health);
            transition.change(&name);
            transition
                .effects
                .events
                .push(RegionEvent::Host(Box::new(entry.host.clone()), health));
        }
        entry.health = health;
        self.hosts.insert(name.clone(), entry);
        let running: BTreeSet<ServerId> = beat
            .servers
            .iter()
            .filter(|h| h.state == HostedState::Running)
            .map(|h| h.server_id)
            .collect();
        if !contested {
            self.compare_servers(transition, &name, &running, sent_at);
        }
    }

    /// The agent's clock was set back, so its earlier times cannot be compared with its new ones.
    /// Limits the start times on this host to the time of this heartbeat.
    fn trust_again(&mut self, host: &str, sent_at: Timestamp) {
        self.servers.limit_started(host, sent_at);
    }

    /// Compares what the hypervisor runs with what the region expects. A server that should run is
    /// lost if it is missing in two heartbeats that the agent wrote after it had reported the
    /// start. One is not enough: the agent may have written it while the server was coming up. Both
    /// times are the agent's, so an error of its clock does not matter.
    fn compare_servers(
        &mut self,
        transition: &mut Transition<'_>,
        host: &str,
        running: &BTreeSet<ServerId>,
        sent_at: Timestamp,
    ) {
        let ours: Vec<ServerId> = self.servers.on(host).map(|server| server.id).collect();
        let before = match self.hosts.get_mut(host) {
            Some(entry) => std::mem::take(&mut entry.missing),
            None => BTreeSet::new(),
        };
        let mut missing = BTreeSet::new();
        let down_after = self.config.host_down_seconds.as_millis();
        let may_be_elsewhere = self.hosts.get(host).is_some_and(|entry| {
            entry
                .agent_sessions
                .former_may_live(transition.now, down_after)
        });
        for id in ours {
            let Some(mut server) = self.servers.get(&id).cloned() else {
                continue;
            };
            match (server.status, running.contains(&id)) {
                (ServerStatus::Active, false) if !server.external => {
                    let too_early = self.servers.started_at(id).is_some_and(|at| sent_at < at);
                    if too_early {
                        continue;
                    }
                    if !before.contains(&id) || may_be_elsewhere {
                        missing.insert(id);
                        self.request_end_report(transition, host, &server);
                        continue;
                    }
                    server.fault = Some(ServerFailure {
                        code: servers::LOST.to_owned(),
                        message: format!(
                            "it does not run on host {host} any more, and no request asked for that"
                        ),
                        at: transition.now,
                    });
                    server.status = ServerStatus::Error;
                    server.ended_at = Some(transition.now);
                    self.save_server(transition, server);
                }
                (ServerStatus::Error, true) => {
                    server.fault = None;
                    server.status = ServerStatus::Active;
                    server.ended_at = None;
                    self.save_server(transition, server);
                }
                (ServerStatus::Error, false) if self.was_lost_lately(&server, transition.now) => {
                    self.request_end_report(transition, host, &server);
                }
                _ => {}
            }
        }
        if let Some(entry) = self.hosts.get_mut(host) {
            entry.missing = missing;
        }
    }

    /// A missing server may have left by an evacuation that the region gave up because the agent's
    /// report, and the spare request, were lost. The region asks the agent again whether the server
    /// lives, and the agent repeats its answer.
    fn request_end_report(&self, transition: &mut Transition<'_>, host: &str, server: &Server) {
        let failed = self.evacuations.of_victim(server.id).filter(|e| {
            e.victim_starts == server.starts && e.host == host && e.state == EvacuationState::Failed
        });
        for evacuation in failed {
            self.send_spare(transition, host, evacuation.id, server.id);
        }
    }

    fn was_lost_lately(&self, server: &Server, now: Timestamp) -> bool {
        let lost = server
            .fault
            .as_ref()
            .is_some_and(|f| f.code == servers::LOST);
        let until = |at: Timestamp| at.plus(self.config.failed_victim_rest_seconds);
        lost && server.ended_at.is_some_and(|at| now < until(at))
    }

    /// Detects hosts whose agents have become silent.
    pub(crate) fn look_after_hosts(&mut self, transition: &mut Transition<'_>) {
        let down_after = self.config.host_down_seconds.as_millis();
        for (name, entry) in &mut self.hosts {
            entry.contested = entry.is_contested(transition.now);
            let health = entry.health_at(transition.now, down_after);
            if health != entry.health {
                entry.health = health;
                entry.stored_seen = entry.host.last_seen;
                self.table.set_health(name, health);
                transition.change(name);
                self.improvements += 1;
                let host = Box::new(entry.host.clone());
                transition
                    .effects
                    .changes
                    .push(Change::PutHost(host.clone()));
                transition
                    .effects
                    .events
                    .push(RegionEvent::Host(host, health));
            }
        }
    }
}

impl HostEntry {
    /// The entry that follows `before`.
    fn after(mut self, before: &Self) -> Self {
        if self.host.agent_session != before.host.agent_session {
            // What the former agent reported says nothing about the reports of the new session.
            self.missing.clear();
        }
        self
    }
}

/// The agent sessions of a host. Each run of an agent has a session of its own. A restart brings a
/// new session, so a session that returns after another one was heard is a second agent.
#[derive(Debug, Clone, Default)]
struct AgentSessions {
    /// Replaced sessions, the newest last.
    former: Vec<Uuid>,
    /// How many times a replaced session returned, and when it last did.
    returns: u32,
    returned_at: Timestamp,
    contested_until: Timestamp,
    /// When the session before the present one was last heard.
    former_seen: Option<Timestamp>,
}

/// Limit of remembered sessions. More than two machines with one name need no better detection than
/// two.
const FORMER_SESSIONS: usize = 8;
/// Returns that prove two agents. A single one may be a late message of an ended session that a
/// scheduler has received after a restart.
const RETURNS: u32 = 2;

impl AgentSessions {
    /// Notes a heartbeat; `former` is the session that was heard before, and when. True if this
    /// heartbeat proves that two agents report.
    fn record(
        &mut self,
        session: Uuid,
        (former, seen): (Option<Uuid>, Option<Timestamp>),
        now: Timestamp,
        down_after: i64,
    ) -> bool {
        let Some(former) = former.filter(|former| *former != session) else {
            return false;
        };
        // If both agents live, both are heard within this time.
        let calm = down_after.saturating_mul(2);
        if now.millis_since(self.returned_at) > calm {
            self.returns = 0;
        }
        let returns = self.former.contains(&session);
        self.former
            .retain(|known| *known != former && *known != session);
        self.former.push(former);
        if self.former.len() > FORMER_SESSIONS {
            self.former.remove(0);
        }
        self.former_seen = seen;
        if !returns {
            return false;
        }
        (self.returns, self.returned_at) = (self.returns + 1, now);
        if self.returns < RETURNS {
            return false;
        }
        let known = now < self.contested_until;
        self.contested_until = Timestamp::from_millis(now.as_millis().saturating_add(calm));
        !known
    }

    /// True while the session before the present one may still be alive, that is until it is silent
    /// for much longer than the heartbeat interval. Servers that the present agent does not have
    /// may then run where the former one is.
    fn former_may_live(&self, now: Timestamp, down_after: i64) -> bool {
        self.former_seen
            .is_some_and(|seen| now.millis_since(seen) < down_after / 2)
    }
}

/// True if the same agent's clock says that this heartbeat was written before the last one.
fn is_earlier_from_same_agent(
    before: Option<&HostEntry>,
    now: &HostEntry,
    sent_at: Timestamp,
) -> bool {
    before.is_some_and(|before| {
        let same = before.host.agent_session == now.host.agent_session;
        // After a restart of the scheduler the agent's last time is unknown.
        same && before.sequence > 0 && sent_at < before.sent_at
    })
}
