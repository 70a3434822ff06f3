//! Options of the built-in weighers, and what can be wrong with them.

use ebbtide_model::LifeTables;
use serde::Deserialize;
use thiserror::Error;

/// Longest billing period: a leap year. A longer one is a typing error.
pub const MAX_PERIOD_SECONDS: u32 = 366 * 24 * 3600;

/// Longest horizon of `interruption_risk`: a year, as long as the longest maximum lifetime.
pub const MAX_HORIZON_SECONDS: u32 = 365 * 24 * 3600;

/// Options of the built-in weighers, as they stand in the configuration. Unknown keys are refused.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WeigherOptions {
    /// Billing period in seconds, 1 to [`MAX_PERIOD_SECONDS`]; for `partial_hour_sum`.
    pub period_seconds: u32,
    /// Assumed running time of a preemptible instance whose flavor does not set one, 1 to
    /// [`MAX_HORIZON_SECONDS`] seconds; for `interruption_risk`.
    pub risk_horizon_seconds: u32,
    /// How soon instances are interrupted; `interruption_risk` requires it. It has no key of its
    /// own: the reader of the configuration makes it from a model.
    #[serde(skip)]
    pub interruptions: Option<LifeTables>,
}

impl Default for WeigherOptions {
    /// An hour, as in the paper, and an hour.
    fn default() -> Self {
        Self {
            period_seconds: 3600,
            risk_horizon_seconds: 3600,
            interruptions: None,
        }
    }
}

impl WeigherOptions {
    /// Checks the ranges.
    ///
    /// # Errors
    /// [`ConfigError::OutOfRange`] with the key.
    pub fn check(&self) -> Result<(), ConfigError> {
        let table = [
            ("period_seconds", self.period_seconds, MAX_PERIOD_SECONDS),
            (
                "risk_horizon_seconds",
                self.risk_horizon_seconds,
                MAX_HORIZON_SECONDS,
            ),
        ];
        for (key, value, most) in table {
            if !(1..=most).contains(&value) {
                return Err(ConfigError::OutOfRange {
                    key,
                    value: u64::from(value),
                    allowed: format!("1 to {most} seconds; an hour is 3600"),
                });
            }
        }
        Ok(())
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
    /// A weigher requires a model of interruptions, and the configuration has none.
    #[error(
        "the weigher {name} needs to know how soon instances are interrupted: write `ebbtide-lab model fit … --output json` to a file and name it in engine.interruption_model"
    )]
    NoInterruptions {
        /// The weigher.
        name: String,
    },
}

impl ConfigError {
    /// The stable code of the error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownWeigher { .. } => "EB-WEIGHER-001",
            Self::OutOfRange { .. } => "EB-WEIGHER-002",
            Self::NoInterruptions { .. } => "EB-WEIGHER-003",
        }
    }
}
