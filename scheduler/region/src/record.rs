//! A region as a file has it: to try on it what is not to be tried on the real one.

use crate::{Ids, Region, RegionConfig, RegionError};
use ebbtide_engine::{Engine, EngineConfig};
use ebbtide_model::record::Snapshot;
use ebbtide_model::{Decision, PlacementRequest, Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What a record says that it is.
pub const RECORD_FORMAT: &str = "ebbtide region 1";

/// Everything on which decisions of a region depend, at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RegionRecord {
    /// [`RECORD_FORMAT`].
    pub format: String,
    /// When it was made.
    pub at: Timestamp,
    /// The engine's configuration. Plugins that it names are not in the record.
    pub engine: EngineConfig,
    /// The region's policies.
    pub region: RegionConfig,
    /// Hosts, servers and so on.
    pub state: Snapshot,
}

impl RegionRecord {
    /// A record of this moment. What is still to be sent is left out: nobody decides by it.
    #[must_use]
    pub fn new(at: Timestamp, engine: EngineConfig, region: RegionConfig, state: Snapshot) -> Self {
        Self {
            format: RECORD_FORMAT.to_owned(),
            at,
            engine,
            region,
            state: Snapshot {
                outbox: Vec::new(),
                ..state
            },
        }
    }

    /// The region as it was, with this engine.
    ///
    /// # Errors
    /// What is wrong with the record.
    pub fn region(&self, engine: Arc<Engine>) -> Result<Region, RegionError> {
        let mut region = Region::restore(self.region.clone(), engine, self.state.clone(), self.at)?;
        region.observe(self.at);
        Ok(region)
    }
}

impl Region {
    /// What would be decided, with the identifier that `ids` gives; nothing changes. The same identifier gives the same chance.
    ///
    /// # Errors
    /// As [`Engine::decide`].
    pub fn would_decide(
        &self,
        now: Timestamp,
        ids: &mut dyn Ids,
        request: &PlacementRequest,
    ) -> Result<Decision, RegionError> {
        let mut transition = crate::transition::Transition::new(now, ids);
        self.decide(&mut transition, request)
    }
}
