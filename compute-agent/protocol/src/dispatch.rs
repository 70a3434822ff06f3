//! Calls the driver, with one call at a time for each server, and interprets its answers.
//!
//! There is no queue. After every event `pump` looks at each server without a running call and
//! chooses the most urgent action that is due: a deletion that the owner wishes, then its
//! evacuations, then a start. An answer that arrives when it does not matter any more (the victim
//! was spared meanwhile) only allows the next call.

use super::core::Transition;
use super::evacuation::{Evacuation, PhaseStep};
use super::objection::AnnouncementState;
use super::server::StartResult;
use super::{
    ActionId, AgentCore, AgentEffect, Drain, DriverCall, DriverResult, EvacuationPhase,
    EvacuationResult,
};
use crate::{DriverError, GuestNotice, NoticeOutcome, Occupancy};
use ebbtide_model::message::{EvacuationEnd, HostedState};
use ebbtide_model::{EvacuationId, InterruptionBehaviour, ServerId, Timestamp};
use std::collections::BTreeSet;

/// A call of the driver, and its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DriverJob {
    server_id: ServerId,
    what: JobKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JobKind {
    Notice(EvacuationId),
    Withdraw(EvacuationId),
    Interrupt(EvacuationId),
    Fence(EvacuationId),
    LookForEvacuation(EvacuationId),
    LookForStart,
    Start,
    Delete,
}

type Answer = Result<DriverResult, DriverError>;

impl AgentCore {
    /// Starts every driver call that is due.
    pub(super) fn pump(&mut self, transition: &mut Transition) {
        let waiting: BTreeSet<ServerId> = self
            .evacuations
            .values()
            .filter(|e| {
                e.due_at(&self.policy)
                    .is_some_and(|at| at <= transition.now)
            })
            .map(|e| e.record.server_id)
            .chain(self.work.keys().copied())
            .filter(|server_id| !self.busy.contains_key(server_id))
            .collect();
        for server_id in waiting {
            if let Some((what, action)) = self.choose(transition, server_id) {
                let id = ActionId(self.next_action);
                self.next_action += 1;
                self.jobs.insert(id, DriverJob { server_id, what });
                self.busy.insert(server_id, id);
                transition.effects.push(AgentEffect::Drive {
                    action: id,
                    server_id,
                    what: action,
                });
            }
        }
    }

    fn choose(
        &mut self,
        transition: &mut Transition,
        server_id: ServerId,
    ) -> Option<(JobKind, DriverCall)> {
        if self.deletion_is_due(server_id, transition.now) {
            return Some((
                JobKind::Delete,
                DriverCall::Delete(self.saved_storage(server_id)),
            ));
        }
        let due: Vec<EvacuationId> = self
            .evacuations
            .values()
            .filter(|e| e.record.server_id == server_id)
            .filter(|e| {
                e.due_at(&self.policy)
                    .is_some_and(|at| at <= transition.now)
            })
            .map(|e| e.record.evacuation_id)
            .collect();
        for id in due {
            if let Some(mut e) = self.evacuations.remove(&id) {
                let chosen = self.advance(transition, &mut e);
                self.evacuations.insert(id, e);
                if chosen.is_some() {
                    return chosen;
                }
            }
        }
        self.choose_start(server_id, transition.now)
    }

    /// The next driver call of an evacuation that is due. The evacuation may also end without a
    /// call.
    fn advance(
        &mut self,
        transition: &mut Transition,
        e: &mut Evacuation,
    ) -> Option<(JobKind, DriverCall)> {
        let id = e.record.evacuation_id;
        match e.step {
            PhaseStep::Look { .. } => {
                return Some((JobKind::LookForEvacuation(id), DriverCall::Look));
            }
            PhaseStep::Fence { .. } => return Some((JobKind::Fence(id), DriverCall::Fence)),
            PhaseStep::Forward => {}
        }
        match e.record.phase.clone() {
            EvacuationPhase::Notified { .. } => {
                // A record in this phase always has its notice.
                let terms = e.record.terms?;
                if transition.now > terms.begin_before {
                    self.too_late(transition, e, terms);
                    // If the guest may have its notice already, the agent has to withdraw it.
                    return match e.record.phase {
                        EvacuationPhase::Withdrawing { .. } => self.advance(transition, e),
                        _ => None,
                    };
                }
                e.notified = true;
                let notice = GuestNotice {
                    evacuation_id: id,
                    behaviour: terms.behaviour,
                    grace: terms.grace,
                    not_before: transition.now.plus(terms.grace),
                    begin_before: terms.begin_before,
                };
                Some((JobKind::Notice(id), DriverCall::GiveNotice(notice)))
            }
            EvacuationPhase::Draining(drain) => {
                let behaviour = e.record.terms?.behaviour;
                if e.is_late(transition.now, &drain, &self.policy) {
                    // A repeated notice or a change of the clock does not undo what the broker has
                    // confirmed.
                    e.announcement = AnnouncementState::No;
                    self.publish_draining(transition, e, drain);
                    return None;
                }
                // The point of no return: it is in the journal before the driver call begins.
                e.end_requested = false;
                e.enter(transition, EvacuationPhase::Acting { drain, behaviour });
                Some((JobKind::Interrupt(id), DriverCall::Interrupt(behaviour)))
            }
            EvacuationPhase::Acting { behaviour, .. } => {
                Some((JobKind::Interrupt(id), DriverCall::Interrupt(behaviour)))
            }
            EvacuationPhase::Withdrawing { .. } => {
                Some((JobKind::Withdraw(id), DriverCall::WithdrawNotice(id)))
            }
            EvacuationPhase::Done { .. } | EvacuationPhase::ReleasedEarly => None,
        }
    }

    pub(super) fn action_done(
        &mut self,
        transition: &mut Transition,
        action: ActionId,
        answer: Answer,
    ) {
        let Some(job) = self.jobs.remove(&action) else {
            return;
        };
        self.busy.remove(&job.server_id);
        match job.what {
            JobKind::Delete => self.delete_done(transition, job.server_id, answer),
            JobKind::Start => {
                self.start_done(transition, job.server_id, StartResult::of_start(answer))
            }
            JobKind::LookForStart => {
                self.start_done(transition, job.server_id, StartResult::of_look(answer));
            }
            JobKind::Notice(id)
            | JobKind::Withdraw(id)
            | JobKind::Interrupt(id)
            | JobKind::Fence(id)
            | JobKind::LookForEvacuation(id) => {
                let Some(mut e) = self.evacuations.remove(&id) else {
                    return;
                };
                match (job.what, e.record.phase.clone(), e.step.clone()) {
                    (
                        JobKind::Notice(_),
                        EvacuationPhase::Notified { released },
                        PhaseStep::Forward,
                    ) => {
                        self.handle_notice_result(transition, &mut e, released, answer);
                    }
                    (JobKind::Withdraw(_), EvacuationPhase::Withdrawing { then }, _) => {
                        self.withdrawn(transition, &mut e, then, answer);
                    }
                    (
                        JobKind::Interrupt(_),
                        EvacuationPhase::Acting { drain, behaviour },
                        PhaseStep::Forward,
                    ) => self
                        .handle_interruption_result(transition, &mut e, drain, behaviour, answer),
                    (
                        JobKind::Fence(_),
                        EvacuationPhase::Acting { .. },
                        PhaseStep::Fence { failure },
                    ) => {
                        self.handle_fence_result(transition, &mut e, failure, answer);
                    }
                    (JobKind::LookForEvacuation(_), phase, PhaseStep::Look { how, failure }) => {
                        self.handle_look_result(transition, &mut e, &phase, how, failure, answer);
                    }
                    // The answer does not matter any more.
                    _ => {}
                }
                self.evacuations.insert(id, e);
            }
        }
    }

    pub(super) fn retry_later(&self, transition: &Transition, e: &mut Evacuation) {
        let wait = self.policy.backoff_ms(e.tries);
        e.not_before = Timestamp::from_millis(transition.now.as_millis().saturating_add(wait));
    }

    fn handle_notice_result(
        &mut self,
        transition: &mut Transition,
        e: &mut Evacuation,
        released: bool,
        answer: Answer,
    ) {
        let Some(terms) = e.record.terms else {
            return;
        };
        let error = match answer {
            Ok(DriverResult::Noticed(outcome)) => {
                if transition.now > terms.begin_before {
                    return self.too_late(transition, e, terms);
                }
                let at_once = released || outcome == NoticeOutcome::NotRunning;
                let notified_at = transition.now;
                let deadline_at = if at_once {
                    notified_at
                } else {
                    notified_at.plus(terms.grace)
                };
                let drain = Drain {
                    notified_at,
                    deadline_at,
                };
                e.enter(transition, EvacuationPhase::Draining(drain));
                return self.publish_draining(transition, e, drain);
            }
            Ok(other) => wrong_answer(&other),
            Err(error) => error,
        };
        if matches!(error, DriverError::NotBegun { .. }) {
            // The scheduler sends the notice again or plans without this victim. The guest needs no
            // withdrawal, unless an earlier try reached it.
            e.notified = e.tries > 0;
            return self.no_time(
                transition,
                e,
                format!("the guest was not notified: {error}"),
            );
        }
        e.tries += 1;
        if e.tries >= self.policy.notice_tries || is_final(&error) {
            let reason = format!("the guest could not be given its notice: {error}");
            self.fail(transition, e, reason);
        } else if matches!(error, DriverError::NotFound { .. }) {
            // The count of tries continues: a driver that contradicts itself is not called forever.
            e.step = PhaseStep::confirm_absence();
        } else {
            self.retry_later(transition, e);
        }
    }

    /// The withdrawal of a notice is only information for the guest: if it fails, the guest stays
    /// all the same.
    fn withdrawn(
        &mut self,
        transition: &mut Transition,
        e: &mut Evacuation,
        then: EvacuationResult,
        answer: Answer,
    ) {
        match answer {
            Ok(_) => self.finish(transition, e, then),
            // The server is gone, or an earlier evacuation has kept it.
            Err(DriverError::NotFound { .. }) => e.step = PhaseStep::confirm_absence(),
            Err(error) => {
                e.tries += 1;
                if e.tries >= self.policy.notice_tries || is_final(&error) {
                    self.finish(transition, e, then);
                } else {
                    self.retry_later(transition, e);
                }
            }
        }
    }

    fn handle_interruption_result(
        &mut self,
        transition: &mut Transition,
        e: &mut Evacuation,
        drain: Drain,
        behaviour: InterruptionBehaviour,
        answer: Answer,
    ) {
        let asked_before = std::mem::replace(&mut e.end_requested, true);
        let how = how(behaviour);
        let error = match answer {
            Ok(DriverResult::Interrupted) => return e.go(PhaseStep::Look { how, failure: None }),
            Ok(other) => wrong_answer(&other),
            Err(error) => error,
        };
        if matches!(error, DriverError::NotFound { .. }) {
            let by_us = asked_before && behaviour == InterruptionBehaviour::Terminate;
            let how = if by_us {
                how
            } else {
                EvacuationEnd::AlreadyGone
            };
            return e.go(PhaseStep::Look { how, failure: None });
        }
        e.tries += 1;
        if e.tries < self.policy.act_tries && !is_final(&error) {
            return self.retry_later(transition, e);
        }
        if let Some(behaviour) = self.policy.instead_of(behaviour) {
            e.end_requested = false;
            return e.enter(transition, EvacuationPhase::Acting { drain, behaviour });
        }
        // The call may have taken effect all the same, so one last look decides.
        let failure = Some(format!(
            "after {} {}: {error}",
            e.tries,
            if e.tries == 1 { "try" } else { "tries" }
        ));
        e.go(PhaseStep::Look { how, failure });
    }

    fn handle_look_result(
        &mut self,
        transition: &mut Transition,
        e: &mut Evacuation,
        phase: &EvacuationPhase,
        how: EvacuationEnd,
        failure: Option<String>,
        answer: Answer,
    ) {
        let acting = match phase {
            EvacuationPhase::Acting { behaviour, .. } => Some(*behaviour),
            _ => None,
        };
        let problem = match answer {
            Ok(DriverResult::Seen {
                occupancy,
                unbilled,
                storage,
            }) => {
                let at = transition.now;
                let left = |how, storage| EvacuationResult::Evacuated {
                    how,
                    at,
                    unbilled,
                    storage,
                };
                if how == EvacuationEnd::AlreadyGone
                    && storage.is_some()
                    && let Some(how) = saved_end(&occupancy)
                {
                    // An earlier evacuation ended it; the report of that one may arrive later than
                    // this one.
                    return self.finish(transition, e, left(how, storage));
                }
                match (acting, &occupancy) {
                    (
                        Some(InterruptionBehaviour::Terminate | InterruptionBehaviour::LiveMigrate),
                        Occupancy::Absent,
                    ) => {
                        return self.finish(transition, e, left(how, None));
                    }
                    // Its owner stopped it before the evacuation. A server that holds nothing here
                    // is no victim.
                    (Some(_), occupancy)
                        if how == EvacuationEnd::AlreadyGone && occupancy.holds_nothing() =>
                    {
                        return self.finish(transition, e, EvacuationResult::already_gone(at));
                    }
                    // The server should have been kept, or the agent had not begun: it ended by
                    // itself.
                    (_, Occupancy::Absent) => {
                        return self.finish(transition, e, EvacuationResult::already_gone(at));
                    }
                    (Some(behaviour), _) if occupancy.is_free_after(behaviour) => {
                        return self.finish(transition, e, left(how, storage));
                    }
                    (Some(_), _) if failure.is_some() => {
                        // Also if the server does not run: the scheduler would take "not running"
                        // for free capacity, and this capacity is not free.
                        return self.not_ended(transition, e, failure.unwrap_or_default());
                    }
                    // The server is still there; the driver had missed it for a moment. The pause
                    // limits how often this repeats.
                    (None, _) => {
                        e.step = PhaseStep::Forward;
                        return self.retry_later(transition, e);
                    }
                    (Some(_), _) => "its room is not free".to_owned(),
                }
            }
            Ok(other) => wrong_answer(&other).to_string(),
            Err(error) => error.to_string(),
        };
        e.tries += 1;
        if e.tries < self.policy.verify_tries {
            return self.retry_later(transition, e);
        }
        match acting {
            Some(_) => {
                let reason = failure.unwrap_or_else(|| {
                    format!(
                        "the victim was to be gone, and after {} looks: {problem}",
                        e.tries
                    )
                });
                self.not_ended(transition, e, reason);
            }
            // It is unknown whether the server is gone: continue as if it were not.
            None => e.go(PhaseStep::Forward),
        }
    }
}

fn how(behaviour: InterruptionBehaviour) -> EvacuationEnd {
    match behaviour {
        InterruptionBehaviour::Terminate => EvacuationEnd::Terminated,
        InterruptionBehaviour::Stop => EvacuationEnd::Stopped,
        InterruptionBehaviour::Hibernate => EvacuationEnd::Hibernated,
        InterruptionBehaviour::LiveMigrate => EvacuationEnd::Migrated,
    }
}

/// How a server that does not run was kept.
fn saved_end(occupancy: &Occupancy) -> Option<EvacuationEnd> {
    match occupancy {
        Occupancy::Present {
            state: HostedState::Stopped,
            ..
        } => Some(EvacuationEnd::Stopped),
        Occupancy::Present {
            state: HostedState::Hibernated,
            ..
        } => Some(EvacuationEnd::Hibernated),
        _ => None,
    }
}

/// True if a retry would fail in the same way.
pub(super) fn is_final(error: &DriverError) -> bool {
    !error.is_worth_a_retry() && !matches!(error, DriverError::NotFound { .. })
}

/// The error for an answer that does not fit its call. This is a defect of the shell; the core
/// treats it as a failure of the driver.
pub(super) fn wrong_answer(done: &DriverResult) -> DriverError {
    DriverError::Failed {
        what: "answer the question",
        detail: format!("it answered {done:?}"),
    }
}
