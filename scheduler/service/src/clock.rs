//! The only module of this crate that reads the clock.
#![allow(clippy::disallowed_methods)] // This is the module that clippy.toml points to.

use ebbtide_model::Timestamp;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The present time.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
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
pub(crate) struct ClockWatch {
    began: Instant,
    /// The wall clock minus the monotonic clock at the last read, in milliseconds.
    between_ms: i64,
}

impl ClockWatch {
    /// Starts watching.
    pub(crate) fn start() -> Self {
        let began = Instant::now();
        let (_, between_ms) = both(began);
        Self { began, between_ms }
    }

    /// The present time, and the step of the wall clock since the last call in milliseconds, if
    /// there was one.
    pub(crate) fn look(&mut self) -> (Timestamp, Option<i64>) {
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

/// Measures how long something takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts the measurement.
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// The time since the start.
    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}
