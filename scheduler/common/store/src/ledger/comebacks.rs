//! Servers that were evacuated and kept, and are to come back: one row each.

use super::documents::{DocumentRow, Documents};
use super::{Ledger, LedgerError, id};
use serde_json::Value as Json;
use uuid::Uuid;

const ROWS: Documents = Documents {
    table: "nova_comebacks",
    key: "server_uuid",
    what: "a comeback",
};

/// A server that is to come back, or came back a short time ago.
#[derive(Debug, Clone, PartialEq)]
pub struct ComebackRow {
    pub server: Uuid,
    /// One more with every write, from 1.
    pub version: i64,
    /// Everything else, for the caller alone.
    pub document: Json,
}

impl Ledger {
    /// All rows, by server.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn comebacks(&self) -> Result<Vec<ComebackRow>, LedgerError> {
        let rows = ROWS.all(self).await?;
        rows.into_iter().map(read).collect()
    }

    /// The row of a server.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn comeback(&self, server: Uuid) -> Result<Option<ComebackRow>, LedgerError> {
        let row = ROWS.get(self, &server.to_string()).await?;
        row.map(read).transpose()
    }

    /// Writes the row of a server. `known`: the version that is changed; `None`: there is no row
    /// yet. False: another scheduler has written it since.
    ///
    /// # Errors
    /// Those of the database. The row may have been written; then a second write returns false.
    pub async fn put_comeback(
        &self,
        server: Uuid,
        known: Option<i64>,
        document: &Json,
    ) -> Result<bool, LedgerError> {
        ROWS.put(self, &server.to_string(), known, document).await
    }

    /// Deletes the row of a server. False: another scheduler has written it since.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn delete_comeback(&self, server: Uuid, known: i64) -> Result<bool, LedgerError> {
        ROWS.delete(self, &server.to_string(), known).await
    }
}

fn read(row: DocumentRow) -> Result<ComebackRow, LedgerError> {
    Ok(ComebackRow {
        server: id(&row.key, ROWS.table)?,
        version: row.version,
        document: row.document,
    })
}
