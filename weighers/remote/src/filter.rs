//! A filter that is a service.

use crate::call::Callee;
use crate::convert;
use ebbtide_plugin_contract::{self as contract, FilterDescription, FilterTransport, PluginFilter};
use ebbtide_proto::plugin::v1::{FilterRequest, Verdicts};
use ebbtide_weigher_api::{FilterError, FilterVerdicts, HostBatch, RequestView};

/// A filter that is a service.
pub type RemoteFilter = PluginFilter<FilterService>;

/// The connection of a filter.
#[derive(Debug)]
pub struct FilterService(pub(crate) Callee);

impl FilterTransport for FilterService {
    fn call(
        &self,
        described: &FilterDescription,
        request: &RequestView<'_>,
        hosts: &HostBatch<'_>,
    ) -> Result<FilterVerdicts, FilterError> {
        let needs = &described.needs;
        let texts = contract::texts(needs, hosts)?;
        let columns = contract::plugin_columns(needs, hosts, &texts)?;
        let question = FilterRequest {
            plugin: self.0.plugin().to_owned(),
            settings: self.0.settings(),
            request: Some(convert::request(request)),
            len: convert::count(hosts.len),
            columns: columns.into_iter().map(convert::column).collect(),
        };
        let answered: Result<Verdicts, String> = self.0.ask(
            |mut client, question| async move { client.filter(question).await },
            question,
        );
        let Verdicts { codes, reasons } = answered.map_err(FilterError::Other)?;
        FilterVerdicts::from_codes(codes, reasons, hosts.len)
    }
}
