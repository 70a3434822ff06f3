//! A region as a file, for experiments that must not run on the real one.

use crate::{Region, RegionConfig, RegionError};
use ebbtide_engine::{Engine, EngineConfig};
use ebbtide_model::Timestamp;
use ebbtide_model::record::Snapshot;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The format identifier in a record.
pub const RECORD_FORMAT: &str = "ebbtide region 1";

/// Everything on which the decisions of a region depend, at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RegionRecord {
    /// [`RECORD_FORMAT`].
    pub format: String,
    /// When the record was made.
    pub at: Timestamp,
    /// The engine's configuration. Plugins that it names are not in the record.
    pub engine: EngineConfig,
    /// The region's policies.
    pub region: RegionConfig,
    /// Hosts, servers and so on.
    pub state: Snapshot,
}

impl RegionRecord {
    /// A record of this moment. The outbox is left out because no decision depends on it.
    #[must_use]
    pub fn new(at: Timestamp, engine: EngineConfig, region: RegionConfig, state: Snapshot) -> Self {
        Self {
            format: RECORD_FORMAT.to_owned(),
            at,
            engine,
            region,
            state: Snapshot {
                outbox: Vec::new(),
                restored: None,
                ..state
            },
        }
    }

    /// Restores the region with this engine.
    ///
    /// # Errors
    /// The record is invalid.
    pub fn region(&self, engine: Arc<Engine>) -> Result<Region, RegionError> {
        let mut region = Region::restore(self.region.clone(), engine, self.state.clone(), self.at)?;
        region.observe(self.at);
        Ok(region)
    }
}
