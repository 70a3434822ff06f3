//! The wall clock in the model's type, and steps of it.

use super::{instant, unix_millis};
use ebbtide_model::Timestamp;
use std::time::{Duration, Instant};

/// The present time.
#[must_use]
pub fn now() -> Timestamp {
    Timestamp::from_millis(unix_millis())
}

/// Smallest difference that counts as a clock step. Smaller differences are NTP slew or the delay
/// between two clock reads.
const STEP_MS: i64 = 2_000;
/// Limit for reading both clocks, which normally takes microseconds. A longer read means that the
/// process was suspended in between.
const TOGETHER: Duration = Duration::from_millis(50);
/// Attempts to read both clocks within that limit. The last one is used in any case.
const TRIES: u32 = 20;

/// Detects steps of the wall clock by comparing it with the monotonic clock, which cannot be set.
#[derive(Debug)]
pub struct ClockWatch {
    began: Instant,
    /// The wall clock minus the monotonic clock at the last read, in milliseconds.
    between_ms: i64,
}

impl ClockWatch {
    #[must_use]
    pub fn start() -> Self {
        let began = instant();
        let (_, between_ms) = both(began);
        Self { began, between_ms }
    }

    /// The present time, and the step of the wall clock since the last call in milliseconds, if
    /// there was one.
    pub fn look(&mut self) -> (Timestamp, Option<i64>) {
        let (now, between_ms) = both(self.began);
        let by_ms = between_ms.saturating_sub(self.between_ms);
        self.between_ms = between_ms;
        (now, (by_ms.abs() >= STEP_MS).then_some(by_ms))
    }
}

/// The present time, and the wall clock minus the monotonic clock in milliseconds.
fn both(began: Instant) -> (Timestamp, i64) {
    let mut tries = 0;
    loop {
        let before = began.elapsed();
        let now = now();
        let after = began.elapsed();
        tries += 1;
        if after.saturating_sub(before) <= TOGETHER || tries == TRIES {
            let steady = i64::try_from(after.as_millis()).unwrap_or(i64::MAX);
            return (now, now.as_millis().saturating_sub(steady));
        }
    }
}
