//! The one place of this crate that reads a clock.
//!
//! Only the running time counts: how long a token lives is taken from its own two times, so that it
//! does not matter whether our clock and Keystone's agree.

use std::time::Duration;
use tokio::time::Instant;

/// The running time now.
#[allow(clippy::disallowed_methods)] // This is the crate's `clock` module.
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The time that lies between two points of time as Keystone writes them. `None` if they are no
/// points of time or in the wrong order.
pub(crate) fn between(from: &str, until: &str) -> Option<Duration> {
    use time::OffsetDateTime;
    use time::format_description::well_known::Rfc3339;
    let from = OffsetDateTime::parse(from, &Rfc3339).ok()?;
    let until = OffsetDateTime::parse(until, &Rfc3339).ok()?;
    (until - from).try_into().ok()
}
