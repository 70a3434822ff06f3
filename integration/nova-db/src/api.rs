//! The API database, and from there the cells.

use crate::cell::CellDb;
use crate::cells::{CellMapping, Secret};
use crate::error::NovaDbError;
use crate::pool::PoolOptions;
use crate::waits::CallerWait;
use ebbtide_nova::hosts::Ratios;
use ebbtide_nova::model::Aggregate;
use std::collections::HashMap;

/// What of nova.conf says where the databases are.
#[derive(Debug, Clone)]
pub struct NovaDbConfig {
    /// `[api_database] connection`.
    pub api_url: Secret,
    /// `[database] connection`: where the scheduler's own record lives, and what cells' templates take their parts from.
    pub main_url: Secret,
    /// `[DEFAULT] transport_url`, for cells' templates.
    pub transport_url: Option<Secret>,
    /// Allocation ratios of nodes that have none of their own.
    pub ratios: Ratios,
    /// How hard each database is used.
    pub pool: PoolOptions,
}

/// Which cell a host is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostMapping {
    /// Host.
    pub host: String,
    /// UUID of its cell.
    pub cell_uuid: String,
}

/// A server group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// UUID.
    pub uuid: String,
    /// For example `anti-affinity`.
    pub policy: Option<String>,
    /// Rules of the policy, as JSON text.
    pub rules: Option<String>,
    /// UUIDs of its instances, deleted ones included, as Nova keeps them.
    pub members: Vec<String>,
}

/// Nova's databases. Cheap to clone.
#[derive(Debug, Clone)]
pub struct NovaDb {}

fn not_yet<T>(operation: &'static str) -> Result<T, NovaDbError> {
    Err(NovaDbError::Refused {
        database: "the API".to_owned(),
        url: String::new(),
        operation,
        reason: "this is not built yet".to_owned(),
    })
}

impl NovaDb {
    /// Takes the URLs, connects to the API database and reads the cells. Cells' databases are connected to when first used: one
    /// that is down keeps nobody from starting.
    ///
    /// # Errors
    /// `BadUrl`, `Unavailable`, `LoginRefused`; `Refused` if it is not an API database of Nova.
    pub async fn connect(_config: &NovaDbConfig) -> Result<Self, NovaDbError> {
        not_yet("connect")
    }

    /// Reads the cells again (at start, on SIGHUP) and keeps the connections of those whose URL is the same. All cells, in the
    /// order of their ids: cell0 and disabled ones, too.
    ///
    /// # Errors
    /// Those of the database. A cell with an unusable URL is not an error here, but of [`Self::cell`].
    pub async fn cells(&self) -> Result<Vec<CellMapping>, NovaDbError> {
        not_yet("read the cells")
    }

    /// The cells as last read.
    #[must_use]
    pub fn known_cells(&self) -> Vec<CellMapping> {
        Vec::new()
    }

    /// One cell's database, as last read.
    ///
    /// # Errors
    /// `NoSuchCell`; `BadUrl`.
    pub fn cell(&self, uuid: &str) -> Result<CellDb, NovaDbError> {
        Err(NovaDbError::NoSuchCell {
            cell: uuid.to_owned(),
        })
    }

    /// The cells that hosts are looked for in: not cell0, not disabled. Those with an unusable URL are left out and logged.
    #[must_use]
    pub fn enabled_cells(&self) -> Vec<CellDb> {
        Vec::new()
    }

    /// All aggregates with their hosts and metadata, by id.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn aggregates(&self) -> Result<Vec<Aggregate>, NovaDbError> {
        not_yet("read the aggregates")
    }

    /// The aggregates of a host.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn aggregates_of_host(&self, _host: &str) -> Result<Vec<Aggregate>, NovaDbError> {
        not_yet("read the aggregates")
    }

    /// Which cell a host is in.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn host_mapping(&self, _host: &str) -> Result<Option<HostMapping>, NovaDbError> {
        not_yet("read host mappings")
    }

    /// All hosts.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn host_mappings(&self) -> Result<Vec<HostMapping>, NovaDbError> {
        not_yet("read host mappings")
    }

    /// Hosts that were mapped, or mapped anew, since (microseconds since 1970, inclusive by whole seconds).
    ///
    /// # Errors
    /// Those of the database.
    pub async fn host_mappings_changed(
        &self,
        _since: i64,
    ) -> Result<Vec<HostMapping>, NovaDbError> {
        not_yet("read host mappings")
    }

    /// A server group by its UUID.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn group(&self, _uuid: &str) -> Result<Option<Group>, NovaDbError> {
        not_yet("read server groups")
    }

    /// The server group of an instance.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn group_of(&self, _instance_uuid: &str) -> Result<Option<Group>, NovaDbError> {
        not_yet("read server groups")
    }

    /// UUIDs of the groups of several instances, by instance. Instances without one are not in it.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn group_uuids(
        &self,
        _instance_uuids: &[String],
    ) -> Result<HashMap<String, String>, NovaDbError> {
        not_yet("read server groups")
    }

    /// Whether an instance's build request is still there: its boot is being scheduled.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn build_request_exists(&self, _instance_uuid: &str) -> Result<bool, NovaDbError> {
        not_yet("read build requests")
    }

    /// The UUID of the cell that an instance is in; `None`: it is unknown, or not in a cell yet.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn instance_cell(&self, _instance_uuid: &str) -> Result<Option<String>, NovaDbError> {
        not_yet("read instance mappings")
    }

    /// Whether somebody still waits for a host for this instance. Nobody is evicted for a request that nobody waits for.
    ///
    /// # Errors
    /// Those of the databases: then it is not known, and nobody is to be evicted either.
    pub async fn caller_waits(&self, _instance_uuid: &str) -> Result<CallerWait, NovaDbError> {
        not_yet("read build requests")
    }

    /// The lowest version of a nova-compute that is not forced down, over all cells, cell0 and disabled ones included; 0: there
    /// is none. Cells that do not answer are left out, as Nova does (`get_minimum_version_all_cells`).
    ///
    /// # Errors
    /// Those of the API database.
    pub async fn min_compute_version(&self) -> Result<i64, NovaDbError> {
        not_yet("read service versions")
    }

    /// Closes all connections of all clones.
    pub async fn close(&self) {}
}
