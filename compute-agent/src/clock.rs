//! The one place of this crate that reads a clock.
//!
//! Ends of grace periods are wall-clock times, because they go on while the agent is down; when the
//! clock is set, they move with it (see `agent/steps.rs`). Waiting is tokio's business and
//! relative; see `task.rs`.

use ebbtide_model::Timestamp;
use std::fmt::Debug;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Tells the time.
pub trait Clock: Send + Sync + Debug {
    /// The time now, in UTC.
    fn now(&self) -> Timestamp;

    /// The time since this host was started, from a monotonic clock.
    fn steady(&self) -> Duration;
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

    fn steady(&self) -> Duration {
        // Not `Instant`, which cannot be compared with that of an earlier life of the agent.
        let since = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let seconds = u64::try_from(since.tv_sec).unwrap_or_default();
        Duration::new(seconds, u32::try_from(since.tv_nsec).unwrap_or_default())
    }
}

/// A clock that follows tokio's timer from a given time on, so that a test whose timer is paused
/// has no need to wait.
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

    fn steady(&self) -> Duration {
        self.began.elapsed()
    }
}
