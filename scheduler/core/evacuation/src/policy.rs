//! The settings of the protocol and the arithmetic of its limits.

use ebbtide_model::{EvacuationState, Seconds, Timestamp};
use std::ops::RangeInclusive;

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

impl Default for EvacuationPolicy {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl EvacuationPolicy {
    /// The defaults of a region.
    pub const DEFAULT: Self = Self {
        // An agent answers within milliseconds. Ten seconds cover the reconnection to a broker.
        notice_timeout: Seconds(10),
        notice_attempts: 3,
        // Saving the memory of a large guest takes most of a minute.
        act_timeout: Seconds(60),
        // What an operator needs to look at a hypervisor. Meanwhile other victims are chosen.
        failed_rest: Seconds(300),
    };
    /// Range of `notice_timeout`, in seconds.
    pub const NOTICE_TIMEOUT: RangeInclusive<u32> = 1..=3600;
    /// Range of `notice_attempts`.
    pub const NOTICE_ATTEMPTS: RangeInclusive<u32> = 1..=100;
    /// Range of `act_timeout`, in seconds.
    pub const ACT_TIMEOUT: RangeInclusive<u32> = 1..=DAY;
    /// Range of `failed_rest`, in seconds.
    pub const FAILED_REST: RangeInclusive<u32> = 0..=DAY;

    /// The defaults of OpenStack mode. A rest there delays the end of a victim whose capacity
    /// belongs to a placed newcomer already, so it is shorter.
    #[must_use]
    pub fn openstack() -> Self {
        Self {
            failed_rest: Seconds(60),
            ..Self::DEFAULT
        }
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
        for policy in [region, openstack] {
            assert!(EvacuationPolicy::NOTICE_TIMEOUT.contains(&policy.notice_timeout.0));
            assert!(EvacuationPolicy::NOTICE_ATTEMPTS.contains(&policy.notice_attempts));
            assert!(EvacuationPolicy::ACT_TIMEOUT.contains(&policy.act_timeout.0));
            assert!(EvacuationPolicy::FAILED_REST.contains(&policy.failed_rest.0));
        }
        let same = EvacuationPolicy {
            failed_rest: region.failed_rest,
            ..openstack
        };
        assert_eq!(same, region);
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
