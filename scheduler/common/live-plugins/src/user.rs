//! What uses the plugins.

use crate::{LivePluginError, ShadowBook};
use ebbtide_engine::PluginFailure;
use ebbtide_plugins::{MergedPlugins, Plugin, PluginConfig, PluginSet};

/// How a plugin is used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PluginUsage {
    /// Decisions ask it.
    pub in_use: bool,
    /// How much a weigher counts. `None` for one that no decision asks, and for a cost module.
    pub multiplier: Option<f64>,
    /// What is done when it fails.
    pub on_failure: PluginFailure,
}

/// What uses the plugins of a scheduler.
pub trait PluginUser: Send + Sync + 'static {
    /// What the configuration says: its plugins, and the settings that a change of plugins needs.
    type File: Clone + Send + Sync + 'static;
    /// What a set of plugins becomes before it is used.
    type Prepared: Send + 'static;

    /// The plugins of a configuration, in the operator's order.
    fn plugins(file: &Self::File) -> &[PluginConfig];

    /// Builds what uses a set of plugins. Changes nothing.
    ///
    /// # Errors
    /// The set cannot be used, for example because a cost module is missing.
    fn prepare(
        file: &Self::File,
        merged: &MergedPlugins,
        set: &PluginSet,
    ) -> Result<Self::Prepared, LivePluginError>;

    /// Uses it from the next decision on. Decisions under way end with what they began with.
    ///
    /// # Errors
    /// It cannot be used. Everything is as before then.
    fn apply(&self, prepared: Self::Prepared) -> Result<(), LivePluginError>;

    /// The name of the cost module in use.
    fn cost_module(&self) -> String;

    /// Whether the multiplier of a weigher of this name, built in or a plugin, can be changed.
    fn has_weigher(&self, name: &str) -> bool;

    /// The comparisons.
    fn shadow(&self) -> &ShadowBook;

    /// The units of the costs in the comparisons: of the cost module in use, and of that in shadow.
    fn cost_units(&self) -> (String, String);

    /// How a plugin is used.
    fn usage(&self, plugin: &Plugin) -> PluginUsage;
}
