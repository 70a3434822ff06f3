//! How long an answer of Keystone may be used. Pure: the time comes in.

use crate::error::{KeystoneError, Meaning};
use ebbtide_runtime::clock;
use std::fmt::Debug;
use std::time::Duration;
use time::OffsetDateTime;

/// How many tokens are remembered by default. Of its catalog, a
/// token keeps two services at most.
const CAPACITY: u64 = 10_000;
/// Refusals. Short, because a Keystone that gets its keys late may not know a token yet that
/// another one has just given.
const REFUSED: Duration = Duration::from_secs(10);
/// After Keystone could not be asked, for how long it is not asked again.
const AWAY: Duration = Duration::from_secs(1);
/// How long a request may wait for Keystone. Below the 60 s after which proxies give up.
const LIMIT: Duration = Duration::from_secs(10);

/// A point of time on two clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockReading {
    /// Time of day, which is what the end of a token is given in.
    pub wall: OffsetDateTime,
    /// Time since an arbitrary start, which never goes back: for cache times.
    pub elapsed: Duration,
}

/// Where the time comes from.
pub trait Clock: Send + Sync + Debug {
    /// The present.
    fn now(&self) -> ClockReading;
}

/// The clocks of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> ClockReading {
        ClockReading {
            wall: clock::utc(),
            elapsed: Duration::from_millis(clock::monotonic_millis()),
        }
    }
}

/// Times and sizes of the caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CachePolicy {
    /// Good answers: `token_cache_time`. Zero: none is used twice.
    pub good: Duration,
    /// Refusals; 10 s, or `good` if that is less.
    pub refused: Duration,
    /// Failures to ask; 1 s.
    pub away: Duration,
    /// How long a lookup may take, tries again included; 10 s.
    pub limit: Duration,
    /// Limit for remembered answers. The least used ones go first.
    pub capacity: u64,
}

impl CachePolicy {
    /// With this `token_cache_time` and defaults.
    #[must_use]
    pub fn new(token_cache_time: Duration) -> Self {
        Self {
            good: token_cache_time,
            refused: REFUSED.min(token_cache_time),
            away: AWAY,
            limit: LIMIT,
            capacity: CAPACITY,
        }
    }

    /// The longest that an answer is kept.
    #[must_use]
    pub fn longest(&self) -> Duration {
        self.good.max(self.refused).max(self.away)
    }
}

/// An answer with the end of its use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedAnswer<T> {
    /// The answer, or why there is none.
    pub outcome: Result<T, KeystoneError>,
    until: Duration,
    ends: Option<OffsetDateTime>,
}

impl<T> CachedAnswer<T> {
    /// An answer to a question of this moment. `ends`: the own end of what was answered. The time
    /// counts from the question, as what was revoked while the answer was on its way is in no
    /// answer.
    pub fn new(
        outcome: Result<T, KeystoneError>,
        asked: ClockReading,
        ends: Option<OffsetDateTime>,
        policy: &CachePolicy,
    ) -> Self {
        let time = match outcome.as_ref().map_err(KeystoneError::meaning) {
            Ok(_) => policy.good,
            Err(Meaning::Unavailable) => policy.away,
            Err(_) => policy.refused,
        };
        let until = asked.elapsed.saturating_add(time);
        Self {
            outcome,
            until,
            ends,
        }
    }

    /// Whether it may still be used.
    #[must_use]
    pub fn is_usable(&self, now: ClockReading) -> bool {
        now.elapsed < self.until && self.ends.is_none_or(|end| now.wall < end)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;
    use time::macros::datetime;

    const NOON: OffsetDateTime = datetime!(2026-11-26 12:00 UTC);

    /// So many seconds after noon.
    fn at(seconds: u64) -> ClockReading {
        let elapsed = Duration::from_secs(seconds);
        ClockReading {
            wall: NOON + elapsed,
            elapsed,
        }
    }

    fn policy() -> CachePolicy {
        CachePolicy::new(Duration::from_secs(300))
    }

    #[test]
    fn a_good_answer_is_used_for_the_cache_time_and_no_longer() {
        let kept = CachedAnswer::new(Ok(()), at(5), None, &policy());
        assert!(kept.is_usable(at(304)));
        assert!(!kept.is_usable(at(305)));
    }

    #[test]
    fn a_token_is_not_used_after_its_end() {
        let end = NOON + Duration::from_secs(20);
        let kept = CachedAnswer::new(Ok(()), at(5), Some(end), &policy());
        assert!(kept.is_usable(at(19)));
        assert!(!kept.is_usable(at(20)));
    }

    #[test]
    fn a_wall_clock_that_goes_back_does_not_lengthen_the_cache_time() {
        let kept = CachedAnswer::new(Ok(()), at(0), None, &policy());
        let now = ClockReading {
            wall: NOON - Duration::from_secs(3_600),
            elapsed: Duration::from_secs(300),
        };
        assert!(!kept.is_usable(now));
    }

    #[test]
    fn refusals_and_failures_are_remembered_for_a_shorter_time() {
        let refused = CachedAnswer::<()>::new(Err(KeystoneError::Invalid), at(0), None, &policy());
        assert!(refused.is_usable(at(9)) && !refused.is_usable(at(10)));
        let away = KeystoneError::Unavailable(String::new());
        let away = CachedAnswer::<()>::new(Err(away), at(0), None, &policy());
        assert!(away.is_usable(at(0)) && !away.is_usable(at(1)));
    }

    #[test]
    fn without_a_cache_time_no_answer_is_used_twice() {
        let policy = CachePolicy::new(Duration::ZERO);
        assert!(!CachedAnswer::new(Ok(()), at(0), None, &policy).is_usable(at(0)));
        let refused = CachedAnswer::<()>::new(Err(KeystoneError::Invalid), at(0), None, &policy);
        assert!(!refused.is_usable(at(0)));
    }

    proptest! {
        #[test]
        fn what_is_usable_later_was_usable_before(
            asked in 0_u64..1_000, end in 0_u64..1_000, early in 0_u64..1_000, more in 0_u64..1_000,
        ) {
            let end = NOON + Duration::from_secs(end);
            let kept = CachedAnswer::new(Ok(()), at(asked), Some(end), &policy());
            prop_assert!(!kept.is_usable(at(early + more)) || kept.is_usable(at(early)));
        }
    }
}
