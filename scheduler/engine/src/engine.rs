//! The engine: a configuration with its plugins, ready to decide.

use crate::{Budgets, EngineConfig, EngineError, HostTable};
use ebbtide_cost_api::CostModule;
use ebbtide_model::{Decision, DecisionId, PlacementRequest, Timestamp};
use ebbtide_weigher_api::Weigher;
use std::fmt;
use std::sync::Arc;

/// A configuration with its plugins, ready to decide. Cheap to clone, and shared between threads as it is.
#[derive(Clone)]
pub struct Engine {
    config: EngineConfig,
    pub(crate) weighers: Vec<Arc<dyn Weigher>>,
    pub(crate) cost_module: Arc<dyn CostModule>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// An engine with the built-in weighers and cost modules.
    ///
    /// # Errors
    /// [`EngineError::Config`] that names the key.
    pub fn new(config: EngineConfig) -> Result<Self, EngineError> {
        Self::with_plugins(config, Vec::new(), Vec::new())
    }

    /// An engine that knows further weighers and cost modules by their names.
    ///
    /// # Errors
    /// [`EngineError::Config`] that names the key.
    pub fn with_plugins(
        config: EngineConfig,
        weighers: Vec<Box<dyn Weigher>>,
        cost_modules: Vec<Box<dyn CostModule>>,
    ) -> Result<Self, EngineError> {
        config.check()?;
        let _ = (weighers, cost_modules);
        Err(EngineError::Internal(
            "the plugins are not connected yet".to_owned(),
        ))
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &EngineConfig {
        &self.config
    }

    /// Decides one request.
    ///
    /// # Errors
    /// A bad request, or a plugin that is refused. NoValidHost is not an error but an answer.
    #[allow(clippy::too_many_arguments)]
    pub fn decide(
        &self,
        table: &HostTable,
        budgets: &Budgets,
        request: &PlacementRequest,
        now: Timestamp,
        seed: u64,
        id: DecisionId,
    ) -> Result<Decision, EngineError> {
        let _ = (table, budgets, request, now, seed, id);
        Err(EngineError::Internal(
            "the decision is not connected yet".to_owned(),
        ))
    }
}
