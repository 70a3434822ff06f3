//! The one place of this crate that reads clocks.
//!
//! Deadlines and delays do not come through here: they are relative and belong to tokio's timer.

use std::time::SystemTime;

use tokio::time::Instant;

/// For measuring how long something took.
#[allow(clippy::disallowed_methods)] // This is the crate's `clock` module.
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The wall-clock time, for the timestamps of notifications.
#[allow(clippy::disallowed_methods)] // This is the crate's `clock` module.
pub(crate) fn wall() -> SystemTime {
    SystemTime::now()
}
