//! Applies plugin changes that operators have made through any scheduler.

use super::Plugins;
use super::override_store::read;
use crate::Tasks;
use crate::error::ServiceError;
use ebbtide_plugins::Services;
use ebbtide_runtime::task::pause;
use ebbtide_store::Store;
use std::time::Duration;

/// Interval between checks for changes.
const LOOK: Duration = Duration::from_secs(1);
/// Checks to skip after a plugin could not be used, because a service or a file is missing.
const AGAIN: u32 = 15;

impl Plugins {
    /// Loads the plugins from the database. A plugin that cannot be used now counts as missing and
    /// its calls fail; a scheduler that does not start would be worse.
    ///
    /// # Errors
    /// Database errors; a plugin that was added has the name of one in the configuration.
    pub(crate) async fn begin(&self, store: &Store) -> Result<(), ServiceError> {
        let _turn = self.turn.lock().await;
        let active = self.active();
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

    /// Starts the periodic checks.
    pub(crate) fn follow(&self, store: Store, tasks: &Tasks) {
        let plugins = self.clone();
        let stop = tasks.stop().clone();
        tasks.spawn("plugins", async move {
            let mut patience = 0;
            while pause(&stop, LOOK).await {
                patience = match patience {
                    0 => plugins.check_changes(&store).await,
                    more => more - 1,
                };
            }
        });
    }

    /// Applies changes. Returns the number of checks to skip before the next.
    async fn check_changes(&self, store: &Store) -> u32 {
        let _turn = self.turn.lock().await;
        let active = self.active();
        let overrides = match read(store, &active.overrides).await {
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
            Ok(()) if self.active().set.is_whole() => {
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
