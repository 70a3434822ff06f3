//! The operator's weighers, cost modules and filters in OpenStack mode. `[ebbtide] plugins` of
//! nova.conf names a file with them, which the scheduler reads when it starts and again on SIGHUP.
//! Changes that operators make through the API are in the ledger's database, for all schedulers.

use crate::Tasks;
use crate::configure;
use crate::deferred::{DeferredResource, OpenDelays};
use crate::error::NovaServiceError;
use crate::facts::Facts;
use ebbtide_engine::{EngineConfig, PluginFailure};
use ebbtide_live_plugins::{LivePluginError, LivePlugins, PluginUsage, PluginUser, ShadowBook};
use ebbtide_nova::filters::FilterPlugins;
use ebbtide_nova::model::Options;
use ebbtide_nova::weighing::Plugins;
use ebbtide_nova_cloud::{Cloud, CloudSettings, CostModules, DecisionPlugins};
use ebbtide_nova_objects::nova_conf::NovaConf;
use ebbtide_plugins::{
    EnginePurpose, MergedPlugins, Plugin, PluginConfig, PluginKind, PluginSet, read_file,
};
use ebbtide_runtime::clock;
use ebbtide_store::ledger::LedgerError;
use ebbtide_store::{PluginStore, StoreConfig};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;

/// How long the start waits for the database of changes: decisions should use them from the first
/// request on.
const TIMES: OpenDelays = OpenDelays {
    first: Duration::from_secs(5),
    pause: Duration::from_secs(2),
};

/// What nova.conf says of plugins.
#[derive(Debug, Clone, Default)]
pub(crate) struct PluginFile {
    plugins: Vec<PluginConfig>,
    cost_module: String,
}

impl PluginFile {
    fn read(conf: &NovaConf) -> Result<Self, NovaServiceError> {
        let plugins = match &conf.ebbtide.plugins {
            Some(path) => read_file(Path::new(path))?,
            None => Vec::new(),
        };
        Ok(Self {
            plugins,
            cost_module: configure::cloud(conf).engine.cost_module,
        })
    }
}

/// Weighers, cost modules and filters before they are used.
pub(crate) struct PreparedPlugins {
    deciding: DecisionPlugins,
    /// What decisions are compared with; `None`: with nothing.
    shadow: Option<DecisionPlugins>,
    /// What is in shadow, as text.
    in_shadow: Option<String>,
}

impl PreparedPlugins {
    fn of(set: &PluginSet, cost_module: String) -> Self {
        let plugins = |cost_module: String, purpose| {
            let standalone = set.standalone(PluginFailure::Ignore, &cost_module, purpose);
            DecisionPlugins {
                filters: FilterPlugins::new(standalone.filters),
                weighers: Plugins::new(standalone.weighers),
                cost_modules: CostModules(standalone.cost_modules),
                cost_module,
            }
        };
        let in_shadow = set.in_shadow();
        let shadow = in_shadow.is_some().then(|| {
            let mut shadows = set.plugins().iter().filter(|plugin| {
                plugin.config.enabled
                    && plugin.config.shadow
                    && plugin.kind == PluginKind::CostModule
            });
            let module = shadows.next_back().map(|plugin| plugin.config.name.clone());
            let module = module.unwrap_or_else(|| cost_module.clone());
            plugins(module, EnginePurpose::Shadow)
        });
        Self {
            deciding: plugins(cost_module, EnginePurpose::Deciding),
            shadow,
            in_shadow,
        }
    }
}

/// The cloud whose decisions use the plugins.
pub(crate) struct CloudPlugins {
    facts: Facts,
}

/// The plugins in use. Cheap to clone.
pub(crate) type NovaServicePlugins = LivePlugins<CloudPlugins>;

impl PluginUser for CloudPlugins {
    type File = PluginFile;
    type Prepared = PreparedPlugins;

    fn plugins(file: &PluginFile) -> &[PluginConfig] {
        &file.plugins
    }

    fn prepare(
        file: &PluginFile,
        merged: &MergedPlugins,
        set: &PluginSet,
    ) -> Result<PreparedPlugins, LivePluginError> {
        let chosen = merged.cost_module.as_ref();
        let cost_module = chosen.unwrap_or(&file.cost_module).clone();
        Ok(PreparedPlugins::of(set, cost_module))
    }

    fn apply(&self, prepared: PreparedPlugins) -> Result<(), LivePluginError> {
        let PreparedPlugins {
            deciding,
            shadow,
            in_shadow,
        } = prepared;
        let done = self
            .facts
            .write(|cloud| cloud.set_plugins(deciding, shadow));
        done.map_err(|error| LivePluginError::User {
            code: error.code(),
            message: error.to_string(),
        })?;
        self.facts.shadow.begin(clock::now(), in_shadow);
        Ok(())
    }

    fn cost_module(&self) -> String {
        let name = |cloud: &Cloud| cloud.settings().engine.cost_module.clone();
        self.facts.read(name)
    }

    /// Nova's own weighers count as nova.conf says.
    fn has_weigher(&self, _name: &str) -> bool {
        false
    }

    fn shadow(&self) -> &ShadowBook {
        &self.facts.shadow
    }

    fn cost_units(&self) -> (String, String) {
        self.facts.read(Cloud::cost_units)
    }

    fn usage(&self, plugin: &Plugin) -> PluginUsage {
        let config = &plugin.config;
        let decides = config.enabled && !config.shadow;
        let engine = |cloud: &Cloud| cloud.settings().engine.clone();
        let engine = self.facts.read(engine);
        let own = config.on_failure;
        match plugin.kind {
            PluginKind::Weigher => PluginUsage {
                in_use: decides,
                multiplier: plugin.multiplier().filter(|_| decides),
                on_failure: own.unwrap_or(PluginFailure::Ignore),
            },
            PluginKind::CostModule => {
                let failure = engine.cost_module_failure.or(own);
                PluginUsage {
                    in_use: decides && engine.cost_module == config.name,
                    multiplier: None,
                    on_failure: failure.unwrap_or(engine.plugin_failure),
                }
            }
            PluginKind::Filter => PluginUsage {
                in_use: decides,
                multiplier: None,
                on_failure: own.unwrap_or(PluginFailure::Ignore),
            },
            PluginKind::Unknown => PluginUsage {
                in_use: false,
                multiplier: None,
                on_failure: own.unwrap_or(PluginFailure::Ignore),
            },
        }
    }
}

/// Reads the plugins of nova.conf and makes the cloud whose decisions use them, behind Nova's own
/// weighers.
///
/// # Errors
/// The first plugin that cannot be used; those of `facts`.
pub(crate) fn load(
    conf: &NovaConf,
    options: Options,
    mut settings: CloudSettings,
    facts: impl FnOnce(Cloud) -> Facts,
) -> Result<(NovaServicePlugins, Facts), NovaServiceError> {
    let has_database = conf.ebbtide.connection.is_some();
    let plugins = LivePlugins::load(PluginFile::read(conf)?, has_database, |prepared| {
        let PreparedPlugins {
            deciding,
            shadow,
            in_shadow,
        } = prepared;
        // That of nova.conf may be a plugin.
        settings.engine.cost_module = EngineConfig::default().cost_module;
        let mut cloud = Cloud::new(options, settings)?;
        cloud.set_plugins(deciding, shadow)?;
        let facts = facts(cloud);
        facts.shadow.begin(clock::now(), in_shadow);
        Ok::<_, NovaServiceError>(CloudPlugins { facts })
    })?;
    for plugin in plugins.list() {
        let name = &plugin.config.name;
        match plugin.missing() {
            Some(problem) => tracing::error!(plugin = name, "is missing: {problem}"),
            None => tracing::info!(plugin = name, kind = plugin.kind.as_str(), "is loaded"),
        }
    }
    let facts = plugins.user().facts.clone();
    Ok((plugins, facts))
}

/// The plugins of a cloud that no scheduler decides about: none.
///
/// # Errors
/// [`NovaServiceError::Plugin`].
pub(crate) fn none(facts: &Facts) -> Result<NovaServicePlugins, NovaServiceError> {
    let user = |_| {
        Ok::<_, NovaServiceError>(CloudPlugins {
            facts: facts.clone(),
        })
    };
    LivePlugins::load(PluginFile::default(), false, user)
}

/// Uses the changes that operators have made, and all later ones, and finds services that were
/// away. Without a database there are no changes.
///
/// `ledger` is the database of `[ebbtide] connection`.
///
/// # Errors
/// None at present: a database that cannot be used is logged.
pub(crate) async fn follow(
    plugins: &NovaServicePlugins,
    ledger: Option<StoreConfig>,
    tasks: &Tasks,
) -> Result<(), NovaServiceError> {
    if let Some(config) = ledger {
        let (live, opened) = (plugins.clone(), Arc::new(OnceCell::new()));
        let open = move || {
            let (live, opened, config) = (live.clone(), Arc::clone(&opened), config.clone());
            async move {
                let open = || PluginStore::open(&config);
                let store = opened.get_or_try_init(open).await;
                let store = store.map_err(LedgerError::Store)?;
                Ok(live.begin(store.clone()).await?)
            }
        };
        let what = "the changes of plugins";
        if let Err(error) = DeferredResource::start(tasks, what, TIMES, open).await {
            tracing::error!(
                code = error.code(),
                "plugins are used as the configuration has them: {error}"
            );
        }
    }
    plugins.follow(tasks);
    Ok(())
}

/// SIGHUP: applies the present file, completely or, after any error, not at all. Running decisions
/// end with the plugins with which they began. Returns the number of plugins.
///
/// # Errors
/// The file cannot be read; a plugin cannot be used.
pub(crate) async fn read_again(
    plugins: &NovaServicePlugins,
    conf: &NovaConf,
) -> Result<usize, NovaServiceError> {
    plugins.reload(|_| PluginFile::read(conf)).await?;
    Ok(plugins.list().len())
}
