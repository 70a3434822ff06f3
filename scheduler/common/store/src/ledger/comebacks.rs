//! Servers that were evacuated and kept, and are to come back: one row each. Several schedulers
//! write them; a write names the version that it changes.

use super::{Ledger, LedgerError, Stop, column, corrupt, id, row, text};
use crate::database::{TransactionFuture, statement};
use sea_orm::ConnectionTrait;
use serde_json::Value as Json;
use uuid::Uuid;

const TABLE: &str = "nova_comebacks";

/// A server that is to come back, or came back a short time ago.
#[derive(Debug, Clone, PartialEq)]
pub struct ComebackRow {
    /// The server.
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
        let sql = "SELECT server_uuid, version, document FROM nova_comebacks ORDER BY server_uuid";
        let rows = self.query("the comebacks", sql, Vec::new()).await?;
        rows.iter().map(read).collect()
    }

    /// The row of a server.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn comeback(&self, server: Uuid) -> Result<Option<ComebackRow>, LedgerError> {
        let sql = "SELECT server_uuid, version, document FROM nova_comebacks WHERE server_uuid = ?";
        let rows = self.query("a comeback", sql, vec![text(server)]).await?;
        rows.first().map(read).transpose()
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
        let document = document.to_string();
        let Some(known) = known else {
            return self.insert_comeback(server, &document).await;
        };
        let sql = "UPDATE nova_comebacks SET version = version + 1, document = ? \
                   WHERE server_uuid = ? AND version = ?";
        let values = vec![document.into(), text(server), known.into()];
        Ok(self.execute("a comeback", sql, values).await? > 0)
    }

    async fn insert_comeback(&self, server: Uuid, document: &str) -> Result<bool, LedgerError> {
        let sql = "INSERT INTO nova_comebacks (server_uuid, version, document) VALUES (?, 1, ?)";
        let written = self
            .database()
            .write(
                "a comeback",
                move |transaction| -> TransactionFuture<'_, (), Stop> {
                    let values = [text(server), document.into()];
                    let insert = statement(transaction.get_database_backend(), sql, values);
                    Box::pin(async move { row::unique(transaction, insert).await })
                },
            )
            .await;
        match written {
            Ok(()) => Ok(true),
            Err(Stop::Duplicate) => Ok(false),
            Err(stop) => Err(stop.into()),
        }
    }

    /// Deletes the row of a server. False: another scheduler has written it since.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn delete_comeback(&self, server: Uuid, known: i64) -> Result<bool, LedgerError> {
        let sql = "DELETE FROM nova_comebacks WHERE server_uuid = ? AND version = ?";
        let values = vec![text(server), known.into()];
        Ok(self.execute("a comeback", sql, values).await? > 0)
    }
}

fn read(row: &sea_orm::QueryResult) -> Result<ComebackRow, LedgerError> {
    let server: String = column(row, TABLE, 0)?;
    let document: String = column(row, TABLE, 2)?;
    Ok(ComebackRow {
        server: id(&server, TABLE)?,
        version: column(row, TABLE, 1)?,
        document: serde_json::from_str(&document)
            .map_err(|error| corrupt(TABLE, &server, &error.to_string()))?,
    })
}
