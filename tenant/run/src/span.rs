//! Time in whole milliseconds: sums do not depend on their order.

use serde::{Deserialize, Serialize};

/// A length of time, milliseconds.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Span(pub u64);

/// A point in time, milliseconds since the run began. It never decreases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RunTime(pub u64);

impl Span {
    /// No time.
    pub const ZERO: Self = Self(0);

    /// Converts hours. Negative values and NaN become zero; values that are too long become the
    /// longest span.
    #[must_use]
    pub fn from_hours(hours: f64) -> Self {
        // The cast saturates.
        Self((hours * 3_600_000.0).round() as u64)
    }

    /// In hours.
    #[must_use]
    pub fn hours(self) -> f64 {
        self.0 as f64 / 3_600_000.0
    }

    /// The sum.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference; zero if `other` is longer.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// This percentage of it.
    #[must_use]
    pub const fn percent(self, hundredths: u64) -> Self {
        Self(self.0.saturating_mul(hundredths) / 100)
    }
}

impl RunTime {
    /// Later by this.
    #[must_use]
    pub const fn plus(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// Earlier by this; not before the beginning.
    #[must_use]
    pub const fn minus(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }

    /// The time since `earlier`; zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}
