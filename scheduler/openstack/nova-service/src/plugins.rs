//! The operator's weighers and cost modules in OpenStack mode: `[ebbtide] plugins` of nova.conf
//! names a file with them. The scheduler reads it when it starts, and again on SIGHUP.

use crate::Tasks;
use crate::error::NovaServiceError;
use crate::facts::Facts;
use ebbtide_engine::PluginFailure;
use ebbtide_nova::model::Options;
use ebbtide_nova::weighing::Plugins;
use ebbtide_nova_cloud::{CloudSettings, CostModules};
use ebbtide_nova_objects::nova_conf::NovaConf;
use ebbtide_plugins::{
    PluginEntry, PluginError, PluginSet, Services, Sources, StandaloneWeighers, read_file,
};
use ebbtide_runtime::task::{blocking, pause};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Pause before the scheduler tries again to reach an unavailable service.
const AGAIN: Duration = Duration::from_secs(15);

/// The current plugins.
struct ActivePlugins {
    set: PluginSet,
    standalone: Arc<StandaloneWeighers>,
}

/// The plugins in use. Cheap to clone.
#[derive(Clone)]
pub(crate) struct NovaServicePlugins(Arc<Mutex<ActivePlugins>>);

/// Loads new plugins. The others continue unchanged.
fn load(conf: &NovaConf, before: &PluginSet, services: Services) -> Result<PluginSet, PluginError> {
    let configs = match &conf.ebbtide.plugins {
        Some(path) => read_file(Path::new(path))?,
        None => Vec::new(),
    };
    let entries: Vec<PluginEntry> = configs.into_iter().map(PluginEntry::from).collect();
    PluginSet::load(&entries, before, &Sources::default(), services)
}

fn say(set: &PluginSet) {
    for plugin in set.plugins() {
        let name = &plugin.config.name;
        match plugin.missing() {
            Some(problem) => tracing::error!(plugin = name, "is missing: {problem}"),
            None => tracing::info!(plugin = name, kind = plugin.kind.as_str(), "is loaded"),
        }
        if plugin.config.shadow {
            tracing::warn!(
                plugin = name,
                "OpenStack mode decides nothing in shadow: it is left out"
            );
        }
    }
}

impl NovaServicePlugins {
    /// Adds the plugins after Nova's own weighers, and regularly retries those whose services are
    /// unavailable.
    pub(crate) fn start(
        conf: &NovaConf,
        options: Options,
        mut cloud: CloudSettings,
        tasks: &Tasks,
    ) -> Result<(Self, Options, CloudSettings), NovaServiceError> {
        let set = load(conf, &PluginSet::default(), Services::MayBeAway)?;
        say(&set);
        let standalone = Arc::new(set.standalone(PluginFailure::Ignore));
        cloud.cost_modules.0.clone_from(&standalone.cost_modules);
        let options = options.with_plugins(Plugins::new(standalone.weighers.clone()));
        let plugins = Self(Arc::new(Mutex::new(ActivePlugins { set, standalone })));
        plugins.wait(tasks);
        Ok((plugins, options, cloud))
    }

    /// SIGHUP: applies the current file, completely or, after any error, not at all. Running
    /// decisions end with the plugins with which they began.
    pub(crate) async fn read_again(
        &self,
        conf: &NovaConf,
        facts: &Facts,
    ) -> Result<usize, NovaServiceError> {
        let before = self.held().set.clone();
        let (plugins, own, facts) = (self.clone(), conf.clone(), facts.clone());
        let done = blocking(move || -> Result<usize, NovaServiceError> {
            let set = load(&own, &before, Services::MustAnswer)?;
            let standalone = set.standalone(PluginFailure::Ignore);
            let module = crate::configure::cloud(&own).engine.cost_module;
            let modules = CostModules(standalone.cost_modules.clone());
            let weighers = Plugins::new(standalone.weighers.clone());
            facts.write(|cloud| cloud.set_plugins(weighers, modules, module))?;
            say(&set);
            let count = set.plugins().len();
            let standalone = Arc::new(standalone);
            *plugins.held() = ActivePlugins { set, standalone };
            Ok(count)
        });
        done.await
            .map_err(|error| NovaServiceError::Config(format!("the plugins: {error}")))?
    }

    fn held(&self) -> std::sync::MutexGuard<'_, ActivePlugins> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Regularly retries plugins whose services were unavailable.
    fn wait(&self, tasks: &Tasks) {
        let (plugins, stop) = (self.clone(), tasks.stop().clone());
        tasks.spawn("plugins", async move {
            while pause(&stop, AGAIN).await {
                let standalone = Arc::clone(&plugins.held().standalone);
                if standalone.is_waiting() {
                    // The outcome is logged.
                    let _ = blocking(move || standalone.retry_late_plugins()).await;
                }
            }
        });
    }
}
