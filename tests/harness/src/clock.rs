//! The only place of the harness that reads a clock: deadlines of waits are real time by nature.

use std::time::{Duration, Instant};

/// A point in (monotonic) time until which one is willing to wait, and how long that was meant to
/// be.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    end: Instant,
    whole: Duration,
}

impl Deadline {
    /// The deadline that lies `whole` after now.
    #[must_use]
    pub fn after(whole: Duration) -> Self {
        Self {
            end: now() + whole,
            whole,
        }
    }

    /// What is left of it; zero when it has passed.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.end.saturating_duration_since(now())
    }

    /// Whether it has passed.
    #[must_use]
    pub fn has_passed(&self) -> bool {
        self.remaining().is_zero()
    }

    /// The whole time that was granted; for messages.
    #[must_use]
    pub fn whole(&self) -> Duration {
        self.whole
    }

    /// How much of the granted time is used up.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.whole.saturating_sub(self.remaining())
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "the one reading of the monotonic clock in this crate"
)]
fn now() -> Instant {
    Instant::now()
}
