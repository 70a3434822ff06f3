//! A world around one core: a broker, a hypervisor, a journal, a clock, all as plain data; crashes
//! anywhere.
//!
//! Whatever breaks a promise is written down with the promise's name, so that each property can ask
//! for its own.

mod commands;

use crate::{
    ActionId, AgentCore, AgentEffect, AgentInput, AgentPolicy, DeliveryTag, DriverCall,
    DriverResult, EvacuationPhase, JournalRecord, ReportId,
};
use crate::{DriverError, NoticeOutcome, Occupancy, ServerView};
use ebbtide_model::message::{
    Body, Delete, EvacuationEnd, HostedState, Message, Notice, Release, Spare, Start,
};
use ebbtide_model::{
    EvacuationId, InterruptionBehaviour, MessageId, ResourceClass, Resources, Seconds, ServerId,
    Timestamp,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use uuid::Uuid;

pub(super) const GRACE: Seconds = Seconds(30);
const BEGIN: i64 = 1_000_000;

pub(super) fn server(n: u8) -> ServerId {
    ServerId(Uuid::from_u128(0x5e00 + u128::from(n)))
}

pub(super) fn evacuation(n: u8) -> EvacuationId {
    EvacuationId(Uuid::from_u128(0xe000 + u128::from(n)))
}

#[derive(Debug, Clone)]
pub(super) struct Guest {
    pub(super) state: HostedState,
    pub(super) released: Option<EvacuationId>,
    since: Timestamp,
}

/// How a call of the driver ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Works,
    Fails,
    /// There was no time left for it.
    NotBegun,
    /// It takes effect, but the answer is an error.
    WorksButFails,
    /// An interruption, or a fence, says that it is done, and it is not. (Everything else works.)
    OnlyClaims,
}

#[derive(Debug)]
pub(super) struct SimulatedHost {
    pub(super) now: Timestamp,
    pub(super) core: AgentCore,
    policy: AgentPolicy,
    effects: VecDeque<AgentEffect>,
    /// Crash after this many more effects.
    pub(super) crash_in: Option<usize>,
    pub(super) journal: Vec<JournalRecord>,
    pub(super) queue: Vec<Message>,
    pub(super) unsettled: BTreeMap<DeliveryTag, Message>,
    pub(super) dead: Vec<(Message, String)>,
    next_token: u64,
    next_message: u128,
    pub(super) guests: BTreeMap<ServerId, Guest>,
    pub(super) calls: BTreeMap<ActionId, (ServerId, DriverCall)>,
    publishing: VecDeque<(ReportId, Message)>,
    pub(super) reports: Vec<Message>,
    pub(super) sent: Vec<Message>,
    told_at: BTreeMap<EvacuationId, Timestamp>,
    released: BTreeSet<EvacuationId>,
    /// Servers that were powered off or had no running guest at some time.
    pub(super) off: BTreeSet<ServerId>,
    /// How often a running server was ended by an interruption.
    pub(super) ended: BTreeMap<ServerId, u32>,
    /// Interruptions that the driver was asked for.
    pub(super) asked: BTreeMap<ServerId, u32>,
    /// The same by evacuation, since the newest attempt of its notice was accepted.
    asked_since: BTreeMap<EvacuationId, u32>,
    /// How many those were each time when an evacuation was said to be spared.
    pub(super) spared_after: Vec<(EvacuationId, u32)>,
    pub(super) starts: BTreeMap<ServerId, u32>,
    pub(super) broken: Vec<(&'static str, String)>,
}

impl SimulatedHost {
    pub(super) fn new(policy: AgentPolicy) -> Self {
        let now = Timestamp::from_millis(BEGIN);
        let (core, effects) = AgentCore::restore("host-a", policy.clone(), [], now);
        assert!(effects.is_empty(), "a new agent has nothing to do");
        let guest = Guest {
            state: HostedState::Running,
            released: None,
            since: now,
        };
        let guests = (0..3).map(|n| (server(n), guest.clone())).collect();
        Self {
            now,
            core,
            policy,
            effects: VecDeque::new(),
            crash_in: None,
            journal: Vec::new(),
            queue: Vec::new(),
            unsettled: BTreeMap::new(),
            dead: Vec::new(),
            next_token: 1,
            next_message: 1,
            guests,
            calls: BTreeMap::new(),
            publishing: VecDeque::new(),
            reports: Vec::new(),
            sent: Vec::new(),
            told_at: BTreeMap::new(),
            released: BTreeSet::new(),
            off: BTreeSet::new(),
            ended: BTreeMap::new(),
            asked: BTreeMap::new(),
            asked_since: BTreeMap::new(),
            spared_after: Vec::new(),
            starts: BTreeMap::new(),
            broken: Vec::new(),
        }
    }

    pub(super) fn at(&self, seconds: u32) -> Timestamp {
        Timestamp::from_millis(BEGIN).plus(Seconds(seconds))
    }

    fn break_promise(&mut self, promise: &'static str, what: String) {
        self.broken.push((promise, what));
    }

    // ---- the scheduler's side ----

    pub(super) fn send(&mut self, body: Body) -> Message {
        let message = Message {
            id: MessageId(Uuid::from_u128(0xc000 + self.next_message)),
            source: "/ebbtide/scheduler".to_owned(),
            time: self.now,
            body,
        };
        self.next_message += 1;
        self.sent.push(message.clone());
        self.queue.push(message.clone());
        message
    }

    /// The broker hands out one of the waiting messages.
    pub(super) fn deliver(&mut self, position: usize) {
        if self.queue.is_empty() {
            return;
        }
        let message = self.queue.remove(position % self.queue.len());
        let token = DeliveryTag(self.next_token);
        self.next_token += 1;
        self.unsettled.insert(token, message.clone());
        self.input(AgentInput::Command { token, message });
    }

    pub(super) fn deliver_all(&mut self) {
        while !self.queue.is_empty() {
            self.deliver(0);
        }
    }

    // ---- the agent's side ----

    pub(super) fn input(&mut self, input: AgentInput) {
        let effects = self.core.handle(self.now, input);
        self.effects.extend(effects);
        self.work();
    }

    fn work(&mut self) {
        while let Some(effect) = self.effects.pop_front() {
            match self.crash_in {
                Some(0) => {
                    self.crash();
                    return;
                }
                Some(n) => self.crash_in = Some(n - 1),
                None => {}
            }
            self.perform(effect);
        }
    }

    fn perform(&mut self, effect: AgentEffect) {
        match effect {
            AgentEffect::Journal(record) => {
                // What cannot be written and read back would be forgotten.
                if let JournalRecord::Evacuation(e) = &record
                    && matches!(e.phase, EvacuationPhase::Notified { .. })
                {
                    self.asked_since.insert(e.evacuation_id, 0);
                }
                let line = serde_json::to_string(&record).unwrap();
                self.journal.push(serde_json::from_str(&line).unwrap());
            }
            AgentEffect::Drive {
                action,
                server_id,
                what,
            } => {
                if self.calls.values().any(|(busy, _)| *busy == server_id) {
                    self.break_promise("lane", format!("{what:?} while {server_id} is busy"));
                }
                if let DriverCall::Interrupt(_) | DriverCall::Fence = what {
                    self.check_interrupt(server_id);
                }
                self.calls.insert(action, (server_id, what));
            }
            AgentEffect::Publish { report, message } => {
                if let Body::Spared(m) = &message.body {
                    let asked = self.asked_since.get(&m.evacuation_id).copied();
                    self.spared_after
                        .push((m.evacuation_id, asked.unwrap_or(0)));
                }
                self.publishing.push_back((report, message));
            }
            AgentEffect::Ack(token) => self.check_ack(token),
            AgentEffect::DeadLetter(token, reason) => {
                let message = self.unsettled.remove(&token).expect("settled once");
                self.dead.push((message, reason));
            }
            AgentEffect::ServersChanged => {}
        }
    }

    /// The process dies and comes back. Calls under way may or may not take effect; the broker
    /// repeats what was not settled.
    pub(super) fn crash(&mut self) {
        self.crash_in = None;
        self.effects.clear();
        self.publishing.clear();
        self.calls.clear();
        self.queue
            .extend(std::mem::take(&mut self.unsettled).into_values());
        let (core, effects) = AgentCore::restore(
            "host-a",
            self.policy.clone(),
            self.journal.clone(),
            self.now,
        );
        self.core = core;
        // What a core remembers is what the journal says, however often it is compacted.
        self.journal = self.core.records();
        self.effects.extend(effects);
        self.work();
    }

    pub(super) fn advance(&mut self, millis: i64) {
        self.now = Timestamp::from_millis(self.now.as_millis() + millis);
        self.input(AgentInput::Tick);
    }

    /// The operator sets the host's clock.
    pub(super) fn set_clock(&mut self, by_ms: i64) {
        let set = |at: Timestamp| Timestamp::from_millis(at.as_millis() + by_ms);
        self.now = set(self.now);
        self.told_at.values_mut().for_each(|at| *at = set(*at));
        self.input(AgentInput::ClockSet { by_ms });
    }

    pub(super) fn confirm(&mut self) {
        if let Some((report, message)) = self.publishing.pop_front() {
            self.reports.push(message);
            self.input(AgentInput::Published(report));
        }
    }

    pub(super) fn observe(&mut self) {
        let views = self.guests.iter().map(|(server_id, guest)| ServerView {
            server_id: *server_id,
            state: guest.state,
            released: guest.released,
            facts: None,
        });
        let views = views.collect();
        self.input(AgentInput::Observed(views));
    }

    // ---- the hypervisor's side ----

    pub(super) fn guest_releases(&mut self, e: u8, s: u8) {
        if let Some(guest) = self.guests.get_mut(&server(s)) {
            guest.released = Some(evacuation(e));
            self.released.insert(evacuation(e));
        }
    }

    pub(super) fn guest_powers_off(&mut self, s: u8) {
        if let Some(guest) = self.guests.get_mut(&server(s)) {
            guest.state = HostedState::Stopped;
            self.off.insert(server(s));
        }
    }

    pub(super) fn lose(&mut self, s: u8) {
        self.guests.remove(&server(s));
    }

    pub(super) fn complete(&mut self, position: usize, fate: Fate) {
        let Some(action) = self
            .calls
            .keys()
            .nth(position % self.calls.len().max(1))
            .copied()
        else {
            return;
        };
        let Some((server_id, what)) = self.calls.remove(&action) else {
            return;
        };
        let result = match fate {
            Fate::OnlyClaims if matches!(what, DriverCall::Interrupt(_)) => {
                Ok(DriverResult::Interrupted)
            }
            Fate::OnlyClaims if what == DriverCall::Fence => Ok(DriverResult::Fenced),
            Fate::Works | Fate::OnlyClaims => self.drive(server_id, &what),
            Fate::Fails => Err(Self::failure(&what)),
            Fate::NotBegun => Err(crate::DriverError::NotBegun {
                what: what.words(),
                left_ms: 10,
                takes_ms: 20,
            }),
            Fate::WorksButFails => {
                let _ = self.drive(server_id, &what);
                Err(Self::failure(&what))
            }
        };
        self.input(AgentInput::ActionDone { action, result });
    }

    /// A running call takes effect, but its answer is lost.
    pub(super) fn take_effect_unheard(&mut self, position: usize) {
        let n = self.calls.len().max(1);
        if let Some((server_id, what)) = self.calls.values().nth(position % n).cloned() {
            let _ = self.drive(server_id, &what);
        }
    }

    fn failure(what: &DriverCall) -> DriverError {
        DriverError::Failed {
            what: what.words(),
            detail: "injected".to_owned(),
        }
    }

    fn drive(
        &mut self,
        server_id: ServerId,
        what: &DriverCall,
    ) -> Result<DriverResult, DriverError> {
        let now = self.now;
        let gone = DriverError::NotFound { server_id };
        match what {
            DriverCall::GiveNotice(notice) => {
                let guest = self.guests.get_mut(&server_id).ok_or(gone)?;
                let outcome = if guest.state == HostedState::Running {
                    self.told_at.entry(notice.evacuation_id).or_insert(now);
                    NoticeOutcome::Delivered
                } else {
                    NoticeOutcome::NotRunning
                };
                Ok(DriverResult::Noticed(outcome))
            }
            DriverCall::WithdrawNotice(_) => {
                let guest = self.guests.get_mut(&server_id).ok_or(gone)?;
                guest.released = None;
                Ok(DriverResult::Withdrawn)
            }
            DriverCall::Interrupt(behaviour) => {
                let guest = self.guests.get_mut(&server_id).ok_or(gone)?;
                let state = match behaviour {
                    InterruptionBehaviour::Terminate | InterruptionBehaviour::LiveMigrate => {
                        if guest.state == HostedState::Running {
                            *self.ended.entry(server_id).or_default() += 1;
                        }
                        self.guests.remove(&server_id);
                        return Ok(DriverResult::Interrupted);
                    }
                    InterruptionBehaviour::Stop => HostedState::Stopped,
                    InterruptionBehaviour::Hibernate => HostedState::Hibernated,
                };
                if guest.state == HostedState::Running {
                    guest.state = state;
                    self.off.insert(server_id);
                    *self.ended.entry(server_id).or_default() += 1;
                }
                Ok(DriverResult::Interrupted)
            }
            DriverCall::Fence => {
                let guest = self.guests.remove(&server_id);
                if guest.is_some_and(|guest| guest.state == HostedState::Running) {
                    *self.ended.entry(server_id).or_default() += 1;
                }
                Ok(DriverResult::Fenced)
            }
            DriverCall::Look => Ok(DriverResult::from_occupancy(
                match self.guests.get(&server_id) {
                    None => Occupancy::Absent,
                    Some(guest) => Occupancy::Present {
                        state: guest.state,
                        holds: if guest.state == HostedState::Running {
                            let mut all = Resources::new();
                            all.set(ResourceClass::vcpu(), 1).unwrap();
                            all
                        } else {
                            Resources::new()
                        },
                        since: guest.since,
                    },
                },
            )),
            DriverCall::Start(start) if start.resume && !self.guests.contains_key(&server_id) => {
                Err(gone)
            }
            DriverCall::Start(_) => {
                let guest = self.guests.entry(server_id).or_insert(Guest {
                    state: HostedState::Stopped,
                    released: None,
                    since: now,
                });
                if guest.state != HostedState::Running {
                    guest.state = HostedState::Running;
                    guest.since = now;
                }
                Ok(DriverResult::Started(guest.since))
            }
            DriverCall::Delete(_) => match self.guests.remove(&server_id) {
                Some(_) => Ok(DriverResult::Deleted),
                None => Err(gone),
            },
        }
    }

    // ---- promises that are checked at once ----

    fn check_interrupt(&mut self, server_id: ServerId) {
        *self.asked.entry(server_id).or_default() += 1;
        let mut durable = BTreeMap::new();
        for record in &self.journal {
            if let JournalRecord::Evacuation(record) = record {
                durable.insert(record.evacuation_id, record.clone());
            }
        }
        let mut begun = durable.values().filter(|r| {
            r.server_id == server_id && matches!(r.phase, EvacuationPhase::Acting { .. })
        });
        let Some(record) = begun.next() else {
            return self.break_promise("durable", format!("{server_id} is ended"));
        };
        let id = record.evacuation_id;
        *self.asked_since.entry(id).or_default() += 1;
        let over = self
            .told_at
            .get(&id)
            .is_some_and(|told| self.now >= told.plus(GRACE));
        if !over && !self.released.contains(&id) && !self.off.contains(&server_id) {
            let told = self.told_at.get(&id).copied();
            self.break_promise("grace", format!("{id}: told {told:?}, ended {}", self.now));
        }
        if !self
            .reports
            .iter()
            .any(|m| matches!(&m.body, Body::Draining(d) if d.evacuation_id == id))
        {
            self.break_promise("announced", format!("{id}: its end was not reported"));
        }
        if self
            .reports
            .iter()
            .any(|m| matches!(&m.body, Body::Spared(s) if s.evacuation_id == id))
        {
            self.break_promise(
                "spared",
                format!("{id} was reported as spared and is ended"),
            );
        }
    }

    fn check_ack(&mut self, token: DeliveryTag) {
        let Some(message) = self.unsettled.remove(&token) else {
            return self.break_promise("ack", format!("{token:?} is settled twice"));
        };
        let answered = match &message.body {
            Body::Notice(Notice { evacuation_id, .. }) => {
                let again = self.unsettled.values().any(
                    |m| matches!(&m.body, Body::Notice(n) if n.evacuation_id == *evacuation_id),
                );
                self.verdicts(*evacuation_id).next().is_some() || again
            }
            Body::Spare(Spare { evacuation_id, .. }) => {
                self.verdicts(*evacuation_id).next().is_some()
            }
            Body::Start(Start { server_id, .. }) => self.reports.iter().any(|m| {
                matches!(&m.body, Body::Started(s) if s.server_id == *server_id)
                    || matches!(&m.body, Body::StartFailed(s) if s.server_id == *server_id)
            }),
            Body::Delete(Delete { server_id, .. }) => self
                .reports
                .iter()
                .any(|m| matches!(&m.body, Body::Deleted(d) if d.server_id == *server_id)),
            _ => true,
        };
        if !answered {
            self.break_promise(
                "ack",
                format!("{} is not answered", message.body.event_type()),
            );
        }
    }

    pub(super) fn verdicts(&self, id: EvacuationId) -> impl Iterator<Item = &Body> {
        self.reports
            .iter()
            .map(|m| &m.body)
            .filter(move |body| match body {
                Body::Evacuated(m) => m.evacuation_id == id,
                Body::EvacuationFailed(m) => m.evacuation_id == id,
                Body::Spared(m) => m.evacuation_id == id,
                _ => false,
            })
    }

    pub(super) fn how(&self, e: u8) -> Option<EvacuationEnd> {
        self.verdicts(evacuation(e)).find_map(|body| match body {
            Body::Evacuated(m) => Some(m.how),
            _ => None,
        })
    }

    /// All goes well from now on, until nothing is left to do. `Err` if that takes for ever.
    pub(super) fn come_to_rest(&mut self) -> Result<(), String> {
        self.crash_in = None;
        for _ in 0..10_000 {
            if !self.queue.is_empty() {
                self.deliver(0);
            } else if !self.calls.is_empty() {
                self.complete(0, Fate::Works);
            } else if !self.publishing.is_empty() {
                self.confirm();
            } else if let Some(at) = self.core.next_wakeup() {
                if at <= self.now {
                    return Err(format!("busy loop: due {at}, now {}", self.now));
                }
                self.observe();
                let wait = at.millis_since(self.now);
                self.advance(wait);
            } else {
                return Ok(());
            }
        }
        Err("ten thousand steps and no end".to_owned())
    }
}
