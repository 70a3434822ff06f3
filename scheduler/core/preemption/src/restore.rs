//! Records of a ledger that was restored from a backup.
//!
//! The record is of an earlier time than Nova and Placement. What they have decides how it ends: a
//! step that the record still has to do may have been done, undone or overtaken since.

use super::record::RESTORED;
use super::{Preemption, PreemptionPolicy, PreemptionState, VictimState, WithdrawalReason};
use ebbtide_model::Timestamp;
use ebbtide_model::message::EvacuationEnd;

/// Where a victim of a restored record is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VictimFate {
    /// It does not run on its host any more.
    Gone {
        how: EvacuationEnd,
        /// When it ended, as far as Nova knows.
        at: Timestamp,
    },
    /// It runs on its host.
    Runs {
        /// It holds what it had before the swap. If not, the newcomers hold it, or another
        /// consumer does.
        allocated: bool,
    },
}

/// What a restored record becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestoredEnd {
    /// The victims are gone and the newcomers are there: only usage records are owed.
    Done,
    /// The newcomers are there, and a victim runs in the capacity that they hold. It has to leave.
    Continued,
    /// The scheduler spares the victims that run, and gives allocations back.
    Withdrawn,
}

impl Preemption {
    /// Brings a restored record to where its servers are. `fates` has one entry for each victim, in
    /// order. `newcomers_came`: Nova has a newcomer on the host of the record.
    ///
    /// What runs is right: a victim that holds its allocations, or for which no newcomer has come,
    /// stays.
    pub fn reconcile_restored(
        &mut self,
        fates: &[VictimFate],
        newcomers_came: bool,
        now: Timestamp,
        policy: &PreemptionPolicy,
    ) -> RestoredEnd {
        for (victim, fate) in self.victims.iter_mut().zip(fates) {
            if let VictimFate::Gone { how, at } = *fate
                && !matches!(victim.state, VictimState::Evacuated { .. })
            {
                victim.state = VictimState::Evacuated {
                    how,
                    at: at.min(now),
                    unbilled: None,
                    recorded: false,
                };
            }
        }
        if self.state == PreemptionState::Withdrawing {
            return RestoredEnd::Withdrawn;
        }
        self.in_doubt = false;
        self.unconfirmed = false;
        // Later steps than the record's may have sent notices.
        self.state = PreemptionState::Evacuating;
        let came = newcomers_came || self.newcomers.is_empty();
        if came && self.room_is_free() {
            self.answered = true;
            self.state = PreemptionState::Done;
            return RestoredEnd::Done;
        }
        let given_back = fates.contains(&VictimFate::Runs { allocated: true });
        if newcomers_came && !given_back {
            self.answered = true;
            return RestoredEnd::Continued;
        }
        for victim in &mut self.victims {
            if matches!(victim.state, VictimState::Failed { .. }) {
                // Its agent may have a notice that it still follows.
                victim.state = VictimState::spare(now, &policy.evacuation);
            }
        }
        // A caller that waits all the same gets another plan.
        self.withdraw(WithdrawalReason::VictimsStay, RESTORED, now, policy);
        RestoredEnd::Withdrawn
    }
}
