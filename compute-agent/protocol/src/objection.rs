//! Before the agent ends a victim, it gives the scheduler the chance to object.
//!
//! The agent ends a victim only after the broker has confirmed the report that its grace period
//! runs. The scheduler then either knows of it or answers with a spare, because it has withdrawn
//! the preemption meanwhile. So an agent that receives messages from the broker but cannot send any
//! ends no victim for a preemptor that got another host.
//!
//! An agent that is late, because it was down, suspended or cut off, reports once more that the
//! grace period runs, and waits for a moment after the broker has confirmed that. The scheduler's
//! messages from the meantime are in the agent's queue, and the agent reads them first.

use super::core::Transition;
use super::evacuation::Evacuation;
use super::{AgentCore, AgentPolicy, Drain, EvacuationPhase, ReportId};
use ebbtide_model::{EvacuationId, Timestamp};

/// Whether the broker has confirmed the report that a grace period runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnnouncementState {
    /// Not as far as this process knows.
    No,
    /// Confirmed at a time at which the end was not late yet.
    InTime,
    /// Confirmed at this time, at which the end was late.
    Late(Timestamp),
}

fn later(at: Timestamp, millis: u32) -> Timestamp {
    Timestamp::from_millis(at.as_millis().saturating_add(millis.into()))
}

impl Evacuation {
    /// When the victim may be ended; `None` until the broker has confirmed that its grace period
    /// runs.
    pub(super) fn may_act_at(&self, drain: &Drain, policy: &AgentPolicy) -> Option<Timestamp> {
        match self.announcement {
            AnnouncementState::No => None,
            AnnouncementState::InTime => Some(drain.deadline_at),
            AnnouncementState::Late(at) => Some(later(at, policy.objection_ms)),
        }
    }

    /// True if the victim should have been ended a while ago, and the last confirmed report was in
    /// time.
    pub(super) fn is_late(&self, now: Timestamp, drain: &Drain, policy: &AgentPolicy) -> bool {
        self.announcement == AnnouncementState::InTime
            && now > later(drain.deadline_at, policy.late_ms)
    }
}

impl AgentCore {
    /// Handles the broker's confirmation of the report that a grace period runs.
    pub(super) fn record_announcement(
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
        let EvacuationPhase::Draining(drain) = e.record.phase else {
            return;
        };
        let late = transition.now > later(drain.deadline_at, self.policy.late_ms);
        e.announcement = if late {
            AnnouncementState::Late(transition.now)
        } else {
            AnnouncementState::InTime
        };
    }
}
