//! From a file to a plugin that can be called.

use crate::cost::CostGuest;
use crate::filter::FilterGuest;
use crate::guest::CallStore;
use crate::weigher::WeigherGuest;
use crate::{Grants, SandboxLimits, WasmCostModule, WasmError, WasmFilter, WasmWeigher, wasi};
use std::collections::BTreeMap;
use std::fmt;
use wasmtime::component::{Component, InstancePre};
use wasmtime::{Config, Engine};

/// The operator's settings of a plugin.
pub type PluginSettings = BTreeMap<String, String>;

/// What a plugin is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It says how good hosts are.
    Weigher,
    /// It says what victims cost.
    CostModule,
    /// It says which hosts pass.
    Filter,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Weigher => "weigher",
            Self::CostModule => "cost module",
            Self::Filter => "filter",
        })
    }
}

/// Stack of a call, in bytes.
const STACK: usize = 512 << 10;

/// Where plugins run. One is enough for a process; cheap to clone.
#[derive(Clone)]
pub struct Sandbox {
    engine: Engine,
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sandbox")
    }
}

impl Sandbox {
    /// Sets it up.
    ///
    /// # Errors
    /// [`WasmError::Sandbox`] on a processor for which wasmtime has no compiler.
    pub fn new() -> Result<Self, WasmError> {
        let mut config = Config::new();
        config.consume_fuel(true);
        config.cranelift_nan_canonicalization(true);
        config.wasm_relaxed_simd(false);
        config.max_wasm_stack(STACK);
        let engine = Engine::new(&config).map_err(|error| WasmError::Sandbox(error.to_string()))?;
        Ok(Self { engine })
    }

    /// Compiles a component: tens of milliseconds for a small one, seconds for one with an
    /// interpreter inside.
    ///
    /// # Errors
    /// What is wrong with the file, before anything of it has run.
    pub fn compile(&self, bytes: &[u8]) -> Result<CompiledPlugin, WasmError> {
        let wrong = |error: wasmtime::Error| WasmError::NotAComponent(format!("{error:#}"));
        let component = Component::new(&self.engine, bytes).map_err(wrong)?;
        let (kind, interface) = kind(&self.engine, &component)?;
        Ok(CompiledPlugin {
            engine: self.engine.clone(),
            component,
            kind,
            interface,
        })
    }
}

/// A component that has been compiled.
#[derive(Clone)]
pub struct CompiledPlugin {
    engine: Engine,
    component: Component,
    kind: Kind,
    interface: String,
}

impl fmt::Debug for CompiledPlugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompiledPlugin")
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

impl CompiledPlugin {
    /// The kind of the plugin.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The interfaces that it imports, for example `wasi:clocks/wall-clock@0.2.3`.
    #[must_use]
    pub fn imports(&self) -> Vec<String> {
        let shape = self.component.component_type();
        let imports = shape.imports(&self.engine);
        imports.map(|(name, _)| name.to_owned()).collect()
    }

    /// Makes a weigher of it.
    ///
    /// # Errors
    /// What it imports and cannot have, or what is wrong with its description.
    pub fn weigher(
        &self,
        name: &str,
        settings: &PluginSettings,
        limits: SandboxLimits,
        grants: Grants,
    ) -> Result<WasmWeigher, WasmError> {
        self.expect(Kind::Weigher)?;
        WeigherGuest::weigher(self, name, settings, limits, grants)
    }

    /// Makes a cost module of it.
    ///
    /// # Errors
    /// As [`Self::weigher`].
    pub fn cost_module(
        &self,
        name: &str,
        settings: &PluginSettings,
        limits: SandboxLimits,
        grants: Grants,
    ) -> Result<WasmCostModule, WasmError> {
        self.expect(Kind::CostModule)?;
        CostGuest::cost_module(self, name, settings, limits, grants)
    }

    /// Makes a filter of it.
    ///
    /// # Errors
    /// As [`Self::weigher`].
    pub fn filter(
        &self,
        name: &str,
        settings: &PluginSettings,
        limits: SandboxLimits,
        grants: Grants,
    ) -> Result<WasmFilter, WasmError> {
        self.expect(Kind::Filter)?;
        FilterGuest::filter(self, name, settings, limits, grants)
    }

    fn expect(&self, wanted: Kind) -> Result<(), WasmError> {
        match self.kind == wanted {
            true => Ok(()),
            false => Err(WasmError::WrongKind(self.kind, wanted)),
        }
    }

    /// The name of what it exports, with its version.
    pub(crate) fn interface(&self) -> &str {
        &self.interface
    }

    pub(crate) fn component(&self) -> &Component {
        &self.component
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Ready for instances.
    pub(crate) fn prepare(&self, grants: &Grants) -> Result<InstancePre<CallStore>, WasmError> {
        let linker = wasi::define(&self.engine, &self.component, grants)?;
        linker
            .instantiate_pre(&self.component)
            .map_err(|error| WasmError::Interface(format!("{error:#}")))
    }
}

fn kind(engine: &Engine, component: &Component) -> Result<(Kind, String), WasmError> {
    let shape = component.component_type();
    let mut others = Vec::new();
    for (name, _) in shape.exports(engine) {
        let (interface, version) = name.split_once('@').unwrap_or((name, ""));
        let kind = match interface {
            "ebbtide:plugin/weigher" => Kind::Weigher,
            "ebbtide:plugin/cost-module" => Kind::CostModule,
            "ebbtide:plugin/filter" => Kind::Filter,
            _ => {
                others.push(name.to_owned());
                continue;
            }
        };
        return match version.split('.').next() {
            Some("1") => Ok((kind, name.to_owned())),
            _ => Err(WasmError::Version(version.to_owned())),
        };
    }
    let others = match others.is_empty() {
        true => String::new(),
        false => format!(", but {}", others.join(", ")),
    };
    Err(WasmError::NotAPlugin(others))
}
