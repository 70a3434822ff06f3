//! Heartbeats: which hosts there are, whether their agents are there, and what their hypervisors have.

use crate::transition::Transition;
use crate::{Event, Region, servers};
use ebbtide_model::message::{Heartbeat, Hosted, HostedState};
use ebbtide_model::record::Change;
use ebbtide_model::server::Fault;
use ebbtide_model::{
    EvacuationState, Host, HostHealth, Server, ServerId, ServerStatus, Timestamp, names,
};
use std::collections::BTreeSet;
use uuid::Uuid;

/// A host and what is known of its agent.
#[derive(Debug, Clone)]
pub(crate) struct HostEntry {
    pub(crate) host: Host,
    pub(crate) health: HostHealth,
    /// The newest heartbeat of the present session.
    sequence: u64,
    /// When that was written, by the agent's clock.
    said_at: Timestamp,
    /// The `last_seen` that is in the database: it is not written at every heartbeat.
    stored_seen: Option<Timestamp>,
    /// Until when the host counts as up although nothing was heard: the scheduler was not there to hear it.
    trusted_until: Timestamp,
    /// Servers that should run and were not in the last heartbeat.
    missing: BTreeSet<ServerId>,
    /// Which sessions have spoken, and whether two do at the same time.
    voices: Voices,
    /// What [`HostEntry::is_contested`] said when it was looked last.
    pub(crate) contested: bool,
    /// What the last heartbeat said that the hypervisor has, and when this scheduler heard it.
    hosted: Option<(Timestamp, Vec<Hosted>)>,
    /// Goes up with everything that changes what can be decided about the host: what was decided at another generation is decided anew.
    pub(crate) generation: u64,
}

impl HostEntry {
    fn new(host: Host) -> Self {
        Self {
            health: HostHealth::Up,
            sequence: 0,
            said_at: Timestamp::default(),
            stored_seen: None,
            trusted_until: Timestamp::default(),
            missing: BTreeSet::new(),
            voices: Voices::default(),
            contested: false,
            hosted: None,
            generation: 0,
            host,
        }
    }

    /// As the database has it.
    pub(crate) fn restored(host: Host, trusted_until: Timestamp) -> Self {
        let stored_seen = host.last_seen;
        Self {
            stored_seen,
            trusted_until,
            // By our clock instead of the agent's, which is not written down: near enough to know what has been under way for long.
            said_at: stored_seen.unwrap_or_default(),
            ..Self::new(host)
        }
    }

    /// The same host with what another scheduler has written of it. Which of both has heard its agent last counts.
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

    /// What the last heartbeat that this scheduler heard said, and when that was.
    pub(crate) fn heard(&self) -> Option<(Timestamp, &[Hosted])> {
        let (at, hosted) = self.hosted.as_ref()?;
        Some((*at, hosted))
    }

    /// Counts as up until then although nothing is heard.
    pub(crate) fn trust_until(&mut self, until: Timestamp) {
        self.trusted_until = until;
    }

    /// Whether the host may get new servers.
    pub(crate) fn health_at(&self, now: Timestamp, down_after_millis: i64) -> HostHealth {
        match self.host.health(now, down_after_millis) {
            HostHealth::Down if now < self.trusted_until => HostHealth::Up,
            // Which of the two would get a server is anybody's guess.
            HostHealth::Up if self.is_contested(now) => HostHealth::Down,
            health => health,
        }
    }

    /// True while two agents speak for the host: what either says of servers that are not there may
    /// be true of another machine.
    pub(crate) fn is_contested(&self, now: Timestamp) -> bool {
        now < self.voices.contested_until
    }

    /// Whether its agent is there to be told something; an operator may have disabled the host all the same.
    pub(crate) fn is_heard(&self, now: Timestamp, down_after_millis: i64) -> bool {
        let seen = self.host.last_seen;
        let lately = seen.is_some_and(|seen| now.millis_since(seen) <= down_after_millis);
        lately || now < self.trusted_until
    }

    /// True if a heartbeat is older than one that came before it.
    ///
    /// Sessions have no order of their own, and reports can overtake one another, however many sessions there were between them. So another
    /// session is heard if it says something newer than the present one, or if the present one has fallen silent: an agent that
    /// lives is never shut out for longer than a host may be silent, even if its clock was set back. The same goes for the present session
    /// as long as we do not know how far it had got, because the scheduler has just started.
    fn is_old(&self, beat: &Heartbeat, said_at: Timestamp, present_is_heard: bool) -> bool {
        if self.host.agent_session == Some(beat.session) && self.sequence > 0 {
            beat.sequence <= self.sequence
        } else {
            said_at <= self.said_at && present_is_heard
        }
    }
}

impl Region {
    pub(crate) fn heartbeat(
        &mut self,
        transition: &mut Transition<'_>,
        beat: Heartbeat,
        said_at: Timestamp,
    ) {
        let down_after = self.config.host_down_seconds.as_millis();
        let known = self.hosts.get(&beat.host);
        let old = known.is_some_and(|entry| {
            let seen = entry.host.last_seen;
            let heard = seen.is_some_and(|seen| transition.now.millis_since(seen) <= down_after);
            entry.is_old(&beat, said_at, heard)
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
        let mut voices = before
            .as_ref()
            .map(|b| b.voices.clone())
            .unwrap_or_default();
        let alarm = before.as_ref().is_some_and(|before| {
            let former = (before.host.agent_session, before.host.last_seen);
            voices.hear(beat.session, former, transition.now, down_after)
        });
        let contested = transition.now < voices.contested_until;
        let mut host = host;
        if let Some(before) = before.as_ref().filter(|_| contested) {
            // What two machines have in turn is not what the host has.
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
        if same_agent_says_earlier(before.as_ref(), &entry, said_at) {
            self.trust_again(&name, said_at);
        }
        (entry.sequence, entry.said_at) = (beat.sequence, said_at);
        (entry.voices, entry.contested) = (voices, contested);
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
        // A restarted scheduler takes the stored time for the agent's last word, so it must not grow old.
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
                .push(Event::Host(Box::new(entry.host.clone()), health));
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
            self.compare_servers(transition, &name, &running, said_at);
        }
    }

    /// The agent's clock was set back: what it said before cannot be compared with what it says now. All that counts as started by then has been
    /// started by now.
    fn trust_again(&mut self, host: &str, said_at: Timestamp) {
        for id in self.by_host.get(host).into_iter().flatten() {
            if let Some(at) = self.started_at.get_mut(id) {
                *at = said_at.min(*at);
            }
        }
    }

    /// Holds what the hypervisor has against what we believe. A server that should run and is missing in two heartbeats, both
    /// written after it was reported started, is lost. Two, because the first may have been written while the server was
    /// coming up; both times are the agent's, so its clock may be wrong.
    fn compare_servers(
        &mut self,
        transition: &mut Transition<'_>,
        host: &str,
        running: &BTreeSet<ServerId>,
        said_at: Timestamp,
    ) {
        let ours: Vec<ServerId> = self
            .by_host
            .get(host)
            .into_iter()
            .flatten()
            .copied()
            .collect();
        let before = match self.hosts.get_mut(host) {
            Some(entry) => std::mem::take(&mut entry.missing),
            None => BTreeSet::new(),
        };
        let mut missing = BTreeSet::new();
        let down_after = self.config.host_down_seconds.as_millis();
        let may_be_elsewhere = self
            .hosts
            .get(host)
            .is_some_and(|entry| entry.voices.former_may_live(transition.now, down_after));
        for id in ours {
            let Some(mut server) = self.servers.get(&id).cloned() else {
                continue;
            };
            match (server.status, running.contains(&id)) {
                (ServerStatus::Active, false) if !server.external => {
                    let too_early = self.started_at.get(&id).is_some_and(|at| said_at < *at);
                    if too_early {
                        continue;
                    }
                    if !before.contains(&id) || may_be_elsewhere {
                        missing.insert(id);
                        self.ask_for_its_end(transition, host, &server);
                        continue;
                    }
                    server.fault = Some(Fault {
                        code: servers::LOST.to_owned(),
                        message: format!(
                            "it does not run on host {host} any more, and nobody asked for that"
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
                    self.ask_for_its_end(transition, host, &server);
                }
                _ => {}
            }
        }
        if let Some(entry) = self.hosts.get_mut(host) {
            entry.missing = missing;
        }
    }

    /// A server that is not there any more may have left by an evacuation that was given up because
    /// the report of its end was lost, and with it the question whether the server lives. Its agent
    /// knows, and answers the same question again.
    fn ask_for_its_end(&self, transition: &mut Transition<'_>, host: &str, server: &Server) {
        let failed = self.evacuations.values().filter(|e| {
            e.victim_id == server.id
                && e.victim_starts == server.starts
                && e.host == host
                && e.state == EvacuationState::Failed
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

    /// Notices hosts whose agents have become silent.
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
                transition.effects.events.push(Event::Host(host, health));
            }
        }
    }
}

impl HostEntry {
    /// What follows from the entry before.
    fn after(mut self, before: &Self) -> Self {
        if self.host.agent_session != before.host.agent_session {
            // What the former agent's hypervisor had says nothing about the order of what comes now.
            self.missing.clear();
        }
        self
    }
}

/// The sessions of a host's agents. One agent after the other speaks for a host; each run of an
/// agent has a session of its own, so one that comes back after another was heard is no restart.
#[derive(Debug, Clone, Default)]
struct Voices {
    /// Sessions that were replaced, the newest last.
    former: Vec<Uuid>,
    /// How often one of them came back, and when last.
    returns: u32,
    returned_at: Timestamp,
    contested_until: Timestamp,
    /// When the session before the present one was heard last.
    former_seen: Option<Timestamp>,
}

/// More than two machines with one name are as bad as two.
const FORMER_SESSIONS: usize = 8;
/// A single return may be a late word of a session that is over, which a scheduler that has just
/// started takes for news.
const RETURNS: u32 = 2;

impl Voices {
    /// Notes a heartbeat; `former` is who spoke last, and when. True if it is now clear that two
    /// agents speak.
    fn hear(
        &mut self,
        session: Uuid,
        (former, seen): (Option<Uuid>, Option<Timestamp>),
        now: Timestamp,
        down_after: i64,
    ) -> bool {
        let Some(former) = former.filter(|former| *former != session) else {
            return false;
        };
        // Both are heard within this time if both live.
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

    /// True as long as the session before the present one has not been silent for much longer than
    /// agents are between two heartbeats: then servers that the present one does not have may run
    /// where the other is.
    fn former_may_live(&self, now: Timestamp, down_after: i64) -> bool {
        self.former_seen
            .is_some_and(|seen| now.millis_since(seen) < down_after / 2)
    }
}

/// True if a heartbeat that follows the last one was written before it, by the same agent's clock.
fn same_agent_says_earlier(
    before: Option<&HostEntry>,
    now: &HostEntry,
    said_at: Timestamp,
) -> bool {
    before.is_some_and(|before| {
        let same = before.host.agent_session == now.host.agent_session;
        // After a restart it is not known what the agent's clock said last.
        same && before.sequence > 0 && said_at < before.said_at
    })
}
