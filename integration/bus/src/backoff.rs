//! Capped exponential backoff with seeded jitter.
//!
//! When a broker comes back, thousands of agents want to connect at once. Each waits between half
//! of the nominal delay and all of it; where in between is decided by a seed, so that a test (or a
//! bug report) can repeat the exact delays.

use std::time::Duration;

use ebbtide_amqp::Backoff;

use crate::BusError;

/// How long to wait between attempts to reach the broker. There is no last attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackoffPolicy {
    /// Nominal delay before the second attempt; doubles with each further one.
    pub first: Duration,
    /// The nominal delay never exceeds this.
    pub cap: Duration,
}

impl Default for BackoffPolicy {
    /// 200 ms, doubling up to 10 s. A restarted RabbitMQ needs about 5 s, and after it is back a
    /// client should not wait much longer than one heartbeat interval.
    fn default() -> Self {
        Self {
            first: Duration::from_millis(200),
            cap: Duration::from_secs(10),
        }
    }
}

impl BackoffPolicy {
    pub(crate) fn validate(&self) -> Result<(), BusError> {
        if self.first.is_zero() || self.cap < self.first {
            return Err(BusError::InvalidConfig {
                setting: "reconnect",
                reason: format!(
                    "the first delay must be more than zero and at most the cap; got {:?} and {:?}",
                    self.first, self.cap
                ),
            });
        }
        Ok(())
    }
}

/// The state of one retry loop.
#[derive(Debug, Clone)]
pub(crate) struct ExponentialBackoff {
    policy: BackoffPolicy,
    step: u32,
    random: u64,
}

impl ExponentialBackoff {
    pub(crate) fn new(policy: BackoffPolicy, seed: u64) -> Self {
        Self {
            policy,
            step: 0,
            random: seed,
        }
    }

    /// The delay before the next attempt.
    pub(crate) fn next_delay(&mut self) -> Duration {
        let factor = 1u32.checked_shl(self.step).unwrap_or(u32::MAX);
        let nominal = self
            .policy
            .first
            .saturating_mul(factor)
            .min(self.policy.cap);
        // 31 doublings exceed any cap; stopping there keeps the shift defined.
        self.step = (self.step + 1).min(31);
        let half = nominal / 2;
        half + half.mul_f64(self.next_unit())
    }

    /// SplitMix64 (Steele, Lea, Flood 2014), reduced to [0, 1).
    fn next_unit(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        // 53 bits are what a double holds exactly.
        (z >> 11) as f64 / (1u64 << 53) as f64
    }
}

impl Backoff for ExponentialBackoff {
    fn after_loss(&mut self) -> Duration {
        self.next_delay()
    }

    fn after_round(&mut self) -> Duration {
        self.next_delay()
    }

    fn after_return(&mut self) -> Duration {
        self.reset();
        self.next_delay()
    }

    fn reset(&mut self) {
        self.step = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_delay_lies_between_half_and_all_of_the_nominal_one(
            seed: u64, first_ms in 1u64..5_000, factor in 1u64..500, attempts in 1u32..80,
        ) {
            let policy = BackoffPolicy {
                first: Duration::from_millis(first_ms),
                cap: Duration::from_millis(first_ms * factor),
            };
            let mut backoff = ExponentialBackoff::new(policy, seed);
            for attempt in 0..attempts {
                let nominal = policy
                    .first
                    .saturating_mul(2u32.saturating_pow(attempt))
                    .min(policy.cap);
                let delay = backoff.next_delay();
                prop_assert!(delay >= nominal / 2, "{delay:?} is below half of {nominal:?}");
                prop_assert!(delay <= nominal, "{delay:?} is above {nominal:?}");
            }
        }

        #[test]
        fn the_same_seed_gives_the_same_delays(seed: u64) {
            let mut one = ExponentialBackoff::new(BackoffPolicy::default(), seed);
            let mut two = ExponentialBackoff::new(BackoffPolicy::default(), seed);
            for _ in 0..20 {
                prop_assert_eq!(one.next_delay(), two.next_delay());
            }
        }
    }

    #[test]
    fn a_reset_starts_again_with_short_delays() {
        let mut backoff = ExponentialBackoff::new(BackoffPolicy::default(), 7);
        for _ in 0..10 {
            backoff.next_delay();
        }
        backoff.reset();
        assert!(backoff.next_delay() <= BackoffPolicy::default().first);
    }

    #[test]
    fn a_cap_below_the_first_delay_is_refused() {
        let policy = BackoffPolicy {
            first: Duration::from_secs(2),
            cap: Duration::from_secs(1),
        };
        assert_eq!(policy.validate().unwrap_err().code(), "EB-BUS-002");
    }
}
