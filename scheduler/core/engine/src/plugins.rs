//! What happens when a weigher, a filter or the cost module misbehaves.
//!
//! A failure interrupts the attempt to decide. With `plugin_failure = "refuse"` the request is
//! refused; with `ignore` the attempt starts again from the beginning without the plugin, so that
//! one decision is never made by two different measures. A filter whose failures are not to be
//! ignored refuses every host instead: NoValidHost with its reason is recorded as a decision.

use crate::{Engine, EngineError, PluginFailure};
use ebbtide_weigher_api::{FilterFailure, HostFilter, Weigher};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A weigher as it is configured.
#[derive(Clone)]
pub(crate) struct UsedWeigher {
    pub(crate) weigher: Arc<dyn Weigher>,
    /// From the configuration, or the weigher's own; aggregates may override it host by host.
    pub(crate) multiplier: f64,
    /// The plugin's own policy for failures, if it has one.
    pub(crate) on_failure: Option<PluginFailure>,
}

/// A filter of the operator's.
#[derive(Clone)]
pub(crate) struct UsedFilter {
    pub(crate) filter: Arc<dyn HostFilter>,
    /// The plugin's own policy for failures, if it has one.
    pub(crate) on_failure: Option<PluginFailure>,
}

/// Why an attempt to decide has ended without an answer.
#[derive(Debug)]
pub(crate) enum DecideFailure {
    /// The weigher at this place of the configuration misbehaved.
    Weigher(usize, String),
    /// The filter at this place misbehaved.
    Filter(usize, String),
    /// The cost module misbehaved.
    CostModule(String),
    /// Nothing that another attempt could help.
    Engine(EngineError),
}

impl From<EngineError> for DecideFailure {
    fn from(error: EngineError) -> Self {
        Self::Engine(error)
    }
}

/// The plugins that are left out of this request, with what they did.
#[derive(Debug, Clone, Default)]
pub(crate) struct FailedPlugins {
    weighers: BTreeMap<usize, String>,
    filters: BTreeMap<usize, (PluginFailure, String)>,
    cost_module: Option<String>,
}

impl FailedPlugins {
    /// True if the weigher at this place is left out.
    pub(crate) fn has_weigher(&self, place: usize) -> bool {
        self.weighers.contains_key(&place)
    }

    /// What follows from the failure of the filter at this place, and the failure in words.
    pub(crate) fn filter(&self, place: usize) -> Option<(PluginFailure, &str)> {
        let (policy, problem) = self.filters.get(&place)?;
        Some((*policy, problem))
    }

    /// True if every victim costs 1.
    pub(crate) fn has_cost_module(&self) -> bool {
        self.cost_module.is_some()
    }

    /// Notes a failure. Every plugin is noted once at most, so attempts come to an end.
    ///
    /// # Errors
    /// The failure as the caller of the engine sees it, if it is not to be ignored.
    pub(crate) fn note(
        &mut self,
        failure: DecideFailure,
        engine: &Engine,
    ) -> Result<(), EngineError> {
        let (config, weighers) = (engine.config(), &engine.weighers);
        let cost_module = engine.cost_module.as_ref();
        match failure {
            DecideFailure::Engine(error) => Err(error),
            DecideFailure::Weigher(place, problem) => {
                let used = weighers.get(place);
                let name = used.map_or("?", |w| w.weigher.name());
                let policy = used.and_then(|w| w.on_failure);
                let policy = policy.unwrap_or(config.plugin_failure);
                if policy == PluginFailure::Refuse {
                    return Err(EngineError::Weigher {
                        weigher: name.to_owned(),
                        problem,
                    });
                }
                let warning = format!("weigher {name} was ignored: it {problem}");
                match self.weighers.insert(place, warning) {
                    None => Ok(()),
                    Some(_) => Err(twice(name)),
                }
            }
            DecideFailure::Filter(place, problem) => {
                let used = engine.filters.get(place);
                let name = used.map_or("?", |used| used.filter.name());
                let policy = used.and_then(|used| used.on_failure);
                let policy = policy.unwrap_or(config.plugin_failure);
                let failure = match policy {
                    PluginFailure::Ignore => FilterFailure::Pass,
                    PluginFailure::Refuse => FilterFailure::Refuse,
                };
                let warning = failure.text(name, &problem);
                match self.filters.insert(place, (policy, warning)) {
                    None => Ok(()),
                    Some(_) => Err(twice(name)),
                }
            }
            DecideFailure::CostModule(problem) => {
                let name = cost_module.name();
                let policy = config.cost_module_failure.unwrap_or(config.plugin_failure);
                if policy == PluginFailure::Refuse {
                    return Err(EngineError::CostModule {
                        module: name.to_owned(),
                        problem,
                    });
                }
                let warning =
                    format!("cost module {name} was ignored, every victim costs 1: it {problem}");
                match self.cost_module.replace(warning) {
                    None => Ok(()),
                    Some(_) => Err(twice(name)),
                }
            }
        }
    }

    /// What an explanation says about it.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let filters = self.filters.values().map(|(_, warning)| warning);
        let others = self.weighers.values().chain(&self.cost_module);
        filters.chain(others).cloned().collect()
    }
}

fn twice(name: &str) -> EngineError {
    EngineError::Internal(format!(
        "plugin {name} was called after it had been left out"
    ))
}
