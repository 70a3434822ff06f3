//! The cloud as a record that plugins are tried on.

use crate::error::NovaServiceError;
use crate::reader::CloudReader;
use ebbtide_engine::EngineConfig;
use ebbtide_model::record::Snapshot;
use ebbtide_model::{Seconds, Timestamp};
use ebbtide_nova_cloud::{Cloud, flavor_view};
use ebbtide_runtime::clock;

/// What the decisions of a cloud depend on, in the words of the standalone region's engine.
#[derive(Debug, Clone, PartialEq)]
pub struct CloudRecord {
    /// When it was made.
    pub at: Timestamp,
    /// The engine that comes nearest to what decides.
    pub engine: EngineConfig,
    /// Grace period of a flavor that says nothing.
    pub grace: Seconds,
    /// Protected time of a flavor that says nothing.
    pub protected: Seconds,
    /// `[DEFAULT] service_down_time`.
    pub down_after: Seconds,
    /// Hosts, servers and so on; evacuations that ended within a day, for budgets.
    pub state: Snapshot,
}

impl CloudReader {
    /// A record of this moment.
    ///
    /// # Errors
    /// Nova's API database or the ledger cannot be read.
    pub async fn record(&self) -> Result<CloudRecord, NovaServiceError> {
        let offered = self.facts.database.nova().flavors_for_sale().await?;
        let (groups, budgets) = (self.groups().await?, self.budgets().await?);
        let mut evacuations = self.evacuations(true).await?;
        evacuations.retain(|evacuation| evacuation.state.is_final());
        self.freshen().await;
        let at = clock::now();
        let micros = at.as_millis().saturating_mul(1000);
        Ok(self.facts.read(|cloud: &Cloud| {
            let settings = cloud.settings();
            let down_after = cloud.options().service_down_time.unwrap_or(0).max(0);
            CloudRecord {
                at,
                engine: cloud.recorded_engine(),
                grace: settings.grace,
                protected: settings.protected,
                down_after: Seconds(u32::try_from(down_after).unwrap_or(u32::MAX)),
                state: Snapshot {
                    hosts: cloud.recorded_hosts(micros),
                    aggregates: cloud.aggregate_views(),
                    flavors: offered.iter().map(|one| flavor_view(&one.flavor)).collect(),
                    groups,
                    budgets,
                    servers: cloud.recorded_servers(),
                    evacuations,
                    ..Snapshot::default()
                },
            }
        }))
    }
}
