//! Mapping new computes to their cells (`nova/objects/host_mapping.py`, `discover_hosts`), which
//! nova-scheduler does where `[scheduler] discover_hosts_in_cells_interval` says so.
//!
//! Nova lets one scheduler do it, the first by name. Here each that is told to does it: a host is
//! mapped once, by a unique key.

use crate::api::NovaDb;
use crate::dialect::{RowReader, moment};
use crate::error::NovaDbError;
use crate::lookup::HostMapping;
use crate::pool::is_duplicate;
use ebbtide_runtime::clock;
use sea_orm::Value;
use std::collections::BTreeSet;

impl NovaDb {
    /// Maps the hosts of compute nodes that are not mapped. Returns the hosts that were mapped now.
    /// A cell that does not answer is left out; disabled cells are looked at, too, as Nova does.
    ///
    /// # Errors
    /// Those of the API database.
    pub async fn discover_hosts(&self) -> Result<Vec<HostMapping>, NovaDbError> {
        let known = self.host_mappings().await?;
        let mut known: BTreeSet<String> = known.into_iter().map(|mapping| mapping.host).collect();
        let mut mapped = Vec::new();
        for cell in self.cells_where(|cell| !cell.is_cell0()) {
            let sql = "SELECT cn.host FROM compute_nodes cn WHERE cn.deleted = 0 AND cn.mapped < 1";
            let rows = match cell.pool.rows("look for new hosts", sql, Vec::new()).await {
                Ok(rows) => rows,
                Err(error) => {
                    tracing::warn!(code = error.code(), %error, "a cell was not asked for new hosts");
                    continue;
                }
            };
            for row in &rows {
                let host = RowReader::new(row)
                    .text()
                    .map_err(|error| cell.pool.unreadable("compute_nodes", &error))?;
                let Some(host) = host.filter(|host| !known.contains(host)) else {
                    continue;
                };
                if self.map_host(&host, cell.uuid()).await? {
                    mapped.push(HostMapping {
                        host: host.clone(),
                        cell_uuid: cell.uuid().to_owned(),
                    });
                }
                let sql = "UPDATE compute_nodes SET mapped = 1 WHERE host = ? AND deleted = 0";
                let values = vec![Value::from(host.as_str())];
                if let Err(error) = cell.pool.execute("note a mapped host", sql, values).await {
                    // It is looked at once more the next time, and found to be mapped.
                    tracing::warn!(code = error.code(), %error, host, "its compute node was not marked as mapped");
                }
                known.insert(host);
            }
        }
        Ok(mapped)
    }

    /// Maps a host to a cell. Returns false if another process has mapped the host meanwhile.
    async fn map_host(&self, host: &str, cell: &str) -> Result<bool, NovaDbError> {
        let api = self.api();
        let sql = format!(
            "INSERT INTO host_mappings (created_at, cell_id, host) SELECT {}, c.id, ? FROM cell_mappings c \
             WHERE c.uuid = ? AND NOT EXISTS (SELECT 1 FROM host_mappings m WHERE m.host = ?)",
            api.dialect().at()
        );
        let values = vec![
            moment(clock::unix_micros()).into(),
            host.into(),
            cell.into(),
            host.into(),
        ];
        match api.execute("map a host", &sql, values).await {
            Err(error) if is_duplicate(&error) => Ok(false),
            touched => Ok(touched? > 0),
        }
    }
}
