//! The plugin that is looked at.

use crate::KitError;
use ebbtide_wasm::{
    Compiled, Grants, Kind, Limits, Sandbox, Settings, WasmCostModule, WasmError, WasmWeigher,
};
use std::fs;
use std::path::{Path, PathBuf};

/// A plugin's file, with what the operator would say of it.
#[derive(Debug, Clone)]
pub struct Subject {
    /// Its file.
    pub file: PathBuf,
    /// The operator's settings.
    pub settings: Settings,
    /// What a call may use.
    pub limits: Limits,
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
        }
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
        Ok(match compiled.kind() {
            Kind::Weigher => {
                Loaded::Weigher(compiled.weigher(&name, settings, limits, Grants::default())?)
            }
            Kind::CostModule => Loaded::CostModule(compiled.cost_module(
                &name,
                settings,
                limits,
                Grants::default(),
            )?),
        })
    }
}
