//! The one place of this crate that reads a clock.
//!
//! Deadlines and delays do not come through here: they are relative and belong to tokio's timer.

use std::time::SystemTime;
use tokio::time::Instant;

/// The wall-clock time, used only to tell people since when the broker is gone.
#[allow(clippy::disallowed_methods)] // This is the crate's `clock` module.
pub(crate) fn now() -> SystemTime {
    SystemTime::now()
}

/// The monotonic time, for rates. Follows tokio's paused clock in tests.
#[allow(clippy::disallowed_methods)] // This is the crate's `clock` module.
pub(crate) fn instant() -> Instant {
    Instant::now()
}
