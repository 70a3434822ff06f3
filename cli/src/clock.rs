//! The only place of this crate that reads a clock.

use std::time::Instant;
use time::OffsetDateTime;

/// The time of day, in UTC.
#[must_use]
#[allow(clippy::disallowed_methods)] // This is the clock module.
pub fn now() -> OffsetDateTime {
    OffsetDateTime::now_utc()
}

/// A point of the monotonic clock, to measure how long something took.
#[must_use]
#[allow(clippy::disallowed_methods)] // This is the clock module.
pub fn instant() -> Instant {
    Instant::now()
}
