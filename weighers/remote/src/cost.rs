//! A cost module that is a service.

use crate::call::Callee;
use crate::convert;
use ebbtide_cost_api::{CostError, VictimBatch};
use ebbtide_plugin_contract::{
    CandidateColumns, CostDescription, CostModuleTransport, PluginCostModule,
};
use ebbtide_proto::plugin::v1::CostRequest;

/// A cost module that is a service.
pub type RemoteCostModule = PluginCostModule<CostService>;

/// The connection of a cost module.
#[derive(Debug)]
pub struct CostService(pub(crate) Callee);

impl CostModuleTransport for CostService {
    fn call(
        &self,
        described: &CostDescription,
        victims: &VictimBatch<'_>,
    ) -> Result<Vec<f64>, CostError> {
        let known = CandidateColumns::new(victims);
        let needs = described.needs.iter();
        let columns: Result<Vec<_>, CostError> = needs
            .map(|need| known.of(need).map(convert::column))
            .collect();
        let question = CostRequest {
            plugin: self.0.plugin().to_owned(),
            settings: self.0.settings(),
            len: convert::count(victims.len),
            columns: columns?,
        };
        let answered = self.0.numbers(
            victims.len,
            |mut client, question| async move { client.cost(question).await },
            question,
        );
        answered.map_err(CostError::Other)
    }
}
