//! Inputs of the state machine: outcomes of actions, agents' reports, the passing of time.

use super::{Preemption, PreemptionPolicy, PreemptionState, VictimState, WithdrawalReason};
use ebbtide_model::Timestamp;
use ebbtide_model::message::Body;

/// An event.
#[derive(Debug, Clone, PartialEq)]
pub enum PreemptionInput<'a> {
    /// Placement has taken the swap.
    Swapped,
    /// Placement has refused the swap: nothing was changed.
    SwapRefused {
        /// Placement's text.
        reason: &'a str,
    },
    /// The swap was sent, and no answer came.
    SwapUnknown,
    /// The result of a read after a lost answer.
    SwapRead {
        /// True if the swap is in force: the newcomers have their claims.
        in_force: bool,
    },
    /// A read showed that Placement had taken the swap and that every newcomer has been deleted
    /// since: the victims run without allocations.
    SwapAbandoned,
    /// Whether the caller still waits.
    Caller {
        /// True if it does.
        waits: bool,
    },
    /// The broker has a victim's notice.
    NoticePublished {
        /// The victim's index in the record.
        victim: usize,
        attempt: u32,
        /// The notice's `begin_before`.
        begin_before: Timestamp,
    },
    /// The broker has a victim's spare.
    SparePublished {
        /// The victim's index in the record.
        victim: usize,
    },
    /// An agent has said something.
    Report(&'a Body),
    /// A victim holds only what it keeps, or holds anything else rightly.
    Released {
        /// The victim's index in the record.
        victim: usize,
    },
    /// A usage record is written.
    Recorded {
        /// The victim's index in the record.
        victim: usize,
    },
    /// The caller has its answer.
    Answered,
    /// Placement has confirmed that the victims are needed.
    Confirmed,
    /// Allocations are given back.
    GivenBack,
    /// Placement refused to take allocations back, or could not be asked.
    GiveBackFailed {
        /// Placement's text.
        reason: &'a str,
    },
    /// Every newcomer was deleted, whether its caller has its answer or not.
    NewcomersGone,
    /// The owner for whom the victims leave has returned the host.
    HostReturned,
    /// The preemption must be withdrawn.
    Withdraw {
        why: WithdrawalReason,
        /// The same, in words.
        reason: &'a str,
    },
    /// Time has passed.
    Tick,
}

impl Preemption {
    /// Processes an event. True if the record has changed and must be written. An event that does
    /// not fit the state (late, repeated, about another evacuation) changes nothing.
    pub fn feed(
        &mut self,
        input: &PreemptionInput<'_>,
        now: Timestamp,
        policy: &PreemptionPolicy,
    ) -> bool {
        let before = self.clone();
        match *input {
            PreemptionInput::Swapped if self.state == PreemptionState::Planned => self.claimed(),
            PreemptionInput::SwapRefused { reason } if self.state == PreemptionState::Planned => {
                self.state = PreemptionState::Refused;
                self.reason = Some(reason.to_owned());
                // No caller waits for this record any more: the request continues with another
                // plan.
                self.answered = true;
            }
            PreemptionInput::SwapUnknown if self.state == PreemptionState::Planned => {
                self.in_doubt = true
            }
            PreemptionInput::SwapRead { in_force } if self.state == PreemptionState::Planned => {
                self.in_doubt = false;
                if in_force {
                    self.state = PreemptionState::Claimed;
                }
            }
            PreemptionInput::SwapAbandoned if self.state == PreemptionState::Planned => {
                self.claimed();
                let why = WithdrawalReason::NewcomersGone;
                self.withdraw(why, why.text(), now, policy);
            }
            PreemptionInput::Caller { waits: true } => {
                self.caller_seen = Some(now);
                if self.state == PreemptionState::Claimed && !self.unconfirmed {
                    self.state = PreemptionState::Evacuating;
                }
            }
            PreemptionInput::Caller { waits: false } if !self.answered => {
                let why = WithdrawalReason::CallerLeft;
                self.withdraw(why, why.text(), now, policy);
            }
            // Also after the answer: the victims would leave for a newcomer that does not exist.
            PreemptionInput::NewcomersGone
                if !self.newcomers.is_empty() && !self.room_is_free() =>
            {
                let why = WithdrawalReason::NewcomersGone;
                self.withdraw(why, why.text(), now, policy);
            }
            PreemptionInput::HostReturned if self.is_reclaim() && !self.room_is_free() => {
                let why = WithdrawalReason::HostReturned;
                self.withdraw(why, why.text(), now, policy);
            }
            PreemptionInput::Withdraw { why, reason } if !self.answered => {
                self.withdraw(why, reason, now, policy);
            }
            PreemptionInput::NoticePublished {
                victim,
                attempt,
                begin_before,
            } => self.notice_published(victim, attempt, begin_before, now, policy),
            PreemptionInput::SparePublished { victim } => {
                if let Some(victim) = self.victims.get_mut(victim)
                    && let VictimState::SpareRequested { published, until } = &mut victim.state
                    && !*published
                {
                    *published = true;
                    // The agent's time begins when the broker has the message.
                    *until = policy.evacuation.spare_limit(now);
                }
            }
            PreemptionInput::Report(body) => self.report(body, now, policy),
            PreemptionInput::Released { victim } => {
                if let Some(victim) = self.victims.get_mut(victim) {
                    victim.released = true;
                }
            }
            PreemptionInput::Recorded { victim } => {
                if let Some(victim) = self.victims.get_mut(victim)
                    && let VictimState::Evacuated { recorded, .. } = &mut victim.state
                {
                    *recorded = true;
                }
            }
            PreemptionInput::Confirmed => self.unconfirmed = false,
            PreemptionInput::Answered => self.answered = true,
            PreemptionInput::GivenBack if self.state == PreemptionState::Withdrawing => {
                if self.is_settled() {
                    self.state = PreemptionState::Withdrawn;
                }
                self.returned = true;
                self.give_back_at = None;
                self.give_back_refusals = 0;
            }
            PreemptionInput::GiveBackFailed { reason }
                if self.state == PreemptionState::Withdrawing =>
            {
                self.reason = Some(reason.to_owned());
                let rest = policy.give_back_rest_millis(self.give_back_refusals);
                let at = now.as_millis().saturating_add(rest);
                self.give_back_at = Some(Timestamp::from_millis(at));
                self.give_back_refusals = self.give_back_refusals.saturating_add(1);
            }
            PreemptionInput::Tick => self.tick(now, policy),
            _ => {}
        }
        if self.state == PreemptionState::Evacuating && self.answered && self.room_is_free() {
            self.state = PreemptionState::Done;
        }
        *self != before
    }

    fn claimed(&mut self) {
        self.state = PreemptionState::Claimed;
        self.in_doubt = false;
    }
}
