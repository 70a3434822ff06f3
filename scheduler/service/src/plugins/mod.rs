//! The plugins of this scheduler, and the engines that use them. The region takes the engines in
//! use at the moment of a decision.
//!
//! The plugins in use have two sources: the configuration, which is read again on SIGHUP, and the
//! changes that operators make at run time, which are in the database and which all schedulers on
//! it apply.

mod override_store;
mod refresh;
mod shadow;

pub(crate) use override_store::PluginChange;
pub(crate) use shadow::ShadowBook;
pub(crate) use shadow::ShadowReport;

use crate::args::Args;
use crate::config::{Config, Shadow};
use crate::error::ServiceError;
use ebbtide_engine::{Engine, EngineConfig};
use ebbtide_plugins::{
    EnginePurpose, Plugin, PluginConfig, PluginOverrides, PluginSet, Services, Sources, merge,
};
use ebbtide_runtime::{clock, ids, task};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// The engine that decides, and the one in shadow.
#[derive(Debug, Clone)]
pub(crate) struct Engines {
    /// Makes the decisions.
    pub(crate) deciding: Arc<Engine>,
    /// Its decisions are only compared.
    pub(crate) shadow: Option<Arc<Engine>>,
}

/// The plugins and engine settings from the configuration.
#[derive(Debug, Clone)]
struct FromFile {
    plugins: Vec<PluginConfig>,
    engine: EngineConfig,
    shadow: Shadow,
}

/// The plugins in use.
#[derive(Debug, Clone)]
struct ActivePlugins {
    file: FromFile,
    overrides: PluginOverrides,
    set: PluginSet,
}

/// The plugins in use. Cheap to clone.
#[derive(Clone)]
pub struct Plugins {
    active: Arc<Mutex<ActivePlugins>>,
    engines: watch::Sender<Engines>,
    shadow: ShadowBook,
    /// Allows one change at a time.
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// Clock and random numbers for plugins with those permissions.
fn sources() -> Sources {
    Sources {
        clock: Some(Arc::new(|| {
            let millis = u64::try_from(clock::now().as_millis()).unwrap_or(0);
            millis.saturating_mul(1_000_000)
        })),
        randomness: Some(Arc::new(fill)),
    }
}

/// Random bytes, for plugins with that permission.
fn fill(bytes: &mut [u8]) {
    if let Err(error) = ids::fill(bytes) {
        tracing::error!("the system has no random numbers: {error}");
    }
}

/// Loads new plugins and builds the engines.
fn prepare(
    file: &FromFile,
    overrides: &PluginOverrides,
    before: &PluginSet,
    services: Services,
) -> Result<(PluginSet, Engines), ServiceError> {
    let merged = merge(&file.plugins, overrides)?;
    let multipliers = &merged.multipliers;
    let mut own = file.engine.clone();
    own.cost_module = merged.cost_module.unwrap_or(own.cost_module);
    let set = PluginSet::load(&merged.entries, before, &sources(), services)?;
    let deciding = set.engine(&own, multipliers, EnginePurpose::Deciding)?;
    let mut plugins = set.plugins().iter();
    let is_looked_at = plugins.any(|plugin| plugin.config.shadow && plugin.config.enabled);
    let shadow = match is_looked_at || !file.shadow.is_empty() {
        true => {
            let config = file.shadow.engine(&own);
            let engine = set.engine(&config, multipliers, EnginePurpose::Shadow)?;
            Some(Arc::new(engine))
        }
        false => None,
    };
    let deciding = Arc::new(deciding);
    Ok((set, Engines { deciding, shadow }))
}

impl Plugins {
    /// Reads and checks the plugins of the configuration.
    ///
    /// # Errors
    /// The first plugin that cannot be used, or an invalid engine configuration.
    pub fn load(config: &Config) -> Result<Self, ServiceError> {
        let file = FromFile {
            plugins: config.plugins.clone(),
            engine: config.engine.clone(),
            shadow: config.shadow.clone(),
        };
        let overrides = PluginOverrides::default();
        let (set, engines) = prepare(
            &file,
            &overrides,
            &PluginSet::default(),
            Services::MayBeAway,
        )?;
        let (engines, _) = watch::channel(engines);
        let plugins = Self {
            active: Arc::new(Mutex::new(ActivePlugins {
                file,
                overrides,
                set,
            })),
            engines,
            shadow: ShadowBook::default(),
            turn: Arc::default(),
        };
        plugins.look_at_shadow();
        Ok(plugins)
    }

    /// Replaces the plugins in use, completely or, on any error, not at all. Decisions under way
    /// end with the engine that they began with. The caller must hold the [turn](Self::turn).
    ///
    /// # Errors
    /// As [`Self::load`]; nothing has changed then.
    async fn replace(
        &self,
        file: FromFile,
        overrides: PluginOverrides,
        services: Services,
    ) -> Result<(), ServiceError> {
        let before = self.active().set;
        let (file, overrides, done) = task::blocking_io(move || {
            let done = prepare(&file, &overrides, &before, services);
            Ok((file, overrides, done))
        })
        .await
        .map_err(|error| ServiceError::Config(format!("the plugins: {error}")))?;
        let (set, engines) = done?;
        *self.active.lock().unwrap_or_else(PoisonError::into_inner) = ActivePlugins {
            file,
            overrides,
            set,
        };
        self.engines.send_replace(engines);
        self.look_at_shadow();
        Ok(())
    }

    /// SIGHUP: reads the configuration again and applies its plugins and its settings for weighers,
    /// cost module and lifetime models. Other changes apply at the next start.
    pub async fn read_again(&self, args: &Args) {
        let _turn = self.turn.lock().await;
        let active = self.active();
        let done = match args.config(std::env::vars()) {
            Ok(config) => {
                let engine = EngineConfig {
                    weighers: config.engine.weighers,
                    cost_module: config.engine.cost_module,
                    plugin_failure: config.engine.plugin_failure,
                    cost_module_failure: config.engine.cost_module_failure,
                    lifetime_model: config.engine.lifetime_model,
                    interruption_model: config.engine.interruption_model,
                    risk_horizon_seconds: config.engine.risk_horizon_seconds,
                    lifetimes: config.engine.lifetimes,
                    interruptions: config.engine.interruptions,
                    ..active.file.engine
                };
                let file = FromFile {
                    plugins: config.plugins,
                    engine,
                    shadow: config.shadow,
                };
                self.replace(file, active.overrides, Services::MustAnswer)
                    .await
            }
            Err(error) => Err(error),
        };
        match done {
            Ok(()) => tracing::info!(
                plugins = self.list().len(),
                "SIGHUP: the plugins were read again"
            ),
            Err(error) => tracing::error!(
                code = error.code(),
                "SIGHUP: the plugins stay as they are: {error}"
            ),
        }
    }

    fn active(&self) -> ActivePlugins {
        self.active
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Passes a description of what is in shadow now to the report.
    fn look_at_shadow(&self) {
        let active = self.active();
        let mut what: Vec<String> = active
            .set
            .plugins()
            .iter()
            .filter(|plugin| plugin.config.shadow && plugin.config.enabled)
            .map(|plugin| format!("{} {}", plugin.kind.as_str(), plugin.config.name))
            .collect();
        if !active.file.shadow.is_empty() {
            what.push("the ranking of [shadow]".to_owned());
        }
        let what = Some(what.join(", ")).filter(|what| !what.is_empty());
        self.shadow.begin(clock::now(), what);
    }

    /// All plugins, in the operator's order.
    #[must_use]
    pub fn list(&self) -> Vec<Plugin> {
        self.active().set.plugins().to_vec()
    }

    /// All plugins, each with whether it was added at run time.
    #[must_use]
    pub fn listed(&self) -> Vec<(Plugin, bool)> {
        let active = self.active();
        let is_added = |plugin: &Plugin| {
            let overrides = active.overrides.get(&plugin.config.name);
            overrides.is_some_and(|overrides| overrides.config.is_some())
        };
        let plugins = active.set.plugins().iter();
        plugins
            .map(|plugin| (plugin.clone(), is_added(plugin)))
            .collect()
    }

    /// The engine in use.
    #[must_use]
    pub fn engine(&self) -> Arc<Engine> {
        Arc::clone(&self.engines.borrow().deciding)
    }

    /// The engines in use, and all later ones.
    pub(crate) fn engines(&self) -> watch::Receiver<Engines> {
        self.engines.subscribe()
    }

    /// The collected shadow comparisons.
    pub(crate) fn shadow(&self) -> &ShadowBook {
        &self.shadow
    }
}
