//! What a rule asks of the cloud, as a what-if.

use crate::select::Selector;
use crate::settings::HeadroomRule;
use crate::what_if::{WhatIf, WhatIfError, offered_flavor};
use ebbtide_model::{Aggregate, ServerId};
use ebbtide_nova::model::{Destination, Flavor, RequestSpec};
use ebbtide_nova_cloud::{Cloud, PlannedVictim};
use ebbtide_runtime::ids;
use uuid::Uuid;

/// Asks what servers of a rule would get.
pub(super) struct RuleQuestions {
    pub(super) selector: Selector,
}

impl RuleQuestions {
    /// The flavor of a rule, which must be a normal one.
    pub(super) async fn flavor(&self, rule: &HeadroomRule) -> Result<Flavor, WhatIfError> {
        let nova = self.selector.facts.database.nova();
        let flavor = offered_flavor(nova, &rule.flavor, |_| true).await?;
        if flavor.is_preemptible() {
            let why = "the flavor is preemptible, and no server leaves for it".to_owned();
            return Err(WhatIfError::Unknown(why));
        }
        Ok(flavor)
    }

    /// The aggregate of a rule; `None`: any host.
    pub(super) fn aggregate(&self, rule: &HeadroomRule) -> Result<Option<Aggregate>, WhatIfError> {
        let Some(called) = &rule.aggregate else {
            return Ok(None);
        };
        let facts = &self.selector.facts;
        let mut all = facts.read(Cloud::aggregate_views).into_iter();
        let found = all.find(|known| known.name == *called || known.id.to_string() == *called);
        let missing = || WhatIfError::Unknown(format!("there is no aggregate {called:?}"));
        found.map(Some).ok_or_else(missing)
    }

    /// The request for so many servers, and their ids, which no server has.
    async fn request(
        &self,
        flavor: Flavor,
        wanted: u32,
        aggregate: Option<&Aggregate>,
        ignore_hosts: Vec<String>,
    ) -> Result<(RequestSpec, Vec<Uuid>), WhatIfError> {
        let question = WhatIf {
            servers: (0..wanted).map(|_| ServerId(ids::new())).collect(),
            ignore_hosts,
            ..WhatIf::default()
        };
        let nova = self.selector.facts.database.nova();
        let options = self.selector.facts.nova_options();
        let mut spec = question.request_of(flavor, nova, &options).await?;
        spec.requested_destination = aggregate.map(|aggregate| Destination {
            aggregates: Some(Some(vec![aggregate.id.to_string()])),
            ..Destination::default()
        });
        Ok((spec, question.instances()))
    }

    /// The servers that would leave for so many servers of a rule, if they do not go to some hosts.
    ///
    /// # Errors
    /// [`WhatIfError`]: the question makes no sense. Inside: the servers would find no host, why.
    pub(super) async fn victims(
        &self,
        flavor: Flavor,
        wanted: u32,
        aggregate: Option<&Aggregate>,
        ignore_hosts: Vec<String>,
    ) -> Result<Result<Vec<PlannedVictim>, String>, WhatIfError> {
        let request = self.request(flavor, wanted, aggregate, ignore_hosts);
        let (spec, servers) = request.await?;
        Ok(self.selector.victims_for(spec, servers).await)
    }
}
