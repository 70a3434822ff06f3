//! The only place of this crate where the clock is read.
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

/// What is less is how clocks are kept right, and how two clocks are read one after the other.
const STEP_MS: i64 = 2_000;
/// Reading both clocks takes microseconds; if it took longer, this process stood still meanwhile.
const TOGETHER: Duration = Duration::from_millis(50);
/// Two clocks that cannot be read together are read apart in the end.
const TRIES: u32 = 20;

/// Notices when somebody sets the clock: compares it with one that nobody can set.
#[derive(Debug)]
pub(crate) struct ClockWatch {
    began: Instant,
    /// The wall clock minus the other one when they were read last. Milliseconds.
    between_ms: i64,
}

impl ClockWatch {
    /// Begins to watch.
    pub(crate) fn start() -> Self {
        let began = Instant::now();
        let (_, between_ms) = both(began);
        Self { began, between_ms }
    }

    /// The present time, and by how many milliseconds the clock was set since this was asked last, if it was.
    pub(crate) fn look(&mut self) -> (Timestamp, Option<i64>) {
        let (now, between_ms) = both(self.began);
        let by_ms = between_ms.saturating_sub(self.between_ms);
        self.between_ms = between_ms;
        (now, (by_ms.abs() >= STEP_MS).then_some(by_ms))
    }
}

/// The present time, and what is between the two clocks.
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
    /// Begins now.
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// The time since the start.
    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}
