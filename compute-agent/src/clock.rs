//! The clock that is given to the agent, so that tests can replace it.
//!
//! Ends of grace periods are wall-clock times, because they go on while the agent is down; when the
//! clock is set, they move with it (see `agent/steps.rs`). Waiting is tokio's business and
//! relative.

use ebbtide_model::Timestamp;
use ebbtide_runtime::clock;
use std::fmt::Debug;
use std::time::Duration;

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
    fn now(&self) -> Timestamp {
        clock::now()
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
    pub fn starting_at(start: Timestamp) -> Self {
        Self {
            start,
            began: clock::timer(),
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
