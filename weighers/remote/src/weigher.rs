//! A weigher that is a service.

use crate::call::Callee;
use crate::hand_over;
use ebbtide_plugin_contract::{self as contract, WeigherDescription};
use ebbtide_proto::plugin::v1::{Request, WeighRequest};
use ebbtide_weigher_api::{Bounds, Column, Fact, HostBatch, RequestView, Weigher, WeigherError};

/// A weigher that is a service.
#[derive(Debug)]
pub struct RemoteWeigher {
    name: String,
    multiplier_key: String,
    described: WeigherDescription,
    callee: Callee,
}

impl RemoteWeigher {
    pub(crate) fn new(name: &str, described: WeigherDescription, callee: Callee) -> Self {
        Self {
            name: name.to_owned(),
            multiplier_key: format!("{name}_weight_multiplier"),
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

impl Weigher for RemoteWeigher {
    fn name(&self) -> &str {
        &self.name
    }

    fn multiplier_key(&self) -> &str {
        &self.multiplier_key
    }

    fn default_multiplier(&self) -> f64 {
        self.described.default_multiplier
    }

    fn needs(&self) -> &[Column] {
        &self.described.columns
    }

    fn facts(&self) -> &[Fact] {
        &self.described.facts
    }

    fn needs_preemptibles(&self) -> bool {
        self.described.needs_preemptibles()
    }

    fn bounds(&self) -> Bounds {
        self.described.bounds
    }

    fn weigh(
        &self,
        request: &RequestView<'_>,
        hosts: &HostBatch<'_>,
        out: &mut [f64],
    ) -> Result<(), WeigherError> {
        let needs = &self.described.needs;
        let texts = contract::texts(needs, hosts)?;
        let handed = contract::hand_over(needs, hosts, &texts)?;
        let resources = request.resources.iter();
        let properties = contract::properties(request);
        let question = WeighRequest {
            plugin: self.callee.plugin().to_owned(),
            settings: self.callee.settings(),
            request: Some(Request {
                project_id: request.project_id.to_owned(),
                preemptible: request.preemptible,
                resources: resources
                    .map(|(class, amount)| (class.as_str().to_owned(), amount))
                    .collect(),
                properties: properties
                    .into_iter()
                    .map(|(key, value)| (key.into_owned(), value.to_owned()))
                    .collect(),
            }),
            len: hand_over::count(hosts.len),
            columns: handed.into_iter().map(hand_over::column).collect(),
        };
        let answered = self.callee.numbers(
            hosts.len,
            |mut client, question| async move { client.weigh(question).await },
            question,
        );
        let numbers = answered.map_err(WeigherError::Other)?;
        out.copy_from_slice(&numbers);
        Ok(())
    }
}
