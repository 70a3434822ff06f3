//! A cost module that is a component.

use crate::bindings::{Column, CostDescription as GuestDescription, Pairs, Rows};
use crate::call::Callee;
use crate::guest::CallUsage;
use crate::load::CompiledPlugin;
use crate::{Grants, PluginSettings, SandboxLimits, WasmError};
use ebbtide_cost_api::{CostError, VictimBatch};
use ebbtide_plugin_contract::{
    CandidateColumns, CostDescription, CostModuleTransport, PluginCostModule,
};
use std::fmt;

/// A cost module that is a component.
pub type WasmCostModule = PluginCostModule<CostGuest>;

/// The sandbox of a cost module.
pub struct CostGuest(Callee);

impl fmt::Debug for CostGuest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CostGuest").finish_non_exhaustive()
    }
}

impl CostGuest {
    /// Begins it, and lets it describe itself.
    pub(crate) fn cost_module(
        compiled: &CompiledPlugin,
        name: &str,
        settings: &PluginSettings,
        limits: SandboxLimits,
        grants: Grants,
    ) -> Result<WasmCostModule, WasmError> {
        let callee = Callee::new(
            compiled,
            compiled.interface(),
            "cost",
            settings,
            limits,
            grants,
        )?;
        callee.check_types::<(Pairs<'_>, Rows<'_>), Vec<f64>>()?;
        let said: GuestDescription = callee.describe((callee.settings().as_slice(),))?;
        let described = CostDescription::check(said.unit, &said.needs, said.surcharges)?;
        Ok(PluginCostModule::new(name, described, Self(callee)))
    }

    /// Prices, and says what that took.
    ///
    /// # Errors
    /// As [`CostModule::cost`](ebbtide_cost_api::CostModule::cost).
    pub fn cost_and_measure(
        &self,
        described: &CostDescription,
        victims: &VictimBatch<'_>,
    ) -> Result<(Vec<f64>, CallUsage), CostError> {
        let known = CandidateColumns::new(victims);
        let needs = described.needs.iter();
        let columns: Result<Vec<Column<'_>>, CostError> =
            needs.map(|need| known.of(need).map(Column::from)).collect();
        let columns = columns?;
        let rows = Rows {
            len: u32::try_from(victims.len).unwrap_or(u32::MAX),
            columns: &columns,
        };
        let settings = self.0.settings();
        let answered = self.0.numbers((settings.as_slice(), rows), victims.len);
        answered.map_err(CostError::Other)
    }
}

impl CostModuleTransport for CostGuest {
    fn call(
        &self,
        described: &CostDescription,
        victims: &VictimBatch<'_>,
    ) -> Result<Vec<f64>, CostError> {
        let (costs, _) = self.cost_and_measure(described, victims)?;
        Ok(costs)
    }
}
