//! Hosts that an outside owner has taken back: one row each.

use super::documents::{DocumentRow, Documents};
use super::row::check;
use super::{Ledger, LedgerError, MAX_NAME_CHARS};
use serde_json::Value as Json;

const ROWS: Documents = Documents {
    table: "nova_reclaims",
    key: "host",
    what: "a reclaim",
};

/// A host that an owner has taken back.
#[derive(Debug, Clone, PartialEq)]
pub struct ReclaimRow {
    /// The host of its nova-compute.
    pub host: String,
    /// One more with every write, from 1.
    pub version: i64,
    /// Everything else, for the caller alone.
    pub document: Json,
}

impl Ledger {
    /// All rows, by host.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn reclaims(&self) -> Result<Vec<ReclaimRow>, LedgerError> {
        let rows = ROWS.all(self).await?;
        Ok(rows.into_iter().map(read).collect())
    }

    /// The row of a host.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn reclaim(&self, host: &str) -> Result<Option<ReclaimRow>, LedgerError> {
        Ok(ROWS.get(self, host).await?.map(read))
    }

    /// Writes the row of a host. `known`: the version that is changed; `None`: there is no row yet.
    /// False: another scheduler has written it since.
    ///
    /// # Errors
    /// Those of the database. The row may have been written; then a second write returns false.
    pub async fn put_reclaim(
        &self,
        host: &str,
        known: Option<i64>,
        document: &Json,
    ) -> Result<bool, LedgerError> {
        check("host", host, MAX_NAME_CHARS)?;
        ROWS.put(self, host, known, document).await
    }

    /// Deletes the row of a host. False: another scheduler has written it since.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn delete_reclaim(&self, host: &str, known: i64) -> Result<bool, LedgerError> {
        ROWS.delete(self, host, known).await
    }
}

fn read(row: DocumentRow) -> ReclaimRow {
    ReclaimRow {
        host: row.key,
        version: row.version,
        document: row.document,
    }
}
