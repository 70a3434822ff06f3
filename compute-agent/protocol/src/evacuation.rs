//! Evacuations: the effects of notices, spares, releases and looks at the servers.
//!
//! `dispatch.rs` handles the driver's answers. Every function takes the evacuation out of the map,
//! works on it and puts it back, so that it can write reports and notes meanwhile.

use super::core::Transition;
use super::objection::AnnouncementState;
use super::{
    AgentCore, AgentEffect, AgentPolicy, CommandRef, DeliveryTag, Drain, EvacuationPhase,
    EvacuationRecord, EvacuationResult, JournalRecord, NoticeTerms, ReportId,
};
use crate::ServerView;
use ebbtide_model::message::{EvacuationEnd, HostedState, Notice, Release, Spare};
use ebbtide_model::{EvacuationId, ServerId, Timestamp};
use std::collections::BTreeMap;

/// One evacuation: its durable record, and its state in memory.
#[derive(Debug, Clone)]
pub(super) struct Evacuation {
    pub(super) record: EvacuationRecord,
    /// The newest delivery of its notice; unsettled until the end is reported.
    pub(super) token: Option<DeliveryTag>,
    /// Older deliveries of its notice; settled with the next report of any kind.
    pub(super) old_tokens: Vec<DeliveryTag>,
    /// Deliveries of spares; settled with the final report.
    pub(super) finals: Vec<DeliveryTag>,
    pub(super) step: PhaseStep,
    /// Failed tries of the present step.
    pub(super) tries: u32,
    /// When the present step may be tried (again).
    pub(super) not_before: Timestamp,
    /// The guest may have its notice.
    pub(super) notified: bool,
    /// The driver may have been asked to end it.
    pub(super) end_requested: bool,
    /// The driver's failure before the fence was called, if it was.
    pub(super) driver_failure: Option<String>,
    /// The final report, while it is under way.
    pub(super) final_report: Option<ReportId>,
    /// The report that the grace period runs, while it is under way.
    pub(super) draining_report: Option<ReportId>,
    /// Whether the broker has confirmed the newest such report of this process.
    pub(super) announcement: AnnouncementState,
}

/// The next step in the present phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PhaseStep {
    /// The regular action of the phase.
    Forward,
    /// Look whether the capacity is free.
    Look {
        /// How the victim ended, if the capacity is free.
        how: EvacuationEnd,
        /// Why the interruption failed, if it did; reported if the capacity is not free.
        failure: Option<String>,
    },
    /// End the victim with the operator's fence, because the driver could not.
    Fence {
        /// Why the driver could not.
        failure: String,
    },
}

impl Evacuation {
    fn new(record: EvacuationRecord) -> Self {
        Self {
            record,
            token: None,
            old_tokens: Vec::new(),
            finals: Vec::new(),
            step: PhaseStep::Forward,
            tries: 0,
            not_before: Timestamp::default(),
            notified: false,
            end_requested: false,
            driver_failure: None,
            final_report: None,
            draining_report: None,
            announcement: AnnouncementState::No,
        }
    }

    /// Restores an evacuation from the journal. Actions with unknown outcome count as done.
    pub(super) fn restored(mut record: EvacuationRecord, now: Timestamp) -> Self {
        if let (EvacuationPhase::Draining(drain), Some(terms)) = (&mut record.phase, record.terms) {
            // No victim gets more time than its grace period: the clock may have been set back
            // while no agent ran.
            drain.deadline_at = drain.deadline_at.min(now.plus(terms.grace));
        }
        let end_requested = matches!(record.phase, EvacuationPhase::Acting { .. });
        let idle = matches!(
            record.phase,
            EvacuationPhase::Done { .. } | EvacuationPhase::ReleasedEarly
        );
        Self {
            end_requested,
            notified: !idle,
            ..Self::new(record)
        }
    }

    /// When the next driver call is due, if nothing else happens.
    pub(super) fn due_at(&self, policy: &AgentPolicy) -> Option<Timestamp> {
        match (&self.record.phase, &self.step) {
            (EvacuationPhase::Done { .. } | EvacuationPhase::ReleasedEarly, _) => None,
            (EvacuationPhase::Draining(drain), PhaseStep::Forward) => {
                let may = self.may_act_at(drain, policy)?;
                Some(may.max(self.not_before))
            }
            _ => Some(self.not_before),
        }
    }

    /// True if a spare still decides it. After a failed attempt a later one may be on its way,
    /// which the agent must not follow any more. The report "failed" would not say that, because it
    /// may answer the earlier attempt.
    fn is_sparable(&self) -> bool {
        match &self.record.phase {
            EvacuationPhase::ReleasedEarly
            | EvacuationPhase::Notified { .. }
            | EvacuationPhase::Draining(_) => true,
            EvacuationPhase::Acting { .. } => false,
            EvacuationPhase::Withdrawing { then: verdict } | EvacuationPhase::Done { verdict } => {
                matches!(
                    verdict,
                    EvacuationResult::Failed {
                        still_running: true,
                        ..
                    }
                )
            }
        }
    }

    /// True if it is kept only to answer late messages.
    pub(super) fn is_forgettable(&self) -> bool {
        match self.record.phase {
            EvacuationPhase::Done { .. } => self.record.settled && self.final_report.is_none(),
            EvacuationPhase::ReleasedEarly => true,
            _ => false,
        }
    }

    /// Goes to another step, at once.
    pub(super) fn go(&mut self, step: PhaseStep) {
        self.step = step;
        self.tries = 0;
        self.not_before = Timestamp::default();
    }

    pub(super) fn enter(&mut self, transition: &mut Transition, phase: EvacuationPhase) {
        self.record.phase = phase;
        self.go(PhaseStep::Forward);
        self.save(transition);
    }

    pub(super) fn save(&self, transition: &mut Transition) {
        transition.journal(JournalRecord::Evacuation(self.record.clone()));
    }

    fn hold(&mut self, token: DeliveryTag) {
        self.old_tokens.extend(self.token.replace(token));
    }

    /// True if the notice is newer than all earlier ones.
    fn is_newer(&self, terms: &NoticeTerms) -> bool {
        // An attempt that the scheduler replaced before sending may have been sent all the same.
        let order = |terms: &NoticeTerms| (terms.attempt, terms.begin_before);
        self.record
            .terms
            .is_none_or(|known| order(terms) > order(&known))
    }
}

impl AgentCore {
    fn new_evacuation(
        &mut self,
        evacuation_id: EvacuationId,
        server_id: ServerId,
        command: CommandRef,
        terms: Option<NoticeTerms>,
        phase: EvacuationPhase,
    ) -> Evacuation {
        Evacuation::new(EvacuationRecord {
            evacuation_id,
            server_id,
            order: self.take_order(),
            command,
            terms,
            phase,
            settled: false,
        })
    }

    /// Rejects a message that contradicts the known state.
    fn contradicts(
        transition: &mut Transition,
        e: &Evacuation,
        server_id: ServerId,
        token: DeliveryTag,
    ) -> bool {
        if e.record.server_id == server_id {
            return false;
        }
        let reason = format!(
            "evacuation {} is about server {}, this message says {server_id}",
            e.record.evacuation_id, e.record.server_id
        );
        transition
            .effects
            .push(AgentEffect::DeadLetter(token, reason));
        true
    }

    pub(super) fn notice(
        &mut self,
        transition: &mut Transition,
        token: DeliveryTag,
        command: CommandRef,
        notice: &Notice,
    ) {
        let terms = NoticeTerms {
            behaviour: notice.behaviour,
            grace: notice.grace_seconds,
            attempt: notice.attempt,
            begin_before: notice.begin_before,
        };
        let id = notice.evacuation_id;
        let known = self.evacuations.remove(&id);
        let mut e = known.unwrap_or_else(|| {
            let phase = EvacuationPhase::Notified { released: false };
            self.new_evacuation(id, notice.server_id, command, None, phase)
        });
        if Self::contradicts(transition, &e, notice.server_id, token) {
            self.evacuations.insert(id, e);
            return;
        }
        let newer = e.is_newer(&terms);
        e.hold(token);
        if newer {
            e.record.terms = Some(terms);
        }
        e.record.command = command;
        // The scheduler has ordered a start of this server after it sent this notice, so the
        // evacuation is over.
        if self
            .last_start(notice.server_id)
            .is_some_and(|start| command.time < start)
        {
            self.close(transition, &mut e);
            self.evacuations.insert(id, e);
            return;
        }
        match e.record.phase.clone() {
            EvacuationPhase::ReleasedEarly => Self::accept(transition, &mut e, true),
            EvacuationPhase::Notified { released } if newer => {
                Self::accept(transition, &mut e, released)
            }
            EvacuationPhase::Withdrawing {
                then: EvacuationResult::Failed { .. },
            } if newer => Self::accept(transition, &mut e, false),
            EvacuationPhase::Done {
                verdict:
                    EvacuationResult::Failed {
                        still_running: true,
                        ..
                    },
            } if newer => Self::accept(transition, &mut e, false),
            EvacuationPhase::Notified { .. } | EvacuationPhase::Withdrawing { .. } => {}
            EvacuationPhase::Draining(drain) | EvacuationPhase::Acting { drain, .. } => {
                self.publish_draining(transition, &mut e, drain);
            }
            EvacuationPhase::Done { verdict } => self.publish_verdict(transition, &mut e, &verdict),
        }
        self.evacuations.insert(id, e);
    }

    /// Starts to follow a notice. Whether it is too late is checked just before the guest is told.
    fn accept(transition: &mut Transition, e: &mut Evacuation, released: bool) {
        e.announcement = AnnouncementState::No;
        e.record.settled = false;
        e.final_report = None;
        e.end_requested = false;
        e.driver_failure = None;
        e.enter(transition, EvacuationPhase::Notified { released });
    }

    pub(super) fn too_late(
        &mut self,
        transition: &mut Transition,
        e: &mut Evacuation,
        terms: NoticeTerms,
    ) {
        let reason = format!(
            "the notice (attempt {}) was to be given before {} and it is {} on host {}: the victim was left alone; if this \
             repeats, compare the clocks of scheduler and host",
            terms.attempt, terms.begin_before, transition.now, self.host
        );
        self.no_time(transition, e, reason);
    }

    /// There was no time left to tell the guest. The scheduler may have sent another notice since.
    pub(super) fn no_time(
        &mut self,
        transition: &mut Transition,
        e: &mut Evacuation,
        reason: String,
    ) {
        let verdict = EvacuationResult::Failed {
            reason,
            still_running: true,
            too_late: true,
        };
        self.conclude(transition, e, verdict);
    }

    pub(super) fn fail(&mut self, transition: &mut Transition, e: &mut Evacuation, reason: String) {
        let verdict = EvacuationResult::Failed {
            reason,
            still_running: true,
            too_late: false,
        };
        self.conclude(transition, e, verdict);
    }

    /// Ends an evacuation whose victim stays: withdraws the guest's notice if it may have one, then
    /// reports.
    pub(super) fn conclude(
        &mut self,
        transition: &mut Transition,
        e: &mut Evacuation,
        then: EvacuationResult,
    ) {
        if e.notified {
            e.enter(transition, EvacuationPhase::Withdrawing { then });
        } else {
            self.finish(transition, e, then);
        }
    }

    pub(super) fn finish(
        &mut self,
        transition: &mut Transition,
        e: &mut Evacuation,
        verdict: EvacuationResult,
    ) {
        if matches!(verdict, EvacuationResult::Evacuated { .. }) {
            // This comes first: if the journal ends in between, a finished evacuation must not
            // leave a late start unanswered.
            self.note_ended(transition, e.record.server_id, e.record.command);
            transition.effects.push(AgentEffect::ServersChanged);
        }
        e.notified = false;
        e.record.settled = false;
        let phase = EvacuationPhase::Done {
            verdict: verdict.clone(),
        };
        e.enter(transition, phase);
        self.publish_verdict(transition, e, &verdict);
    }

    pub(super) fn spare(
        &mut self,
        transition: &mut Transition,
        token: DeliveryTag,
        command: CommandRef,
        spare: &Spare,
    ) {
        let id = spare.evacuation_id;
        let known = self.evacuations.remove(&id);
        let ordered_at = known
            .as_ref()
            .map_or(command.time, |e| e.record.command.time);
        let mut e = known.unwrap_or_else(|| {
            self.new_evacuation(
                id,
                spare.server_id,
                command,
                None,
                EvacuationPhase::ReleasedEarly,
            )
        });
        if !Self::contradicts(transition, &e, spare.server_id, token) {
            e.finals.push(token);
            if e.is_sparable() {
                // The scheduler may have given up an earlier evacuation of the server, whose agent
                // was down, and begun this one instead. It spares the newest only. The earlier ones
                // come first: if the journal ends in between, the spare is delivered again.
                self.close_older(transition, spare.server_id, ordered_at);
                e.record.command = command;
            }
            match e.record.phase.clone() {
                EvacuationPhase::Withdrawing { .. } if e.is_sparable() => {
                    e.record.phase = EvacuationPhase::Withdrawing {
                        then: EvacuationResult::Spared,
                    };
                    e.save(transition);
                }
                _ if e.is_sparable() => {
                    self.conclude(transition, &mut e, EvacuationResult::Spared);
                }
                // Too late to be spared, or already decided: the final report answers the spare.
                EvacuationPhase::Done { verdict } => {
                    e.record.command = command;
                    self.publish_verdict(transition, &mut e, &verdict);
                }
                _ => {}
            }
        }
        self.evacuations.insert(id, e);
    }

    pub(super) fn release(
        &mut self,
        transition: &mut Transition,
        token: DeliveryTag,
        command: CommandRef,
        release: &Release,
    ) {
        let id = release.evacuation_id;
        let Some(mut e) = self.evacuations.remove(&id) else {
            let phase = EvacuationPhase::ReleasedEarly;
            let e = self.new_evacuation(id, release.server_id, command, None, phase);
            e.save(transition);
            self.evacuations.insert(id, e);
            transition.ack(token);
            return;
        };
        if !Self::contradicts(transition, &e, release.server_id, token) {
            match e.record.phase {
                EvacuationPhase::Notified { released: false } => {
                    e.record.phase = EvacuationPhase::Notified { released: true };
                    e.save(transition);
                }
                EvacuationPhase::Draining(drain) => e.end_grace(transition, drain),
                _ => {}
            }
            // The effect, a shorter grace period, is durable now. There is no report about it.
            transition.ack(token);
        }
        self.evacuations.insert(id, e);
    }

    /// Detects victims that left by themselves and guests that released their time.
    pub(super) fn handle_views(&mut self, transition: &mut Transition, views: &[ServerView]) {
        let views: BTreeMap<ServerId, &ServerView> =
            views.iter().map(|view| (view.server_id, view)).collect();
        for e in self.evacuations.values_mut() {
            let EvacuationPhase::Draining(drain) = e.record.phase else {
                continue;
            };
            if e.step != PhaseStep::Forward {
                continue;
            }
            match views.get(&e.record.server_id) {
                None => e.go(PhaseStep::confirm_absence()),
                Some(view) => {
                    let released = view.released == Some(e.record.evacuation_id);
                    if released || view.state != HostedState::Running {
                        e.end_grace(transition, drain);
                    }
                }
            }
        }
    }

    /// Closes the evacuations of a server that the scheduler ordered before this time.
    ///
    /// A scheduler that resumes a server knows that the server was evacuated: an older open notice
    /// is about an earlier run of the server and must not end this one. A scheduler that spares a
    /// server means all its evacuations.
    pub(super) fn close_older(
        &mut self,
        transition: &mut Transition,
        server_id: ServerId,
        before: Timestamp,
    ) {
        let older: Vec<EvacuationId> = self
            .evacuations
            .values()
            .filter(|e| e.record.server_id == server_id && e.record.command.time < before)
            .map(|e| e.record.evacuation_id)
            .collect();
        for id in older {
            if let Some(mut e) = self.evacuations.remove(&id) {
                let closed = matches!(e.record.phase, EvacuationPhase::Done { .. });
                if !closed {
                    self.close(transition, &mut e);
                }
                self.evacuations.insert(id, e);
            }
        }
    }

    /// Closes an open evacuation whose victim goes on, or has gone on since. Repeats the report of
    /// a decided one.
    fn close(&mut self, transition: &mut Transition, e: &mut Evacuation) {
        match e.record.phase.clone() {
            EvacuationPhase::ReleasedEarly
            | EvacuationPhase::Notified { .. }
            | EvacuationPhase::Draining(_) => {
                self.conclude(transition, e, EvacuationResult::Spared);
            }
            // The start waits for the end of this evacuation, whose final report is the answer.
            EvacuationPhase::Acting { .. } | EvacuationPhase::Withdrawing { .. } => {}
            EvacuationPhase::Done {
                verdict:
                    EvacuationResult::Failed {
                        still_running: true,
                        ..
                    },
            } => self.finish(transition, e, EvacuationResult::Spared),
            EvacuationPhase::Done { verdict } => self.publish_verdict(transition, e, &verdict),
        }
    }

    /// The server was removed, but not by its evacuation.
    pub(super) fn victim_vanished(&mut self, server_id: ServerId) {
        for e in self.evacuations.values_mut() {
            let waiting = matches!(
                e.record.phase,
                EvacuationPhase::Notified { .. } | EvacuationPhase::Draining(_)
            );
            if waiting && e.record.server_id == server_id {
                e.go(PhaseStep::confirm_absence());
            }
        }
    }
}

impl PhaseStep {
    /// Check that a victim that is not visible any more is really gone.
    pub(super) fn confirm_absence() -> Self {
        Self::Look {
            how: EvacuationEnd::AlreadyGone,
            failure: None,
        }
    }
}

impl Evacuation {
    fn end_grace(&mut self, transition: &mut Transition, drain: Drain) {
        if drain.deadline_at > transition.now {
            let deadline_at = transition.now;
            self.record.phase = EvacuationPhase::Draining(Drain {
                deadline_at,
                ..drain
            });
            self.save(transition);
        }
    }
}
