//! The parts of advice for a flavor that take time to compute: the model and its backtest. Computed
//! once for many questions.

use crate::calibration::{Calibration, backtest};
use crate::error::AdviceError;
use crate::limits::LEAST_INTERRUPTIONS;
use crate::model::{SelectedModel, choose};
use crate::pool::LifePool;
use ebbtide_lifetime::Observations;

/// Which flavors the lives belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlavorScope {
    /// The flavor itself.
    Flavor,
    /// All preemptible flavors, because the flavor's own lives are too few.
    AllPreemptible,
}

impl FlavorScope {
    /// Its name in the contract.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Flavor => "flavor",
            Self::AllPreemptible => "all-preemptible",
        }
    }
}

/// The knowledge about a flavor that one tenant may have.
#[derive(Debug)]
pub struct FlavorModel {
    pub(crate) pool: LifePool,
    pub(crate) scope: FlavorScope,
    pub(crate) seen: Observations,
    pub(crate) model: Result<SelectedModel, String>,
    pub(crate) calibration: Calibration,
}

impl FlavorModel {
    /// Fits and tests the model. Too few lives are not an error: the advice then says so.
    ///
    /// # Errors
    /// [`AdviceError::Model`] for invalid lives.
    pub fn of(pool: LifePool, scope: FlavorScope) -> Result<Self, AdviceError> {
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
