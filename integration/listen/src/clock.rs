//! The only place of this crate where the clock is read.
#![allow(clippy::disallowed_methods)] // This is the module that clippy.toml points to.

use tokio::time::Instant;

/// The present time of tokio's timer, which tests can pause.
pub(crate) fn now() -> Instant {
    Instant::now()
}
