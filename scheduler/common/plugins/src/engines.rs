//! From a set of plugins to the engines that use them.

use crate::health_counter::{MonitoredCostModule, MonitoredFilter, MonitoredWeigher};
use crate::load::LoadedPlugin;
use crate::unreachable_plugin::UnreachablePlugin;
use crate::{Plugin, PluginSet};
use ebbtide_cost_api::CostModule;
use ebbtide_engine::{Engine, EngineConfig, EngineError, PluginFailure, WeigherConfig};
use ebbtide_weigher_api::{HostFilter, Weigher};
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnginePurpose {
    Deciding,
    /// It says what it would have decided.
    Shadow,
}

/// Multipliers that the operator has set while schedulers run, by the weigher's name. They count
/// more than those of any configuration, and less than those of aggregates.
pub type Multipliers = BTreeMap<String, f64>;

/// What an engine is made of, before it is made.
struct Parts {
    config: EngineConfig,
    weighers: Vec<Arc<dyn Weigher>>,
    cost_modules: Vec<Arc<dyn CostModule>>,
    filters: Vec<(Arc<dyn HostFilter>, Option<PluginFailure>)>,
}

impl PluginSet {
    /// An engine that uses them: those in shadow only for that purpose. Weighers that
    /// `engine.weighers` does not name come after those that it names; filters run in the order of
    /// the set. A cost module in shadow is
    /// the one that is used in shadow.
    ///
    /// # Errors
    /// [`EngineError::Config`], for example for a weigher that is neither built in nor enabled
    /// here.
    pub fn engine(
        &self,
        config: &EngineConfig,
        multipliers: &Multipliers,
        purpose: EnginePurpose,
    ) -> Result<Engine, EngineError> {
        let mut parts = Parts {
            config: config.clone(),
            weighers: Vec::new(),
            cost_modules: Vec::new(),
            filters: Vec::new(),
        };
        for plugin in &self.plugins {
            let own = &plugin.config;
            let used = own.enabled && (purpose == EnginePurpose::Shadow || !own.shadow);
            let named = |weigher: &WeigherConfig| weigher.name == own.name;
            match used {
                true => parts.add(plugin, purpose),
                // An entry in `engine.weighers` fixes the place of the plugin, not that it is used.
                false => parts.config.weighers.retain(|weigher| !named(weigher)),
            }
        }
        for weigher in &mut parts.config.weighers {
            if let Some(multiplier) = multipliers.get(&weigher.name) {
                weigher.multiplier = Some(*multiplier);
            }
        }
        let engine = Engine::with_plugins(parts.config, parts.weighers, parts.cost_modules)?;
        Ok(engine.with_filters(parts.filters))
    }
}

impl Parts {
    fn add(&mut self, plugin: &Plugin, purpose: EnginePurpose) {
        let own = &plugin.config;
        let health = Arc::clone(match purpose {
            EnginePurpose::Deciding => &plugin.health,
            EnginePurpose::Shadow => &plugin.shadow_health,
        });
        match &plugin.loaded {
            LoadedPlugin::Weigher(weigher) => {
                let inner = Arc::clone(weigher);
                self.weigher(plugin, Arc::new(MonitoredWeigher { inner, health }));
            }
            LoadedPlugin::CostModule(module) => {
                let inner = Arc::clone(module);
                if own.shadow {
                    self.config.cost_module.clone_from(&own.name);
                }
                self.cost_module(plugin, Arc::new(MonitoredCostModule { inner, health }));
            }
            LoadedPlugin::Filter(filter) => {
                let inner = Arc::clone(filter);
                let filter = Arc::new(MonitoredFilter { inner, health });
                self.filters.push((filter, own.on_failure));
            }
            LoadedPlugin::Absent(problem) => {
                let absent = || UnreachablePlugin::of(plugin, problem, &health);
                match self.config.cost_module == own.name {
                    true => self.cost_module(plugin, Arc::new(absent())),
                    false => self.weigher(plugin, Arc::new(absent())),
                }
            }
        }
    }

    fn weigher(&mut self, plugin: &Plugin, weigher: Arc<dyn Weigher>) {
        let own = &plugin.config;
        let mut is_named = false;
        for named in self.config.weighers.iter_mut() {
            if named.name == own.name {
                is_named = true;
                named.multiplier = named.multiplier.or(own.multiplier);
                named.on_failure = named.on_failure.or(own.on_failure);
            }
        }
        if !is_named {
            self.config.weighers.push(WeigherConfig {
                name: own.name.clone(),
                multiplier: own.multiplier,
                on_failure: own.on_failure,
            });
        }
        self.weighers.push(weigher);
    }

    fn cost_module(&mut self, plugin: &Plugin, module: Arc<dyn CostModule>) {
        if self.config.cost_module == plugin.config.name {
            let failure = self.config.cost_module_failure;
            self.config.cost_module_failure = failure.or(plugin.config.on_failure);
        }
        self.cost_modules.push(module);
    }
}
