//! What is to be done when the host's clock is set: nobody loses time that it was given, and nobody gets more.

use super::core::Transition;
use super::objection::Announced;
use super::{AgentCore, Phase, Record};
use ebbtide_model::{EvacuationId, Timestamp};

impl AgentCore {
    /// Moves everything that is waited for by as much as the clock was set. Times that the scheduler has named stay: they are by its clock.
    pub(super) fn clock_set(&mut self, transition: &mut Transition, by_ms: i64) {
        let ids: Vec<EvacuationId> = self.evacuations.keys().copied().collect();
        for id in ids {
            let Some(mut e) = self.evacuations.remove(&id) else {
                continue;
            };
            set(&mut e.not_before, by_ms);
            if let Announced::Late(at) = &mut e.announced {
                set(at, by_ms);
            }
            let before = Record::Evacuation(e.record.clone());
            if let Record::Evacuation(record) = before.clone().by_clock_set(by_ms) {
                e.record = record;
            }
            if before != Record::Evacuation(e.record.clone()) {
                e.save(transition);
            }
            if let Phase::Draining(drain) = e.record.phase {
                // The scheduler shows people when the time is over.
                self.publish_draining(transition, &mut e, drain);
            }
            self.evacuations.insert(id, e);
        }
        for work in self.work.values_mut() {
            work.clock_set(by_ms);
        }
    }
}

/// Moves a time at which something is to be tried again; the beginning of time means "at once" and stays.
pub(super) fn set(at: &mut Timestamp, by_ms: i64) {
    if *at > Timestamp::default() {
        *at = Timestamp::from_millis(at.as_millis().saturating_add(by_ms));
    }
}
