//! Forgetting what is long over.

use crate::StoreError;
use crate::store::{Store, TransactionFailure, TransactionFuture, statement};
use ebbtide_model::Timestamp;
use sea_orm::{ConnectionTrait, DatabaseTransaction, DbErr, Value};
use std::fmt;
use std::sync::Arc;

/// Rows in one transaction: short enough that commits hardly notice.
const BATCH: u64 = 256;

/// How many records a purge deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PurgeCounts {
    /// Servers that were gone.
    pub servers: u64,
    /// Evacuations that were final.
    pub evacuations: u64,
    pub decisions: u64,
    pub lives: u64,
    pub prices: u64,
}

impl PurgeCounts {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.servers + self.evacuations + self.decisions + self.lives + self.prices
    }
}

/// What can be over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PurgeKind {
    /// Servers that are gone.
    Servers,
    /// Evacuations that have ended.
    Evacuations,
    /// Decisions none of whose servers is still there: as long as one is, it can be explained.
    Decisions,
    /// Lives. Models that were fitted from them remain.
    Lives,
    /// Prices that another one had taken the place of by then: the last one counts until the next.
    Prices,
    /// Hours of idle capacity.
    IdleHours,
}

impl PurgeKind {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::Servers,
        Self::Evacuations,
        Self::Decisions,
        Self::Lives,
        Self::Prices,
        Self::IdleHours,
    ];

    fn table(self) -> &'static str {
        match self {
            Self::Servers => "servers",
            Self::Evacuations => "evacuations",
            Self::Decisions => "decisions",
            Self::Lives => "lives",
            Self::Prices => "prices",
            Self::IdleHours => "idle_hours",
        }
    }

    fn column(self) -> &'static str {
        match self {
            Self::Servers => "gone_at",
            Self::Evacuations => "final_at",
            Self::Decisions | Self::Prices | Self::IdleHours => "created_at",
            Self::Lives => "ended_at",
        }
    }

    /// What else must hold of a row that is over.
    fn also(self, before: Timestamp) -> String {
        match self {
            Self::Servers | Self::Evacuations | Self::Lives | Self::IdleHours => String::new(),
            Self::Prices => format!(
                "AND EXISTS (SELECT 1 FROM prices AS later WHERE later.flavor_id = prices.flavor_id \
                 AND later.created_at > prices.created_at AND later.created_at < {})",
                before.as_millis()
            ),
            Self::Decisions => {
                "AND NOT EXISTS (SELECT 1 FROM decision_servers AS d JOIN servers AS s ON s.id = d.server_id \
                 WHERE d.decision_id = decisions.id AND s.gone_at IS NULL)"
                    .to_owned()
            }
        }
    }
}

impl fmt::Display for PurgeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.table())
    }
}

/// A record that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OldRecord {
    pub id: String,
    /// The record, in one line.
    pub json: String,
}

impl Store {
    /// Deletes records that were over before `before`: at most `limit` of each kind, oldest first,
    /// in small transactions, so that it can run beside commits. If it deleted `limit` of a kind,
    /// more records of this kind probably remain. It needs no lease, because no decision uses the
    /// records that it deletes.
    ///
    /// # Errors
    /// Those of the database. Records that were deleted before the error stay deleted.
    pub async fn purge(&self, before: Timestamp, limit: u64) -> Result<PurgeCounts, StoreError> {
        Ok(PurgeCounts {
            servers: self.purge_some(PurgeKind::Servers, before, limit).await?,
            evacuations: self
                .purge_some(PurgeKind::Evacuations, before, limit)
                .await?,
            // Which servers they were about goes with them (foreign key).
            decisions: self.purge_some(PurgeKind::Decisions, before, limit).await?,
            lives: self.purge_some(PurgeKind::Lives, before, limit).await?,
            prices: self.purge_some(PurgeKind::Prices, before, limit).await?,
        })
    }

    /// The same for one kind. Returns how many were deleted.
    ///
    /// # Errors
    /// Those of the database; what was deleted until then stays deleted.
    pub async fn purge_some(
        &self,
        kind: PurgeKind,
        before: Timestamp,
        limit: u64,
    ) -> Result<u64, StoreError> {
        let mut deleted = 0;
        while deleted < limit {
            let batch = BATCH.min(limit - deleted);
            let rows = self
                .write(
                    "the purge",
                    move |transaction| -> TransactionFuture<'_, u64> {
                        Box::pin(delete_some(transaction, kind, before, batch))
                    },
                )
                .await?;
            deleted += rows;
            if rows < batch {
                break;
            }
        }
        Ok(deleted)
    }

    /// What was over before `before`, at most `limit`, oldest first.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn old(
        &self,
        kind: PurgeKind,
        before: Timestamp,
        limit: u64,
    ) -> Result<Vec<OldRecord>, StoreError> {
        let (table, column, also) = (kind.table(), kind.column(), kind.also(before));
        let select = format!(
            "SELECT id, record FROM {table} WHERE {column} < ? {also} ORDER BY {column} LIMIT {limit}"
        );
        let rows = self
            .query("the archive", &select, [before.as_millis().into()])
            .await?;
        let mut old = Vec::with_capacity(rows.len());
        for row in rows {
            let read = || -> Result<OldRecord, DbErr> {
                let id = row.try_get_by_index(0)?;
                let json = row.try_get_by_index(1)?;
                Ok(OldRecord { id, json })
            };
            old.push(read().map_err(|error| self.classify("the archive", error))?);
        }
        Ok(old)
    }

    /// Deletes these, if they are still over.
    ///
    /// # Errors
    /// Those of the database; then none is deleted.
    pub async fn forget(
        &self,
        kind: PurgeKind,
        ids: &[String],
        before: Timestamp,
    ) -> Result<u64, StoreError> {
        let ids: Arc<[String]> = ids.into();
        self.write(
            "the purge",
            move |transaction| -> TransactionFuture<'_, u64> {
                let ids = Arc::clone(&ids);
                Box::pin(async move { delete(transaction, kind, &ids, before).await })
            },
        )
        .await
    }
}

async fn delete_some(
    transaction: &DatabaseTransaction,
    kind: PurgeKind,
    before: Timestamp,
    batch: u64,
) -> Result<u64, TransactionFailure> {
    let (table, column, also) = (kind.table(), kind.column(), kind.also(before));
    let select =
        format!("SELECT id FROM {table} WHERE {column} < ? {also} ORDER BY {column} LIMIT {batch}");
    let backend = transaction.get_database_backend();
    let select = statement(backend, &select, [before.as_millis().into()]);
    let mut ids: Vec<String> = Vec::new();
    for row in transaction.query_all_raw(select).await? {
        ids.push(row.try_get_by_index(0)?);
    }
    delete(transaction, kind, &ids, before).await
}

/// A row may have changed since it was selected.
async fn delete(
    transaction: &DatabaseTransaction,
    kind: PurgeKind,
    ids: &[String],
    before: Timestamp,
) -> Result<u64, TransactionFailure> {
    if ids.is_empty() {
        return Ok(0);
    }
    let (table, column) = (kind.table(), kind.column());
    let places = vec!["?"; ids.len()].join(", ");
    let delete = format!("DELETE FROM {table} WHERE id IN ({places}) AND {column} < ?");
    let values = ids.iter().map(|id| Value::from(id.clone()));
    let values = values.chain([before.as_millis().into()]);
    let delete = statement(transaction.get_database_backend(), &delete, values);
    Ok(transaction.execute_raw(delete).await?.rows_affected())
}
