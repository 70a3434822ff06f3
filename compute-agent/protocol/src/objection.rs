//! Whoever is about to end a victim gives the scheduler the chance to object.
//!
//! A victim is ended only after the broker has confirmed the report that its grace period runs. The scheduler then either knows of it, or answers
//! with a spare because it has given up meanwhile. So an agent that hears the broker but is not heard by it ends nobody for a preemptor that went
//! elsewhere.
//!
//! An agent that comes late, because it was down, stood still or was cut off, says once more that the grace period runs, and waits for a moment after that
//! is confirmed: what the scheduler has had to say in the meantime is in its queue, and is read first.

use super::core::Transition;
use super::evacuation::Evacuation;
use super::{AgentCore, Drain, Phase, Policy, ReportId};
use ebbtide_model::{EvacuationId, Timestamp};

/// Whether the broker has the report that a grace period runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Announced {
    /// Not that anybody knew.
    No,
    /// Since a time at which the end was not late yet.
    InTime,
    /// Since this moment, at which it was.
    Late(Timestamp),
}

fn later(at: Timestamp, millis: u32) -> Timestamp {
    Timestamp::from_millis(at.as_millis().saturating_add(millis.into()))
}

impl Evacuation {
    /// When the victim may be ended; `None` until the broker has confirmed that its grace period runs.
    pub(super) fn may_act_at(&self, drain: &Drain, policy: &Policy) -> Option<Timestamp> {
        match self.announced {
            Announced::No => None,
            Announced::InTime => Some(drain.deadline_at),
            Announced::Late(at) => Some(later(at, policy.objection_ms)),
        }
    }

    /// True if the victim should have been ended a while ago, and the scheduler was last told of it when there was still time.
    pub(super) fn is_late(&self, now: Timestamp, drain: &Drain, policy: &Policy) -> bool {
        self.announced == Announced::InTime && now > later(drain.deadline_at, policy.late_ms)
    }
}

impl AgentCore {
    /// The broker has the report that a grace period runs.
    pub(super) fn announced(
        &mut self,
        transition: &Transition,
        report: ReportId,
        id: EvacuationId,
    ) {
        let Some(e) = self.evacuations.get_mut(&id) else {
            return;
        };
        if e.draining_report != Some(report) {
            return;
        }
        e.draining_report = None;
        let Phase::Draining(drain) = e.record.phase else {
            return;
        };
        let late = transition.now > later(drain.deadline_at, self.policy.late_ms);
        e.announced = if late {
            Announced::Late(transition.now)
        } else {
            Announced::InTime
        };
    }
}
