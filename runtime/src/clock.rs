//! Wall clocks, monotonic clocks and the types that measure with them.
//!
//! Delays do not come through here: they are relative and belong to tokio's timer.
#![allow(clippy::disallowed_methods)] // This is the module that clippy.toml points to.

mod deadline;
#[cfg(feature = "model")]
mod model_time;
mod stopwatch;

pub use deadline::Deadline;
#[cfg(feature = "model")]
pub use model_time::{ClockWatch, now};
pub use stopwatch::Stopwatch;

use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use time::OffsetDateTime;

/// The wall clock.
#[must_use]
pub fn wall() -> SystemTime {
    SystemTime::now()
}

/// The wall clock in UTC, as a date.
#[must_use]
pub fn utc() -> OffsetDateTime {
    OffsetDateTime::now_utc()
}

/// Milliseconds since 1970, UTC. Zero if the clock shows an earlier time.
#[must_use]
pub fn unix_millis() -> i64 {
    let since = wall().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Microseconds since 1970, UTC: the unit of Nova's rows. Zero if the clock shows an earlier time.
#[must_use]
pub fn unix_micros() -> i64 {
    let since = wall().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// The monotonic clock.
#[must_use]
pub fn instant() -> Instant {
    Instant::now()
}

/// Milliseconds of the monotonic clock since the first call in this process. Never decreases.
#[must_use]
pub fn monotonic_millis() -> u64 {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    let begin = BEGIN.get_or_init(instant);
    u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// The monotonic clock of tokio's timer, which tests can pause.
#[must_use]
pub fn timer() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_the_wall_clock_agree() {
        let before = unix_micros();
        let (millis, date) = (unix_millis(), utc());
        let after = unix_micros();
        let within = before / 1000..=after / 1000;
        assert!(within.contains(&millis), "{millis} is not in {within:?}");
        let millis = i64::try_from(date.unix_timestamp_nanos() / 1_000_000).unwrap();
        assert!(within.contains(&millis), "{millis} is not in {within:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_timer_follows_a_paused_clock() {
        let began = timer();
        tokio::time::sleep(std::time::Duration::from_secs(3600)).await;
        assert_eq!((timer() - began).as_secs(), 3600);
    }
}
