//! A weigher that is a service.

use crate::call::Callee;
use crate::convert;
use ebbtide_plugin_contract::{
    self as contract, PluginWeigher, WeigherDescription, WeigherTransport,
};
use ebbtide_proto::plugin::v1::WeighRequest;
use ebbtide_weigher_api::{HostBatch, RequestView, WeigherError};

/// A weigher that is a service.
pub type RemoteWeigher = PluginWeigher<WeigherService>;

/// The connection of a weigher.
#[derive(Debug)]
pub struct WeigherService(pub(crate) Callee);

impl WeigherTransport for WeigherService {
    fn call(
        &self,
        described: &WeigherDescription,
        request: &RequestView<'_>,
        hosts: &HostBatch<'_>,
    ) -> Result<Vec<f64>, WeigherError> {
        let needs = &described.needs;
        let texts = contract::texts(needs, hosts)?;
        let columns = contract::plugin_columns(needs, hosts, &texts)?;
        let question = WeighRequest {
            plugin: self.0.plugin().to_owned(),
            settings: self.0.settings(),
            request: Some(convert::request(request)),
            len: convert::count(hosts.len),
            columns: columns.into_iter().map(convert::column).collect(),
        };
        let answered = self.0.numbers(
            hosts.len,
            |mut client, question| async move { client.weigh(question).await },
            question,
        );
        answered.map_err(WeigherError::Other)
    }
}
