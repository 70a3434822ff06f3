//! Calling a function of a component: a new instance each time, and what went wrong in words.

use crate::bindings::Pair;
use crate::guest::{CallStore, CallUsage, explain, used};
use crate::load::CompiledPlugin;
use crate::{Grants, PluginSettings, SandboxLimits, WasmError};
use wasmtime::component::{ComponentExportIndex, ComponentNamedList, InstancePre, Lift, Lower};
use wasmtime::{Engine, Store};

/// A plugin ready to be called.
#[derive(Clone)]
pub(crate) struct Callee {
    engine: Engine,
    pre: InstancePre<CallStore>,
    limits: SandboxLimits,
    grants: Grants,
    describe: ComponentExportIndex,
    answer: ComponentExportIndex,
    settings: PluginSettings,
}

/// A call that did not answer, in words.
pub(crate) type CallFailure = String;

impl Callee {
    /// Finds the two functions of an interface.
    pub(crate) fn new(
        compiled: &CompiledPlugin,
        interface: &str,
        answer: &str,
        settings: &PluginSettings,
        limits: SandboxLimits,
        grants: Grants,
    ) -> Result<Self, WasmError> {
        limits.check()?;
        let component = compiled.component();
        let missing =
            |what: &str| WasmError::Interface(format!("{interface} has no function {what}"));
        let place = component
            .get_export_index(None, interface)
            .ok_or_else(|| missing("at all"))?;
        let find = |name: &str| {
            component
                .get_export_index(Some(&place), name)
                .ok_or_else(|| missing(name))
        };
        Ok(Self {
            engine: compiled.engine().clone(),
            pre: compiled.prepare(&grants)?,
            limits,
            grants,
            describe: find("describe")?,
            answer: find(answer)?,
            settings: settings.clone(),
        })
    }

    pub(crate) fn settings(&self) -> Vec<Pair<'_>> {
        let pairs = self.settings.iter();
        pairs.map(|(key, value)| Pair { key, value }).collect()
    }

    /// Asks what the plugin is.
    pub(crate) fn describe<P, R>(&self, params: P) -> Result<R, WasmError>
    where
        P: ComponentNamedList + Lower,
        R: Lift + 'static,
        (Result<R, String>,): ComponentNamedList + Lift,
    {
        let (answer, _) =
            self.call(&self.describe, params, 0, true)
                .map_err(|failed| match failed {
                    CallError::Type(problem) => WasmError::Interface(problem),
                    CallError::Ran(problem) => WasmError::Describe(problem),
                })?;
        answer.map_err(|problem: String| WasmError::Describe(format!("it says: {problem}")))
    }

    /// Asks for the answer to so many rows.
    pub(crate) fn ask<P, R>(&self, params: P, rows: usize) -> Result<(R, CallUsage), CallFailure>
    where
        P: ComponentNamedList + Lower,
        R: Lift + 'static,
        (Result<R, String>,): ComponentNamedList + Lift,
    {
        let answered = self.call(&self.answer, params, rows, false);
        let (answer, used): (Result<R, String>, CallUsage) =
            answered.map_err(|failed| match failed {
                CallError::Type(problem) | CallError::Ran(problem) => problem,
            })?;
        let answer = answer.map_err(|problem| format!("says: {problem}"))?;
        Ok((answer, used))
    }

    /// Asks for the numbers of so many rows.
    pub(crate) fn numbers<P>(
        &self,
        params: P,
        rows: usize,
    ) -> Result<(Vec<f64>, CallUsage), CallFailure>
    where
        P: ComponentNamedList + Lower,
    {
        let (numbers, used): (Vec<f64>, CallUsage) = self.ask(params, rows)?;
        match numbers.len() == rows {
            true => Ok((numbers, used)),
            false => Err(format!("gave {} numbers for {rows} rows", numbers.len())),
        }
    }

    /// Checks the types of the second function without calling it.
    pub(crate) fn check_types<P, R>(&self) -> Result<(), WasmError>
    where
        P: ComponentNamedList + Lower,
        R: Lift + 'static,
        (Result<R, String>,): ComponentNamedList + Lift,
    {
        let mut store = self.store(0).map_err(WasmError::Sandbox)?;
        let instance = self.pre.instantiate(&mut store);
        let instance = instance
            .map_err(|error| WasmError::Describe(explain(&store, &error, &self.limits, 0)))?;
        let typed = instance.get_typed_func::<P, (Result<R, String>,)>(&mut store, &self.answer);
        typed
            .map(drop)
            .map_err(|error| WasmError::Interface(format!("{error:#}")))
    }

    fn store(&self, rows: usize) -> Result<Store<CallStore>, CallFailure> {
        CallStore::store(&self.engine, &self.limits, &self.grants, rows)
    }

    fn call<P, R>(
        &self,
        function: &ComponentExportIndex,
        params: P,
        rows: usize,
        is_new: bool,
    ) -> Result<(Result<R, String>, CallUsage), CallError>
    where
        P: ComponentNamedList + Lower,
        R: Lift + 'static,
        (Result<R, String>,): ComponentNamedList + Lift,
    {
        let mut store = self.store(rows).map_err(CallError::Ran)?;
        let ran = |store: &Store<CallStore>, error: &wasmtime::Error| {
            CallError::Ran(explain(store, error, &self.limits, rows))
        };
        let instance = self.pre.instantiate(&mut store);
        let instance = instance.map_err(|error| ran(&store, &error))?;
        let typed = instance.get_typed_func::<P, (Result<R, String>,)>(&mut store, function);
        let typed = typed.map_err(|error| match is_new {
            true => CallError::Type(format!("{error:#}")),
            false => ran(&store, &error),
        })?;
        let answered = typed.call(&mut store, params);
        let (answer,) = answered.map_err(|error| ran(&store, &error))?;
        Ok((answer, used(&store, &self.limits, rows)))
    }
}

enum CallError {
    /// The function has other types than the contract says.
    Type(String),
    /// It did not end well.
    Ran(String),
}
