//! Changes that operators make. This scheduler checks and uses a change before it stores it.

use crate::control::{ListedPlugin, PluginChange, PluginControl};
use crate::rows::{read, write};
use crate::{LivePluginError, LivePlugins, PluginUser, ShadowReport};
use async_trait::async_trait;
use ebbtide_plugins::{
    Component, ENGINE, PluginConfig, PluginError, PluginKind, PluginOverride, PluginOverrides,
    Services,
};

impl<U: PluginUser> LivePlugins<U> {
    /// Applies a change and stores it. A change that cannot be used is not stored; one that cannot
    /// be stored is not used.
    async fn save_override(
        &self,
        name: &str,
        change: impl FnOnce(&PluginOverrides, &[PluginConfig]) -> Result<PluginOverride, PluginError>,
    ) -> Result<(), LivePluginError> {
        let store = self.store()?;
        let _changing = self.shared.changing.lock().await;
        let active = self.shared.active();
        // Another scheduler may have changed something a moment ago.
        let before = read(store, &active.overrides).await?;
        let overrides = change(&before, U::plugins(&active.file))?;
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
            return Err(error.into());
        }
        Ok(())
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
            Some(plugin) if matches!(plugin.kind, PluginKind::Weigher | PluginKind::Filter) => {
                format!("it is a {}", plugin.kind.as_str())
            }
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
        if self.user().cost_module() != name {
            return Ok(());
        }
        let name = name.to_owned();
        Err(PluginError::InUse { name })
    }
}

#[async_trait]
impl<U: PluginUser> PluginControl for LivePlugins<U> {
    fn listed(&self) -> Vec<ListedPlugin> {
        let active = self.shared.active();
        let plugins = active.set.plugins().iter();
        let all = plugins.map(|plugin| {
            let overrides = active.overrides.get(&plugin.config.name);
            ListedPlugin {
                plugin: plugin.clone(),
                added: overrides.is_some_and(|overrides| overrides.config.is_some()),
                usage: self.user().usage(plugin),
            }
        });
        all.collect()
    }

    fn shadow_report(&self) -> ShadowReport {
        self.user().shadow().report()
    }

    fn cost_units(&self) -> (String, String) {
        self.user().cost_units()
    }

    async fn add(
        &self,
        config: PluginConfig,
        component: Option<Vec<u8>>,
        replace: bool,
    ) -> Result<(), LivePluginError> {
        let name = config.name.clone();
        self.save_override(&name, |before, file| {
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

    async fn remove(&self, name: &str) -> Result<(), LivePluginError> {
        self.save_override(name, |before, file| {
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

    async fn change(&self, name: &str, change: PluginChange) -> Result<(), LivePluginError> {
        let is_used = self.user().has_weigher(name);
        self.save_override(name, |before, file| {
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

    async fn use_cost_module(&self, name: Option<&str>) -> Result<String, LivePluginError> {
        if let Some(name) = name {
            self.can_cost(name)?;
        }
        self.save_override(ENGINE, |before, _| {
            let known = before.get(ENGINE).cloned().unwrap_or_default();
            Ok(PluginOverride {
                cost_module: name.map(str::to_owned),
                ..known
            })
        })
        .await?;
        Ok(self.user().cost_module())
    }
}
