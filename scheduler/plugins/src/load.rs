//! From a file to a plugin.

use crate::{PluginConfig, PluginError, Sources};
use ebbtide_cost_api::CostModule;
use ebbtide_weigher_api::Weigher;
use std::sync::Arc;

/// What a plugin is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PluginKind {
    /// It says how good hosts are.
    Weigher,
    /// It says what victims cost.
    CostModule,
}

impl PluginKind {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Weigher => "weigher",
            Self::CostModule => "cost-module",
        }
    }
}

/// How it is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// A WebAssembly component.
    Wasm,
}

impl Carrier {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Wasm => "wasm",
        }
    }
}

/// A plugin that can be called.
#[derive(Clone)]
#[cfg_attr(
    not(feature = "wasm"),
    allow(dead_code, reason = "without a carrier nothing is ever loaded")
)]
pub(crate) enum Loaded {
    Weigher(Arc<dyn Weigher>),
    CostModule(Arc<dyn CostModule>),
}

#[cfg(not(feature = "wasm"))]
pub(crate) fn load(
    config: &PluginConfig,
    bytes: &[u8],
    sources: &Sources,
) -> Result<Loaded, PluginError> {
    let _ = (bytes, sources);
    Err(PluginError::NoWasm {
        name: config.name.clone(),
    })
}

#[cfg(feature = "wasm")]
pub(crate) fn load(
    config: &PluginConfig,
    bytes: &[u8],
    sources: &Sources,
) -> Result<Loaded, PluginError> {
    use ebbtide_wasm::{Grants, Kind, Limits, Sandbox};
    let refused = |problem: ebbtide_wasm::WasmError| PluginError::Refused {
        name: config.name.clone(),
        path: config.file.clone(),
        problem: problem.to_string(),
    };
    let limits = Limits {
        memory_bytes: usize::try_from(config.memory_mb)
            .unwrap_or(usize::MAX)
            .saturating_mul(1 << 20),
        work: u64::from(config.work_million) * 1_000_000,
        work_per_row: config.work_per_row.into(),
    };
    let grants = Grants {
        clock: sources.clock.clone().filter(|_| config.grants("clock")),
        randomness: sources
            .randomness
            .clone()
            .filter(|_| config.grants("randomness")),
    };
    let compiled = Sandbox::new()
        .and_then(|sandbox| sandbox.compile(bytes))
        .map_err(refused)?;
    Ok(match compiled.kind() {
        Kind::Weigher => {
            let weigher = compiled.weigher(&config.name, &config.settings, limits, grants);
            Loaded::Weigher(Arc::new(weigher.map_err(refused)?))
        }
        Kind::CostModule => {
            let module = compiled.cost_module(&config.name, &config.settings, limits, grants);
            Loaded::CostModule(Arc::new(module.map_err(refused)?))
        }
    })
}
