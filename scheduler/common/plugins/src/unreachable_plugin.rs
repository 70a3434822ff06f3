//! What stands in for a service that could not be reached when the scheduler started.

use crate::{Health, Plugin};
use ebbtide_cost_api::{CostError, CostModule, VictimBatch};
use ebbtide_weigher_api::{Column, HostBatch, RequestView, Weigher, WeigherError};
use std::sync::Arc;

/// Stands for a plugin that is not there. Every call fails, so the operator's policy for failures
/// decides and the failure is visible. The kind of the plugin is unknown, so it can stand for a
/// weigher or a cost module.
pub(crate) struct UnreachablePlugin {
    pub(crate) name: String,
    pub(crate) multiplier_key: String,
    pub(crate) problem: String,
    pub(crate) health: Arc<Health>,
}

impl UnreachablePlugin {
    pub(crate) fn of(plugin: &Plugin, problem: &str, health: &Arc<Health>) -> Self {
        let name = &plugin.config.name;
        Self {
            name: name.clone(),
            multiplier_key: format!("{name}_weight_multiplier"),
            problem: format!("could not be reached when the scheduler took it: {problem}"),
            health: Arc::clone(health),
        }
    }

    fn fail(&self) -> Result<String, String> {
        self.health.start_call()?;
        self.health.failed(&self.problem);
        Ok(self.problem.clone())
    }
}

impl Weigher for UnreachablePlugin {
    fn name(&self) -> &str {
        &self.name
    }

    fn multiplier_key(&self) -> &str {
        &self.multiplier_key
    }

    fn default_multiplier(&self) -> f64 {
        1.0
    }

    fn needs(&self) -> &[Column] {
        &[]
    }

    fn weigh(
        &self,
        _: &RequestView<'_>,
        _: &HostBatch<'_>,
        _: &mut [f64],
    ) -> Result<(), WeigherError> {
        let (Ok(why) | Err(why)) = self.fail();
        Err(WeigherError::Other(why))
    }
}

impl CostModule for UnreachablePlugin {
    fn name(&self) -> &str {
        &self.name
    }

    fn unit(&self) -> &str {
        "unknown"
    }

    fn cost(&self, _: &VictimBatch<'_>, _: &mut [f64]) -> Result<(), CostError> {
        let (Ok(why) | Err(why)) = self.fail();
        Err(CostError::Other(why))
    }
}
