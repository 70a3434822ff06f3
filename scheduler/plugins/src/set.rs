//! All plugins of a scheduler.

use crate::load::{self, Loaded};
use crate::watched::{WatchedCostModule, WatchedWeigher};
use crate::{Carrier, Health, PluginConfig, PluginError, PluginKind};
use ebbtide_cost_api::CostModule;
use ebbtide_engine::{Engine, EngineConfig, EngineError, WeigherConfig};
use ebbtide_weigher_api::Weigher;
use sha2::{Digest, Sha256};
use std::fmt;
use std::fs;
use std::sync::Arc;

/// Nanoseconds since 1970.
pub type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;
/// Fills a buffer with random bytes.
pub type Randomness = Arc<dyn Fn(&mut [u8]) + Send + Sync>;

/// Where granted things come from.
#[derive(Clone, Default)]
pub struct Sources {
    /// Nanoseconds since 1970.
    pub clock: Option<Clock>,
    /// Fills a buffer with random bytes.
    pub randomness: Option<Randomness>,
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sources")
    }
}

/// One plugin of a set.
#[derive(Clone)]
pub struct Plugin {
    /// As the operator has it.
    pub config: PluginConfig,
    /// What it is.
    pub kind: PluginKind,
    /// How it is reached.
    pub carrier: Carrier,
    /// The SHA-256 of its file, in hexadecimal digits.
    pub digest: String,
    /// How it behaves.
    pub health: Arc<Health>,
    loaded: Loaded,
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plugin")
            .field("config", &self.config)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

/// All plugins of a scheduler, those that are not enabled included.
#[derive(Debug, Clone, Default)]
pub struct PluginSet {
    plugins: Vec<Plugin>,
}

impl PluginSet {
    /// Reads, compiles and asks all of them. A plugin of `before` whose file and configuration are the same is kept, with what is known of it.
    ///
    /// # Errors
    /// The first one that cannot be used. Nothing has changed then.
    pub fn load(
        configs: &[PluginConfig],
        before: &Self,
        sources: &Sources,
    ) -> Result<Self, PluginError> {
        let mut plugins: Vec<Plugin> = Vec::with_capacity(configs.len());
        for config in configs {
            config.check()?;
            if plugins.iter().any(|known| known.config.name == config.name) {
                return Err(PluginError::same_name(&config.name));
            }
            plugins.push(one(config, before, sources)?);
        }
        Ok(Self { plugins })
    }

    /// The plugins, in the operator's order.
    #[must_use]
    pub fn plugins(&self) -> &[Plugin] {
        &self.plugins
    }

    /// An engine that uses them. Weighers that `engine.weighers` does not name come after those that it names.
    ///
    /// # Errors
    /// [`EngineError::Config`], for example for a weigher that is neither built in nor enabled here.
    pub fn engine(&self, config: &EngineConfig) -> Result<Engine, EngineError> {
        let mut config = config.clone();
        let mut weighers: Vec<Arc<dyn Weigher>> = Vec::new();
        let mut cost_modules: Vec<Arc<dyn CostModule>> = Vec::new();
        for plugin in self.plugins.iter().filter(|plugin| plugin.config.enabled) {
            let own = &plugin.config;
            match &plugin.loaded {
                Loaded::Weigher(weigher) => {
                    let named = config
                        .weighers
                        .iter_mut()
                        .filter(|named| named.name == own.name);
                    let mut is_named = false;
                    for named in named {
                        is_named = true;
                        named.multiplier = named.multiplier.or(own.multiplier);
                        named.on_failure = named.on_failure.or(own.on_failure);
                    }
                    if !is_named {
                        config.weighers.push(WeigherConfig {
                            name: own.name.clone(),
                            multiplier: own.multiplier,
                            on_failure: own.on_failure,
                        });
                    }
                    weighers.push(Arc::new(WatchedWeigher {
                        inner: Arc::clone(weigher),
                        health: Arc::clone(&plugin.health),
                    }));
                }
                Loaded::CostModule(module) => {
                    if config.cost_module == own.name {
                        config.cost_module_failure = config.cost_module_failure.or(own.on_failure);
                    }
                    cost_modules.push(Arc::new(WatchedCostModule {
                        inner: Arc::clone(module),
                        health: Arc::clone(&plugin.health),
                    }));
                }
            }
        }
        Engine::with_plugins(config, weighers, cost_modules)
    }
}

fn one(
    config: &PluginConfig,
    before: &PluginSet,
    sources: &Sources,
) -> Result<Plugin, PluginError> {
    let bytes = fs::read(&config.file).map_err(|source| PluginError::Read {
        name: config.name.clone(),
        path: config.file.clone(),
        source,
    })?;
    let digest: String = Sha256::digest(&bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let same = |known: &&Plugin| {
        // Whether it is used, and how much it counts, is no reason to begin anew.
        let like = PluginConfig {
            enabled: known.config.enabled,
            multiplier: known.config.multiplier,
            on_failure: known.config.on_failure,
            ..config.clone()
        };
        known.digest == digest && known.config == like
    };
    if let Some(known) = before.plugins.iter().find(same) {
        return Ok(Plugin {
            config: config.clone(),
            ..known.clone()
        });
    }
    let loaded = load::load(config, &bytes, sources)?;
    let kind = match &loaded {
        Loaded::Weigher(_) => PluginKind::Weigher,
        Loaded::CostModule(_) => PluginKind::CostModule,
    };
    Ok(Plugin {
        config: config.clone(),
        kind,
        carrier: Carrier::Wasm,
        digest,
        health: Arc::default(),
        loaded,
    })
}
