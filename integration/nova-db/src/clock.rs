//! The only place of this crate that reads a clock. A heartbeat carries the time of the host that
//! sends it, as in Nova.

use std::time::{SystemTime, UNIX_EPOCH};

/// Microseconds since 1970, UTC.
#[allow(
    clippy::disallowed_methods,
    reason = "this is the crate's clock module"
)]
pub(crate) fn now_micros() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| {
            i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
        })
}
