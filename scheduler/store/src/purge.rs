//! Forgetting what is long over.

use crate::StoreError;
use crate::store::{Failure, Store, Work, statement};
use ebbtide_model::Timestamp;
use sea_orm::{ConnectionTrait, DatabaseTransaction, Value};

/// Rows in one transaction: short enough that commits hardly notice.
const BATCH: u64 = 256;

/// How many records a purge deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Purged {
    /// Servers that were gone.
    pub servers: u64,
    /// Evacuations that were final.
    pub evacuations: u64,
    /// Decisions.
    pub decisions: u64,
}

impl Purged {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.servers + self.evacuations + self.decisions
    }
}

impl Store {
    /// Deletes servers that were gone, evacuations that were final and decisions that were made before `before`: at most
    /// `limit` of each, oldest first, in small transactions, so that it can run beside commits. If it deleted `limit` of a kind, there is
    /// probably more. Needs no lease: nobody decides on what it deletes.
    ///
    /// # Errors
    /// Those of the database; what was deleted until then stays deleted.
    pub async fn purge(&self, before: Timestamp, limit: u64) -> Result<Purged, StoreError> {
        Ok(Purged {
            servers: self
                .purge_table("servers", "gone_at", before, limit)
                .await?,
            evacuations: self
                .purge_table("evacuations", "final_at", before, limit)
                .await?,
            // Which servers they were about goes with them (foreign key).
            decisions: self
                .purge_table("decisions", "created_at", before, limit)
                .await?,
        })
    }

    async fn purge_table(
        &self,
        table: &'static str,
        column: &'static str,
        before: Timestamp,
        limit: u64,
    ) -> Result<u64, StoreError> {
        let mut deleted = 0;
        while deleted < limit {
            let batch = BATCH.min(limit - deleted);
            let rows = self
                .write("the purge", move |transaction| -> Work<'_, u64> {
                    Box::pin(delete_some(transaction, table, column, before, batch))
                })
                .await?;
            deleted += rows;
            if rows < batch {
                break;
            }
        }
        Ok(deleted)
    }
}

async fn delete_some(
    transaction: &DatabaseTransaction,
    table: &'static str,
    column: &'static str,
    before: Timestamp,
    batch: u64,
) -> Result<u64, Failure> {
    let backend = transaction.get_database_backend();
    let before: Value = before.as_millis().into();
    let select =
        format!("SELECT id FROM {table} WHERE {column} < ? ORDER BY {column} LIMIT {batch}");
    let select = statement(backend, &select, [before.clone()]);
    let mut values: Vec<Value> = Vec::new();
    for row in transaction.query_all_raw(select).await? {
        values.push(row.try_get_by_index::<String>(0)?.into());
    }
    if values.is_empty() {
        return Ok(0);
    }
    let places = vec!["?"; values.len()].join(", ");
    // A row may have changed since it was selected.
    let delete = format!("DELETE FROM {table} WHERE id IN ({places}) AND {column} < ?");
    values.push(before);
    let delete = statement(backend, &delete, values);
    Ok(transaction.execute_raw(delete).await?.rows_affected())
}
