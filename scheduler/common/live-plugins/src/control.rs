//! What an API offers: looking at plugins and changing them.

use crate::{LivePluginError, PluginUsage, ShadowReport};
use async_trait::async_trait;
use ebbtide_plugins::{Plugin, PluginConfig};

/// A change of a plugin's use.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PluginChange {
    /// Whether it is used.
    pub enabled: Option<bool>,
    /// Whether it is in shadow.
    pub shadow: Option<bool>,
    /// How much a weigher counts.
    pub multiplier: Option<f64>,
    /// A weigher counts again as the configuration says.
    pub reset_multiplier: bool,
}

/// A plugin with how it is used.
#[derive(Debug, Clone)]
pub struct ListedPlugin {
    pub plugin: Plugin,
    /// It was added while schedulers ran.
    pub added: bool,
    /// How it is used.
    pub usage: PluginUsage,
}

/// The plugins of a scheduler, whatever uses them. A change is checked and used here before it is
/// stored for the other schedulers. After an error nothing has changed.
#[async_trait]
pub trait PluginControl: Send + Sync {
    /// All plugins, in the operator's order.
    fn listed(&self) -> Vec<ListedPlugin>;

    /// What plugins in shadow would have decided otherwise, as this scheduler has seen it.
    fn shadow_report(&self) -> ShadowReport;

    /// The units of the costs in that report: of the cost module in use, and of that in shadow.
    fn cost_units(&self) -> (String, String);

    /// Adds a plugin; with `replace` instead of one that was added under its name.
    ///
    /// # Errors
    /// The plugin cannot be used; the name exists already; the database.
    async fn add(
        &self,
        config: PluginConfig,
        component: Option<Vec<u8>>,
        replace: bool,
    ) -> Result<(), LivePluginError>;

    /// Removes a plugin that was added.
    ///
    /// # Errors
    /// There is none of this name; it is in the configuration; it is the cost module in use; the
    /// configuration names it; the database.
    async fn remove(&self, name: &str) -> Result<(), LivePluginError>;

    /// Changes the use of a plugin, or the multiplier of a built-in weigher.
    ///
    /// # Errors
    /// There is none of this name; the multiplier is not finite; the change would disable the cost
    /// module in use; the database.
    async fn change(&self, name: &str, change: PluginChange) -> Result<(), LivePluginError>;

    /// Decides with another cost module from now on, a plugin or a built-in one; `None`: with the
    /// configured one. Returns the name of the one in use then.
    ///
    /// # Errors
    /// There is no cost module of this name, or it is disabled or in shadow; the database.
    async fn use_cost_module(&self, name: Option<&str>) -> Result<String, LivePluginError>;
}
