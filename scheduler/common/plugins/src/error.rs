//! Why a set of plugins cannot be used.

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why a set of plugins cannot be used. Every error names the plugin.
#[derive(Debug, Error)]
pub enum PluginError {
    /// A key of the configuration is wrong.
    #[error("plugins: {name:?}: {key}: {problem}")]
    Config {
        name: String,
        key: Cow<'static, str>,
        /// What is wrong with it.
        problem: String,
    },
    /// Its file cannot be read.
    #[error("plugins: {name:?}: {} cannot be read: {source}", path.display())]
    Read {
        name: String,
        /// Its file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is no plugin that can be used.
    #[error("plugins: {name:?}: {from}: {problem}; try `ebbtide-lab plugin check {from}`")]
    Refused {
        name: String,
        /// Its file or its address.
        from: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Its service does not answer.
    #[error("plugins: {name:?}: {address}: {problem}; start the service, or look at the address")]
    Away {
        name: String,
        address: String,
        /// What happened.
        problem: String,
    },
    /// There is none of this name.
    #[error("plugins: there is none with the name {name:?}; `ebbtide plugin list` shows all")]
    Unknown { name: String },
    /// There is one of this name already.
    #[error("plugins: there is one with the name {name:?} already; use another name, or --replace")]
    Exists { name: String },
    /// It is in a configuration file, which only the operator changes.
    #[error(
        "plugins: {name:?} is in the configuration file of the scheduler: take it out there and send SIGHUP, or disable it"
    )]
    InFile { name: String },
    /// It decides what victims cost, and nothing else would.
    #[error(
        "plugins: {name:?} is the cost module in use; choose another one first, with `ebbtide plugin use NAME`, or with `ebbtide plugin use --configured`"
    )]
    InUse { name: String },
    /// It is no cost module that could be used.
    #[error("plugins: {name:?} cannot be used as the cost module: {problem}")]
    NoCostModule {
        name: String,
        /// Why not.
        problem: String,
    },
    /// This program was built without what it takes.
    #[error(
        "plugins: {name:?}: this program was built without WebAssembly; build it with --features wasm"
    )]
    NoWasm { name: String },
}

impl PluginError {
    /// Two plugins have this name.
    #[must_use]
    pub fn same_name(name: &str) -> Self {
        Self::Config {
            name: name.to_owned(),
            key: "name".into(),
            problem: "another plugin has it already".to_owned(),
        }
    }

    /// Stable code, explained in `docs/reference/errors.md`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Config { .. } => "EB-PLUGIN-001",
            Self::Read { .. } => "EB-PLUGIN-002",
            Self::Refused { .. } => "EB-PLUGIN-003",
            Self::NoWasm { .. } => "EB-PLUGIN-004",
            Self::Away { .. } => "EB-PLUGIN-005",
            Self::Unknown { .. } => "EB-PLUGIN-006",
            Self::Exists { .. } => "EB-PLUGIN-007",
            Self::InFile { .. } => "EB-PLUGIN-008",
            Self::InUse { .. } => "EB-PLUGIN-009",
            Self::NoCostModule { .. } => "EB-PLUGIN-010",
        }
    }
}
