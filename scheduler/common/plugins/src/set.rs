//! All plugins of a scheduler.

use crate::load::{self, LoadedPlugin};
use crate::{Component, Health, PluginCarrier, PluginConfig, PluginError, PluginKind};
use ebbtide_engine::PluginFailure;
use ebbtide_files::read_regular;
use ebbtide_plugin_contract::LARGEST_COMPONENT;
use ebbtide_runtime::clock;
use std::fmt;
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

/// A plugin that is to be loaded.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginEntry {
    /// As the operator has it.
    pub config: PluginConfig,
    /// The component itself, if it is not read from the file. The file then only names it.
    pub component: Option<Component>,
    /// Whether a scheduler may [start](Services::MayBeAway) without this plugin, whatever is wrong
    /// with it: the operator needs a running scheduler to correct its configuration.
    pub may_be_missing: bool,
}

impl From<PluginConfig> for PluginEntry {
    fn from(config: PluginConfig) -> Self {
        Self {
            config,
            component: None,
            may_be_missing: false,
        }
    }
}

/// Whether a service has to answer when its plugin is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Services {
    /// It has to: a set with one that does not is refused.
    MustAnswer,
    /// It need not, unless its failures refuse requests: a scheduler starts without it, and its
    /// calls fail until it is [there](PluginSet::is_whole).
    MayBeAway,
}

/// One plugin of a set.
#[derive(Clone)]
pub struct Plugin {
    /// As the operator has it.
    pub config: PluginConfig,
    /// What it is.
    pub kind: PluginKind,
    /// How it is reached.
    pub carrier: PluginCarrier,
    /// The SHA-256 of its file, in hexadecimal digits; empty for a service.
    pub digest: String,
    /// How it behaves.
    pub health: Arc<Health>,
    /// How it behaves in shadow.
    pub shadow_health: Arc<Health>,
    pub(crate) loaded: LoadedPlugin,
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plugin")
            .field("config", &self.config)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

impl Plugin {
    /// What happened, if it is not there.
    #[must_use]
    pub fn missing(&self) -> Option<&str> {
        match &self.loaded {
            LoadedPlugin::Absent(problem) => Some(problem),
            LoadedPlugin::Weigher(_) | LoadedPlugin::CostModule(_) | LoadedPlugin::Filter(_) => {
                None
            }
        }
    }
}

/// All plugins of a scheduler, those that are not enabled included.
#[derive(Debug, Clone, Default)]
pub struct PluginSet {
    pub(crate) plugins: Vec<Plugin>,
}

impl PluginSet {
    /// The plugins that are compared with those in use, as text; `None`: none is.
    #[must_use]
    pub fn in_shadow(&self) -> Option<String> {
        let shadows = self.plugins.iter().map(|plugin| (plugin, &plugin.config));
        let what: Vec<String> = shadows
            .filter(|(_, config)| config.enabled && config.shadow)
            .map(|(plugin, config)| format!("{} {}", plugin.kind.as_str(), config.name))
            .collect();
        (!what.is_empty()).then(|| what.join(", "))
    }

    /// Reads, compiles and asks all of them. A plugin of `before` whose file and configuration are
    /// the same is kept, with what is known of it.
    ///
    /// # Errors
    /// The first one that cannot be used. Nothing has changed then.
    pub fn load(
        entries: &[PluginEntry],
        before: &Self,
        sources: &Sources,
        services: Services,
    ) -> Result<Self, PluginError> {
        let mut plugins: Vec<Plugin> = Vec::with_capacity(entries.len());
        for entry in entries {
            let config = &entry.config;
            config.check()?;
            if plugins.iter().any(|known| known.config.name == config.name) {
                return Err(PluginError::same_name(&config.name));
            }
            plugins.push(one(entry, before, sources, services)?);
        }
        Ok(Self { plugins })
    }

    /// The plugins, in the operator's order.
    #[must_use]
    pub fn plugins(&self) -> &[Plugin] {
        &self.plugins
    }

    /// True if every service has answered. If not: load again later.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let mut plugins = self.plugins.iter();
        plugins.all(|plugin| plugin.missing().is_none())
    }
}

fn one(
    entry: &PluginEntry,
    before: &PluginSet,
    sources: &Sources,
    services: Services,
) -> Result<Plugin, PluginError> {
    let config = &entry.config;
    let forgiven = entry.may_be_missing && services == Services::MayBeAway;
    let component = match read(entry) {
        Err(error) if forgiven => return Ok(missing(config, error.to_string())),
        other => other?,
    };
    let digest = component.as_ref().map_or("", Component::digest).to_owned();
    let same = |known: &&Plugin| {
        // Whether it is used, and how much it counts, is no reason to begin anew.
        let like = PluginConfig {
            enabled: known.config.enabled,
            shadow: known.config.shadow,
            multiplier: known.config.multiplier,
            on_failure: known.config.on_failure,
            ..config.clone()
        };
        known.missing().is_none() && known.digest == digest && known.config == like
    };
    if let Some(known) = before.plugins.iter().find(same) {
        return Ok(Plugin {
            config: config.clone(),
            ..known.clone()
        });
    }
    let carrier = carrier(config);
    let loaded = match (&component, &config.address) {
        (Some(component), _) => load::load(config, component.bytes(), sources),
        (None, address) => load::reach(config, address.as_deref().unwrap_or_default()),
    };
    let may_be_away =
        services == Services::MayBeAway && config.on_failure != Some(PluginFailure::Refuse);
    let loaded = match loaded {
        Err(PluginError::Away { problem, .. }) if may_be_away => LoadedPlugin::Absent(problem),
        Err(error) if forgiven => LoadedPlugin::Absent(error.to_string()),
        other => other?,
    };
    Ok(plugin(config, carrier, digest, loaded))
}

/// The component; `None` for a service.
fn read(entry: &PluginEntry) -> Result<Option<Component>, PluginError> {
    let config = &entry.config;
    let Some(file) = config.file.as_ref().filter(|_| entry.component.is_none()) else {
        return Ok(entry.component.clone());
    };
    // Before anything is read: nothing could be done with it.
    if cfg!(not(feature = "wasm")) {
        return Err(PluginError::NoWasm {
            name: config.name.clone(),
        });
    }
    let bytes = read_regular(file, LARGEST_COMPONENT).map_err(|source| PluginError::Read {
        name: config.name.clone(),
        path: file.clone(),
        source,
    })?;
    Ok(Some(Component::new(bytes)))
}

fn carrier(config: &PluginConfig) -> PluginCarrier {
    match config.address {
        Some(_) => PluginCarrier::Remote,
        None => PluginCarrier::Wasm,
    }
}

/// One that is not there, and what happened.
fn missing(config: &PluginConfig, problem: String) -> Plugin {
    plugin(
        config,
        carrier(config),
        String::new(),
        LoadedPlugin::Absent(problem),
    )
}

fn plugin(
    config: &PluginConfig,
    carrier: PluginCarrier,
    digest: String,
    loaded: LoadedPlugin,
) -> Plugin {
    let kind = match &loaded {
        LoadedPlugin::Weigher(_) => PluginKind::Weigher,
        LoadedPlugin::CostModule(_) => PluginKind::CostModule,
        LoadedPlugin::Filter(_) => PluginKind::Filter,
        LoadedPlugin::Absent(_) => PluginKind::Unknown,
    };
    let health = || match carrier {
        PluginCarrier::Wasm => Arc::default(),
        PluginCarrier::Remote => Arc::new(Health::timed(clock::monotonic_millis)),
    };
    Plugin {
        config: config.clone(),
        kind,
        carrier,
        digest,
        health: health(),
        shadow_health: health(),
        loaded,
    }
}
