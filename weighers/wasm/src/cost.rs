//! A cost module that is a component.

use crate::bindings::{Column, CostDescription as Said, Pairs, Rows};
use crate::call::Callee;
use crate::guest::Used;
use crate::load::Compiled;
use crate::{Grants, Limits, Settings, WasmError};
use ebbtide_cost_api::{CostError, CostModule, Fact, SetCost, VictimBatch};
use ebbtide_plugin_contract::{CandidateColumns, CostDescription};
use std::fmt;

/// A cost module that is a component.
pub struct WasmCostModule {
    name: String,
    described: CostDescription,
    callee: Callee,
}

impl fmt::Debug for WasmCostModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WasmCostModule")
            .field("name", &self.name)
            .field("described", &self.described)
            .finish_non_exhaustive()
    }
}

impl WasmCostModule {
    pub(crate) fn new(
        compiled: &Compiled,
        name: &str,
        settings: &Settings,
        limits: Limits,
        grants: Grants,
    ) -> Result<Self, WasmError> {
        let callee = Callee::new(
            compiled,
            compiled.interface(),
            "cost",
            settings,
            limits,
            grants,
        )?;
        callee.check_types::<(Pairs<'_>, Rows<'_>)>()?;
        let said: Said = callee.describe((callee.settings().as_slice(),))?;
        let described = CostDescription::check(said.unit, &said.needs, said.surcharges)?;
        Ok(Self {
            name: name.to_owned(),
            described,
            callee,
        })
    }

    /// What it reads, by name, in its own order.
    #[must_use]
    pub fn reads(&self) -> Vec<String> {
        self.described.reads()
    }

    /// Prices, and says what that took.
    ///
    /// # Errors
    /// As [`CostModule::cost`].
    pub fn cost_and_measure(
        &self,
        victims: &VictimBatch<'_>,
    ) -> Result<(Vec<f64>, Used), CostError> {
        let known = CandidateColumns::new(victims);
        let needs = self.described.needs.iter();
        let columns: Result<Vec<Column<'_>>, CostError> =
            needs.map(|need| known.of(need).map(Column::from)).collect();
        let columns = columns?;
        let rows = Rows {
            len: u32::try_from(victims.len).unwrap_or(u32::MAX),
            columns: &columns,
        };
        let settings = self.callee.settings();
        let answered = self
            .callee
            .numbers((settings.as_slice(), rows), victims.len);
        answered.map_err(CostError::Other)
    }
}

impl CostModule for WasmCostModule {
    fn name(&self) -> &str {
        &self.name
    }

    fn unit(&self) -> &str {
        &self.described.unit
    }

    fn facts(&self) -> &[Fact] {
        &self.described.facts
    }

    fn cost(&self, victims: &VictimBatch<'_>, out: &mut [f64]) -> Result<(), CostError> {
        let (costs, _) = self.cost_and_measure(victims)?;
        out.iter_mut()
            .zip(costs)
            .for_each(|(place, cost)| *place = cost);
        Ok(())
    }

    fn set_cost(&self) -> SetCost {
        self.described.set_cost()
    }

    fn nth_of_a_project(&self, n: u32) -> f64 {
        self.described.nth_of_a_project(n)
    }
}
