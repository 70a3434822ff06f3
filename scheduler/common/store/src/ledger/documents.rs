//! Tables of documents with a key and a version. Several schedulers write them; a write names the
//! version that it changes.

use super::{Ledger, LedgerError, Stop, column, corrupt, row};
use crate::database::{TransactionFuture, statement};
use sea_orm::ConnectionTrait;
use serde_json::Value as Json;

/// A table of documents.
pub(super) struct Documents {
    pub(super) table: &'static str,
    /// The column of the key.
    pub(super) key: &'static str,
    /// What a row is, for messages.
    pub(super) what: &'static str,
}

/// A row as it is stored.
pub(super) struct DocumentRow {
    pub(super) key: String,
    /// One more with every write, from 1.
    pub(super) version: i64,
    pub(super) document: Json,
}

impl Documents {
    /// All rows, by key.
    pub(super) async fn all(&self, ledger: &Ledger) -> Result<Vec<DocumentRow>, LedgerError> {
        let Self { table, key, what } = self;
        let sql = format!("SELECT {key}, version, document FROM {table} ORDER BY {key}");
        let rows = ledger.query(what, &sql, Vec::new()).await?;
        rows.iter().map(|row| self.read(row)).collect()
    }

    /// The row of a key.
    pub(super) async fn get(
        &self,
        ledger: &Ledger,
        of: &str,
    ) -> Result<Option<DocumentRow>, LedgerError> {
        let Self { table, key, what } = self;
        let sql = format!("SELECT {key}, version, document FROM {table} WHERE {key} = ?");
        let rows = ledger.query(what, &sql, vec![of.into()]).await?;
        rows.first().map(|row| self.read(row)).transpose()
    }

    /// Writes a row. `known`: the version that is changed; `None`: there is no row yet. False:
    /// another scheduler has written it since.
    pub(super) async fn put(
        &self,
        ledger: &Ledger,
        of: &str,
        known: Option<i64>,
        document: &Json,
    ) -> Result<bool, LedgerError> {
        let Self { table, key, what } = self;
        let document = document.to_string();
        let Some(known) = known else {
            return self.insert(ledger, of, &document).await;
        };
        let sql = format!(
            "UPDATE {table} SET version = version + 1, document = ? WHERE {key} = ? AND version = ?"
        );
        let values = vec![document.into(), of.into(), known.into()];
        Ok(ledger.execute(what, &sql, values).await? > 0)
    }

    async fn insert(&self, ledger: &Ledger, of: &str, document: &str) -> Result<bool, LedgerError> {
        let Self { table, key, what } = self;
        let sql = format!("INSERT INTO {table} ({key}, version, document) VALUES (?, 1, ?)");
        let sql = sql.as_str();
        let written = ledger
            .database()
            .write(
                what,
                move |transaction| -> TransactionFuture<'_, (), Stop> {
                    let values = [of.into(), document.into()];
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

    /// Deletes a row. False: another scheduler has written it since.
    pub(super) async fn delete(
        &self,
        ledger: &Ledger,
        of: &str,
        known: i64,
    ) -> Result<bool, LedgerError> {
        let Self { table, key, what } = self;
        let sql = format!("DELETE FROM {table} WHERE {key} = ? AND version = ?");
        let values = vec![of.into(), known.into()];
        Ok(ledger.execute(what, &sql, values).await? > 0)
    }

    fn read(&self, row: &sea_orm::QueryResult) -> Result<DocumentRow, LedgerError> {
        let key: String = column(row, self.table, 0)?;
        let document: String = column(row, self.table, 2)?;
        Ok(DocumentRow {
            version: column(row, self.table, 1)?,
            document: serde_json::from_str(&document)
                .map_err(|error| corrupt(self.table, &key, &error.to_string()))?,
            key,
        })
    }
}
