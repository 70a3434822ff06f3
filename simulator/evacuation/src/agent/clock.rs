//! The clock of a host is set, and its agent notices, as the real one's `steps.rs` does.

use super::Agent;
use ebbtide_agent_protocol::AgentInput;
use ebbtide_model::Timestamp;

impl Agent {
    /// The operator sets the clock of the host. The agent's shell notices it, even if the agent is
    /// down meanwhile.
    pub(crate) fn set_clock(&mut self, skew: i64, now: Timestamp) {
        let by_ms = skew - std::mem::replace(&mut self.skew, skew);
        let set = |at: Timestamp| Timestamp::from_millis(at.as_millis().saturating_add(by_ms));
        for terms in self.terms.values_mut() {
            terms.notified_at = terms.notified_at.map(set);
            terms.begun_at = terms.begun_at.map(set);
            // A guest may have been told in time, and be said to have been at another one.
            terms.begin_before = terms.begin_before.max(set(terms.begin_before));
        }
        if self.alive {
            self.note_clock_before(by_ms);
            self.input(now, AgentInput::ClockSet { by_ms });
            if self.alive {
                self.noted_skew = skew;
            }
        }
    }

    /// See the agent's `steps.rs`: a clock that was set back is noted before the journal knows, one
    /// that was set forward afterwards.
    fn note_clock_before(&mut self, by_ms: i64) {
        if by_ms < 0 {
            self.noted_skew = self.skew;
        }
    }

    /// Applies a change of the clock that happened while the agent was down. False if the disk is
    /// full.
    pub(super) fn catch_up_with_clock(&mut self) -> bool {
        let by_ms = self.skew - self.noted_skew;
        if by_ms == 0 {
            return true;
        }
        self.note_clock_before(by_ms);
        if self.disk_full {
            return false;
        }
        let journal = std::mem::take(&mut self.journal).into_iter();
        self.journal = journal.map(|record| record.by_clock_set(by_ms)).collect();
        self.noted_skew = self.skew;
        true
    }
}
