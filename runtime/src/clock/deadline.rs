//! The end of a wait.

use super::instant;
use std::time::{Duration, Instant};

/// The monotonic time at which a wait ends, and the whole time that was granted.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    end: Instant,
    whole: Duration,
}

impl Deadline {
    /// A deadline at `whole` from now.
    #[must_use]
    pub fn after(whole: Duration) -> Self {
        Self {
            end: instant() + whole,
            whole,
        }
    }

    /// The time that is left; zero once it has passed.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.end.saturating_duration_since(instant())
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

    /// The granted time that is used up.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.whole.saturating_sub(self.remaining())
    }
}
