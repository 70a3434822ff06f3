//! The only place of this crate where the clock is read.
#![allow(clippy::disallowed_methods)] // This is the module that clippy.toml points to.

use ebbtide_model::Timestamp;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Microseconds since 1970, UTC: the unit of Nova's rows.
pub(crate) fn micros() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// The present time: the unit of records and messages.
pub(crate) fn now() -> Timestamp {
    Timestamp::from_millis(micros() / 1000)
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
