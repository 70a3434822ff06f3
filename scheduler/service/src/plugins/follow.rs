//! Follows what operators have changed, whichever scheduler they have told.

use super::Plugins;
use super::keep::read;
use crate::error::ServiceError;
use crate::task::{Tasks, pause};
use ebbtide_plugins::Services;
use ebbtide_store::Store;
use std::time::Duration;

/// How often is looked whether anything has changed.
const LOOK: Duration = Duration::from_secs(1);
/// How often is tried again what could not be used: a service that is away, a file that is not there.
const AGAIN: u32 = 15;

impl Plugins {
    /// Takes into use what is kept. A plugin that cannot be used now is missing, and its calls fail: a scheduler that cannot start would be worse.
    ///
    /// # Errors
    /// What the database says; a name that is in the configuration and was added, too.
    pub(crate) async fn begin(&self, store: &Store) -> Result<(), ServiceError> {
        let _turn = self.turn.lock().await;
        let held = self.held();
        let kept = read(store, &held.kept).await?;
        if !kept.is_empty() {
            self.replace(held.file, kept, Services::MayBeAway).await?;
        }
        for plugin in self.list() {
            if let Some(problem) = plugin.missing() {
                tracing::error!(plugin = plugin.config.name, "is missing: {problem}");
            }
        }
        Ok(())
    }

    /// Looks again and again.
    pub(crate) fn follow(&self, store: Store, tasks: &Tasks) {
        let plugins = self.clone();
        let stop = tasks.stop().clone();
        tasks.spawn("plugins", async move {
            let mut patience = 0;
            while pause(&stop, LOOK).await {
                patience = match patience {
                    0 => plugins.look(&store).await,
                    more => more - 1,
                };
            }
        });
    }

    /// Takes into use what has changed. How many looks are to be left out before the next.
    async fn look(&self, store: &Store) -> u32 {
        let _turn = self.turn.lock().await;
        let held = self.held();
        let kept = match read(store, &held.kept).await {
            Ok(kept) => kept,
            // Whoever writes to the database says it, too.
            Err(error) => {
                tracing::debug!(code = error.code(), "{error}");
                return 0;
            }
        };
        if kept == held.kept && held.set.is_whole() {
            return 0;
        }
        let is_new = kept != held.kept;
        // What has changed is to be used as it is; what has been missing may go on being so.
        let services = match is_new {
            true => Services::MustAnswer,
            false => Services::MayBeAway,
        };
        match self.replace(held.file, kept, services).await {
            Ok(()) if is_new => {
                tracing::info!("the plugins were changed");
                0
            }
            Ok(()) if self.held().set.is_whole() => {
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
