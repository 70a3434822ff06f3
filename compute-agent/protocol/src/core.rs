//! The state of the protocol, and the routing of inputs.

use super::dispatch::DriverJob;
use super::evacuation::Evacuation;
use super::report::PendingReport;
use super::server::ServerWork;
use super::{
    ActionId, AgentEffect, AgentInput, AgentPolicy, CommandRef, DeliveryTag, EvacuationPhase,
    JournalRecord, ReportId, ServerRecord,
};
use ebbtide_model::message::{Body, Message};
use ebbtide_model::{EvacuationId, ServerId, Timestamp};
use std::collections::BTreeMap;

/// The agent's state machine. See the module.
#[derive(Debug, Clone)]
pub struct AgentCore {
    pub(super) host: String,
    pub(super) policy: AgentPolicy,
    pub(super) evacuations: BTreeMap<EvacuationId, Evacuation>,
    /// Starts and deletions under way.
    pub(super) work: BTreeMap<ServerId, ServerWork>,
    /// The last action on each server; see [`ServerRecord`].
    pub(super) notes: BTreeMap<ServerId, ServerRecord>,
    /// Servers with a running call of the driver.
    pub(super) busy: BTreeMap<ServerId, ActionId>,
    pub(super) jobs: BTreeMap<ActionId, DriverJob>,
    pub(super) reports: BTreeMap<ReportId, PendingReport>,
    pub(super) next_action: u64,
    pub(super) next_report: u64,
    pub(super) next_order: u64,
}

/// The processing of one input: the time, and the effects so far.
#[derive(Debug)]
pub(super) struct Transition {
    pub(super) now: Timestamp,
    pub(super) effects: Vec<AgentEffect>,
}

impl Transition {
    fn at(now: Timestamp) -> Self {
        Self {
            now,
            effects: Vec::new(),
        }
    }

    pub(super) fn journal(&mut self, record: JournalRecord) {
        self.effects.push(AgentEffect::Journal(record));
    }

    pub(super) fn ack(&mut self, token: DeliveryTag) {
        self.effects.push(AgentEffect::Ack(token));
    }
}

impl AgentCore {
    /// Restores the agent of `host` from its journal and returns the first effects: unfinished work
    /// continues, and reports that may not have arrived are sent again. An empty journal makes a
    /// new agent.
    #[must_use]
    pub fn restore(
        host: &str,
        policy: AgentPolicy,
        records: impl IntoIterator<Item = JournalRecord>,
        now: Timestamp,
    ) -> (Self, Vec<AgentEffect>) {
        let mut core = Self {
            host: host.to_owned(),
            policy,
            evacuations: BTreeMap::new(),
            work: BTreeMap::new(),
            notes: BTreeMap::new(),
            busy: BTreeMap::new(),
            jobs: BTreeMap::new(),
            reports: BTreeMap::new(),
            next_action: 1,
            next_report: 1,
            next_order: 1,
        };
        for record in records {
            core.replay(record, now);
        }
        let mut transition = Transition::at(now);
        let ids: Vec<EvacuationId> = core.evacuations.keys().copied().collect();
        for id in ids {
            core.report_after_restart(&mut transition, id);
        }
        core.pump(&mut transition);
        (core, transition.effects)
    }

    fn replay(&mut self, record: JournalRecord, now: Timestamp) {
        match record {
            JournalRecord::Evacuation(record) => {
                self.next_order = self.next_order.max(record.order.saturating_add(1));
                let restored = Evacuation::restored(record, now);
                self.evacuations
                    .insert(restored.record.evacuation_id, restored);
            }
            JournalRecord::ForgetEvacuation { evacuation_id } => {
                self.evacuations.remove(&evacuation_id);
            }
            JournalRecord::Server(record) => {
                self.next_order = self.next_order.max(record.order.saturating_add(1));
                self.notes.insert(record.server_id, record);
            }
            JournalRecord::ForgetServer { server_id } => {
                self.notes.remove(&server_id);
            }
        }
    }

    /// Processes an input and returns what to do, in this order.
    pub fn handle(&mut self, now: Timestamp, input: AgentInput) -> Vec<AgentEffect> {
        let mut transition = Transition::at(now);
        match input {
            AgentInput::Command { token, message } => self.command(&mut transition, token, message),
            AgentInput::ActionDone { action, result } => {
                self.action_done(&mut transition, action, result)
            }
            AgentInput::Published(report) => self.handle_publication(&mut transition, report),
            AgentInput::Unpublishable { report, reason } => {
                self.unpublishable(&mut transition, report, &reason);
            }
            AgentInput::Observed(views) => self.handle_views(&mut transition, &views),
            AgentInput::Tick => {}
            AgentInput::ClockSet { by_ms } => self.clock_set(&mut transition, by_ms),
        }
        self.pump(&mut transition);
        self.forget_surplus(&mut transition);
        transition.effects
    }

    fn command(&mut self, transition: &mut Transition, token: DeliveryTag, message: Message) {
        let command = CommandRef {
            id: message.id,
            time: message.time,
        };
        match message.body {
            Body::Notice(notice) => self.notice(transition, token, command, &notice),
            Body::Spare(spare) => self.spare(transition, token, command, &spare),
            Body::Release(release) => self.release(transition, token, command, &release),
            Body::Start(start) => self.start(transition, token, command, start),
            Body::Delete(delete) => self.delete(transition, token, command, delete),
            report => {
                let reason = format!(
                    "{} is a report of host {} for the scheduler, not a command for the agent of {}",
                    report.event_type(),
                    report.reporting_host().unwrap_or("(unnamed)"),
                    self.host
                );
                transition
                    .effects
                    .push(AgentEffect::DeadLetter(token, reason));
            }
        }
    }

    /// When [`AgentInput::Tick`] is due next; `None` if nothing waits for time.
    #[must_use]
    pub fn next_wakeup(&self) -> Option<Timestamp> {
        let idle = |server_id: &ServerId| !self.busy.contains_key(server_id);
        let evacuations = self
            .evacuations
            .values()
            .filter(|e| idle(&e.record.server_id))
            .filter_map(|e| e.due_at(&self.policy));
        let work = self
            .work
            .iter()
            .filter(|(server_id, _)| idle(server_id))
            .filter_map(|(server_id, work)| work.due_at(self.start_must_wait(*server_id)));
        evacuations.chain(work).min()
    }

    /// True while guests have their notice. The shell then looks at the servers more often, to
    /// detect soon that a guest releases its time or powers itself off.
    #[must_use]
    pub fn is_watching(&self) -> bool {
        self.evacuations
            .values()
            .any(|e| matches!(e.record.phase, EvacuationPhase::Draining(_)))
    }

    /// All records that must be kept: the content of a compacted journal.
    #[must_use]
    pub fn records(&self) -> Vec<JournalRecord> {
        let evacuations = self.evacuations.values().map(|e| e.record.clone());
        let notes = self.notes.values().cloned();
        evacuations
            .map(JournalRecord::Evacuation)
            .chain(notes.map(JournalRecord::Server))
            .collect()
    }

    /// How many records [`AgentCore::records`] has.
    #[must_use]
    pub fn remembered_count(&self) -> usize {
        self.evacuations.len() + self.notes.len()
    }

    /// True if only finished work is left, which is kept for late messages.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.jobs.is_empty()
            && self.work.is_empty()
            && self.reports.is_empty()
            && self
                .evacuations
                .values()
                .all(|e| e.due_at(&self.policy).is_none())
    }

    pub(super) fn take_order(&mut self) -> u64 {
        let order = self.next_order;
        self.next_order += 1;
        order
    }

    /// Forgets the oldest finished entries, an eighth of the limit at a time, so that this does not
    /// happen at every input.
    fn forget_surplus(&mut self, transition: &mut Transition) {
        let keep = self.policy.remember as usize;
        let limit = keep + keep / 8;
        if self.evacuations.len() > limit {
            let forgettable = self.evacuations.values().filter(|e| e.is_forgettable());
            let mut oldest: Vec<_> = forgettable
                .map(|e| (e.record.order, e.record.evacuation_id))
                .collect();
            oldest.sort_unstable();
            let surplus = self.evacuations.len() - keep;
            for (_, evacuation_id) in oldest.into_iter().take(surplus) {
                self.evacuations.remove(&evacuation_id);
                transition.journal(JournalRecord::ForgetEvacuation { evacuation_id });
            }
        }
        // A note about a running server is needed while it runs; the hypervisor limits their
        // number.
        let ended = self.notes.values().filter(|n| n.is_ended());
        let mut oldest: Vec<_> = ended.map(|n| (n.order, n.server_id)).collect();
        if oldest.len() > limit {
            oldest.sort_unstable();
            let surplus = oldest.len() - keep;
            for (_, server_id) in oldest.into_iter().take(surplus) {
                self.notes.remove(&server_id);
                transition.journal(JournalRecord::ForgetServer { server_id });
            }
        }
    }
}
