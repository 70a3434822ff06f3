//! Reports to the scheduler: their content, their identifiers, and the deliveries that wait for
//! their confirmation.

use super::core::Transition;
use super::evacuation::Evacuation;
use super::{
    AgentCore, AgentEffect, CommandRef, DeliveryTag, Drain, EvacuationPhase, EvacuationResult,
    JournalRecord, ReportId,
};
use ebbtide_model::message::{Body, Draining, Evacuated, EvacuationFailed, Message, Spared};
use ebbtide_model::{EvacuationId, MessageId};
use uuid::Uuid;

/// A report that the broker has not confirmed yet.
#[derive(Debug, Clone)]
pub(super) struct PendingReport {
    /// The deliveries that it answers.
    acks: Vec<DeliveryTag>,
    /// The evacuation whose final report it is.
    settles: Option<EvacuationId>,
    /// The evacuation whose grace period it announces.
    announces: Option<EvacuationId>,
}

impl AgentCore {
    /// Sends a report about `command`, and acknowledges `acks` once the broker has confirmed it.
    pub(super) fn publish(
        &mut self,
        transition: &mut Transition,
        command: CommandRef,
        body: Body,
        acks: Vec<DeliveryTag>,
    ) -> ReportId {
        let report = ReportId(self.next_report);
        self.next_report += 1;
        // The same report about the same command gets the same identifier, also from an agent that
        // has restarted in between.
        let words = format!("{} {} {body:?}", self.host, body.event_type());
        let message = Message {
            id: MessageId(Uuid::new_v5(&command.id.0, words.as_bytes())),
            source: format!("/ebbtide/agent/{}", self.host),
            time: transition.now,
            body,
        };
        let pending = PendingReport {
            acks,
            settles: None,
            announces: None,
        };
        self.reports.insert(report, pending);
        transition
            .effects
            .push(AgentEffect::Publish { report, message });
        report
    }

    pub(super) fn publish_draining(
        &mut self,
        transition: &mut Transition,
        e: &mut Evacuation,
        drain: Drain,
    ) {
        let body = Body::Draining(Draining {
            evacuation_id: e.record.evacuation_id,
            host: self.host.clone(),
            server_id: e.record.server_id,
            notified_at: drain.notified_at,
            deadline_at: drain.deadline_at,
        });
        let acks = std::mem::take(&mut e.old_tokens);
        let report = self.publish(transition, e.record.command, body, acks);
        if let Some(pending) = self.reports.get_mut(&report) {
            pending.announces = Some(e.record.evacuation_id);
        }
        e.draining_report = Some(report);
    }

    /// Reports how the evacuation ended, and settles all deliveries that waited for its end.
    pub(super) fn publish_verdict(
        &mut self,
        transition: &mut Transition,
        e: &mut Evacuation,
        verdict: &EvacuationResult,
    ) {
        let evacuation_id = e.record.evacuation_id;
        let server_id = e.record.server_id;
        let host = self.host.clone();
        let body = match verdict.clone() {
            EvacuationResult::Spared => Body::Spared(Spared {
                evacuation_id,
                host,
                server_id,
            }),
            EvacuationResult::Evacuated {
                how,
                at,
                unbilled,
                storage,
            } => Body::Evacuated(Evacuated {
                evacuation_id,
                host,
                server_id,
                how,
                at,
                unbilled_seconds: unbilled,
                storage,
            }),
            EvacuationResult::Failed {
                reason,
                still_running,
                too_late,
            } => Body::EvacuationFailed(EvacuationFailed {
                evacuation_id,
                host,
                server_id,
                reason,
                still_running,
                late_attempt: e
                    .record
                    .terms
                    .filter(|_| too_late)
                    .map(|terms| terms.attempt),
            }),
        };
        let mut acks = std::mem::take(&mut e.old_tokens);
        acks.append(&mut e.finals);
        acks.extend(e.token.take());
        let report = self.publish(transition, e.record.command, body, acks);
        if let Some(pending) = self.reports.get_mut(&report) {
            pending.settles = Some(evacuation_id);
        }
        e.final_report = Some(report);
    }

    /// Repeats reports that may not have arrived before the restart.
    pub(super) fn report_after_restart(&mut self, transition: &mut Transition, id: EvacuationId) {
        let Some(mut e) = self.evacuations.remove(&id) else {
            return;
        };
        match e.record.phase.clone() {
            EvacuationPhase::Draining(drain) => self.publish_draining(transition, &mut e, drain),
            EvacuationPhase::Done { verdict } if !e.record.settled => {
                self.publish_verdict(transition, &mut e, &verdict);
            }
            _ => {}
        }
        self.evacuations.insert(id, e);
    }

    pub(super) fn handle_publication(&mut self, transition: &mut Transition, report: ReportId) {
        let Some(pending) = self.reports.remove(&report) else {
            return;
        };
        self.settle(transition, report, pending.settles);
        if let Some(id) = pending.announces {
            self.record_announcement(transition, report, id);
        }
        for token in pending.acks {
            transition.ack(token);
        }
    }

    pub(super) fn unpublishable(
        &mut self,
        transition: &mut Transition,
        report: ReportId,
        reason: &str,
    ) {
        let Some(pending) = self.reports.remove(&report) else {
            return;
        };
        self.settle(transition, report, pending.settles);
        if let Some(id) = pending.announces {
            self.record_announcement(transition, report, id);
        }
        for token in pending.acks {
            let reason = format!("followed, but the report about it cannot be sent: {reason}");
            transition
                .effects
                .push(AgentEffect::DeadLetter(token, reason));
        }
    }

    /// Records that a final report need not be repeated after a restart.
    fn settle(
        &mut self,
        transition: &mut Transition,
        report: ReportId,
        settles: Option<EvacuationId>,
    ) {
        let Some(e) = settles.and_then(|id| self.evacuations.get_mut(&id)) else {
            return;
        };
        // A later attempt may have begun meanwhile, or the scheduler may have asked for the report
        // again.
        if e.final_report == Some(report) && !e.record.settled {
            e.final_report = None;
            e.record.settled = true;
            transition.journal(JournalRecord::Evacuation(e.record.clone()));
        }
    }
}
