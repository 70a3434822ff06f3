//! The shared part of all cost modules that are plugins, for every carrier.

use crate::CostDescription;
use ebbtide_cost_api::{CostError, CostModule, Fact, SetCost, VictimBatch};

/// The carrier of a cost module: a sandbox or a connection.
pub trait CostModuleTransport: Send + Sync {
    /// Requests the cost of each candidate; `described`: what the module reads.
    ///
    /// # Errors
    /// As [`CostModule::cost`].
    fn call(
        &self,
        described: &CostDescription,
        victims: &VictimBatch<'_>,
    ) -> Result<Vec<f64>, CostError>;
}

/// A cost module that is a plugin.
#[derive(Debug)]
pub struct PluginCostModule<C> {
    name: String,
    described: CostDescription,
    carrier: C,
}

impl<C> PluginCostModule<C> {
    /// Under the name that the operator has given it.
    #[must_use]
    pub fn new(name: &str, described: CostDescription, carrier: C) -> Self {
        Self {
            name: name.to_owned(),
            described,
            carrier,
        }
    }

    /// What it reads, by name, in its own order.
    #[must_use]
    pub fn reads(&self) -> Vec<String> {
        self.described.reads()
    }

    /// What it says of itself.
    #[must_use]
    pub fn described(&self) -> &CostDescription {
        &self.described
    }

    /// What carries it.
    #[must_use]
    pub fn carrier(&self) -> &C {
        &self.carrier
    }
}

impl<C: CostModuleTransport> CostModule for PluginCostModule<C> {
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
        let costs = self.carrier.call(&self.described, victims)?;
        // Carriers check that there are as many numbers as candidates.
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
