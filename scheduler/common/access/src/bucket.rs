//! Rate limits: one token bucket (RFC 2697's single rate) for each account.
//!
//! A bucket holds at most `burst` drops and gains `per_second` of them each second; a request takes
//! one. The state is two numbers, so ten thousand accounts take a megabyte. Buckets that are full
//! again are removed.

use std::collections::HashMap;
use std::time::Duration;

/// Above so many accounts, full buckets are removed: a full bucket has the same effect as none.
const SWEEP_ABOVE: usize = 10_000;

/// What an account may do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Allowance {
    /// Requests a second in the long run; more than 0.
    pub per_second: f64,
    /// Requests at once after a rest; at least 1.
    pub burst: f64,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    level: f64,
    /// When the level was so; time since the buckets were made.
    at: Duration,
    allowance: Allowance,
}

impl Bucket {
    fn filled(&self, now: Duration) -> f64 {
        let passed = now.saturating_sub(self.at).as_secs_f64();
        (self.level + passed * self.allowance.per_second).min(self.allowance.burst)
    }
}

/// The buckets of all accounts.
#[derive(Debug, Default)]
pub struct Buckets {
    buckets: HashMap<String, Bucket>,
}

impl Buckets {
    /// Takes one drop. `now` is any clock that only goes forward.
    ///
    /// # Errors
    /// How long to wait until there is one.
    pub fn take(
        &mut self,
        account: &str,
        allowance: Allowance,
        now: Duration,
    ) -> Result<(), Duration> {
        self.draw(account, allowance, now, 1.0, 1.0)
    }

    /// Takes `more` drops for what turned out to be in a request whose own drop is taken. A request
    /// that is larger than the bucket needs a full one, and leaves a debt.
    ///
    /// # Errors
    /// How long to wait until there are enough.
    pub fn take_more(
        &mut self,
        account: &str,
        allowance: Allowance,
        now: Duration,
        more: u32,
    ) -> Result<(), Duration> {
        let cost = f64::from(more);
        let needed = cost.min((allowance.burst - 1.0).max(0.0));
        self.draw(account, allowance, now, cost, needed)
    }

    fn draw(
        &mut self,
        account: &str,
        allowance: Allowance,
        now: Duration,
        cost: f64,
        needed: f64,
    ) -> Result<(), Duration> {
        if self.buckets.len() > SWEEP_ABOVE {
            self.buckets
                .retain(|_, bucket| bucket.filled(now) < bucket.allowance.burst);
        }
        let level = match self.buckets.get(account) {
            Some(bucket) => Bucket {
                allowance,
                ..*bucket
            }
            .filled(now),
            None => allowance.burst,
        };
        // A drop that was there at the microsecond of the answer to wait shall be there.
        let enough = level > needed - 1e-9;
        let bucket = Bucket {
            level: if enough { level - cost } else { level },
            at: now,
            allowance,
        };
        self.buckets.insert(account.to_owned(), bucket);
        if enough {
            return Ok(());
        }
        let seconds = (needed - level) / allowance.per_second;
        // At most one hour, whatever the rate.
        Err(Duration::try_from_secs_f64(seconds.min(3600.0)).unwrap_or(Duration::from_secs(3600)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SLOW: Allowance = Allowance {
        per_second: 2.0,
        burst: 3.0,
    };

    #[test]
    fn a_large_request_pays_for_what_is_in_it_and_can_be_made_after_a_rest() {
        let mut buckets = Buckets::default();
        let mut at = Duration::ZERO;
        let mut ask = |at: Duration, more| {
            buckets.take("a", SLOW, at)?;
            buckets.take_more("a", SLOW, at, more)
        };
        ask(at, 1).unwrap();
        assert!(ask(at, 1).is_err(), "one drop of three is left");
        at += Duration::from_secs(10);
        ask(at, 99).unwrap();
        // A hundred drops at two a second, three of which were there, and one for this request.
        at += Duration::from_secs(48);
        assert!(ask(at, 0).is_err());
        at += Duration::from_secs(2);
        ask(at, 0).unwrap();
    }

    #[test]
    fn a_burst_is_served_and_then_the_rate() {
        let mut buckets = Buckets::default();
        let now = Duration::from_secs(5);
        for _ in 0..3 {
            buckets.take("a", SLOW, now).unwrap();
        }
        let wait = buckets.take("a", SLOW, now).unwrap_err();
        assert_eq!(wait, Duration::from_millis(500));
        buckets.take("b", SLOW, now).unwrap();
        buckets.take("a", SLOW, now + wait).unwrap();
        assert!(buckets.take("a", SLOW, now + wait).is_err());
    }

    #[test]
    fn accounts_that_rest_are_forgotten() {
        let mut buckets = Buckets::default();
        for n in 0..=SWEEP_ABOVE {
            let account = n.to_string();
            buckets.take(&account, SLOW, Duration::ZERO).unwrap();
        }
        buckets.take("late", SLOW, Duration::from_secs(10)).unwrap();
        assert_eq!(buckets.buckets.len(), 1);
    }

    proptest! {
        #[test]
        fn no_client_gets_more_than_the_burst_and_the_rate(
            per_second in 0.5f64..200.0, burst in 1.0f64..50.0, steps in prop::collection::vec(0u64..400, 1..200),
        ) {
            let allowance = Allowance { per_second, burst };
            let mut buckets = Buckets::default();
            let (mut now, mut served) = (Duration::ZERO, 0u32);
            for step in steps {
                now += Duration::from_millis(step);
                served += u32::from(buckets.take("a", allowance, now).is_ok());
                let most = burst + now.as_secs_f64() * per_second;
                prop_assert!(f64::from(served) <= most + 1e-6, "{served} after {now:?}");
            }
        }

        #[test]
        fn a_client_that_waits_for_the_returned_time_is_served(per_second in 0.5f64..200.0, burst in 1.0f64..5.0) {
            let allowance = Allowance { per_second, burst };
            let (mut buckets, mut now) = (Buckets::default(), Duration::ZERO);
            for _ in 0..50 {
                if let Err(wait) = buckets.take("a", allowance, now) {
                    now += wait + Duration::from_nanos(1);
                    prop_assert!(buckets.take("a", allowance, now).is_ok());
                }
            }
        }
    }
}
