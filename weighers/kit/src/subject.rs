//! The plugin that is looked at.

use crate::KitError;
use crate::chance::Chance;
use ebbtide_wasm::{
    Compiled, Grants, Kind, Limits, Sandbox, Settings, WasmCostModule, WasmError, WasmWeigher,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Some time in 2025.
const SINCE_1970: u64 = 1_750_000_000;

/// A plugin's file, with what the operator would say of it.
#[derive(Debug, Clone)]
pub struct Subject {
    /// Its file.
    pub file: PathBuf,
    /// The operator's settings.
    pub settings: Settings,
    /// What a call may use.
    pub limits: Limits,
    /// What it gets beyond its input.
    pub grants: Grants,
}

pub(crate) enum Loaded {
    Weigher(WasmWeigher),
    CostModule(WasmCostModule),
}

impl Subject {
    /// With the limits that plugins have if the operator says nothing.
    #[must_use]
    pub fn new(file: &Path) -> Self {
        Self {
            file: file.to_owned(),
            settings: Settings::new(),
            limits: Limits::default(),
            grants: Grants::default(),
        }
    }

    /// Grants it a clock. It goes on by a second whenever it is asked, so who counts on the time is found to be not deterministic.
    pub fn grant_clock(&mut self) {
        let seconds = AtomicU64::new(SINCE_1970);
        self.grants.clock = Some(Arc::new(move || {
            seconds.fetch_add(1, Ordering::Relaxed) * 1_000_000_000
        }));
    }

    /// Grants it random numbers, other ones whenever it asks.
    pub fn grant_randomness(&mut self) {
        let calls = AtomicU64::new(1);
        self.grants.randomness = Some(Arc::new(move |bytes: &mut [u8]| {
            let mut chance = Chance::new(calls.fetch_add(1, Ordering::Relaxed));
            for chunk in bytes.chunks_mut(8) {
                let word = chance.next().to_le_bytes();
                chunk.copy_from_slice(&word[..chunk.len()]);
            }
        }));
    }

    pub(crate) fn bytes(&self) -> Result<Vec<u8>, KitError> {
        fs::read(&self.file).map_err(|source| KitError::Io {
            path: self.file.clone(),
            source,
        })
    }

    pub(crate) fn compile(bytes: &[u8]) -> Result<Compiled, WasmError> {
        Sandbox::new()?.compile(bytes)
    }

    pub(crate) fn load(&self, compiled: &Compiled) -> Result<Loaded, WasmError> {
        let name = self.file.file_stem().map_or_else(
            || "plugin".to_owned(),
            |stem| stem.to_string_lossy().into_owned(),
        );
        let (settings, limits) = (&self.settings, self.limits);
        let grants = self.grants.clone();
        Ok(match compiled.kind() {
            Kind::Weigher => Loaded::Weigher(compiled.weigher(&name, settings, limits, grants)?),
            Kind::CostModule => {
                Loaded::CostModule(compiled.cost_module(&name, settings, limits, grants)?)
            }
        })
    }
}
