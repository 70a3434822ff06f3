//! Ledgers that were restored from a backup.
//!
//! A restored ledger is of an earlier time than Placement and Nova. The mark sets the epochs of all
//! schedulers ahead of everything that was registered before the restore, so that a scheduler which
//! was left running ends at its next heartbeat. Schedulers that start find the mark and wait.

use super::row::{INSTANCES, VICTIMS, check};
use super::{
    Ledger, LedgerError, MAX_NAME_CHARS, MAX_STATE_CHARS, Stop, column, is_duplicate, sorted, text,
};
use crate::database::{TransactionFailure, TransactionFuture, statement};
use ebbtide_model::Timestamp;
use ebbtide_model::record::RestoreMark;
use ebbtide_runtime::ids;
use sea_orm::{ConnectionTrait, Statement, Value};
use serde_json::Value as Json;
use std::sync::Arc;
use uuid::Uuid;

const TABLE: &str = "nova_restore_marks";
/// The key of the only row.
const KEY: &str = "ledger";

/// An open row as a reconciliation leaves it.
#[derive(Debug, Clone, PartialEq)]
pub struct ReconciledRow {
    pub id: Uuid,
    /// The version that is changed.
    pub version: i64,
    pub state: String,
    pub document: Json,
}

/// A preemption that the backup does not have, as a reconciliation writes it down. No scheduler
/// owns it, so that the first one that looks adopts it.
#[derive(Debug, Clone, PartialEq)]
pub struct LostRow {
    pub id: Uuid,
    pub request_id: String,
    pub state: String,
    pub newcomers: Vec<Uuid>,
    /// None of them may be a victim of another open row.
    pub victims: Vec<Uuid>,
    pub document: Json,
}

/// The owner of [`LostRow`]s: no scheduler registers with this epoch.
const NO_OWNER: (&str, i64) = ("reconcile", 0);

/// What a reconciliation writes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LedgerReconciliation {
    pub rows: Vec<ReconciledRow>,
    /// Rows that the backup does not have.
    pub lost: Vec<LostRow>,
    /// Rows of hosts that their owners have returned, by host and version.
    pub ended_reclaims: Vec<(String, i64)>,
}

impl Ledger {
    /// The mark of a ledger that was restored from a backup and is not reconciled yet.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn restore_mark(&self) -> Result<Option<RestoreMark>, LedgerError> {
        let sql = "SELECT created_at, backup_at FROM nova_restore_marks";
        let rows = self.query("the mark", sql, Vec::new()).await?;
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        Ok(Some(RestoreMark {
            at: Timestamp::from_millis(column(row, TABLE, 0)?),
            backup_at: column::<Option<i64>>(row, TABLE, 1)?.map(Timestamp::from_millis),
        }))
    }

    /// Marks the ledger as restored from a backup. Every scheduler that registered before is
    /// superseded afterwards, and none counts as alive.
    ///
    /// Repeating it is safe; the backup's time, the last heartbeat of a scheduler in it, stays that
    /// of the first mark.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn mark_restored(&self) -> Result<RestoreMark, LedgerError> {
        let now = self.now();
        let again = format!("UPDATE {TABLE} SET created_at = {now} WHERE id = ?");
        let insert = format!(
            "INSERT INTO {TABLE} (id, created_at, backup_at) \
             SELECT ?, {now}, (SELECT MAX(last_seen) FROM nova_schedulers)"
        );
        let ahead = format!(
            "UPDATE nova_schedulers SET last_seen = 0, \
             epoch = CASE WHEN epoch < {now} THEN {now} ELSE epoch + 1 END"
        );
        let (again, insert, ahead) = (again.as_str(), insert.as_str(), ahead.as_str());
        self.database()
            .write(
                "the mark of a restored ledger",
                move |transaction| -> TransactionFuture<'_, (), Stop> {
                    let backend = transaction.get_database_backend();
                    let key = || [Value::from(KEY)];
                    let again = statement(backend, again, key());
                    let insert = statement(backend, insert, key());
                    let ahead = statement(backend, ahead, []);
                    Box::pin(async move {
                        if transaction.execute_raw(again).await?.rows_affected() == 0 {
                            transaction.execute_raw(insert).await?;
                        }
                        transaction.execute_raw(ahead).await?;
                        Ok(())
                    })
                },
            )
            .await?;
        let mark = self.restore_mark().await?;
        mark.ok_or_else(|| super::corrupt(TABLE, KEY, "the mark that was written is not there"))
    }

    /// Writes what a reconciliation has found and removes the mark, in one transaction.
    ///
    /// # Errors
    /// `RestoreMoved`: the mark or a row has changed since it was read, and nothing was written.
    /// Those of the database.
    pub async fn end_restore(
        &self,
        mark: RestoreMark,
        done: &LedgerReconciliation,
    ) -> Result<(), LedgerError> {
        let statements: Arc<[Statement]> = self.end_statements(mark, done)?.into();
        self.database()
            .write(
                "a reconciliation",
                move |transaction| -> TransactionFuture<'_, (), Stop> {
                    let statements = Arc::clone(&statements);
                    Box::pin(async move {
                        for statement in statements.iter() {
                            let moved = match transaction.execute_raw(statement.clone()).await {
                                // A victim of a new row is in another open row by now.
                                Err(error) if is_duplicate(&error) => true,
                                written => written?.rows_affected() != 1,
                            };
                            if moved {
                                return Err(TransactionFailure::Refused(Stop::RestoreMoved));
                            }
                        }
                        Ok(())
                    })
                },
            )
            .await
            .map_err(LedgerError::from)
    }

    /// Statements that change one row each if nothing has changed since.
    fn end_statements(
        &self,
        mark: RestoreMark,
        done: &LedgerReconciliation,
    ) -> Result<Vec<Statement>, LedgerError> {
        let backend = self.database().sea();
        let now = self.now();
        let sql = format!(
            "UPDATE nova_preemptions SET state = ?, document = ?, version = version + 1, \
             writer = ?, updated_at = {now} WHERE id = ? AND version = ? AND finished_at IS NULL"
        );
        let writer = ids::random();
        // The mark first: of two reconciliations one waits here and finds it gone.
        let mark = statement(
            backend,
            "DELETE FROM nova_restore_marks WHERE created_at = ?",
            [mark.at.as_millis().into()],
        );
        let mut all = vec![mark];
        for row in &done.rows {
            check("state", &row.state, MAX_STATE_CHARS)?;
            let document = self.document(row.id, &row.document)?;
            let values: [Value; 5] = [
                row.state.as_str().into(),
                document.into(),
                text(writer),
                text(row.id),
                row.version.into(),
            ];
            all.push(statement(backend, &sql, values));
        }
        for (host, version) in &done.ended_reclaims {
            let sql = "DELETE FROM nova_reclaims WHERE host = ? AND version = ?";
            let values: [Value; 2] = [host.as_str().into(), (*version).into()];
            all.push(statement(backend, sql, values));
        }
        for row in &done.lost {
            all.extend(self.insert_statements(row, writer)?);
        }
        Ok(all)
    }

    /// Statements that insert one row each.
    fn insert_statements(
        &self,
        row: &LostRow,
        writer: Uuid,
    ) -> Result<Vec<Statement>, LedgerError> {
        check("state", &row.state, MAX_STATE_CHARS)?;
        check("request id", &row.request_id, MAX_NAME_CHARS)?;
        let backend = self.database().sea();
        let sql = format!(
            "INSERT INTO nova_preemptions (id, request_id, state, owner, owner_epoch, version, \
             writer, created_at, updated_at, document) VALUES (?, ?, ?, ?, ?, 1, ?, {now}, {now}, ?)",
            now = self.now()
        );
        let document = self.document(row.id, &row.document)?;
        let (owner, epoch) = NO_OWNER;
        let values: [Value; 7] = [
            text(row.id),
            row.request_id.as_str().into(),
            row.state.as_str().into(),
            owner.into(),
            epoch.into(),
            text(writer),
            document.into(),
        ];
        let mut all = vec![statement(backend, &sql, values)];
        for ((table, column), uuids) in [(VICTIMS, &row.victims), (INSTANCES, &row.newcomers)] {
            let sql = format!("INSERT INTO {table} ({column}, preemption_id) VALUES (?, ?)");
            for uuid in sorted(uuids) {
                all.push(statement(backend, &sql, [text(uuid), text(row.id)]));
            }
        }
        Ok(all)
    }
}
