//! A cell's database.

use crate::error::NovaDbError;
use crate::row::compute::ComputeNode;
use crate::row::instance::Instance;
use crate::row::service::NovaService;

/// What is read of instances beside their rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InstanceDetail {
    /// Image properties, which only ImagePropertiesWeigher looks at: a dozen rows for each instance.
    pub image_properties: bool,
}

/// A cell's database. Cheap to clone. Times are microseconds since 1970, UTC; "since" counts by whole seconds and includes the
/// second it falls in, because Nova's DATETIME columns have no fractions.
#[derive(Debug, Clone)]
pub struct CellDb {
    uuid: String,
}

fn not_yet<T>(operation: &'static str) -> Result<T, NovaDbError> {
    Err(NovaDbError::Refused {
        database: "the cell".to_owned(),
        url: String::new(),
        operation,
        reason: "this is not built yet".to_owned(),
    })
}

impl CellDb {
    /// UUID of the cell.
    #[must_use]
    pub fn uuid(&self) -> &str {
        &self.uuid
    }

    /// All compute nodes.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn compute_nodes(&self) -> Result<Vec<ComputeNode>, NovaDbError> {
        not_yet("read compute nodes")
    }

    /// The compute nodes of one host: after a conflict.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn compute_nodes_of_host(
        &self,
        _host: &str,
    ) -> Result<Vec<ComputeNode>, NovaDbError> {
        not_yet("read compute nodes")
    }

    /// Compute nodes that were made, changed or deleted since.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn compute_nodes_changed(
        &self,
        _since: i64,
    ) -> Result<Vec<ComputeNode>, NovaDbError> {
        not_yet("read compute nodes")
    }

    /// All services `nova-compute`.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn services(&self) -> Result<Vec<NovaService>, NovaDbError> {
        not_yet("read services")
    }

    /// Services `nova-compute` that were made, changed (each does it at every heartbeat) or deleted since.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn services_changed(&self, _since: i64) -> Result<Vec<NovaService>, NovaDbError> {
        not_yet("read services")
    }

    /// All live instances, in batches: 100,000 are never in memory twice. Returns how many there were.
    ///
    /// # Errors
    /// Those of the database; batches that were handed out stay valid.
    pub async fn instances(
        &self,
        _detail: InstanceDetail,
        _batch: impl FnMut(Vec<Instance>) + Send,
    ) -> Result<usize, NovaDbError> {
        not_yet("read instances")
    }

    /// Instances that were made or changed since, and those of `watch` whatever happened to them: deleting an instance does
    /// not touch `updated_at`, so that whoever was seen on its way out has to be watched until it is gone. Instances of
    /// `watch` that do not exist any more are not in the answer.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn instances_changed(
        &self,
        _since: i64,
        _watch: &[String],
        _detail: InstanceDetail,
    ) -> Result<Vec<Instance>, NovaDbError> {
        not_yet("read instances")
    }

    /// The live instances of hosts.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn host_instances(
        &self,
        _hosts: &[String],
        _detail: InstanceDetail,
    ) -> Result<Vec<Instance>, NovaDbError> {
        not_yet("read instances")
    }

    /// Instances by UUID, deleted ones included.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn instances_by_uuid(
        &self,
        _uuids: &[String],
        _detail: InstanceDetail,
    ) -> Result<Vec<Instance>, NovaDbError> {
        not_yet("read instances")
    }

    /// One instance, also if it is deleted.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn instance(&self, _uuid: &str) -> Result<Option<Instance>, NovaDbError> {
        not_yet("read instances")
    }

    /// UUID and host of every live instance that has a host: cheap, to find out from time to time what was missed.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn instance_hosts(&self) -> Result<Vec<(String, String)>, NovaDbError> {
        not_yet("read instances")
    }
}
