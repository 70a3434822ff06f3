//! Handles a change of the host's clock: no guest loses or gains time.

use super::core::Transition;
use super::objection::AnnouncementState;
use super::{AgentCore, EvacuationPhase, JournalRecord};
use ebbtide_model::{EvacuationId, Timestamp};

impl AgentCore {
    /// Moves all waiting times by the amount by which the clock was set. Times that the scheduler
    /// has set stay: they refer to the scheduler's clock.
    pub(super) fn clock_set(&mut self, transition: &mut Transition, by_ms: i64) {
        let ids: Vec<EvacuationId> = self.evacuations.keys().copied().collect();
        for id in ids {
            let Some(mut e) = self.evacuations.remove(&id) else {
                continue;
            };
            set(&mut e.not_before, by_ms);
            if let AnnouncementState::Late(at) = &mut e.announcement {
                set(at, by_ms);
            }
            let before = JournalRecord::Evacuation(e.record.clone());
            if let JournalRecord::Evacuation(record) = before.clone().by_clock_set(by_ms) {
                e.record = record;
            }
            if before != JournalRecord::Evacuation(e.record.clone()) {
                e.save(transition);
            }
            if let EvacuationPhase::Draining(drain) = e.record.phase {
                // The scheduler shows users when the grace period ends.
                self.publish_draining(transition, &mut e, drain);
            }
            self.evacuations.insert(id, e);
        }
        for work in self.work.values_mut() {
            work.clock_set(by_ms);
        }
    }
}

/// Moves the time of a retry. Zero means "at once" and stays.
pub(super) fn set(at: &mut Timestamp, by_ms: i64) {
    if *at > Timestamp::default() {
        *at = Timestamp::from_millis(at.as_millis().saturating_add(by_ms));
    }
}
