//! Errors of the kit itself. A defect of a plugin is a finding, not an error.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// What can go wrong in the kit itself.
#[derive(Debug, Error)]
pub enum KitError {
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which one.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A new project would overwrite something.
    #[error("{} exists already", .0.display())]
    Exists(PathBuf),
    /// A name that cannot be one.
    #[error("{0:?} cannot be a plugin's name: use small letters, digits and _, a letter first")]
    Name(String),
    /// The plugin cannot be called at all.
    #[error("the plugin cannot be used: {0}")]
    Plugin(#[from] ebbtide_wasm::WasmError),
    /// The service cannot be asked at all.
    #[error("the plugin cannot be used: {0}")]
    Service(#[from] ebbtide_remote::RemoteError),
    /// It failed while it was measured.
    #[error("the plugin failed while it was measured: {0}")]
    Failed(String),
}
