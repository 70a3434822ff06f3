//! What operators change while schedulers run. It is kept beside the configuration files, and
//! counts more.

use crate::{Component, Multipliers, PluginConfig, PluginEntry, PluginError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The name of the record that is about no plugin and no weigher, but about all decisions. Plugins
/// have no dots in their names.
pub const ENGINE: &str = "engine.";

/// What is kept of one plugin, or of one built-in weigher.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PluginOverride {
    /// The plugin itself, if it is in no configuration file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<PluginConfig>,
    /// Whether it is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Whether it is in shadow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shadow: Option<bool>,
    /// How much it counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multiplier: Option<f64>,
    /// In the record [`ENGINE`] only: the cost module that is used instead of the configuration's,
    /// built in or a plugin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_module: Option<String>,
    /// The component, if it is kept, too. Not part of the record.
    #[serde(skip)]
    pub component: Option<Component>,
}

impl PluginOverride {
    /// True if it says nothing at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// All that is kept, by name.
pub type PluginOverrides = BTreeMap<String, PluginOverride>;

/// What a configuration file and what is kept are together.
#[derive(Debug)]
pub struct MergedPlugins {
    /// All plugins.
    pub entries: Vec<PluginEntry>,
    /// How much weighers count that operators have changed.
    pub multipliers: Multipliers,
    /// The cost module that they have chosen.
    pub cost_module: Option<String>,
}

/// All plugins: those of the configuration file, changed as operators have said, and behind them
/// those that were added.
///
/// # Errors
/// [`PluginError::Exists`] if one was added that is in the file, too.
pub fn merge(file: &[PluginConfig], kept: &PluginOverrides) -> Result<MergedPlugins, PluginError> {
    let mut entries: Vec<PluginEntry> = Vec::new();
    for config in file {
        let mut config = config.clone();
        if let Some(kept) = kept.get(&config.name) {
            if kept.config.is_some() {
                return Err(PluginError::Exists { name: config.name });
            }
            change(&mut config, kept);
        }
        entries.push(config.into());
    }
    for kept in kept.values() {
        let Some(config) = &kept.config else { continue };
        let mut config = config.clone();
        change(&mut config, kept);
        entries.push(PluginEntry {
            config,
            component: kept.component.clone(),
            may_be_missing: true,
        });
    }
    let multipliers = kept
        .iter()
        .filter_map(|(name, kept)| Some((name.clone(), kept.multiplier?)));
    Ok(MergedPlugins {
        entries,
        multipliers: multipliers.collect(),
        cost_module: kept.get(ENGINE).and_then(|kept| kept.cost_module.clone()),
    })
}

fn change(config: &mut PluginConfig, kept: &PluginOverride) {
    config.enabled = kept.enabled.unwrap_or(config.enabled);
    config.shadow = kept.shadow.unwrap_or(config.shadow);
    config.multiplier = kept.multiplier.or(config.multiplier);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(change: impl FnOnce(&mut PluginOverride)) -> PluginOverride {
        let mut kept = PluginOverride::default();
        change(&mut kept);
        kept
    }

    #[test]
    fn what_operators_say_counts_more_than_the_file_and_reaches_built_in_weighers() {
        let file = [PluginConfig::new("racks", "racks.wasm".into())];
        let all = PluginOverrides::from([
            ("racks".to_owned(), kept(|k| k.enabled = Some(false))),
            ("ram".to_owned(), kept(|k| k.multiplier = Some(3.0))),
            (
                "power".to_owned(),
                kept(|k| k.config = Some(PluginConfig::at("power", "http://127.0.0.1:1"))),
            ),
            (
                ENGINE.to_owned(),
                kept(|k| k.cost_module = Some("power".to_owned())),
            ),
        ]);
        let merged = merge(&file, &all).unwrap();
        assert_eq!(merged.cost_module.as_deref(), Some("power"));
        let seen: Vec<(&str, bool)> = merged
            .entries
            .iter()
            .map(|entry| (entry.config.name.as_str(), entry.config.enabled))
            .collect();
        assert_eq!(seen, [("racks", false), ("power", true)]);
        assert_eq!(
            merged.multipliers,
            Multipliers::from([("ram".to_owned(), 3.0)])
        );
    }

    #[test]
    fn a_name_that_is_in_the_file_and_was_added_too_is_refused() {
        let file = [PluginConfig::new("racks", "racks.wasm".into())];
        let added = kept(|k| k.config = Some(PluginConfig::new("racks", "other.wasm".into())));
        let all = PluginOverrides::from([("racks".to_owned(), added)]);
        assert_eq!(merge(&file, &all).unwrap_err().code(), "EB-PLUGIN-007");
    }

    #[test]
    fn the_record_reads_what_it_has_written() {
        let one = kept(|k| {
            k.config = Some(PluginConfig::at("power", "unix:/run/power.sock"));
            k.multiplier = Some(-0.5);
        });
        let text = serde_json::to_string(&one).unwrap();
        assert_eq!(serde_json::from_str::<PluginOverride>(&text).unwrap(), one);
        assert_eq!(
            serde_json::to_string(&PluginOverride::default()).unwrap(),
            "{}"
        );
    }
}
