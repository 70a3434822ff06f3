//! Writing changes: the hot path.
//!
//! One call is one transaction, whatever it holds: the caller collects the changes of the requests
//! that came in while the previous commit was under way, and pays for the disk once (group commit).

use crate::batch::Batch;
use crate::lease::check_lease;
use crate::store::{Store, TransactionFuture};
use crate::{Lease, StoreError, sql};
use ebbtide_model::record::Change;
use sea_orm::{ConnectionTrait, Statement, Value};
use std::sync::Arc;

impl Store {
    /// Writes all of the changes, or none. Later changes of the same record win; applying the same
    /// list again changes nothing.
    ///
    /// # Errors
    /// `Fenced` if the lease was taken over or released; `TooLarge`, `Unstorable` for a record that
    /// no database would give back as it is; `DiskFull`; `Locked`; `Unavailable`, the only one
    /// after which the changes may have been written: repeat it.
    pub async fn commit(&self, lease: &Lease, changes: &[Change]) -> Result<(), StoreError> {
        if changes.is_empty() {
            return Ok(());
        }
        let batch = Batch::new(changes, &self.inner.encoder)?;
        let statements: Arc<[Statement]> = self.statements(batch).into();
        let lease = lease.clone();
        self.write(
            "a commit",
            move |transaction| -> TransactionFuture<'_, ()> {
                let statements = Arc::clone(&statements);
                let lease = lease.clone();
                Box::pin(async move {
                    check_lease(transaction, &lease).await?;
                    for statement in statements.iter() {
                        transaction.execute_raw(statement.clone()).await?;
                    }
                    Ok(())
                })
            },
        )
        .await
    }

    /// Writes a batch in one transaction, without a lease.
    ///
    /// # Errors
    /// Those of the database.
    pub(crate) async fn put_batch(
        &self,
        operation: &'static str,
        batch: Batch,
    ) -> Result<(), StoreError> {
        let statements: Arc<[Statement]> = self.statements(batch).into();
        if statements.is_empty() {
            return Ok(());
        }
        self.write(operation, move |transaction| -> TransactionFuture<'_, ()> {
            let statements = Arc::clone(&statements);
            Box::pin(async move {
                for statement in statements.iter() {
                    transaction.execute_raw(statement.clone()).await?;
                }
                Ok(())
            })
        })
        .await
    }

    /// Refuses a lease that is not the present one, as a commit would that has something to write.
    pub(crate) async fn confirm_lease(&self, lease: &Lease) -> Result<(), StoreError> {
        let lease = lease.clone();
        self.write(
            "a look at the lease",
            move |transaction| -> TransactionFuture<'_, ()> {
                let lease = lease.clone();
                Box::pin(async move { check_lease(transaction, &lease).await })
            },
        )
        .await
    }

    /// The statements of a batch: rows come before what refers to them, and go after it.
    pub(crate) fn statements(&self, batch: Batch) -> Vec<Statement> {
        let backend = self.database();
        let texts = &self.inner.texts;
        let mut statements = Vec::new();
        let mut deletes = Vec::new();
        for table in batch.tables {
            let sizes: Vec<usize> = table.puts.iter().map(|row| row.bytes).collect();
            let mut rows = table.puts.into_iter();
            for group in sql::groups(&sizes) {
                let values = rows.by_ref().take(group).flat_map(|row| row.values);
                let text = texts.upsert(table.table, group);
                statements.push(Statement::from_sql_and_values(backend, text, values));
            }
            let mut keys = table.deletes.into_iter();
            for group in sql::groups(&vec![1; keys.len()]) {
                let values = keys
                    .by_ref()
                    .take(group)
                    .map(|key| Value::String(Some(key)));
                let text = texts.delete(table.table, group);
                deletes.push(Statement::from_sql_and_values(backend, text, values));
            }
        }
        statements.extend(deletes.into_iter().rev());
        statements
    }
}
