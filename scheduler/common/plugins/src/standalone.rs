//! Weighers for a scheduler whose arithmetic is not the engine's: OpenStack mode.

use crate::health_counter::{MonitoredCostModule, MonitoredWeigher};
use crate::late_plugin::LatePlugin;
use crate::load::{self, LoadedPlugin};
use crate::unreachable_plugin::UnreachablePlugin;
use crate::{Health, PluginConfig, PluginSet};
use ebbtide_cost_api::CostModule;
use ebbtide_engine::PluginFailure;
use ebbtide_weigher_api::{HostBatch, RequestView, Weigher, WeigherDecorator, WeigherError};
use std::sync::{Arc, OnceLock};

/// Weighers of their own, and how those are reached that were away.
pub struct StandaloneWeighers {
    /// Each with its multiplier, in the operator's order.
    pub weighers: Vec<(Arc<dyn Weigher>, f64)>,
    /// Cost modules, whether or not one is used.
    pub cost_modules: Vec<Arc<dyn CostModule>>,
    late_plugins: Vec<(PluginConfig, Arc<Health>, Arc<LatePlugin>)>,
}

impl StandaloneWeighers {
    /// True if some were away.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        let mut late = self.late_plugins.iter();
        late.any(|(_, _, late)| late.reached.get().is_none())
    }

    /// Tries to reach those that were away. What is reached is used from the next decision on.
    pub fn retry_late_plugins(&self) {
        for (config, health, late) in &self.late_plugins {
            let Some(address) = config.address.as_deref() else {
                continue;
            };
            if late.reached.get().is_some() {
                continue;
            }
            match load::reach(config, address) {
                Ok(LoadedPlugin::Weigher(inner)) => {
                    let health = Arc::clone(health);
                    let weigher: Arc<dyn Weigher> = Arc::new(MonitoredWeigher { inner, health });
                    // Only this function sets it, and it is called by one.
                    let _ = late.reached.set(weigher);
                    tracing::info!(plugin = config.name, "is there now");
                }
                Ok(LoadedPlugin::CostModule(_) | LoadedPlugin::Absent(_)) => tracing::error!(
                    plugin = config.name,
                    "is no weigher: restart the scheduler to use it"
                ),
                Err(error) => tracing::warn!(code = error.code(), "{error}"),
            }
        }
    }
}

impl PluginSet {
    /// The plugins that are enabled and not in shadow. A weigher that fails and is to be ignored
    /// says nothing about any host.
    #[must_use]
    pub fn standalone(&self, on_failure: PluginFailure) -> StandaloneWeighers {
        let mut standalone = StandaloneWeighers {
            weighers: Vec::new(),
            cost_modules: Vec::new(),
            late_plugins: Vec::new(),
        };
        let plugins = self.plugins.iter();
        for plugin in plugins.filter(|p| p.config.enabled && !p.config.shadow) {
            let health = Arc::clone(&plugin.health);
            let weigher: Arc<dyn Weigher> = match &plugin.loaded {
                LoadedPlugin::Weigher(inner) => {
                    let inner = Arc::clone(inner);
                    Arc::new(MonitoredWeigher { inner, health })
                }
                LoadedPlugin::CostModule(inner) => {
                    let inner = Arc::clone(inner);
                    let module = MonitoredCostModule { inner, health };
                    standalone.cost_modules.push(Arc::new(module));
                    continue;
                }
                LoadedPlugin::Absent(problem) => {
                    let late = Arc::new(LatePlugin {
                        absent: UnreachablePlugin::of(plugin, problem, &health),
                        reached: OnceLock::new(),
                    });
                    let config = plugin.config.clone();
                    standalone
                        .late_plugins
                        .push((config, health, Arc::clone(&late)));
                    late
                }
            };
            let multiplier = plugin.config.multiplier;
            let multiplier = multiplier.unwrap_or_else(|| weigher.default_multiplier());
            let weigher = match plugin.config.on_failure.unwrap_or(on_failure) {
                PluginFailure::Refuse => weigher,
                PluginFailure::Ignore => Arc::new(LenientWeigher(weigher)),
            };
            standalone.weighers.push((weigher, multiplier));
        }
        standalone
    }
}

/// A weigher whose failures count as silence. They are counted and logged.
pub(crate) struct LenientWeigher(pub(crate) Arc<dyn Weigher>);

impl WeigherDecorator for LenientWeigher {
    fn inner(&self) -> &dyn Weigher {
        self.0.as_ref()
    }

    fn weigh(
        &self,
        request: &RequestView<'_>,
        hosts: &HostBatch<'_>,
        out: &mut [f64],
    ) -> Result<(), WeigherError> {
        if let Err(error) = self.0.weigh(request, hosts, out) {
            tracing::warn!(plugin = self.0.name(), "ignored for this request: {error}");
            // The same for every host becomes nothing for every host, unless the scale is fixed:
            // its lower end is nothing then.
            out.fill(self.0.bounds().min.unwrap_or(0.0));
        }
        Ok(())
    }
}
