//! Plugin changes that operators make at run time. This scheduler checks and uses a change before
//! it stores it.

use super::Plugins;
use crate::error::ServiceError;
use ebbtide_plugins::{
    Component, ENGINE, PluginConfig, PluginError, PluginKind, PluginOverride, PluginOverrides,
    Services,
};
use ebbtide_store::{PluginRow, Store, StoreError};

/// A change of a plugin's use.
#[derive(Debug, Clone, Default)]
pub(crate) struct PluginChange {
    pub(crate) enabled: Option<bool>,
    pub(crate) shadow: Option<bool>,
    pub(crate) multiplier: Option<f64>,
    pub(crate) reset_multiplier: bool,
}

/// All stored changes. Components that are already in memory are not read again.
pub(super) async fn read(
    store: &Store,
    known: &PluginOverrides,
) -> Result<PluginOverrides, ServiceError> {
    let mut all = PluginOverrides::default();
    for row in store.plugins().await? {
        let mut overrides: PluginOverride =
            serde_json::from_str(&row.record).map_err(|error| ServiceError::Store {
                code: "EB-STORE-008",
                message: format!("the plugin {:?} cannot be read: {error}", row.name),
            })?;
        if !row.digest.is_empty() {
            let same = known
                .get(&row.name)
                .and_then(|overrides| overrides.component.clone());
            let same = same.filter(|component| component.digest() == row.digest);
            overrides.component = match same {
                Some(component) => Some(component),
                None => {
                    let bytes = store.plugin_component(&row.name).await?;
                    bytes.map(Component::new)
                }
            };
        }
        all.insert(row.name, overrides);
    }
    Ok(all)
}

async fn write(store: &Store, name: &str, overrides: &PluginOverride) -> Result<(), ServiceError> {
    if overrides.is_empty() {
        return Ok(store.delete_plugin(name).await?);
    }
    let record = serde_json::to_string(overrides)
        .map_err(|error| ServiceError::Config(format!("the plugin {name:?}: {error}")))?;
    let component = overrides.component.as_ref();
    let row = PluginRow {
        name: name.to_owned(),
        record,
        digest: component.map_or("", Component::digest).to_owned(),
    };
    let written: Result<(), StoreError> = store
        .put_plugin(&row, component.map(Component::bytes))
        .await;
    Ok(written?)
}

impl Plugins {
    /// Applies a change and stores it. A change that cannot be used is not stored; one that cannot
    /// be stored is not used.
    async fn save_override(
        &self,
        store: &Store,
        name: &str,
        change: impl FnOnce(&PluginOverrides, &[PluginConfig]) -> Result<PluginOverride, PluginError>,
    ) -> Result<(), ServiceError> {
        let _turn = self.turn.lock().await;
        let active = self.active();
        // Another scheduler may have changed something a moment ago.
        let before = read(store, &active.overrides).await?;
        let overrides = change(&before, &active.file.plugins)?;
        let mut after = before.clone();
        match overrides.is_empty() {
            true => after.remove(name),
            false => after.insert(name.to_owned(), overrides.clone()),
        };
        self.replace(active.file.clone(), after, Services::MustAnswer)
            .await?;
        if let Err(error) = write(store, name, &overrides).await {
            self.replace(active.file, before, Services::MayBeAway)
                .await?;
            return Err(error);
        }
        Ok(())
    }

    /// Adds a plugin.
    ///
    /// # Errors
    /// The plugin cannot be used; the name exists already.
    pub(crate) async fn add(
        &self,
        store: &Store,
        config: PluginConfig,
        component: Option<Vec<u8>>,
        replace: bool,
    ) -> Result<(), ServiceError> {
        let name = config.name.clone();
        self.save_override(store, &name, |before, file| {
            let name = config.name.clone();
            if file.iter().any(|known| known.name == name) {
                return Err(PluginError::InFile { name });
            }
            let known = before
                .get(&name)
                .and_then(|overrides| overrides.config.as_ref());
            if known.is_some() && !replace {
                return Err(PluginError::Exists { name });
            }
            Ok(PluginOverride {
                config: Some(config),
                component: component.map(Component::new),
                ..PluginOverride::default()
            })
        })
        .await
    }

    /// Decides with another cost module from now on, a plugin or a built-in one; `None`: with the
    /// configured one.
    ///
    /// # Errors
    /// There is no cost module of this name, or it is disabled or in shadow.
    pub(crate) async fn use_cost_module(
        &self,
        store: &Store,
        name: Option<&str>,
    ) -> Result<(), ServiceError> {
        if let Some(name) = name {
            self.can_cost(name)?;
        }
        self.save_override(store, ENGINE, |before, _| {
            let known = before.get(ENGINE).cloned().unwrap_or_default();
            Ok(PluginOverride {
                cost_module: name.map(str::to_owned),
                ..known
            })
        })
        .await
    }

    /// Checks that the name is that of a usable cost module.
    fn can_cost(&self, name: &str) -> Result<(), PluginError> {
        let plugins = self.list();
        let plugin = plugins.iter().find(|plugin| plugin.config.name == name);
        let problem = match plugin {
            None if ebbtide_cost_modules::names()
                .iter()
                .any(|known| known == name) =>
            {
                return Ok(());
            }
            None => {
                let built_in = ebbtide_cost_modules::names().join(", ");
                format!("there is no plugin of this name, and built in are {built_in}")
            }
            Some(plugin) if plugin.kind == PluginKind::Weigher => "it is a weigher".to_owned(),
            Some(plugin) if !plugin.config.enabled || plugin.config.shadow => {
                format!("it is disabled, or in shadow; first say `ebbtide plugin enable {name}`")
            }
            Some(_) => return Ok(()),
        };
        let name = name.to_owned();
        Err(PluginError::NoCostModule { name, problem })
    }

    /// Refuses a change that would remove the cost module in use.
    fn not_in_use(&self, name: &str) -> Result<(), PluginError> {
        if self.engine().config().cost_module != name {
            return Ok(());
        }
        let name = name.to_owned();
        Err(PluginError::InUse { name })
    }

    /// Removes a plugin that was added.
    ///
    /// # Errors
    /// There is none of this name; it is in the configuration; it is the cost module in use; the
    /// engine's configuration names it.
    pub(crate) async fn remove(&self, store: &Store, name: &str) -> Result<(), ServiceError> {
        self.save_override(store, name, |before, file| {
            self.not_in_use(name)?;
            let owned = || name.to_owned();
            match before
                .get(name)
                .and_then(|overrides| overrides.config.as_ref())
            {
                Some(_) => Ok(PluginOverride::default()),
                None if file.iter().any(|known| known.name == name) => {
                    Err(PluginError::InFile { name: owned() })
                }
                None => Err(PluginError::Unknown { name: owned() }),
            }
        })
        .await
    }

    /// Changes the use of a plugin; a multiplier can also be changed for a built-in weigher in use.
    ///
    /// # Errors
    /// There is none of this name; the multiplier is not finite; the change would disable the cost
    /// module in use.
    pub(crate) async fn change(
        &self,
        store: &Store,
        name: &str,
        change: PluginChange,
    ) -> Result<(), ServiceError> {
        let is_used = self.engine().multiplier(name).is_some();
        self.save_override(store, name, |before, file| {
            let known = before.get(name).cloned().unwrap_or_default();
            let is_plugin = known.config.is_some() || file.iter().any(|config| config.name == name);
            let only_counts = change.enabled.is_none() && change.shadow.is_none();
            if !(is_plugin || (is_used && only_counts)) {
                let name = name.to_owned();
                return Err(PluginError::Unknown { name });
            }
            if change.enabled == Some(false) || change.shadow == Some(true) {
                self.not_in_use(name)?;
            }
            if change.multiplier.is_some_and(|number| !number.is_finite()) {
                return Err(PluginError::Config {
                    name: name.to_owned(),
                    key: "multiplier".into(),
                    problem: "it is not a finite number".to_owned(),
                });
            }
            let overrides = match change.reset_multiplier {
                true => None,
                false => change.multiplier.or(known.multiplier),
            };
            Ok(PluginOverride {
                enabled: change.enabled.or(known.enabled),
                shadow: change.shadow.or(known.shadow),
                multiplier: overrides,
                ..known
            })
        })
        .await
    }
}
