//! The plugins of this scheduler, and the engine that uses them. Whoever decides takes the engine of the moment.

use crate::args::Args;
use crate::clock;
use crate::config::Config;
use crate::error::ServiceError;
use crate::task;
use ebbtide_engine::{Engine, EngineConfig};
use ebbtide_plugins::{Plugin, PluginConfig, PluginSet, Sources};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// The plugins in use. Cheap to clone.
#[derive(Clone)]
pub struct Plugins {
    shared: Arc<Mutex<PluginSet>>,
    engines: watch::Sender<Arc<Engine>>,
}

/// What a granted plugin gets.
fn sources() -> Sources {
    Sources {
        clock: Some(Arc::new(|| {
            let millis = u64::try_from(clock::now().as_millis()).unwrap_or(0);
            millis.saturating_mul(1_000_000)
        })),
        randomness: Some(Arc::new(crate::ids::fill)),
    }
}

impl Plugins {
    /// Reads and checks all of them.
    ///
    /// # Errors
    /// The first that cannot be used, or what is wrong with the engine's configuration.
    pub fn load(config: &Config) -> Result<Self, ServiceError> {
        let set = PluginSet::load(&config.plugins, &PluginSet::default(), &sources())?;
        let engine = Arc::new(set.engine(&config.engine)?);
        let (engines, _) = watch::channel(engine);
        Ok(Self {
            shared: Arc::new(Mutex::new(set)),
            engines,
        })
    }

    /// Takes another set into use, all of it or, if anything is wrong with it, nothing. Decisions under way end with the engine that they began with.
    ///
    /// # Errors
    /// As [`Self::load`]; then everything is as before.
    pub fn replace(
        &self,
        plugins: &[PluginConfig],
        engine: &EngineConfig,
    ) -> Result<(), ServiceError> {
        let before = self.set();
        let set = PluginSet::load(plugins, &before, &sources())?;
        let engine = Arc::new(set.engine(engine)?);
        *self.shared.lock().unwrap_or_else(PoisonError::into_inner) = set;
        self.engines.send_replace(engine);
        Ok(())
    }

    /// SIGHUP: reads the configuration again and takes its plugins, and how weighers count, into use. What else has changed in it waits for the next start.
    pub async fn read_again(&self, args: &Args) {
        let read = args.config(std::env::vars()).map(|config| {
            let unlike = EngineConfig {
                weighers: config.engine.weighers.clone(),
                cost_module: config.engine.cost_module.clone(),
                plugin_failure: config.engine.plugin_failure,
                cost_module_failure: config.engine.cost_module_failure,
                ..self.engines.borrow().config().clone()
            };
            (config.plugins, unlike)
        });
        let plugins = self.clone();
        let done = match read {
            Ok((configs, engine)) => {
                let replaced = task::blocking(move || Ok(plugins.replace(&configs, &engine)));
                replaced.await.unwrap_or_else(|error| {
                    Err(ServiceError::Config(format!("the plugins: {error}")))
                })
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

    fn set(&self) -> PluginSet {
        self.shared
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// All plugins, in the operator's order.
    #[must_use]
    pub fn list(&self) -> Vec<Plugin> {
        self.set().plugins().to_vec()
    }

    /// The engine of the moment.
    #[must_use]
    pub fn engine(&self) -> Arc<Engine> {
        Arc::clone(&self.engines.borrow())
    }

    /// The engine of the moment, and of every later one.
    pub(crate) fn engines(&self) -> watch::Receiver<Arc<Engine>> {
        self.engines.subscribe()
    }
}
