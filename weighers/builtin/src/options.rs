//! Options of the built-in weighers, and what can be wrong with them.

use serde::Deserialize;
use thiserror::Error;

/// Longest billing period: a leap year. A longer one is a typing error.
pub const MAX_PERIOD_SECONDS: u32 = 366 * 24 * 3600;

/// Options of the built-in weighers, as they stand in the configuration. Unknown keys are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WeigherOptions {
    /// Billing period in seconds, 1 to [`MAX_PERIOD_SECONDS`]; for `partial_hour_sum`.
    pub period_seconds: u32,
}

impl Default for WeigherOptions {
    /// An hour, as in the paper.
    fn default() -> Self {
        Self {
            period_seconds: 3600,
        }
    }
}

impl WeigherOptions {
    /// Checks the ranges.
    ///
    /// # Errors
    /// [`ConfigError::OutOfRange`] with the key.
    pub fn check(&self) -> Result<(), ConfigError> {
        if (1..=MAX_PERIOD_SECONDS).contains(&self.period_seconds) {
            Ok(())
        } else {
            Err(ConfigError::OutOfRange {
                key: "period_seconds",
                value: u64::from(self.period_seconds),
                allowed: format!("1 to {MAX_PERIOD_SECONDS} seconds; an hour is 3600"),
            })
        }
    }
}

/// What can be wrong with the configuration of weighers.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// No built-in weigher has this name.
    #[error("there is no weigher {name:?}; use one of {}", known.join(", "))]
    UnknownWeigher {
        /// The name as it came.
        name: String,
        /// All names that would be accepted.
        known: Vec<String>,
    },
    /// An option outside of its range.
    #[error("weigher option {key} = {value} is out of range; use {allowed}")]
    OutOfRange {
        /// The key in the configuration.
        key: &'static str,
        /// The value as it came.
        value: u64,
        /// What is allowed, in words.
        allowed: String,
    },
}

impl ConfigError {
    /// The stable code of the error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownWeigher { .. } => "EB-WEIGHER-001",
            Self::OutOfRange { .. } => "EB-WEIGHER-002",
        }
    }
}
