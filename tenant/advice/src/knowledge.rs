//! Everything about a flavor that takes time to compute: the model and its backtest. To be made once and asked often.

use crate::calibration::{Calibration, backtest};
use crate::error::AdviceError;
use crate::limits::LEAST_INTERRUPTIONS;
use crate::model::{Chosen, choose};
use crate::pool::Pool;
use ebbtide_lifetime::Observations;

/// Which lives were looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Those of the flavor.
    Flavor,
    /// Those of all preemptible flavors: the flavor's own are too few.
    AllPreemptible,
}

impl Scope {
    /// The word for it in the contract.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Flavor => "flavor",
            Self::AllPreemptible => "all-preemptible",
        }
    }
}

/// What is known of a flavor, as far as one asker may know it.
#[derive(Debug)]
pub struct Knowledge {
    pub(crate) pool: Pool,
    pub(crate) scope: Scope,
    pub(crate) seen: Observations,
    pub(crate) model: Result<Chosen, String>,
    pub(crate) calibration: Calibration,
}

impl Knowledge {
    /// Fits and tests. Too few lives are no error: the advice says so then.
    ///
    /// # Errors
    /// [`AdviceError::Model`] for lives that cannot be.
    pub fn of(pool: Pool, scope: Scope) -> Result<Self, AdviceError> {
        let seen = pool.observations()?;
        let model = if pool.enough() {
            choose(&seen).map_err(|error| {
                format!("too little is known, or these lives are too alike for a model: {error}")
            })
        } else {
            Err(format!(
                "too little is known: a model needs at least {LEAST_INTERRUPTIONS} interruptions"
            ))
        };
        let calibration = if model.is_ok() {
            backtest(&pool, |known| choose(known).ok().map(|chosen| chosen.model))
        } else {
            Calibration::default()
        };
        Ok(Self {
            pool,
            scope,
            seen,
            model,
            calibration,
        })
    }
}
