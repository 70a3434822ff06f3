//! The settings of the protocol and the arithmetic of its limits.

use ebbtide_model::{EvacuationState, Seconds, Timestamp};
use thiserror::Error;

/// One day in seconds, the largest limit.
const DAY: u32 = 24 * 3600;

/// Time limits and attempts of one victim's evacuation, for both clouds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EvacuationPolicy {
    /// Time that an agent has to answer a notice before the next attempt, in seconds from the
    /// broker's confirmation. 1 to 3600.
    pub notice_timeout: Seconds,
    /// Number of notices after which an agent is given up. 1 to 100.
    pub notice_attempts: u32,
    /// Time from the end of the grace period to the report of the end, in seconds. 1 to 86400.
    pub act_timeout: Seconds,
    /// Rest of a victim after a failed evacuation, in seconds: no new evacuation of it begins
    /// before. 0 to 86400.
    pub failed_rest: Seconds,
}

/// A setting out of its range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{setting} = {value}: use {low} to {high}")]
pub struct PolicyError {
    /// The field of [`EvacuationPolicy`].
    pub setting: &'static str,
    /// Its value.
    pub value: u32,
    /// The smallest value that is allowed.
    pub low: u32,
    /// The largest value that is allowed.
    pub high: u32,
}

impl Default for EvacuationPolicy {
    fn default() -> Self {
        Self {
            // An agent answers within milliseconds. Ten seconds cover the reconnection to a broker.
            notice_timeout: Seconds(10),
            notice_attempts: 3,
            // Saving the memory of a large guest takes most of a minute.
            act_timeout: Seconds(60),
            // What an operator needs to look at a hypervisor. Meanwhile other victims are chosen.
            failed_rest: Seconds(300),
        }
    }
}

impl EvacuationPolicy {
    /// The defaults of OpenStack mode. A rest there delays the end of a victim whose capacity
    /// belongs to a placed newcomer already, so it is shorter.
    #[must_use]
    pub fn openstack() -> Self {
        Self {
            failed_rest: Seconds(60),
            ..Self::default()
        }
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// The first setting that is out of its range.
    pub fn check(&self) -> Result<(), PolicyError> {
        let settings = [
            ("notice_timeout", self.notice_timeout.0, 1, 3600),
            ("notice_attempts", self.notice_attempts, 1, 100),
            ("act_timeout", self.act_timeout.0, 1, DAY),
            ("failed_rest", self.failed_rest.0, 0, DAY),
        ];
        for (setting, value, low, high) in settings {
            if !(low..=high).contains(&value) {
                return Err(PolicyError {
                    setting,
                    value,
                    low,
                    high,
                });
            }
        }
        Ok(())
    }

    /// The time for this many attempts.
    #[must_use]
    pub fn time_for(&self, attempts: u32) -> Seconds {
        Seconds(self.notice_timeout.0.saturating_mul(attempts))
    }

    /// The longest time from the first notice until the agent is given up.
    #[must_use]
    pub fn patience(&self) -> Seconds {
        self.time_for(self.notice_attempts)
    }

    /// The time after which an agent must not begin, for this attempt (from 1) sent now. It is the
    /// time at which the last attempt has had its time, so it is the same moment for every attempt
    /// that is sent when it is due.
    #[must_use]
    pub fn begin_before(&self, now: Timestamp, attempt: u32) -> Timestamp {
        let left = self.notice_attempts.saturating_sub(attempt);
        now.plus(self.time_for(left.saturating_add(1)))
    }

    /// The limit of a notice that was published now.
    #[must_use]
    pub fn notice_limit(&self, now: Timestamp) -> Timestamp {
        now.plus(self.notice_timeout)
    }

    /// The limit of a victim whose grace period ends at this time.
    #[must_use]
    pub fn act_limit(&self, deadline: Timestamp) -> Timestamp {
        deadline.plus(self.act_timeout)
    }

    /// The limit of a spare that was sent now. The agent may be following any attempt.
    #[must_use]
    pub fn spare_limit(&self, now: Timestamp) -> Timestamp {
        now.plus(self.patience()).plus(self.act_timeout)
    }

    /// The end of the rest of a victim whose evacuation failed at this time.
    #[must_use]
    pub fn rest_limit(&self, failed_at: Timestamp) -> Timestamp {
        failed_at.plus(self.failed_rest)
    }

    /// The limit of an evacuation that a scheduler reads from its database. The agent is not
    /// punished for the scheduler's absence: it gets one more notice timeout, and its grace period
    /// if that may still run. No limit is later than the longest wait, because a later one was set
    /// by a clock that has been set back.
    #[must_use]
    pub fn restored_limit(
        &self,
        state: EvacuationState,
        grace: Seconds,
        stored: Timestamp,
        now: Timestamp,
    ) -> Timestamp {
        let least = match state {
            EvacuationState::Draining => self.notice_limit(now).plus(grace),
            _ => self.notice_limit(now),
        };
        let most = self.spare_limit(now).plus(grace);
        stored.min(most).max(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_millis(second * 1000)
    }

    #[test]
    fn defaults_are_within_their_ranges_and_differ_in_the_rest_only() {
        let (region, openstack) = (EvacuationPolicy::default(), EvacuationPolicy::openstack());
        assert_eq!(region.check(), Ok(()));
        assert_eq!(openstack.check(), Ok(()));
        let same = EvacuationPolicy {
            failed_rest: region.failed_rest,
            ..openstack
        };
        assert_eq!(same, region);
    }

    #[test]
    fn a_setting_out_of_range_is_named_with_its_range() {
        let policy = EvacuationPolicy {
            notice_attempts: 0,
            ..EvacuationPolicy::default()
        };
        let error = policy.check().unwrap_err();
        assert_eq!(error.to_string(), "notice_attempts = 0: use 1 to 100");
        let policy = EvacuationPolicy {
            act_timeout: Seconds(DAY + 1),
            ..EvacuationPolicy::default()
        };
        assert_eq!(policy.check().unwrap_err().setting, "act_timeout");
    }

    #[test]
    fn every_attempt_that_is_sent_when_due_names_the_same_last_moment() {
        let policy = EvacuationPolicy::default();
        let last = at(100).plus(policy.patience());
        assert_eq!(policy.begin_before(at(100), 1), last);
        assert_eq!(policy.begin_before(at(110), 2), last);
        assert_eq!(policy.begin_before(at(120), 3), last);
    }

    #[test]
    fn an_attempt_beyond_the_last_still_has_its_own_time() {
        let policy = EvacuationPolicy::default();
        assert_eq!(policy.begin_before(at(100), 9), at(110));
    }

    #[test]
    fn a_restored_limit_gives_new_time_and_no_more_than_the_longest_wait() {
        let policy = EvacuationPolicy::default();
        let limit = |state, stored| policy.restored_limit(state, Seconds(30), stored, at(1000));
        assert_eq!(limit(EvacuationState::Notified, at(5)), at(1010));
        assert_eq!(limit(EvacuationState::Draining, at(5)), at(1040));
        assert_eq!(limit(EvacuationState::Draining, at(1060)), at(1060));
        assert_eq!(limit(EvacuationState::Notified, at(9000)), at(1120));
    }
}
