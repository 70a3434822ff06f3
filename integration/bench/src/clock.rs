//! The only place of this crate that reads a clock.

use std::time::{Duration, Instant};

/// A point of the monotonic clock.
#[must_use]
#[allow(clippy::disallowed_methods)] // This is the clock module.
pub fn instant() -> Instant {
    Instant::now()
}

/// What something gives, and how long it took.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let began = instant();
    let result = work();
    (result, began.elapsed())
}
