//! Weighers and filters for a scheduler whose arithmetic is not the engine's: OpenStack mode.

use crate::EnginePurpose;
use crate::health_counter::{MonitoredCostModule, MonitoredFilter, MonitoredWeigher};
use crate::load::LoadedPlugin;
use crate::unreachable_plugin::UnreachablePlugin;
use crate::{Plugin, PluginSet};
use ebbtide_cost_api::CostModule;
use ebbtide_engine::PluginFailure;
use ebbtide_weigher_api::{
    FilterFailure, HostBatch, HostFilter, RequestView, Weigher, WeigherDecorator, WeigherError,
};
use std::sync::Arc;

/// Weighers, cost modules and filters on their own.
pub struct StandaloneWeighers {
    /// Each with its multiplier, in the operator's order.
    pub weighers: Vec<(Arc<dyn Weigher>, f64)>,
    /// Cost modules, whether or not one is used.
    pub cost_modules: Vec<Arc<dyn CostModule>>,
    /// Filters, each with what follows when it fails, in the operator's order.
    pub filters: Vec<(Arc<dyn HostFilter>, FilterFailure)>,
}

impl Plugin {
    /// How much it counts, if it is a weigher: as the operator has it, or as it says itself.
    #[must_use]
    pub fn multiplier(&self) -> Option<f64> {
        let own = || match &self.loaded {
            LoadedPlugin::Weigher(weigher) => Some(weigher.default_multiplier()),
            LoadedPlugin::CostModule(_) | LoadedPlugin::Filter(_) | LoadedPlugin::Absent(_) => None,
        };
        self.config.multiplier.or_else(own)
    }
}

impl PluginSet {
    /// The plugins that are enabled; those in shadow only for that purpose. A weigher that fails
    /// and is to be ignored says nothing about any host. One that is away counts as a weigher,
    /// unless it has the name of the cost module in use; its calls fail.
    #[must_use]
    pub fn standalone(
        &self,
        on_failure: PluginFailure,
        cost_module: &str,
        purpose: EnginePurpose,
    ) -> StandaloneWeighers {
        let mut standalone = StandaloneWeighers {
            weighers: Vec::new(),
            cost_modules: Vec::new(),
            filters: Vec::new(),
        };
        let plugins = self.plugins.iter();
        let is_shadow = purpose == EnginePurpose::Shadow;
        for plugin in plugins.filter(|p| p.config.enabled && (is_shadow || !p.config.shadow)) {
            let health = Arc::clone(match purpose {
                EnginePurpose::Deciding => &plugin.health,
                EnginePurpose::Shadow => &plugin.shadow_health,
            });
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
                LoadedPlugin::Filter(inner) => {
                    let inner = Arc::clone(inner);
                    let filter = MonitoredFilter { inner, health };
                    let failure = match plugin.config.on_failure.unwrap_or(on_failure) {
                        PluginFailure::Ignore => FilterFailure::Pass,
                        PluginFailure::Refuse => FilterFailure::Refuse,
                    };
                    standalone.filters.push((Arc::new(filter), failure));
                    continue;
                }
                LoadedPlugin::Absent(problem) => {
                    let absent = UnreachablePlugin::of(plugin, problem, &health);
                    if plugin.config.name == cost_module {
                        standalone.cost_modules.push(Arc::new(absent));
                        continue;
                    }
                    Arc::new(absent)
                }
            };
            let multiplier = plugin.multiplier();
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
