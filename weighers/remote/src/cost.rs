//! A cost module that is a service.

use crate::call::Callee;
use crate::hand_over;
use ebbtide_cost_api::{CostError, CostModule, Fact, SetCost, VictimBatch};
use ebbtide_plugin_contract::{CandidateColumns, CostDescription};
use ebbtide_proto::plugin::v1::CostRequest;

/// A cost module that is a service.
#[derive(Debug)]
pub struct RemoteCostModule {
    name: String,
    described: CostDescription,
    callee: Callee,
}

impl RemoteCostModule {
    pub(crate) fn new(name: &str, described: CostDescription, callee: Callee) -> Self {
        Self {
            name: name.to_owned(),
            described,
            callee,
        }
    }

    /// What it reads, by name, in its own order.
    #[must_use]
    pub fn reads(&self) -> Vec<String> {
        self.described.reads()
    }
}

impl CostModule for RemoteCostModule {
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
        let known = CandidateColumns::new(victims);
        let needs = self.described.needs.iter();
        let columns: Result<Vec<_>, CostError> = needs
            .map(|need| known.of(need).map(hand_over::column))
            .collect();
        let question = CostRequest {
            plugin: self.callee.plugin().to_owned(),
            settings: self.callee.settings(),
            len: hand_over::count(victims.len),
            columns: columns?,
        };
        let answered = self.callee.numbers(
            victims.len,
            |mut client, question| async move { client.cost(question).await },
            question,
        );
        let costs = answered.map_err(CostError::Other)?;
        out.copy_from_slice(&costs);
        Ok(())
    }

    fn set_cost(&self) -> SetCost {
        self.described.set_cost()
    }

    fn nth_of_a_project(&self, n: u32) -> f64 {
        self.described.nth_of_a_project(n)
    }
}
