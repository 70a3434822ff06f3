//! The lease: one scheduler at a time decides on a database.
//!
//! The table `lease` has one row. A scheduler that takes the lease adds one to its epoch. A commit
//! with an older epoch is refused inside its own transaction. A slow scheduler whose lease was
//! taken over therefore can do no harm, whatever its clock says. If the clocks of schedulers
//! differ, the lease may change hands once without need. A scheduler also takes over the lease of a
//! dead holder after it has watched for a whole lease duration that the holder did not renew it.

use crate::store::{Store, TransactionFailure, TransactionFuture, statement};
use crate::tables::Table;
use crate::{StoreError, row};
use ebbtide_model::{Seconds, Timestamp};
use sea_orm::{ConnectionTrait, DatabaseTransaction, DbBackend};

/// Not written by commits, and therefore not in [`TABLES`](crate::tables::TABLES).
static LEASE: Table = Table {
    index: usize::MAX,
    name: "lease",
    key: &["id"],
    columns: &["id", "holder", "epoch", "expires_at", "commits"],
};

/// The right to write. Shown with every commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    holder: String,
    epoch: i64,
    expires_at: Timestamp,
}

impl Lease {
    /// The scheduler that holds the lease.
    #[must_use]
    pub fn holder(&self) -> &str {
        &self.holder
    }

    /// Which one it is: each lease of a database has a higher epoch than the one before.
    #[must_use]
    pub fn epoch(&self) -> i64 {
        self.epoch
    }

    /// When another scheduler may take the lease over unless the holder renews it.
    #[must_use]
    pub fn expires_at(&self) -> Timestamp {
        self.expires_at
    }
}

/// The row as it is.
pub(crate) struct LeaseRow {
    holder: String,
    pub(crate) epoch: i64,
    expires_at: Timestamp,
}

/// Reads the row and locks it until the transaction ends. SQLite locks the whole database.
pub(crate) async fn lock_row(
    transaction: &DatabaseTransaction,
) -> Result<LeaseRow, TransactionFailure> {
    let backend = transaction.get_database_backend();
    let sql = match backend {
        DbBackend::Sqlite => "SELECT holder, epoch, expires_at FROM lease WHERE id = 1",
        _ => "SELECT holder, epoch, expires_at FROM lease WHERE id = 1 FOR UPDATE",
    };
    let row = transaction
        .query_one_raw(statement(backend, sql, []))
        .await?;
    let row = row.ok_or_else(|| StoreError::Corrupt {
        table: LEASE.name.to_owned(),
        key: "1".to_owned(),
        reason: "the row is missing; insert (1, '', 0, 0)".to_owned(),
    })?;
    Ok(LeaseRow {
        holder: row.try_get("", "holder")?,
        epoch: row.try_get("", "epoch")?,
        expires_at: Timestamp::from_millis(row.try_get("", "expires_at")?),
    })
}

/// Refuses a transaction whose lease is not the current one. No scheduler can take the lease over
/// until the transaction ends.
///
/// Writes nothing. The column `commits` counts only commits that are in the log; a scheduler that
/// finds a number higher than the log reads everything again.
pub(crate) async fn check_lease(
    transaction: &DatabaseTransaction,
    lease: &Lease,
) -> Result<(), TransactionFailure> {
    let current = lock_row(transaction).await?;
    if current.epoch == lease.epoch && current.holder == lease.holder {
        return Ok(());
    }
    let by = if current.holder.is_empty() {
        "it was released".to_owned()
    } else {
        let (holder, epoch) = (&current.holder, current.epoch);
        format!("the scheduler {holder:?} has taken over (epoch {epoch})")
    };
    let epoch = lease.epoch;
    Err(StoreError::Fenced { epoch, by }.into())
}

impl Store {
    /// Takes the lease if no other scheduler has it, or if the lease of the other one has ended by
    /// `now`. From then on commits with older leases are refused.
    ///
    /// `holder` is the name of the scheduler; it appears in the error that other schedulers get.
    /// The same holder gets the lease again at once, so a scheduler that crashed and restarts under
    /// its name need not wait for its own lease to end. Two schedulers that run at the same time
    /// must have different names.
    ///
    /// # Errors
    /// `LeaseHeld` with holder and end; `Unstorable` for a name that is empty or longer than 255
    /// characters.
    pub async fn acquire_lease(
        &self,
        holder: &str,
        now: Timestamp,
        ttl: Seconds,
    ) -> Result<Lease, StoreError> {
        self.acquire(holder, None, now, ttl).await
    }

    /// Takes a lease that its holder has not renewed for a whole lease duration, whatever its end
    /// says. `abandoned` is the holder and the end that `LeaseHeld` has reported all that time. A
    /// clock that was wrong when the lease was taken therefore delays other schedulers by no more
    /// than that duration.
    ///
    /// # Errors
    /// As [`Store::acquire_lease`]; `LeaseHeld` also if the holder renewed the lease, or another
    /// scheduler took it, in the last moment.
    pub async fn take_over_lease(
        &self,
        holder: &str,
        abandoned: (&str, Timestamp),
        now: Timestamp,
        ttl: Seconds,
    ) -> Result<Lease, StoreError> {
        self.acquire(holder, Some(abandoned), now, ttl).await
    }

    async fn acquire(
        &self,
        holder: &str,
        abandoned: Option<(&str, Timestamp)>,
        now: Timestamp,
        ttl: Seconds,
    ) -> Result<Lease, StoreError> {
        row::check_key(&LEASE, "holder", holder)?;
        let abandoned = abandoned.map(|(by, until)| (by.to_owned(), until));
        let expires_at = now.plus(ttl);
        let url = self.url();
        let holder = holder.to_owned();
        self.write(
            "the lease",
            move |transaction| -> TransactionFuture<'_, Lease> {
                let (holder, url, abandoned) = (holder.clone(), url.clone(), abandoned.clone());
                Box::pin(async move {
                    let current = lock_row(transaction).await?;
                    let is_abandoned = abandoned.is_some_and(|(by, until)| {
                        by == current.holder && until == current.expires_at
                    });
                    let free =
                        current.holder.is_empty() || current.expires_at <= now || is_abandoned;
                    if !free && current.holder != holder {
                        return Err(StoreError::LeaseHeld {
                            url,
                            holder: current.holder,
                            until: current.expires_at,
                        }
                        .into());
                    }
                    let lease = Lease {
                        holder,
                        epoch: current.epoch + 1,
                        expires_at,
                    };
                    write_row(transaction, &lease).await?;
                    Ok(lease)
                })
            },
        )
        .await
    }

    /// Extends the lease until `ttl` after `now`. A lease that has ended can be renewed as long as
    /// no other scheduler has taken it.
    ///
    /// # Errors
    /// `Fenced` if another scheduler has taken the lease, or if it was released.
    pub async fn renew_lease(
        &self,
        lease: &Lease,
        now: Timestamp,
        ttl: Seconds,
    ) -> Result<Lease, StoreError> {
        let renewed = Lease {
            expires_at: now.plus(ttl),
            ..lease.clone()
        };
        self.write(
            "the lease",
            move |transaction| -> TransactionFuture<'_, Lease> {
                let renewed = renewed.clone();
                Box::pin(async move {
                    check_lease(transaction, &renewed).await?;
                    write_row(transaction, &renewed).await?;
                    Ok(renewed)
                })
            },
        )
        .await
    }

    /// The scheduler that took the lease last; `None` if the lease was never taken or was released.
    ///
    /// # Errors
    /// Only those of the database.
    pub async fn lease_holder(&self) -> Result<Option<String>, StoreError> {
        let select = "SELECT holder FROM lease WHERE id = 1";
        let rows = self.query("the lease", select, []).await?;
        let holder = rows.first().map(|row| row.try_get::<String>("", "holder"));
        let holder = holder
            .transpose()
            .map_err(|error| self.classify("the lease", error))?;
        Ok(holder.filter(|holder| !holder.is_empty()))
    }

    /// Releases the lease, so that the next scheduler need not wait for its end. Does nothing if
    /// the lease is no longer the current one.
    ///
    /// # Errors
    /// Only those of the database.
    pub async fn release_lease(&self, lease: &Lease) -> Result<(), StoreError> {
        let lease = lease.clone();
        self.write(
            "the lease",
            move |transaction| -> TransactionFuture<'_, ()> {
                let lease = lease.clone();
                Box::pin(async move {
                    match check_lease(transaction, &lease).await {
                        Err(TransactionFailure::Refused(StoreError::Fenced { .. })) => {
                            return Ok(());
                        }
                        checked => checked?,
                    }
                    let vacant = Lease {
                        holder: String::new(),
                        epoch: lease.epoch + 1,
                        expires_at: Timestamp::from_millis(0),
                    };
                    write_row(transaction, &vacant).await
                })
            },
        )
        .await
    }
}

async fn write_row(
    transaction: &DatabaseTransaction,
    lease: &Lease,
) -> Result<(), TransactionFailure> {
    let update = "UPDATE lease SET holder = ?, epoch = ?, expires_at = ? WHERE id = 1";
    let values = [
        lease.holder.clone().into(),
        lease.epoch.into(),
        lease.expires_at.as_millis().into(),
    ];
    let update = statement(transaction.get_database_backend(), update, values);
    transaction.execute_raw(update).await?;
    Ok(())
}
