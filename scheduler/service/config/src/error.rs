//! Why a configuration cannot be used.

use ebbtide_bus::BusError;
use ebbtide_engine::EngineError;
use ebbtide_lifetime::LifetimeError;
use ebbtide_plugins::PluginError;
use ebbtide_region::RegionError;
use ebbtide_store::StoreError;
use std::path::PathBuf;
use thiserror::Error;

/// Why a configuration cannot be used; its words name the key.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The file, a key, a value.
    #[error("{0}")]
    Wrong(String),
    /// The part `[region]`.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// The part `[engine]`.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A lifetime model of the part `[engine]`.
    #[error("engine.{key} = {path:?}: {source} ({})", source.code())]
    Model {
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: LifetimeError,
    },
    /// The part `[bus]`.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// The part `[database]`.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// One of `[[plugins]]`.
    #[error(transparent)]
    Plugin(#[from] PluginError),
}

impl ConfigError {
    /// The stable code of this error; `docs/reference/errors.md` has a paragraph for each.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Wrong(_) | Self::Model { .. } => "EB-SERVICE-004",
            Self::Region(error) => error.code(),
            Self::Engine(error) => error.code(),
            Self::Bus(error) => error.code(),
            Self::Store(error) => error.code(),
            Self::Plugin(error) => error.code(),
        }
    }
}
