//! One compute host: a hypervisor as plain data, and the real agent core in a shell that executes
//! its effects.
//!
//! The hypervisor starts servers without checking capacity: the region must not give capacity
//! twice.

use ebbtide_agent_protocol::{
    ActionId, AgentCore, AgentEffect, AgentInput, AgentPolicy, DeliveryTag, DriverCall,
    DriverError, DriverResult, EvacuationPhase, JournalRecord, NoticeOutcome, Occupancy, ReportId,
    ServerView,
};
use ebbtide_model::message::{
    Body, Heartbeat, HostedFacts, HostedServer, HostedState, Message, Spare, Start,
};
use ebbtide_model::{
    EvacuationId, InterruptionBehaviour, Inventory, MessageId, ResourceClass, Resources, ServerId,
    Timestamp,
};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use uuid::Uuid;

/// Storage that several hosts share: the kept servers, each with the host that keeps it. The host
/// that takes a server out has its token.
pub(super) type SharedStorage = Rc<RefCell<BTreeMap<ServerId, (String, Guest)>>>;

#[derive(Debug, Clone)]
pub(super) struct Guest {
    pub(super) state: HostedState,
    pub(super) takes: Resources,
    since: Timestamp,
    start: Start,
    /// The evacuation whose notice it has.
    notice: Option<EvacuationId>,
}

impl Guest {
    fn facts(&self) -> HostedFacts {
        HostedFacts {
            name: self.start.name.clone(),
            project_id: self.start.project_id.clone(),
            flavor: self.start.flavor.clone(),
            resources: self.start.resources.clone(),
            preemptible: self.start.preemptible,
            since: self.since,
            evacuation_id: self.notice,
        }
    }
}

/// How a call of the driver ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Works,
    Fails,
    /// The hypervisor reports that it has no capacity.
    NoRoom,
}

pub(super) struct TestHost {
    pub(super) name: String,
    pub(super) inventory: BTreeMap<ResourceClass, Inventory>,
    /// How far the host's clock is ahead, in milliseconds.
    pub(super) skew: i64,
    /// False while the agent's process is down. Messages then stay in its queue.
    pub(super) alive: bool,
    /// Fates of the next calls of each kind, by the action's text; `Works` without an entry.
    pub(super) fates: BTreeMap<&'static str, VecDeque<Fate>>,
    /// Calls of these kinds are not completed by [`TestHost::complete_all`].
    pub(super) hanging: BTreeSet<&'static str>,
    /// The broker's queue for the agent.
    pub(super) queue: VecDeque<Message>,
    pub(super) guests: BTreeMap<ServerId, Guest>,
    /// The storage's name, and the servers kept there.
    pub(super) storage: Option<(String, SharedStorage)>,
    pub(super) calls: BTreeMap<ActionId, (ServerId, DriverCall)>,
    pub(super) publishing: VecDeque<(ReportId, Message)>,
    pub(super) dead_letters: Vec<String>,
    /// Broken invariants, as text.
    pub(super) broken: Vec<String>,
    core: AgentCore,
    journal: Vec<JournalRecord>,
    unsettled: BTreeMap<DeliveryTag, Message>,
    effects: VecDeque<AgentEffect>,
    next_token: u64,
    session: u128,
    sequence: u64,
    spares_heard: BTreeSet<EvacuationId>,
    acting: BTreeSet<EvacuationId>,
    /// Number of requests to the hypervisor to end each server.
    pub(super) ended: BTreeMap<ServerId, u32>,
}

impl TestHost {
    pub(super) fn new(name: &str, vcpus: u64, now: Timestamp) -> Self {
        let (core, effects) = AgentCore::restore(name, AgentPolicy::default(), [], now);
        assert!(effects.is_empty(), "a new agent has nothing to do");
        let inventory = BTreeMap::from([
            (ResourceClass::vcpu(), Inventory::of(vcpus)),
            (ResourceClass::memory_mb(), Inventory::of(1000 * vcpus)),
            (ResourceClass::disk_gb(), Inventory::of(10 * vcpus)),
        ]);
        Self {
            name: name.to_owned(),
            inventory,
            skew: 0,
            alive: true,
            fates: BTreeMap::new(),
            hanging: BTreeSet::new(),
            queue: VecDeque::new(),
            guests: BTreeMap::new(),
            storage: None,
            calls: BTreeMap::new(),
            publishing: VecDeque::new(),
            dead_letters: Vec::new(),
            broken: Vec::new(),
            core,
            journal: Vec::new(),
            unsettled: BTreeMap::new(),
            effects: VecDeque::new(),
            next_token: 1,
            session: Uuid::new_v5(&Uuid::nil(), name.as_bytes()).as_u128(),
            sequence: 0,
            spares_heard: BTreeSet::new(),
            acting: BTreeSet::new(),
            ended: BTreeMap::new(),
        }
    }

    fn clock(&self, now: Timestamp) -> Timestamp {
        Timestamp::from_millis(now.as_millis() + self.skew)
    }

    pub(super) fn runs(&self, id: ServerId) -> bool {
        self.guests
            .get(&id)
            .is_some_and(|g| g.state == HostedState::Running)
    }

    // ---- events of the agent ----

    fn input(&mut self, now: Timestamp, input: AgentInput) {
        let now = self.clock(now);
        self.effects.extend(self.core.handle(now, input));
        self.follow(now);
    }

    fn follow(&mut self, now: Timestamp) {
        while let Some(effect) = self.effects.pop_front() {
            match effect {
                AgentEffect::Journal(record) => {
                    if let JournalRecord::Evacuation(e) = &record
                        && matches!(e.phase, EvacuationPhase::Acting { .. })
                    {
                        self.begins_to_act(e.evacuation_id, now);
                    }
                    self.journal.push(record);
                }
                AgentEffect::Drive {
                    action,
                    server_id,
                    what,
                } => {
                    self.calls.insert(action, (server_id, what));
                }
                AgentEffect::Publish { report, message } => {
                    self.publishing.push_back((report, message))
                }
                AgentEffect::Ack(token) => drop(self.unsettled.remove(&token)),
                AgentEffect::DeadLetter(token, reason) => {
                    self.unsettled.remove(&token);
                    self.dead_letters.push(reason);
                }
                AgentEffect::ServersChanged => {}
            }
        }
    }

    fn begins_to_act(&mut self, id: EvacuationId, now: Timestamp) {
        if self.acting.insert(id) && self.spares_heard.contains(&id) {
            self.broken.push(format!(
                "{}: {id} was spared and is ended at {now}",
                self.name
            ));
        }
    }

    /// Takes the next message from the broker.
    pub(super) fn deliver(&mut self, now: Timestamp) -> bool {
        if !self.alive {
            return false;
        }
        let Some(message) = self.queue.pop_front() else {
            return false;
        };
        if let Body::Spare(Spare { evacuation_id, .. }) = &message.body
            && !self.acting.contains(evacuation_id)
        {
            self.spares_heard.insert(*evacuation_id);
        }
        let token = DeliveryTag(self.next_token);
        self.next_token += 1;
        self.unsettled.insert(token, message.clone());
        self.input(now, AgentInput::Command { token, message });
        true
    }

    pub(super) fn tick(&mut self, now: Timestamp) {
        if self.alive
            && self
                .core
                .next_wakeup()
                .is_some_and(|at| at <= self.clock(now))
        {
            self.input(now, AgentInput::Tick);
        }
    }

    pub(super) fn observe(&mut self, now: Timestamp) {
        if self.alive {
            let views = self.guests.iter().map(|(id, guest)| ServerView {
                server_id: *id,
                state: guest.state,
                released: None,
                facts: None,
            });
            let views = views.collect();
            self.input(now, AgentInput::Observed(views));
        }
    }

    /// The broker has the agent's next report.
    pub(super) fn confirm(&mut self, now: Timestamp) -> Option<Message> {
        if !self.alive {
            return None;
        }
        let (report, message) = self.publishing.pop_front()?;
        self.input(now, AgentInput::Published(report));
        Some(message)
    }

    pub(super) fn heartbeat(&mut self, now: Timestamp) -> Option<Message> {
        if !self.alive {
            return None;
        }
        self.sequence += 1;
        let hosted = |server_id: &ServerId, guest: &Guest| HostedServer {
            server_id: *server_id,
            state: guest.state,
            facts: Some(Box::new(guest.facts())),
        };
        let guests = self.guests.iter();
        let mut servers: Vec<HostedServer> = guests.map(|(id, guest)| hosted(id, guest)).collect();
        if let Some((_, shared)) = &self.storage {
            let shared = shared.borrow();
            let own = shared.iter().filter(|(_, (by, _))| *by == self.name);
            servers.extend(own.map(|(id, (_, guest))| hosted(id, guest)));
        }
        let beat = Heartbeat {
            host: self.name.clone(),
            session: Uuid::from_u128(self.session),
            sequence: self.sequence,
            inventory: self.inventory.clone(),
            traits: BTreeSet::new(),
            servers,
            storage: self.storage.as_ref().map(|(name, _)| name.clone()),
        };
        let words = format!("{} {} {}", self.name, self.session, self.sequence);
        Some(Message {
            id: MessageId(Uuid::new_v5(&Uuid::nil(), words.as_bytes())),
            source: format!("/ebbtide/agent/{}", self.name),
            time: self.clock(now),
            body: Body::Heartbeat(beat),
        })
    }

    /// The agent's process dies. Messages that were not settled return to the queue; calls under
    /// way are lost.
    pub(super) fn crash(&mut self) {
        self.alive = false;
        self.effects.clear();
        self.publishing.clear();
        self.calls.clear();
        for (_, message) in std::mem::take(&mut self.unsettled).into_iter().rev() {
            self.queue.push_front(message);
        }
    }

    pub(super) fn restart(&mut self, now: Timestamp) {
        if self.alive {
            self.crash();
        }
        self.alive = true;
        self.session += 1;
        self.sequence = 0;
        let now = self.clock(now);
        let journal = std::mem::take(&mut self.journal);
        let (core, effects) = AgentCore::restore(&self.name, AgentPolicy::default(), journal, now);
        self.core = core;
        self.journal = self.core.records();
        self.effects.extend(effects);
        self.follow(now);
    }

    // ---- the hypervisor ----

    pub(super) fn complete_all(&mut self, now: Timestamp) -> bool {
        let ready: Vec<ActionId> = self
            .calls
            .iter()
            .filter(|(_, (_, what))| !self.hanging.contains(what.words()))
            .map(|(action, _)| *action)
            .collect();
        for action in &ready {
            let words = self.calls[action].1.words();
            let fate = self.fates.get_mut(words).and_then(VecDeque::pop_front);
            self.complete(*action, fate.unwrap_or(Fate::Works), now);
        }
        !ready.is_empty()
    }

    pub(super) fn complete(&mut self, action: ActionId, fate: Fate, now: Timestamp) {
        let Some((server_id, what)) = self.calls.remove(&action) else {
            return;
        };
        let failed = || DriverError::Failed {
            what: what.words(),
            detail: "so the test wants it".to_owned(),
        };
        let result = match fate {
            Fate::Works => self.drive(server_id, &what, now),
            Fate::Fails => Err(failed()),
            Fate::NoRoom => Err(DriverError::NoRoom {
                detail: "so the test wants it".to_owned(),
            }),
        };
        self.input(now, AgentInput::ActionDone { action, result });
    }

    fn drive(
        &mut self,
        id: ServerId,
        what: &DriverCall,
        now: Timestamp,
    ) -> Result<DriverResult, DriverError> {
        let now = self.clock(now);
        let gone = DriverError::NotFound { server_id: id };
        match what {
            DriverCall::GiveNotice(notice) => {
                let guest = self.guests.get_mut(&id).ok_or(gone)?;
                guest.notice = Some(notice.evacuation_id);
                Ok(DriverResult::Noticed(match guest.state {
                    HostedState::Running => NoticeOutcome::Delivered,
                    _ => NoticeOutcome::NotRunning,
                }))
            }
            DriverCall::WithdrawNotice(_) => {
                self.guests.get_mut(&id).ok_or(gone)?.notice = None;
                Ok(DriverResult::Withdrawn)
            }
            DriverCall::Interrupt(behaviour) => {
                let guest = self.guests.get_mut(&id).ok_or(gone)?;
                *self.ended.entry(id).or_default() += 1;
                match behaviour {
                    InterruptionBehaviour::Terminate | InterruptionBehaviour::LiveMigrate => {
                        drop(self.guests.remove(&id));
                    }
                    InterruptionBehaviour::Stop => guest.state = HostedState::Stopped,
                    InterruptionBehaviour::Hibernate => guest.state = HostedState::Hibernated,
                }
                if let Some((_, shared)) = &self.storage
                    && let Some(guest) = self.guests.remove(&id)
                {
                    let kept = (self.name.clone(), guest);
                    shared.borrow_mut().insert(id, kept);
                }
                Ok(DriverResult::Interrupted)
            }
            DriverCall::Look
                if let Some((name, shared)) = &self.storage
                    && let Some((by, guest)) = shared.borrow().get(&id)
                    && *by == self.name =>
            {
                Ok(DriverResult::Seen {
                    occupancy: Occupancy::Present {
                        state: guest.state,
                        holds: Resources::new(),
                        since: guest.since,
                    },
                    unbilled: None,
                    storage: Some(name.clone()),
                })
            }
            DriverCall::Look => Ok(DriverResult::from_occupancy(match self.guests.get(&id) {
                None => Occupancy::Absent,
                Some(guest) => Occupancy::Present {
                    state: guest.state,
                    holds: match guest.state {
                        HostedState::Running => guest.takes.clone(),
                        _ => Resources::new(),
                    },
                    since: guest.since,
                },
            })),
            DriverCall::Start(start)
                if start.storage.is_some() && !self.guests.contains_key(&id) =>
            {
                let kept = match &self.storage {
                    Some((name, shared)) if start.storage.as_ref() == Some(name) => {
                        shared.borrow_mut().remove(&id)
                    }
                    _ => None,
                };
                let (_, mut guest) = kept.ok_or(gone)?;
                (guest.state, guest.since) = (HostedState::Running, now);
                guest.notice = None;
                self.guests.insert(id, guest);
                self.check_room();
                Ok(DriverResult::Started(now))
            }
            DriverCall::Start(start) if start.resume && !self.guests.contains_key(&id) => Err(gone),
            DriverCall::Start(start) => {
                let guest = self.guests.entry(id).or_insert_with(|| Guest {
                    state: HostedState::Stopped,
                    takes: start.resources.clone(),
                    since: now,
                    start: start.clone(),
                    notice: None,
                });
                if guest.state != HostedState::Running {
                    guest.state = HostedState::Running;
                    guest.since = now;
                    guest.notice = None;
                }
                let since = guest.since;
                self.check_room();
                Ok(DriverResult::Started(since))
            }
            DriverCall::Fence => {
                drop(self.guests.remove(&id));
                Ok(DriverResult::Fenced)
            }
            DriverCall::Delete(_) => self
                .guests
                .remove(&id)
                .ok_or(gone)
                .map(|_| DriverResult::Deleted),
        }
    }

    /// No capacity is given twice: the running servers fit.
    fn check_room(&mut self) {
        for (class, inventory) in &self.inventory {
            // Disks are in use whether or not their servers run.
            let disk = *class == ResourceClass::disk_gb();
            let there = self.guests.values();
            let there = there.filter(|g| disk || g.state == HostedState::Running);
            let used: u64 = there.map(|g| g.takes.get(class)).sum();
            if used > inventory.capacity() {
                let capacity = inventory.capacity();
                self.broken
                    .push(format!("{}: {used} of {capacity} {class} run", self.name));
            }
        }
    }
}
