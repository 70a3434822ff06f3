//! The victims of a preemption: notices, reports, spares and limits. What follows from them is the
//! protocol of `ebbtide-evacuation`; here it is written into the record.

use super::{Preemption, PreemptionPolicy, PreemptionState, VictimState, WithdrawalReason};
use ebbtide_evacuation::{
    AfterFailure, EndReason, EvacuationEvent, EvacuationPolicy, Overdue, overdue,
};
use ebbtide_model::Timestamp;
use ebbtide_model::message::Body;

impl Preemption {
    /// What follows when a victim does not leave. Once the caller has its answer, the newcomer has
    /// been placed, and the victim must leave.
    fn after_failure(&self) -> AfterFailure {
        match self.answered {
            true => AfterFailure::Repeat,
            false => AfterFailure::Spare,
        }
    }

    /// True while the caller waits for the victims.
    fn caller_waits(&self) -> bool {
        self.state == PreemptionState::Evacuating && !self.answered
    }

    /// Handles the broker's confirmation of a notice.
    pub(crate) fn notice_published(
        &mut self,
        place: usize,
        attempt: u32,
        begin_before: Timestamp,
        now: Timestamp,
        policy: &PreemptionPolicy,
    ) {
        if self.state != PreemptionState::Evacuating {
            return;
        }
        let Some(victim) = self.victims.get_mut(place) else {
            return;
        };
        let is_due = match victim.state {
            VictimState::Claimed => attempt == 1,
            VictimState::Notified {
                attempt: current,
                published: false,
                ..
            } => attempt == current,
            _ => false,
        };
        if is_due {
            victim.state = VictimState::Notified {
                attempt,
                published: true,
                // The agent's time begins when the broker has the message.
                until: policy.evacuation.notice_limit(now),
                begin_before,
            };
        }
    }

    /// Handles an agent's report.
    pub(crate) fn report(&mut self, body: &Body, now: Timestamp, policy: &PreemptionPolicy) {
        let (evacuation, host, event) = match body {
            Body::Draining(m) => (m.evacuation_id, &m.host, EvacuationEvent::Draining),
            Body::Evacuated(m) => (m.evacuation_id, &m.host, EvacuationEvent::Evacuated),
            Body::EvacuationFailed(m) => {
                let still_running = m.still_running;
                let event = EvacuationEvent::Failed { still_running };
                (m.evacuation_id, &m.host, event)
            }
            Body::Spared(m) => (m.evacuation_id, &m.host, EvacuationEvent::Spared),
            _ => return,
        };
        let (strategy, caller_waits) = (self.after_failure(), self.caller_waits());
        let server = body.server_id();
        let Some(victim) = self.victims.iter_mut().find(|victim| {
            victim.evacuation == evacuation && Some(victim.server) == server && victim.host == *host
        }) else {
            return;
        };
        let Some(next) = victim.state.progress().after(event, strategy) else {
            return;
        };
        let mut failure = None;
        victim.state = match body {
            // The limit of the spare stays.
            Body::Draining(_) if next.spare_requested => return,
            Body::Draining(report) => VictimState::Draining {
                // Limits the wait if the agent's clock is far ahead.
                deadline: report.deadline_at.min(now.plus(victim.grace)),
            },
            Body::Evacuated(report) => VictimState::Evacuated {
                how: report.how,
                at: report.at.min(now),
                unbilled: report.unbilled_seconds,
                recorded: false,
            },
            Body::Spared(report) => {
                failure = Some(EndReason::SparedUnasked {
                    host: report.host.clone(),
                });
                VictimState::Spared
            }
            Body::EvacuationFailed(report) => {
                let reason = EndReason::AgentFailure {
                    text: report.reason.clone(),
                    still_running: report.still_running,
                };
                let state = match next.state.is_final() {
                    true => VictimState::failed(&reason, now, &policy.evacuation),
                    false => VictimState::spare(now, &policy.evacuation),
                };
                failure = Some(reason);
                state
            }
            _ => return,
        };
        if let Some(failure) = failure.filter(|_| caller_waits) {
            let why = WithdrawalReason::VictimsStay;
            self.withdraw(why, &failure.to_string(), now, policy);
        }
    }

    /// Withdraws the preemption: the scheduler spares victims that may have a notice; the others
    /// simply stay.
    pub(crate) fn withdraw(
        &mut self,
        why: WithdrawalReason,
        reason: &str,
        now: Timestamp,
        policy: &PreemptionPolicy,
    ) {
        if self.state == PreemptionState::Withdrawing && !why.room_is_wanted() {
            self.withdrawal = Some(why);
        }
        if !matches!(
            self.state,
            PreemptionState::Claimed | PreemptionState::Evacuating
        ) {
            return;
        }
        // The scheduler that wrote the record last may have died between sending a notice and
        // recording that. Once notices may be sent, every agent may have received one.
        let none_was_sent = self.state == PreemptionState::Claimed;
        let strategy = self.after_failure();
        self.state = PreemptionState::Withdrawing;
        self.reason = Some(reason.to_owned());
        self.withdrawal = Some(why);
        for victim in &mut self.victims {
            let event = match victim.state {
                VictimState::Claimed if none_was_sent => EvacuationEvent::Withdrawn,
                // After an early answer an agent that had failed was due for further notices and
                // was never asked to spare its victim. It may recover and act on a notice that it
                // has.
                VictimState::Failed { .. } if !why.spares_failed() => continue,
                _ => EvacuationEvent::SpareRequested,
            };
            match victim.state.progress().after(event, strategy) {
                Some(next) if next.spare_requested => {
                    victim.state = VictimState::spare(now, &policy.evacuation);
                }
                Some(_) => victim.state = VictimState::Spared,
                None => {}
            }
        }
    }

    /// Handles limits that have passed.
    pub(crate) fn tick(&mut self, now: Timestamp, policy: &PreemptionPolicy) {
        let mut silent = None;
        let strategy = self.after_failure();
        let repeats = self.answered && self.state == PreemptionState::Evacuating;
        for victim in &mut self.victims {
            match victim.state {
                // The newcomer has been placed already, so the victim must leave, however long it
                // takes.
                VictimState::Failed { again, .. } if repeats && again <= now => victim.begin_anew(),
                VictimState::Spared if repeats => victim.begin_anew(),
                _ => {
                    let reason = victim.pass_limit(strategy, now, &policy.evacuation);
                    silent = reason.or(silent);
                }
            }
        }
        let too_long = self.planned_at.plus(policy.room_timeout) <= now;
        let reason = silent.map(|reason| reason.to_string()).or_else(|| {
            too_long.then(|| {
                format!(
                    "the capacity did not become free within {}",
                    policy.room_timeout
                )
            })
        });
        if let Some(reason) = reason
            && self.caller_waits()
            && !self.room_is_free()
        {
            self.withdraw(WithdrawalReason::VictimsStay, &reason, now, policy);
        }
    }
}

impl super::Victim {
    /// Applies a limit of the victim that has passed, if one has. Returns why its agent was given
    /// up; nothing if that agent had been asked to spare the victim.
    fn pass_limit(
        &mut self,
        strategy: AfterFailure,
        now: Timestamp,
        policy: &EvacuationPolicy,
    ) -> Option<EndReason> {
        self.state.limit(policy).filter(|limit| *limit <= now)?;
        let wait = self.state.wait();
        match overdue(wait, &self.host, policy) {
            Overdue::Notify(next) => {
                if let VictimState::Notified {
                    attempt, published, ..
                } = &mut self.state
                {
                    (*attempt, *published) = (next, false);
                }
                None
            }
            Overdue::GiveUp(reason) => {
                let next = wait.progress.after(EvacuationEvent::GivenUp, strategy)?;
                self.state = match next.state.is_final() {
                    true => VictimState::failed(&reason, now, policy),
                    false => VictimState::spare(now, policy),
                };
                (!wait.progress.spare_requested).then_some(reason)
            }
            Overdue::Nothing => None,
        }
    }
}
