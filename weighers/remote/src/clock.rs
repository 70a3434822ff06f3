//! The only clock of this crate.

use std::sync::OnceLock;
use std::time::Instant;

/// Milliseconds since the first call. Never decreases.
#[must_use]
#[allow(clippy::disallowed_methods)] // the clock of this crate
pub fn milliseconds() -> u64 {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    let begin = BEGIN.get_or_init(Instant::now);
    u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX)
}
