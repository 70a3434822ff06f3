//! A compute host: the real agent's core in a shell that does what it is told, or dies meanwhile.

mod clock;

use crate::Mutation;
use crate::hypervisor::{CallFate, Hypervisor};
use crate::shared_storage::STORAGE;
use crate::violation::{BrokenInvariant, Invariant};
use ebbtide_agent_protocol::{
    ActionId, AgentCore, AgentEffect, AgentInput, AgentPolicy, DeliveryTag, DriverCall,
    DriverResult, EvacuationPhase, JournalRecord, Occupancy, ReportId,
};
use ebbtide_model::message::{Body, Heartbeat, HostedServer, HostedState, Message};
use ebbtide_model::{EvacuationId, MessageId, Seconds, ServerId, Timestamp};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use uuid::Uuid;

/// After so many lines the journal is written anew.
const JOURNAL_LINES: usize = 256;
/// How long an agent rests whose journal could not be written.
const JOURNAL_RETRY: Seconds = Seconds(5);
/// Time between two heartbeats.
const HEARTBEAT: Seconds = Seconds(10);

/// Something that others have to look at: what this host does to a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostAction {
    /// The hypervisor is asked to tell a guest of its end.
    Tells(EvacuationId, ServerId),
    /// A running guest was ended.
    Ends(EvacuationId, ServerId),
}

/// What is known of the terms of an evacuation, to see whether they are kept.
#[derive(Debug, Clone, Copy)]
struct Terms {
    grace: Seconds,
    begin_before: Timestamp,
    notified_at: Option<Timestamp>,
    released: bool,
    /// When its end began.
    begun_at: Option<Timestamp>,
}

/// Every other host has a fence.
fn policy(name: &str) -> AgentPolicy {
    let fences = name.ends_with(['0', '2', '4', '6', '8']);
    AgentPolicy {
        fence_tries: if fences { 2 } else { 0 },
        ..AgentPolicy::default()
    }
}

/// One host.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) name: String,
    pub(crate) hypervisor: Hypervisor,
    /// How far its clock is ahead, in milliseconds.
    pub(crate) skew: i64,
    /// The same, as the agent has noted it: what is between the two, its journal does not know yet.
    noted_skew: i64,
    /// False while the process is down.
    pub(crate) alive: bool,
    /// When it comes back by itself.
    pub(crate) back_at: Option<Timestamp>,
    pub(crate) disk_full: bool,
    /// It dies after so many effects.
    pub(crate) dies_in: Option<u32>,
    /// Its hypervisor answers nothing.
    pub(crate) stuck: bool,
    /// Nothing of the broker comes here.
    pub(crate) deaf: bool,
    /// Nothing from here comes to the broker.
    pub(crate) mute: bool,
    /// How its next heartbeat lies.
    pub(crate) lie: Option<u32>,
    /// How the next calls of its hypervisor end, instead of well.
    pub(crate) fates: VecDeque<CallFate>,
    pub(crate) calls: BTreeMap<ActionId, (ServerId, DriverCall)>,
    pub(crate) publishing: VecDeque<(ReportId, Message)>,
    /// What others have to look at.
    pub(crate) deeds: Vec<HostAction>,
    /// Commands that came back from a process that died, to be put at the front of the queue.
    pub(crate) returned: Vec<Message>,
    pub(crate) broken: Option<BrokenInvariant>,
    pub(crate) mutation: Option<Mutation>,
    core: AgentCore,
    journal: Vec<JournalRecord>,
    unsettled: BTreeMap<DeliveryTag, Message>,
    next_token: u64,
    session: u128,
    sequence: u64,
    next_beat: Timestamp,
    changed: bool,
    terms: BTreeMap<EvacuationId, Terms>,
    /// Evacuations whose spare is acknowledged before the end had begun.
    spared: BTreeSet<EvacuationId>,
    /// Evacuations whose end has begun, durably, by server the newest.
    acting: BTreeMap<ServerId, EvacuationId>,
    begun: BTreeSet<EvacuationId>,
    ended: BTreeSet<EvacuationId>,
    forged: u64,
    /// Commands that the agent has acknowledged and not executed yet, if that rule is broken on
    /// purpose.
    early: VecDeque<(DeliveryTag, Message)>,
    /// Servers that were fenced, if the simulator breaks the rule that an agent verifies a fence.
    believed: BTreeSet<ServerId>,
}

impl Agent {
    pub(crate) fn new(name: &str, vcpus: u64, skew: i64, now: Timestamp) -> Self {
        let (core, _) = AgentCore::restore(name, policy(name), [], now);
        Self {
            name: name.to_owned(),
            hypervisor: Hypervisor::new(vcpus),
            skew,
            noted_skew: skew,
            alive: true,
            back_at: None,
            disk_full: false,
            dies_in: None,
            stuck: false,
            deaf: false,
            mute: false,
            lie: None,
            fates: VecDeque::new(),
            calls: BTreeMap::new(),
            publishing: VecDeque::new(),
            deeds: Vec::new(),
            returned: Vec::new(),
            broken: None,
            mutation: None,
            core,
            journal: Vec::new(),
            unsettled: BTreeMap::new(),
            next_token: 1,
            session: Uuid::new_v5(&Uuid::nil(), name.as_bytes()).as_u128(),
            sequence: 0,
            next_beat: now,
            changed: false,
            terms: BTreeMap::new(),
            spared: BTreeSet::new(),
            acting: BTreeMap::new(),
            begun: BTreeSet::new(),
            ended: BTreeSet::new(),
            forged: 0,
            early: VecDeque::new(),
            believed: BTreeSet::new(),
        }
    }

    pub(crate) fn clock(&self, now: Timestamp) -> Timestamp {
        Timestamp::from_millis(now.as_millis() + self.skew)
    }

    fn breaks(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    fn fail(&mut self, promise: Invariant, what: String) {
        if self.broken.is_none() {
            self.broken = Some((promise, format!("{}: {what}", self.name)));
        }
    }

    // ---- what happens to the process ----

    fn input(&mut self, now: Timestamp, input: AgentInput) {
        let effects = self.core.handle(self.clock(now), input);
        self.perform(now, effects);
    }

    /// As the agent's shell: the journal first, then the rest. The process may die after any
    /// effect.
    fn perform(&mut self, now: Timestamp, effects: Vec<AgentEffect>) {
        let (records, rest): (Vec<AgentEffect>, Vec<AgentEffect>) = effects
            .into_iter()
            .partition(|effect| matches!(effect, AgentEffect::Journal(_)));
        if self.disk_full && !records.is_empty() {
            self.crash(now);
            self.back_at = Some(now.plus(JOURNAL_RETRY));
            return;
        }
        let lost = self.breaks(Mutation::ActBeforeJournal);
        for effect in records {
            if self.dies(now) {
                return;
            }
            if let AgentEffect::Journal(record) = effect {
                let acting = matches!(&record, JournalRecord::Evacuation(e) if matches!(e.phase, EvacuationPhase::Acting { .. }));
                if !(lost && acting) {
                    self.write(record, now);
                }
            }
        }
        // The core knows all that was to be written, so the journal is made short only when all of
        // it is.
        if self.journal.len() > JOURNAL_LINES {
            self.journal = self.core.records();
        }
        for effect in rest {
            if self.dies(now) {
                return;
            }
            self.follow(effect, now);
        }
    }

    fn dies(&mut self, now: Timestamp) -> bool {
        match &mut self.dies_in {
            None => false,
            Some(0) => {
                self.dies_in = None;
                self.crash(now);
                true
            }
            Some(n) => {
                *n -= 1;
                false
            }
        }
    }

    fn write(&mut self, record: JournalRecord, now: Timestamp) {
        if let JournalRecord::Evacuation(e) = &record
            && matches!(e.phase, EvacuationPhase::Acting { .. })
        {
            self.acting.insert(e.server_id, e.evacuation_id);
            if self.begun.insert(e.evacuation_id) {
                self.begins_to_act(e.evacuation_id, now);
            }
        }
        self.journal.push(record);
    }

    /// The end of a victim begins: it must not have been spared.
    fn begins_to_act(&mut self, id: EvacuationId, now: Timestamp) {
        if self.spared.contains(&id) {
            self.fail(
                Invariant::NoEndForNothing,
                "a victim was spared, and is ended all the same".to_owned(),
            );
        }
        let clock = self.clock(now);
        if let Some(terms) = self.terms.get_mut(&id) {
            terms.begun_at = Some(clock);
        }
    }

    /// A running guest was ended: its time must have been over.
    fn check_grace(&mut self, id: EvacuationId) {
        if let Some(terms) = self.terms.get(&id)
            && let (Some(notified_at), Some(begun_at)) = (terms.notified_at, terms.begun_at)
            && !terms.released
            && begun_at < notified_at.plus(terms.grace)
        {
            let had = begun_at.millis_since(notified_at);
            let what = format!(
                "a victim with {} of grace is ended {had} ms after its notice",
                terms.grace
            );
            self.fail(Invariant::NoEndForNothing, what);
        }
    }

    fn follow(&mut self, effect: AgentEffect, now: Timestamp) {
        match effect {
            AgentEffect::Journal(_) => {}
            AgentEffect::Drive {
                action,
                server_id,
                what,
            } => {
                if let DriverCall::GiveNotice(notice) = &what {
                    self.deeds
                        .push(HostAction::Tells(notice.evacuation_id, server_id));
                }
                if matches!(what, DriverCall::Interrupt(_) | DriverCall::Fence)
                    && !self.acts_durably(server_id)
                {
                    self.fail(
                        Invariant::ExactlyOnce,
                        "the hypervisor is asked to end a victim, and the journal does not know"
                            .to_owned(),
                    );
                }
                self.calls.insert(action, (server_id, what));
            }
            AgentEffect::Publish { report, message } => {
                self.note_report(&message.body, self.clock(now));
                self.publishing.push_back((report, message));
            }
            AgentEffect::Ack(token) => {
                if let Some(message) = self.unsettled.remove(&token) {
                    self.acknowledged(&message.body);
                }
            }
            AgentEffect::DeadLetter(token, _) => drop(self.unsettled.remove(&token)),
            AgentEffect::ServersChanged => self.changed = true,
        }
    }

    fn acts_durably(&self, server_id: ServerId) -> bool {
        self.acting.contains_key(&server_id)
    }

    /// Once the agent says that the guest knows, it must have been told in time. It was told before
    /// it is said: a journal that could not be moved when the clock was set back names a time that
    /// is still to come.
    fn note_report(&mut self, body: &Body, clock: Timestamp) {
        let Body::Draining(report) = body else { return };
        if let Some(terms) = self.terms.get_mut(&report.evacuation_id)
            && terms.notified_at.is_none()
        {
            terms.notified_at = Some(report.notified_at.min(clock));
            let late = report.notified_at > terms.begin_before;
            if late {
                let what = format!(
                    "a guest was told {} ms after the scheduler had given up on it",
                    report.notified_at.millis_since(terms.begin_before)
                );
                self.fail(Invariant::NoEndForNothing, what);
            }
        }
    }

    fn acknowledged(&mut self, body: &Body) {
        if let Body::Spare(spare) = body
            && !self.begun.contains(&spare.evacuation_id)
        {
            self.spared.insert(spare.evacuation_id);
        }
    }

    /// A command arrives.
    pub(crate) fn take(&mut self, now: Timestamp, mut message: Message) {
        let token = DeliveryTag(self.next_token);
        self.next_token += 1;
        match &mut message.body {
            Body::Notice(notice) => {
                if self.breaks(Mutation::NoticeWithoutKey) {
                    self.forged += 1;
                    let words = format!("{} {}", self.name, self.forged);
                    notice.evacuation_id =
                        EvacuationId(Uuid::new_v5(&Uuid::nil(), words.as_bytes()));
                }
                let known = self.terms.entry(notice.evacuation_id).or_insert(Terms {
                    grace: notice.grace_seconds,
                    begin_before: notice.begin_before,
                    notified_at: None,
                    released: false,
                    begun_at: None,
                });
                known.begin_before = known.begin_before.max(notice.begin_before);
                if self.breaks(Mutation::LateNoticeFollowed) {
                    notice.begin_before = now.plus(Seconds(100_000));
                }
                if self.breaks(Mutation::GraceCutShort) {
                    notice.grace_seconds = Seconds(notice.grace_seconds.0 / 2);
                }
            }
            Body::Release(release) => {
                if let Some(terms) = self.terms.get_mut(&release.evacuation_id) {
                    terms.released = true;
                } else {
                    self.terms.insert(
                        release.evacuation_id,
                        Terms {
                            grace: Seconds(0),
                            begin_before: Timestamp::from_millis(i64::MAX),
                            notified_at: None,
                            released: true,
                            begun_at: None,
                        },
                    );
                }
            }
            Body::Start(start) if self.breaks(Mutation::KeptMadeAnew) => start.resume = false,
            Body::Spare(_) if self.breaks(Mutation::SpareIgnored) => {
                self.acknowledged(&message.body);
                return;
            }
            _ => {}
        }
        if self.breaks(Mutation::AckBeforeEffect) {
            self.acknowledged(&message.body);
            self.early.push_back((token, message));
            return;
        }
        self.unsettled.insert(token, message.clone());
        self.input(now, AgentInput::Command { token, message });
    }

    /// Commands that were acknowledged on receipt are followed when there is time.
    fn follow_early(&mut self, now: Timestamp) {
        while let Some((token, message)) = self.early.pop_front() {
            self.input(now, AgentInput::Command { token, message });
        }
    }

    /// Looks at the clock. True if that made a difference.
    pub(crate) fn tick(&mut self, now: Timestamp) -> bool {
        if !self.alive {
            if self.back_at.is_some_and(|at| at <= now) {
                self.restart(now);
                return true;
            }
            return false;
        }
        self.follow_early(now);
        let clock = self.clock(now);
        let due = self.core.next_wakeup().is_some_and(|at| at <= clock);
        if due {
            self.input(now, AgentInput::Tick);
        }
        if self.alive && self.core.is_watching() {
            let views = self.hypervisor.views(None);
            self.input(now, AgentInput::Observed(views));
        }
        due
    }

    /// The broker has the next report. `lost`: it has it, and the agent does not hear of that.
    pub(crate) fn publish(&mut self, now: Timestamp, lost: bool) -> Option<Message> {
        if !self.alive || self.mute {
            return None;
        }
        if lost {
            return self.publishing.front().map(|(_, message)| message.clone());
        }
        let (report, message) = self.publishing.pop_front()?;
        self.input(now, AgentInput::Published(report));
        Some(message)
    }

    pub(crate) fn beat_is_due(&self, now: Timestamp) -> bool {
        self.alive && (self.changed || self.next_beat <= now)
    }

    pub(crate) fn beat(&mut self, now: Timestamp) -> Option<Message> {
        if !self.alive {
            return None;
        }
        self.changed = false;
        self.next_beat = now.plus(HEARTBEAT);
        self.sequence += 1;
        let mut inventory = self.hypervisor.inventory.clone();
        let mut servers = self.hypervisor.hosted();
        if let Some(lie) = self.lie.take() {
            match lie % 4 {
                0 => {
                    self.hypervisor.guards = true;
                    for class in inventory.values_mut() {
                        class.total *= 2;
                    }
                }
                1 => {
                    for class in inventory.values_mut() {
                        class.total = class.total.div_ceil(2);
                    }
                }
                2 => servers.truncate(servers.len() / 2),
                _ => servers.push(HostedServer {
                    server_id: ServerId(Uuid::from_u128(u128::from(lie) << 64)),
                    state: HostedState::Running,
                    facts: None,
                }),
            }
        }
        let body = Body::Heartbeat(Heartbeat {
            host: self.name.clone(),
            session: Uuid::from_u128(self.session),
            sequence: self.sequence,
            inventory,
            traits: BTreeSet::new(),
            servers,
            storage: self.hypervisor.shared.as_ref().map(|_| STORAGE.to_owned()),
        });
        Some(Message {
            id: MessageId(Uuid::from_u128(
                self.session ^ (u128::from(self.sequence) << 96),
            )),
            source: format!("/ebbtide/agent/{}", self.name),
            time: self.clock(now),
            body,
        })
    }

    /// The process dies. What was not settled goes back to the queue; calls under way are
    /// cancelled.
    pub(crate) fn crash(&mut self, now: Timestamp) {
        self.alive = false;
        self.dies_in = None;
        self.publishing.clear();
        self.early.clear();
        let clock = self.clock(now);
        for (server_id, what) in std::mem::take(&mut self.calls).into_values() {
            self.hypervisor.cut_off(server_id, &what, clock);
        }
        self.look_who_ended();
        let unsettled = std::mem::take(&mut self.unsettled);
        self.returned.extend(unsettled.into_values());
    }

    pub(crate) fn restart(&mut self, now: Timestamp) {
        if self.alive {
            self.crash(now);
        }
        self.alive = true;
        self.back_at = None;
        self.session += 1;
        self.sequence = 0;
        self.changed = true;
        if !self.catch_up_with_clock() {
            self.crash(now);
            self.back_at = Some(now.plus(JOURNAL_RETRY));
            return;
        }
        let journal = self.journal.clone();
        let clock = self.clock(now);
        let (core, effects) = AgentCore::restore(&self.name, policy(&self.name), journal, clock);
        self.core = core;
        self.perform(now, effects);
    }

    /// A call of the hypervisor ends.
    pub(crate) fn complete(&mut self, action: ActionId, fate: CallFate, now: Timestamp) {
        let Some((server_id, what)) = self.calls.remove(&action) else {
            return;
        };
        let clock = self.clock(now);
        let believes = self.breaks(Mutation::FenceBelieved);
        // Where fences are believed they lie.
        let fate = match what {
            DriverCall::Fence if believes => CallFate::NoRoom,
            _ => fate,
        };
        let mut result = self.hypervisor.call(server_id, &what, fate, clock);
        match what {
            DriverCall::Fence if believes => drop(self.believed.insert(server_id)),
            DriverCall::Look if self.believed.contains(&server_id) => {
                result = Ok(DriverResult::from_occupancy(Occupancy::Absent));
            }
            _ => {}
        }
        self.look_who_ended();
        self.input(now, AgentInput::ActionDone { action, result });
    }

    /// Who was ended, and for which evacuation: at most once for each.
    pub(crate) fn look_who_ended(&mut self) {
        for server_id in std::mem::take(&mut self.hypervisor.ended) {
            match self.acting.get(&server_id).copied() {
                Some(evacuation) => {
                    self.deeds.push(HostAction::Ends(evacuation, server_id));
                    self.check_grace(evacuation);
                    if !self.ended.insert(evacuation) {
                        let what = "one evacuation has ended a running guest twice";
                        self.fail(Invariant::ExactlyOnce, what.to_owned());
                    }
                }
                None => self.fail(
                    Invariant::NoEndForNothing,
                    "a guest was ended without an evacuation".to_owned(),
                ),
            }
        }
        if let Some((promise, what)) = self.hypervisor.broken.take() {
            self.fail(promise, what);
        }
    }

    /// True if nothing is under way here.
    pub(crate) fn is_quiet(&self) -> bool {
        self.alive && self.core.is_idle() && self.calls.is_empty() && self.publishing.is_empty()
    }
}
