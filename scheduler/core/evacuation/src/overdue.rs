//! What follows a limit that has passed, and a notice that came too late.

use crate::{EndReason, EvacuationPolicy, Progress};
use ebbtide_model::EvacuationState;

/// An evacuation that waits for its agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// Where it is.
    pub progress: Progress,
    /// Number of the newest notice, from 1.
    pub attempt: u32,
    /// The broker has not confirmed the newest message to the agent, so the agent is not late.
    pub unsent: bool,
}

/// What follows a limit that has passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Overdue {
    /// Send the notice with this number. It has the number of the present one if that is unsent,
    /// and replaces it.
    Notify(u32),
    /// The agent has had its time ([`crate::EvacuationEvent::GivenUp`]).
    GiveUp(EndReason),
    /// Wait: a spare is unsent, or nothing more happens.
    Nothing,
}

/// What follows when the limit of an evacuation on this host has passed.
#[must_use]
pub fn overdue(wait: Wait, host: &str, policy: &EvacuationPolicy) -> Overdue {
    let host = host.to_owned();
    match wait.progress.state {
        state if state.is_final() => Overdue::Nothing,
        _ if wait.progress.spare_requested && wait.unsent => Overdue::Nothing,
        _ if wait.progress.spare_requested => Overdue::GiveUp(EndReason::SpareUnanswered { host }),
        EvacuationState::Draining => Overdue::GiveUp(EndReason::EndNotReported {
            host,
            within: policy.act_timeout,
        }),
        _ if wait.unsent => Overdue::Notify(wait.attempt.max(1)),
        _ if wait.attempt < policy.notice_attempts => Overdue::Notify(wait.attempt + 1),
        _ => Overdue::GiveUp(EndReason::NoticesUnanswered {
            host,
            attempts: wait.attempt,
            within: policy.time_for(wait.attempt),
        }),
    }
}

/// What follows when the agent says that a notice came too late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LateNotice {
    /// A newer notice is under way: the answer says nothing about that one.
    Superseded,
    /// Send the next notice.
    Notify(u32),
    /// No attempt is left, or there is no notice to repeat: the answer is a failure.
    Failure,
}

/// What follows when the agent says that the notice with the number `attempt` came too late. It may
/// say so once for each delivery of the notice.
#[must_use]
pub fn late_notice(wait: Wait, attempt: u32, policy: &EvacuationPolicy) -> LateNotice {
    let waits = matches!(
        wait.progress.state,
        EvacuationState::Claimed | EvacuationState::Notified
    );
    if !waits || wait.progress.spare_requested {
        LateNotice::Failure
    } else if attempt < wait.attempt || wait.unsent {
        LateNotice::Superseded
    } else if wait.attempt < policy.notice_attempts {
        LateNotice::Notify(wait.attempt + 1)
    } else {
        LateNotice::Failure
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ebbtide_model::Seconds;

    const POLICY: fn() -> EvacuationPolicy = EvacuationPolicy::default;

    fn wait(state: EvacuationState, attempt: u32) -> Wait {
        Wait {
            progress: Progress::new(state),
            attempt,
            unsent: false,
        }
    }

    fn after(wait: Wait) -> Overdue {
        overdue(wait, "h", &POLICY())
    }

    #[test]
    fn a_notice_is_repeated_until_the_last_attempt_has_had_its_time() {
        let notified = |attempt| after(wait(EvacuationState::Notified, attempt));
        assert_eq!(notified(1), Overdue::Notify(2));
        assert_eq!(notified(2), Overdue::Notify(3));
        let reason = EndReason::NoticesUnanswered {
            host: "h".to_owned(),
            attempts: 3,
            within: Seconds(30),
        };
        assert_eq!(notified(3), Overdue::GiveUp(reason));
    }

    #[test]
    fn an_agent_is_not_late_while_the_broker_does_not_have_its_notice() {
        for attempt in 1..=3 {
            let wait = Wait {
                unsent: true,
                ..wait(EvacuationState::Claimed, attempt)
            };
            assert_eq!(after(wait), Overdue::Notify(attempt));
        }
    }

    #[test]
    fn a_victim_whose_end_is_not_reported_is_given_up_without_another_notice() {
        let reason = EndReason::EndNotReported {
            host: "h".to_owned(),
            within: Seconds(60),
        };
        let draining = wait(EvacuationState::Draining, 1);
        assert_eq!(after(draining), Overdue::GiveUp(reason));
    }

    #[test]
    fn an_agent_that_was_asked_to_spare_is_given_up_once_the_broker_has_the_spare() {
        for state in [
            EvacuationState::Claimed,
            EvacuationState::Notified,
            EvacuationState::Draining,
        ] {
            let mut wait = wait(state, 1);
            wait.progress.spare_requested = true;
            let reason = EndReason::SpareUnanswered {
                host: "h".to_owned(),
            };
            assert_eq!(after(wait), Overdue::GiveUp(reason));
            wait.unsent = true;
            assert_eq!(after(wait), Overdue::Nothing);
        }
    }

    #[test]
    fn nothing_follows_the_limit_of_an_evacuation_that_is_over() {
        for state in [
            EvacuationState::Evacuated,
            EvacuationState::Spared,
            EvacuationState::Failed,
        ] {
            assert_eq!(after(wait(state, 1)), Overdue::Nothing);
        }
    }

    #[test]
    fn a_notice_that_came_too_late_is_sent_anew_as_long_as_attempts_are_left() {
        let late = |present, attempt| {
            late_notice(wait(EvacuationState::Notified, present), attempt, &POLICY())
        };
        assert_eq!(late(1, 1), LateNotice::Notify(2));
        assert_eq!(late(2, 1), LateNotice::Superseded);
        assert_eq!(late(3, 3), LateNotice::Failure);
    }

    #[test]
    fn a_late_notice_of_a_victim_that_drains_or_stays_is_a_failure() {
        let draining = wait(EvacuationState::Draining, 1);
        assert_eq!(late_notice(draining, 1, &POLICY()), LateNotice::Failure);
        let mut spared = wait(EvacuationState::Notified, 1);
        spared.progress.spare_requested = true;
        assert_eq!(late_notice(spared, 1, &POLICY()), LateNotice::Failure);
    }

    #[test]
    fn the_answer_to_a_late_notice_says_nothing_about_an_unsent_one() {
        let mut wait = wait(EvacuationState::Notified, 2);
        wait.unsent = true;
        assert_eq!(late_notice(wait, 2, &POLICY()), LateNotice::Superseded);
    }
}
