//! The one place of this crate that reads a clock.
//!
//! Grace periods count in wall-clock time, because they go on while the agent is down. Waiting is tokio's business and
//! relative; see `task.rs`.

use ebbtide_model::Timestamp;
use std::fmt::Debug;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Tells the time.
pub trait Clock: Send + Sync + Debug {
    /// The time now, in UTC.
    fn now(&self) -> Timestamp;
}

/// The host's wall clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods)] // This is the crate's `clock` module.
    fn now(&self) -> Timestamp {
        let since_epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or(Duration::ZERO);
        Timestamp::from_millis(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
    }
}

/// A clock that follows tokio's timer from a given time on, so that a test whose timer is paused has no need to wait.
#[derive(Debug, Clone, Copy)]
pub struct TimerClock {
    start: Timestamp,
    began: tokio::time::Instant,
}

impl TimerClock {
    /// A clock that shows `start` now.
    #[must_use]
    #[allow(clippy::disallowed_methods)] // This is the crate's `clock` module.
    pub fn starting_at(start: Timestamp) -> Self {
        Self {
            start,
            began: tokio::time::Instant::now(),
        }
    }
}

impl Clock for TimerClock {
    fn now(&self) -> Timestamp {
        let passed = i64::try_from(self.began.elapsed().as_millis()).unwrap_or(i64::MAX);
        Timestamp::from_millis(self.start.as_millis().saturating_add(passed))
    }
}
