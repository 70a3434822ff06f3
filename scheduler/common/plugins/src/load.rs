//! From a file to a plugin.

use crate::{PluginConfig, PluginError, Sources};
use ebbtide_cost_api::CostModule;
use ebbtide_files::read_regular;
use ebbtide_remote::{RemoteError, RemotePlugin, Service, ServiceLimits, Tls};
use ebbtide_weigher_api::{HostFilter, Weigher};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The largest certificate or key, in bytes: thousands of certificates.
const LARGEST_PEM: u64 = 1024 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PluginKind {
    /// It says how good hosts are.
    Weigher,
    /// It says what victims cost.
    CostModule,
    /// It says which hosts pass.
    Filter,
    /// It could not be asked yet.
    Unknown,
}

impl PluginKind {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Weigher => "weigher",
            Self::CostModule => "cost-module",
            Self::Filter => "filter",
            Self::Unknown => "unknown",
        }
    }
}

/// How the scheduler reaches a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PluginCarrier {
    /// A WebAssembly component.
    Wasm,
    /// A service, over gRPC.
    Remote,
}

impl PluginCarrier {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Wasm => "wasm",
            Self::Remote => "remote",
        }
    }
}

/// A plugin that can be called.
#[derive(Clone)]
#[cfg_attr(
    not(feature = "wasm"),
    allow(dead_code, reason = "without a carrier nothing is ever loaded")
)]
pub(crate) enum LoadedPlugin {
    Weigher(Arc<dyn Weigher>),
    CostModule(Arc<dyn CostModule>),
    Filter(Arc<dyn HostFilter>),
    /// A service that does not answer, and what happened.
    Absent(String),
}

/// Asks a service.
pub(crate) fn reach(config: &PluginConfig, address: &str) -> Result<LoadedPlugin, PluginError> {
    let name = &config.name;
    let refused = |error: RemoteError| match error.may_pass() {
        true => PluginError::Away {
            name: name.clone(),
            address: address.to_owned(),
            problem: error.to_string(),
        },
        false => PluginError::Refused {
            name: name.clone(),
            from: address.to_owned(),
            problem: error.to_string(),
        },
    };
    let read = |path: &Option<PathBuf>| -> Result<Option<Vec<u8>>, PluginError> {
        let Some(path) = path else { return Ok(None) };
        let bytes = read_regular(path, LARGEST_PEM).map_err(|source| PluginError::Read {
            name: name.clone(),
            path: path.clone(),
            source,
        })?;
        Ok(Some(bytes))
    };
    let tls = Tls {
        ca: read(&config.ca_file)?,
        identity: read(&config.certificate_file)?.zip(read(&config.key_file)?),
    };
    let limits = ServiceLimits {
        deadline: Duration::from_millis(config.deadline_ms.into()),
        in_flight: usize::try_from(config.in_flight).unwrap_or(usize::MAX),
    };
    let plugin = config.plugin.as_deref().unwrap_or(name);
    let reached = Service::at(address, &tls)
        .and_then(|service| service.plugin(plugin, name, &config.settings, limits));
    Ok(match reached.map_err(refused)? {
        RemotePlugin::Weigher(weigher) => LoadedPlugin::Weigher(Arc::new(weigher)),
        RemotePlugin::CostModule(module) => LoadedPlugin::CostModule(Arc::new(module)),
        RemotePlugin::Filter(filter) => LoadedPlugin::Filter(Arc::new(filter)),
    })
}

#[cfg(not(feature = "wasm"))]
pub(crate) fn load(
    config: &PluginConfig,
    bytes: &[u8],
    sources: &Sources,
) -> Result<LoadedPlugin, PluginError> {
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
) -> Result<LoadedPlugin, PluginError> {
    use ebbtide_wasm::{Grants, Kind, Sandbox};
    let refused = |problem: ebbtide_wasm::WasmError| PluginError::Refused {
        name: config.name.clone(),
        from: config.source(),
        problem: problem.to_string(),
    };
    let limits = ebbtide_wasm::SandboxLimits {
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
            LoadedPlugin::Weigher(Arc::new(weigher.map_err(refused)?))
        }
        Kind::CostModule => {
            let module = compiled.cost_module(&config.name, &config.settings, limits, grants);
            LoadedPlugin::CostModule(Arc::new(module.map_err(refused)?))
        }
        Kind::Filter => {
            let filter = compiled.filter(&config.name, &config.settings, limits, grants);
            LoadedPlugin::Filter(Arc::new(filter.map_err(refused)?))
        }
    })
}
