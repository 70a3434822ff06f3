//! Why plugins stay as they are.

use ebbtide_plugins::PluginError;
use ebbtide_store::StoreError;
use thiserror::Error;

/// Why a change of plugins was not made. The plugins are as before.
#[derive(Debug, Error)]
pub enum LivePluginError {
    /// A plugin cannot be used, or the change cannot be made.
    #[error(transparent)]
    Plugin(#[from] PluginError),
    /// The database of changes.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What uses the plugins refuses them.
    #[error("{message}")]
    User {
        /// The stable code of its error.
        code: &'static str,
        message: String,
    },
    /// This scheduler has no database in which changes could be kept.
    #[error(
        "plugins: changes are kept in the scheduler's database, and there is none; set [ebbtide] connection, or name the plugin in the configuration and send SIGHUP"
    )]
    NoDatabase,
    /// The database has not been opened yet.
    #[error("plugins: the database of changes is not open yet; ask again in a moment")]
    DatabaseAway,
}

impl LivePluginError {
    /// Stable code, explained in `docs/reference/errors.md`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Plugin(error) => error.code(),
            Self::Store(error) => error.code(),
            Self::User { code, .. } => code,
            Self::NoDatabase => "EB-PLUGIN-011",
            Self::DatabaseAway => "EB-PLUGIN-012",
        }
    }

    /// True if the same change may be possible later.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Store(error) => error.is_retryable(),
            Self::DatabaseAway => true,
            Self::Plugin(_) | Self::User { .. } | Self::NoDatabase => false,
        }
    }
}
