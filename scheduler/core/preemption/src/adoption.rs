//! Adoption of a record from another scheduler or from an earlier process of this one.

use super::{Preemption, PreemptionState};

/// How long a scheduler may be silent before another one adopts its rows. A request's caller waits
/// for 60 s (`rpc_response_timeout`) without a heartbeat; the adopter needs most of that time.
pub const SILENCE_MILLIS: i64 = 10_000;

/// The owner of a row, from the view of a scheduler that looks for orphans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowOwnership {
    /// This process.
    Mine {
        /// A task of this process drives the row.
        has_driver: bool,
    },
    /// Another scheduler, or an earlier process of this one.
    Of {
        /// The ledger knows the owner with this epoch and no later one.
        lives: bool,
        /// Age of its last heartbeat.
        silent_millis: i64,
    },
}

impl RowOwnership {
    /// Whether no task or scheduler drives the row.
    #[must_use]
    pub fn is_orphan(self) -> bool {
        match self {
            // The ledger took the write, and its answer was lost.
            Self::Mine { has_driver } => !has_driver,
            Self::Of {
                lives,
                silent_millis,
            } => !lives || silent_millis > SILENCE_MILLIS,
        }
    }
}

/// What to do with a redelivered request that already has a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedeliveryAction {
    /// Repeat the answer: it was decided, but it is unknown whether the caller received it.
    Answer,
    /// Continue as if there were no record: it came to nothing.
    Nothing,
    /// Leave the request to another scheduler that also has the message and answers.
    LeaveIt,
    /// Drive the record here, where the message is.
    GoOn,
}

impl Preemption {
    /// What the scheduler of this name does with the redelivered request. `from_another`: whether
    /// it may take the record from a scheduler that also has the message, because that one received
    /// it earlier.
    #[must_use]
    pub fn redelivery(&self, name: &str, from_another: bool) -> RedeliveryAction {
        match self.state {
            PreemptionState::Refused | PreemptionState::Withdrawn if self.answered => {
                RedeliveryAction::Nothing
            }
            _ if self.answered => RedeliveryAction::Answer,
            _ if self.answerer.as_deref() == Some(name) || from_another => RedeliveryAction::GoOn,
            _ => RedeliveryAction::LeaveIt,
        }
    }

    /// Records the adoption by another scheduler, and the scheduler that answers the caller if that
    /// changes.
    pub fn adopt(&mut self, answerer: Option<&str>) {
        if self.state == PreemptionState::Planned {
            // It is unknown whether the swap was sent.
            self.in_doubt = true;
        }
        if let Some(answerer) = answerer {
            self.answerer = Some(answerer.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheduler_with_a_fresh_heartbeat_keeps_its_rows() {
        let of = |lives, silent_millis| RowOwnership::Of {
            lives,
            silent_millis,
        };
        assert!(!of(true, SILENCE_MILLIS).is_orphan());
        assert!(of(true, SILENCE_MILLIS + 1).is_orphan());
        assert!(of(false, 0).is_orphan(), "another life has begun");
        assert!(!RowOwnership::Mine { has_driver: true }.is_orphan());
        assert!(RowOwnership::Mine { has_driver: false }.is_orphan());
    }
}
