//! The plugin that is looked at.

use crate::KitError;
use crate::callable::{TriedCostModule, TriedFilter, TriedPlugin, TriedWeigher};
use crate::random::SplitMix64;
use ebbtide_remote::{RemotePlugin, Service, Tls};
use ebbtide_wasm::{
    CompiledPlugin, Grants, Kind, PluginSettings, Sandbox, SandboxLimits, WasmError,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Some time in 2025.
const SINCE_1970: u64 = 1_750_000_000;

/// Where a plugin is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PluginLocation {
    /// A component.
    File(PathBuf),
    /// A service.
    Service {
        /// `http://HOST:PORT`, `https://HOST:PORT` or `unix:/PATH`.
        address: String,
        /// What the service calls it.
        plugin: String,
        /// What a call may take.
        limits: ebbtide_remote::ServiceLimits,
    },
}

/// A plugin, with what the operator would say of it.
#[derive(Debug, Clone)]
pub struct Subject {
    /// Where it is.
    pub place: PluginLocation,
    /// The operator's settings.
    pub settings: PluginSettings,
    /// What a call may use.
    pub limits: SandboxLimits,
    /// What it gets beyond its input.
    pub grants: Grants,
    /// The file that was compiled last, and what it became: Python's takes minutes, and is the same
    /// with other settings.
    compiled: Arc<Mutex<Option<(PathBuf, CompiledPlugin)>>>,
}

impl Subject {
    /// With the limits that plugins have if the operator says nothing.
    #[must_use]
    pub fn new(file: &Path) -> Self {
        Self::of(PluginLocation::File(file.to_owned()))
    }

    /// A service, with the limits that plugins have if the operator says nothing.
    #[must_use]
    pub fn at(address: &str, plugin: &str) -> Self {
        Self::of(PluginLocation::Service {
            address: address.to_owned(),
            plugin: plugin.to_owned(),
            limits: ebbtide_remote::ServiceLimits::default(),
        })
    }

    fn of(place: PluginLocation) -> Self {
        Self {
            place,
            settings: PluginSettings::new(),
            limits: SandboxLimits::default(),
            grants: Grants::default(),
            compiled: Arc::default(),
        }
    }

    /// Grants it a clock, which advances by a second at each read: a plugin whose numbers depend on
    /// the time is thus found not to be deterministic.
    pub fn grant_clock(&mut self) {
        let seconds = AtomicU64::new(SINCE_1970);
        self.grants.clock = Some(Arc::new(move || {
            seconds.fetch_add(1, Ordering::Relaxed) * 1_000_000_000
        }));
    }

    /// Grants it random numbers, different ones at each read.
    pub fn grant_randomness(&mut self) {
        let calls = AtomicU64::new(1);
        self.grants.randomness = Some(Arc::new(move |bytes: &mut [u8]| {
            let mut chance = SplitMix64::new(calls.fetch_add(1, Ordering::Relaxed));
            for chunk in bytes.chunks_mut(8) {
                let word = chance.next().to_le_bytes();
                chunk.copy_from_slice(&word[..chunk.len()]);
            }
        }));
    }

    /// Reads a component.
    pub(crate) fn bytes(file: &Path) -> Result<Vec<u8>, KitError> {
        fs::read(file).map_err(|source| KitError::Io {
            path: file.to_owned(),
            source,
        })
    }

    pub(crate) fn compile(bytes: &[u8]) -> Result<CompiledPlugin, WasmError> {
        Sandbox::new()?.compile(bytes)
    }

    /// The same, once for this subject and its clones.
    pub(crate) fn compile_once(
        &self,
        file: &Path,
        bytes: &[u8],
    ) -> Result<CompiledPlugin, WasmError> {
        let mut known = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, compiled)) = known.as_ref()
            && of == file
        {
            return Ok(compiled.clone());
        }
        let compiled = Self::compile(bytes)?;
        *known = Some((file.to_owned(), compiled.clone()));
        Ok(compiled)
    }

    /// A component, ready to be asked.
    pub(crate) fn load(
        &self,
        file: &Path,
        compiled: &CompiledPlugin,
    ) -> Result<TriedPlugin, WasmError> {
        let name = file.file_stem().map_or_else(
            || "plugin".to_owned(),
            |stem| stem.to_string_lossy().into_owned(),
        );
        let (settings, limits) = (&self.settings, self.limits);
        let grants = self.grants.clone();
        Ok(match compiled.kind() {
            Kind::Weigher => {
                let weigher = compiled.weigher(&name, settings, limits, grants)?;
                TriedPlugin::Weigher(TriedWeigher::Wasm(weigher))
            }
            Kind::CostModule => {
                let module = compiled.cost_module(&name, settings, limits, grants)?;
                TriedPlugin::CostModule(TriedCostModule::Wasm(module))
            }
            Kind::Filter => {
                let filter = compiled.filter(&name, settings, limits, grants)?;
                TriedPlugin::Filter(TriedFilter::Wasm(filter))
            }
        })
    }

    /// A service, ready to be asked.
    pub(crate) fn reach(
        &self,
        address: &str,
        plugin: &str,
        limits: ebbtide_remote::ServiceLimits,
    ) -> Result<TriedPlugin, ebbtide_remote::RemoteError> {
        let service = Service::at(address, &Tls::default())?;
        Ok(
            match service.plugin(plugin, plugin, &self.settings, limits)? {
                RemotePlugin::Weigher(weigher) => {
                    TriedPlugin::Weigher(TriedWeigher::Remote(weigher))
                }
                RemotePlugin::CostModule(module) => {
                    TriedPlugin::CostModule(TriedCostModule::Remote(module))
                }
                RemotePlugin::Filter(filter) => TriedPlugin::Filter(TriedFilter::Remote(filter)),
            },
        )
    }

    /// Whatever it is, ready to be asked.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub(crate) fn ready(&self) -> Result<TriedPlugin, KitError> {
        match &self.place {
            PluginLocation::File(file) => {
                let compiled = Self::compile(&Self::bytes(file)?)?;
                Ok(self.load(file, &compiled)?)
            }
            PluginLocation::Service {
                address,
                plugin,
                limits,
            } => Ok(self.reach(address, plugin, *limits)?),
        }
    }
}
