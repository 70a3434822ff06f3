//! The only place of this crate that reads a clock.

use ebbtide_model::Timestamp;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// A point of the monotonic clock.
#[allow(clippy::disallowed_methods)] // This is the clock module.
pub(crate) fn instant() -> Instant {
    Instant::now()
}

/// The time of day.
#[allow(clippy::disallowed_methods)] // This is the clock module.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let millis = since.map_or(0, |since| since.as_millis());
    Timestamp::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
}
