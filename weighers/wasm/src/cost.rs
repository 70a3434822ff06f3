//! A cost module that is a component.

use crate::bindings::{Column, CostDescription, Pairs, Rows};
use crate::call::Callee;
use crate::guest::Used;
use crate::load::Compiled;
use crate::{Grants, Limits, Settings, WasmError};
use ebbtide_cost_api::{CostError, CostModule, MAX_COST, SetCost, VictimBatch};
use std::fmt;

/// Something that a cost module reads of each candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    AgeSeconds,
    Vcpus,
    MemoryMb,
    PricePerHour,
    Priority,
    Project,
}

impl Need {
    const ALL: [(&'static str, Self); 6] = [
        ("age_seconds", Self::AgeSeconds),
        ("vcpus", Self::Vcpus),
        ("memory_mb", Self::MemoryMb),
        ("price_per_hour", Self::PricePerHour),
        ("priority", Self::Priority),
        ("project", Self::Project),
    ];

    fn name(self) -> &'static str {
        Self::ALL
            .into_iter()
            .find(|(_, need)| *need == self)
            .map_or("", |(name, _)| name)
    }

    fn read(name: &str) -> Result<Self, WasmError> {
        let found = Self::ALL.into_iter().find(|(known, _)| *known == name);
        found.map(|(_, need)| need).ok_or_else(|| {
            let known = Self::ALL.map(|(name, _)| name).join(", ");
            WasmError::Description(format!(
                "it needs {name:?}, which this Ebbtide does not know; there are {known}"
            ))
        })
    }
}

/// A cost module that is a component.
pub struct WasmCostModule {
    name: String,
    unit: String,
    needs: Vec<Need>,
    surcharges: Vec<f64>,
    callee: Callee,
}

impl fmt::Debug for WasmCostModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WasmCostModule")
            .field("name", &self.name)
            .field("needs", &self.needs)
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
        let described: CostDescription = callee.describe((callee.settings().as_slice(),))?;
        let needs: Result<Vec<Need>, WasmError> = described
            .needs
            .iter()
            .map(|name| Need::read(name))
            .collect();
        check_surcharges(&described.surcharges)?;
        Ok(Self {
            name: name.to_owned(),
            unit: described.unit,
            needs: needs?,
            surcharges: described.surcharges,
            callee,
        })
    }

    /// What it reads, by name, in its own order.
    #[must_use]
    pub fn reads(&self) -> Vec<String> {
        self.needs
            .iter()
            .map(|need| need.name().to_owned())
            .collect()
    }

    /// Prices, and says what that took.
    ///
    /// # Errors
    /// As [`CostModule::cost`].
    pub fn cost_and_measure(
        &self,
        victims: &VictimBatch<'_>,
    ) -> Result<(Vec<f64>, Used), CostError> {
        let priority: Vec<f64> = victims
            .priority
            .iter()
            .map(|class| f64::from(*class))
            .collect();
        let project: Vec<f64> = victims
            .project
            .iter()
            .map(|number| f64::from(*number))
            .collect();
        let column = |need: &Need| {
            Column::Numbers(match need {
                Need::AgeSeconds => victims.age_seconds,
                Need::Vcpus => victims.vcpus,
                Need::MemoryMb => victims.memory_mb,
                Need::PricePerHour => victims.price_per_hour,
                Need::Priority => &priority,
                Need::Project => &project,
            })
        };
        let columns: Vec<Column<'_>> = self.needs.iter().map(column).collect();
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

fn check_surcharges(surcharges: &[f64]) -> Result<(), WasmError> {
    let is_cost = |cost: &f64| (0.0..=MAX_COST).contains(cost);
    let rises = surcharges.windows(2).all(|pair| pair[0] <= pair[1]);
    match surcharges.iter().all(is_cost) && rises {
        true => Ok(()),
        false => Err(WasmError::Description(format!(
            "its surcharges {surcharges:?} are not 0 to {MAX_COST} and never falling"
        ))),
    }
}

impl CostModule for WasmCostModule {
    fn name(&self) -> &str {
        &self.name
    }

    fn unit(&self) -> &str {
        &self.unit
    }

    fn cost(&self, victims: &VictimBatch<'_>, out: &mut [f64]) -> Result<(), CostError> {
        let (costs, _) = self.cost_and_measure(victims)?;
        out.iter_mut()
            .zip(costs)
            .for_each(|(place, cost)| *place = cost);
        Ok(())
    }

    fn set_cost(&self) -> SetCost {
        match self.surcharges.is_empty() {
            true => SetCost::Sum,
            false => SetCost::PerProject,
        }
    }

    fn nth_of_a_project(&self, n: u32) -> f64 {
        let place = usize::try_from(n.saturating_sub(1)).unwrap_or(usize::MAX);
        let known = self
            .surcharges
            .get(place)
            .or_else(|| self.surcharges.last());
        known.copied().unwrap_or(0.0)
    }
}
