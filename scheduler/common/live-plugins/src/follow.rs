//! Applies plugin changes that operators have made through any scheduler.

use crate::rows::read;
use crate::{LivePluginError, LivePlugins, PluginUser};
use ebbtide_plugins::Services;
use ebbtide_runtime::task::{Tasks, pause};
use ebbtide_store::PluginStore;
use std::time::Duration;

/// Interval between checks for changes.
const LOOK: Duration = Duration::from_secs(1);
/// Checks to skip after a plugin could not be used, because a service or a file is missing.
const AGAIN: u32 = 15;

impl<U: PluginUser> LivePlugins<U> {
    /// Loads the changes from a database, which keeps further ones. A plugin that cannot be used
    /// now counts as missing and its calls fail; a scheduler that does not start would be worse.
    ///
    /// # Errors
    /// Database errors; a plugin that was added has the name of one in the configuration.
    pub async fn begin(&self, store: PluginStore) -> Result<(), LivePluginError> {
        let shared = &self.shared;
        let cell = shared.store.as_ref().ok_or(LivePluginError::NoDatabase)?;
        let _changing = shared.changing.lock().await;
        let store = cell.get_or_init(|| store);
        let active = shared.active();
        let overrides = read(store, &active.overrides).await?;
        if !overrides.is_empty() {
            self.replace(active.file, overrides, Services::MayBeAway)
                .await?;
        }
        for plugin in self.list() {
            if let Some(problem) = plugin.missing() {
                tracing::error!(plugin = plugin.config.name, "is missing: {problem}");
            }
        }
        Ok(())
    }

    /// Starts the periodic checks for changes, and for services that were away.
    pub fn follow<E: Send + Sync + 'static>(&self, tasks: &Tasks<E>) {
        let (plugins, stop) = (self.clone(), tasks.stop().clone());
        tasks.spawn("plugins", async move {
            let mut patience = 0;
            while pause(&stop, LOOK).await {
                patience = match patience {
                    0 => plugins.check_changes().await,
                    more => more - 1,
                };
            }
        });
    }

    /// Applies changes. Returns the number of checks to skip before the next.
    async fn check_changes(&self) -> u32 {
        let _changing = self.shared.changing.lock().await;
        let active = self.shared.active();
        let stored = match self.store() {
            Ok(store) => read(store, &active.overrides).await,
            // Only the services of the configuration are looked for.
            Err(_) => Ok(active.overrides.clone()),
        };
        let overrides = match stored {
            Ok(overrides) => overrides,
            // Only at debug level: failed writes report the same problem.
            Err(error) => {
                tracing::debug!(code = error.code(), "{error}");
                return 0;
            }
        };
        if overrides == active.overrides && active.set.is_whole() {
            return 0;
        }
        let is_new = overrides != active.overrides;
        // A changed plugin must work at once; one that has been missing may still be.
        let services = match is_new {
            true => Services::MustAnswer,
            false => Services::MayBeAway,
        };
        match self.replace(active.file, overrides, services).await {
            Ok(()) if is_new => {
                tracing::info!("the plugins were changed");
                0
            }
            Ok(()) if self.shared.active().set.is_whole() => {
                tracing::info!("all plugins are there");
                0
            }
            Ok(()) => AGAIN,
            Err(error) => {
                tracing::error!(
                    code = error.code(),
                    "another scheduler has changed the plugins; here they stay as they are: {error}"
                );
                AGAIN
            }
        }
    }
}
