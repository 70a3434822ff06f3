//! Options of the built-in cost modules, and what can be wrong with them.

use ebbtide_model::LifeTables;
use serde::Deserialize;
use thiserror::Error;

/// Longest billing period: a leap year. A longer one is a typing error.
pub const MAX_PERIOD_SECONDS: u32 = 366 * 24 * 3600;
/// Longest horizon, 31 years: the largest cost that the engine accepts
/// ([`MAX_COST`](ebbtide_cost_api::MAX_COST)).
pub const MAX_HORIZON_SECONDS: u32 = 1_000_000_000;
/// Largest surcharge of the second victim of a project, eleven days: a larger one means the same,
/// as no sum of partial hours comes near it, and this leaves the costs of 1,000 victims of one
/// project within the range of costs.
pub const MAX_FAIRNESS_SECONDS: u32 = 1_000_000;

/// Options of the built-in cost modules, as they stand in the configuration. Unknown keys are
/// refused.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CostModuleOptions {
    /// Billing period in seconds, 1 to [`MAX_PERIOD_SECONDS`]; for `partial_hour` and `revenue`.
    pub period_seconds: u32,
    /// Age in seconds from which on instances are all equally old, 1 to [`MAX_HORIZON_SECONDS`];
    /// for `oldest_first`.
    pub horizon_seconds: u32,
    /// What each further victim of the same project costs more than the one before it, in seconds,
    /// 1 to [`MAX_FAIRNESS_SECONDS`]; for `fairness`.
    pub fairness_seconds: u32,
    /// How long instances live; `remaining_lifetime` requires it. It has no key of its own: the
    /// reader of the configuration makes it from a model.
    #[serde(skip)]
    pub lifetimes: Option<LifeTables>,
}

impl Default for CostModuleOptions {
    /// An hour, as in the paper, 365 days, and ten minutes.
    fn default() -> Self {
        Self {
            period_seconds: 3600,
            horizon_seconds: 365 * 24 * 3600,
            fairness_seconds: 600,
            lifetimes: None,
        }
    }
}

impl CostModuleOptions {
    /// Checks the ranges.
    ///
    /// # Errors
    /// [`ConfigError::OutOfRange`] with the key.
    pub fn check(&self) -> Result<(), ConfigError> {
        let table = [
            (
                "period_seconds",
                self.period_seconds,
                MAX_PERIOD_SECONDS,
                "an hour is 3600",
            ),
            (
                "horizon_seconds",
                self.horizon_seconds,
                MAX_HORIZON_SECONDS,
                "365 days are 31536000",
            ),
            (
                "fairness_seconds",
                self.fairness_seconds,
                MAX_FAIRNESS_SECONDS,
                "ten minutes are 600",
            ),
        ];
        for (key, value, max, hint) in table {
            if !(1..=max).contains(&value) {
                let allowed = format!("1 to {max} seconds; {hint}");
                return Err(ConfigError::OutOfRange {
                    key,
                    value,
                    allowed,
                });
            }
        }
        Ok(())
    }
}

/// What can be wrong with the configuration of cost modules.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// No built-in cost module has this name.
    #[error("there is no cost module {name:?}; use one of {}", known.join(", "))]
    UnknownCostModule {
        /// The name as it came.
        name: String,
        /// All names that would be accepted.
        known: Vec<String>,
    },
    /// An option outside of its range.
    #[error("cost module option {key} = {value} is out of range; use {allowed}")]
    OutOfRange {
        /// The key in the configuration.
        key: &'static str,
        /// The value as it came.
        value: u32,
        /// What is allowed, in words.
        allowed: String,
    },
    /// A module requires a model of lifetimes, and the configuration has none.
    #[error(
        "the cost module {name} needs to know how long instances live: write `ebbtide-lab model fit … --output json` to a file and name it in engine.lifetime_model"
    )]
    NoLifetimes {
        /// The module.
        name: String,
    },
}

impl ConfigError {
    /// The stable code of the error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownCostModule { .. } => "EB-COST-001",
            Self::OutOfRange { .. } => "EB-COST-002",
            Self::NoLifetimes { .. } => "EB-COST-003",
        }
    }
}
