//! The plugins of a standalone region's scheduler, and the engines that use them. The region takes
//! the engines in use at the moment of a decision.

use crate::args::Args;
use crate::config::{Config, Shadow};
use crate::error::ServiceError;
use ebbtide_engine::{Engine, EngineConfig, EngineError};
use ebbtide_live_plugins::{LivePluginError, LivePlugins, PluginUsage, PluginUser, ShadowBook};
use ebbtide_plugins::{EnginePurpose, MergedPlugins, Plugin, PluginConfig, PluginKind, PluginSet};
use ebbtide_region::RegionError;
use ebbtide_runtime::clock;
use std::sync::Arc;
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
pub(crate) struct EngineFile {
    plugins: Vec<PluginConfig>,
    engine: EngineConfig,
    shadow: Shadow,
}

/// Engines before they are used.
pub(crate) struct PreparedEngines {
    engines: Engines,
    /// What is in shadow, as text; `None`: nothing is.
    in_shadow: Option<String>,
}

/// The engines in use.
pub(crate) struct RegionEngines {
    engines: watch::Sender<Engines>,
    shadow: ShadowBook,
}

/// A description of what is in shadow.
fn in_shadow(file: &EngineFile, set: &PluginSet) -> Option<String> {
    let ranking = (!file.shadow.is_empty()).then(|| "the ranking of [shadow]".to_owned());
    let what: Vec<String> = set.in_shadow().into_iter().chain(ranking).collect();
    (!what.is_empty()).then(|| what.join(", "))
}

fn refused(error: EngineError) -> LivePluginError {
    let error = RegionError::from(error);
    LivePluginError::User {
        code: error.code(),
        message: error.to_string(),
    }
}

impl PluginUser for RegionEngines {
    type File = EngineFile;
    type Prepared = PreparedEngines;

    fn plugins(file: &EngineFile) -> &[PluginConfig] {
        &file.plugins
    }

    fn prepare(
        file: &EngineFile,
        merged: &MergedPlugins,
        set: &PluginSet,
    ) -> Result<PreparedEngines, LivePluginError> {
        let multipliers = &merged.multipliers;
        let mut own = file.engine.clone();
        if let Some(cost_module) = &merged.cost_module {
            own.cost_module.clone_from(cost_module);
        }
        let build = |config: &EngineConfig, purpose| {
            let engine = set.engine(config, multipliers, purpose);
            engine.map(Arc::new).map_err(refused)
        };
        let deciding = build(&own, EnginePurpose::Deciding)?;
        let in_shadow = in_shadow(file, set);
        let shadow = in_shadow.as_ref().map(|_| {
            let config = file.shadow.engine(&own);
            build(&config, EnginePurpose::Shadow)
        });
        let shadow = shadow.transpose()?;
        Ok(PreparedEngines {
            engines: Engines { deciding, shadow },
            in_shadow,
        })
    }

    fn apply(&self, prepared: PreparedEngines) -> Result<(), LivePluginError> {
        self.engines.send_replace(prepared.engines);
        self.shadow.begin(clock::now(), prepared.in_shadow);
        Ok(())
    }

    fn cost_module(&self) -> String {
        self.engine().config().cost_module.clone()
    }

    fn has_weigher(&self, name: &str) -> bool {
        self.engine().multiplier(name).is_some()
    }

    fn shadow(&self) -> &ShadowBook {
        &self.shadow
    }

    fn cost_units(&self) -> (String, String) {
        let engines = self.engines.borrow();
        let shadow = engines.shadow.as_ref().map(|engine| engine.cost_unit());
        let deciding = engines.deciding.cost_unit().to_owned();
        (deciding, shadow.unwrap_or_default().to_owned())
    }

    fn usage(&self, plugin: &Plugin) -> PluginUsage {
        let engine = self.engine();
        let (config, name) = (engine.config(), &plugin.config.name);
        let (used, multiplier, failure) = match plugin.kind {
            PluginKind::Weigher => {
                let used = config.weighers.iter().find(|weigher| weigher.name == *name);
                let failure = used.and_then(|weigher| weigher.on_failure);
                (used.is_some(), engine.multiplier(name), failure)
            }
            PluginKind::CostModule => (
                config.cost_module == *name,
                None,
                config.cost_module_failure,
            ),
            PluginKind::Filter => (true, None, None),
            // The kind is unknown because the plugin has not answered yet, so no engine uses it.
            PluginKind::Unknown => (false, None, None),
        };
        let failure = failure.or(plugin.config.on_failure);
        PluginUsage {
            in_use: used && plugin.config.enabled && !plugin.config.shadow,
            multiplier,
            on_failure: failure.unwrap_or(config.plugin_failure),
        }
    }
}

impl RegionEngines {
    fn engine(&self) -> Arc<Engine> {
        Arc::clone(&self.engines.borrow().deciding)
    }
}

/// The plugins in use. Cheap to clone.
#[derive(Clone)]
pub struct Plugins {
    live: LivePlugins<RegionEngines>,
}

impl Plugins {
    /// Reads and checks the plugins of the configuration.
    ///
    /// # Errors
    /// The first plugin that cannot be used, or an invalid engine configuration.
    pub fn load(config: &Config) -> Result<Self, ServiceError> {
        let file = EngineFile {
            plugins: config.plugins.clone(),
            engine: config.engine.clone(),
            shadow: config.shadow.clone(),
        };
        let user = |prepared: PreparedEngines| {
            let shadow = ShadowBook::default();
            shadow.begin(clock::now(), prepared.in_shadow);
            let (engines, _) = watch::channel(prepared.engines);
            Ok::<_, ServiceError>(RegionEngines { engines, shadow })
        };
        let live = LivePlugins::load(file, true, user)?;
        Ok(Self { live })
    }

    /// SIGHUP: reads the configuration again and applies its plugins and its settings for weighers,
    /// cost module and lifetime models. Other changes apply at the next start.
    pub async fn read_again(&self, args: &Args) {
        let read = |active: &EngineFile| {
            let config = args.config(std::env::vars())?;
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
                ..active.engine.clone()
            };
            Ok::<_, ServiceError>(EngineFile {
                plugins: config.plugins,
                engine,
                shadow: config.shadow,
            })
        };
        match self.live.reload(read).await {
            Ok(()) => tracing::info!(
                plugins = self.live.list().len(),
                "SIGHUP: the plugins were read again"
            ),
            Err(error) => tracing::error!(
                code = error.code(),
                "SIGHUP: the plugins stay as they are: {error}"
            ),
        }
    }

    /// The plugins with the changes that operators make while schedulers run.
    pub(crate) fn live(&self) -> &LivePlugins<RegionEngines> {
        &self.live
    }

    /// The engine in use.
    #[must_use]
    pub fn engine(&self) -> Arc<Engine> {
        self.live.user().engine()
    }

    /// The engines in use, and all later ones.
    pub(crate) fn engines(&self) -> watch::Receiver<Engines> {
        self.live.user().engines.subscribe()
    }

    /// The collected shadow comparisons.
    pub(crate) fn shadow(&self) -> &ShadowBook {
        &self.live.user().shadow
    }
}
