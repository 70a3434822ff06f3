//! Databases that were restored from a backup.
//!
//! A restored database has gone back in time: to an epoch of the lease that a scheduler had before,
//! and to numbers of commits that a running scheduler has seen with other contents. The mark sets
//! both ahead of everything that was written before the restore, so that every scheduler which read
//! the database earlier is fenced, or reads everything anew and finds the mark.

use crate::batch::Batch;
use crate::store::{Store, TransactionFuture, statement};
use crate::{StoreError, lease};
use ebbtide_model::Timestamp;
use ebbtide_model::record::{Change, RestoreMark};
use sea_orm::{ConnectionTrait, Statement};
use std::sync::Arc;

impl Store {
    /// Marks the database as restored from a backup. The lease is free afterwards, with an epoch
    /// of at least the seconds since 1970, and the last commit has a number of at least the
    /// milliseconds since 1970: higher than before the restore, whatever the backup says. (A lease
    /// per second, or a thousand commits per second since 1970, would be needed to reach them.)
    ///
    /// Repeating it is safe; the backup's time stays that of the first mark.
    ///
    /// # Errors
    /// `Corrupt` for a row that cannot be read; those of the database.
    pub async fn mark_restored(&self, now: Timestamp) -> Result<RestoreMark, StoreError> {
        let snapshot = self.load(now).await?;
        let heard = snapshot.hosts.iter().filter_map(|host| host.last_seen);
        let mark = RestoreMark {
            at: now,
            backup_at: match snapshot.restored {
                Some(before) => before.backup_at,
                None => heard.max(),
            },
        };
        let batch = Batch::new(&[Change::PutRestoreMark(mark)], &self.inner.encoder)?;
        let statements: Arc<[Statement]> = self.statements(batch).into();
        self.write(
            "the mark of a restored database",
            move |transaction| -> TransactionFuture<'_, ()> {
                let statements = Arc::clone(&statements);
                Box::pin(async move {
                    let epoch = now.as_millis() / 1000;
                    let before = lease::lock_row(transaction).await?;
                    let update = "UPDATE lease SET holder = '', expires_at = 0, epoch = ?, \
                         commits = CASE WHEN commits < ? THEN ? ELSE commits + 1 END WHERE id = 1";
                    let values = [
                        (before.epoch + 1).max(epoch).into(),
                        now.as_millis().into(),
                        now.as_millis().into(),
                    ];
                    let backend = transaction.get_database_backend();
                    let update = statement(backend, update, values);
                    transaction.execute_raw(update).await?;
                    for statement in statements.iter() {
                        transaction.execute_raw(statement.clone()).await?;
                    }
                    Ok(())
                })
            },
        )
        .await?;
        Ok(mark)
    }
}
