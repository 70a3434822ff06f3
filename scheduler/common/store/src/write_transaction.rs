//! Turns: how several schedulers write to one database.
//!
//! Commits have numbers without gaps. A scheduler that writes first locks the head until its
//! transaction ends. The head is the row of the lease; its column `commits` is the number of the
//! last commit. The scheduler then reads what the others have written since its last look, decides
//! with that knowledge, and commits. What it writes is also a row of the commit log, which the
//! others follow. So each scheduler holds the whole region in memory, no two schedulers ever decide
//! about different states, and no conflict has to be undone.
//!
//! A scheduler that stops in the middle of a turn does not delay the others for long: the database
//! ends idle transactions (see `connect`), and discards everything that was written in that turn.
//!
//! SQLite has one active scheduler: a turn there takes no lock, and its commit is refused if the
//! lease was taken over.

use crate::batch::Batch;
use crate::classify::is_conflict;
use crate::connect::write_options;
use crate::log::{self, CommitChanges, LogEntry};
use crate::store::{Store, statement};
use crate::{Backend, Lease, StoreError};
use ebbtide_fail_points::{FailPoint, reach_if};
use ebbtide_model::record::{Change, Snapshot};
use ebbtide_model::{EvacuationState, Seconds, Timestamp};
use sea_orm::{
    ConnectionTrait, DatabaseTransaction, DbBackend, DbErr, Statement, TransactionTrait,
};
use uuid::Uuid;

/// Longest time that a scheduler which falls behind can catch up without reading everything.
pub const KEEP_LOG: Seconds = Seconds(120);

/// The right to write next, for as long as it lives.
pub struct WriteTransaction {
    store: Store,
    /// `None` on SQLite.
    transaction: Option<DatabaseTransaction>,
    /// What the others have written, the earliest first.
    news: Vec<CommitChanges>,
    /// The number of the commit before this one.
    head: i64,
    duty: Option<Lease>,
    on_duty: bool,
}

/// The head as it is after it was locked.
struct Head {
    holder: String,
    epoch: i64,
    commits: i64,
}

impl Store {
    /// True if several schedulers may be active on this database.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.backend() != Backend::Sqlite
    }

    /// Waits until no other scheduler writes, and reads what was written after the commit `seen`.
    /// `duty` is the lease, if this scheduler has it.
    ///
    /// # Errors
    /// `Behind` if the log no longer has all commits after `seen`: read everything with
    /// [`Store::load_all`]; `Locked` if another scheduler writes for longer than the lock timeout;
    /// those of the database.
    pub async fn begin_write(
        &self,
        seen: i64,
        duty: Option<&Lease>,
    ) -> Result<WriteTransaction, StoreError> {
        if !self.is_shared() {
            return Ok(WriteTransaction {
                store: self.clone(),
                transaction: None,
                news: Vec::new(),
                head: seen,
                duty: duty.cloned(),
                on_duty: duty.is_some(),
            });
        }
        let locking = async {
            let transaction = self.begin().await?;
            let head = lock_head(&transaction).await;
            let head = head.map_err(|error| self.classify("a turn", error))?;
            let before = head.commits - 1;
            let news = match before == seen {
                true => Vec::new(),
                false => self.read_log(&transaction, seen, before).await?,
            };
            let on_duty =
                duty.is_some_and(|l| l.holder() == head.holder && l.epoch() == head.epoch);
            Ok(WriteTransaction {
                store: self.clone(),
                transaction: Some(transaction),
                news,
                head: before,
                duty: duty.cloned(),
                on_duty,
            })
        };
        self.in_time(locking).await?
    }

    /// What was written after the commit `seen`, without waiting for other schedulers.
    ///
    /// # Errors
    /// As [`Store::begin_write`].
    pub async fn news(&self, seen: i64) -> Result<Vec<CommitChanges>, StoreError> {
        if !self.is_shared() {
            return Ok(Vec::new());
        }
        let rows = self
            .query("the commit log", log::SELECT_ALL, [seen.into()])
            .await?;
        let news = log::decode(&rows)?;
        match news.first() {
            Some(first) if first.number != seen + 1 => Err(self.behind(seen, first.number)),
            _ => Ok(news),
        }
    }

    /// Everything that a region needs (see [`Store::load`]), and the number of the last commit that
    /// it contains.
    ///
    /// # Errors
    /// As [`Store::load`].
    pub async fn load_all(&self, since: Timestamp) -> Result<(Snapshot, i64), StoreError> {
        self.load_with_head(since).await
    }

    /// Deletes old rows of the commit log: those written before `before`, except for the last one.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn trim_log(&self, before: Timestamp) -> Result<u64, StoreError> {
        if !self.is_shared() {
            return Ok(0);
        }
        self.write("the trimming of the commit log", move |transaction| {
            Box::pin(async move {
                let delete = statement(
                    transaction.get_database_backend(),
                    log::TRIM,
                    [before.as_millis().into()],
                );
                Ok(transaction.execute_raw(delete).await?.rows_affected())
            })
        })
        .await
    }

    async fn begin(&self) -> Result<DatabaseTransaction, StoreError> {
        let writer = self.inner.database.connections.writer();
        let begun = writer.begin_with_options(write_options()).await;
        match begun {
            Ok(transaction) => Ok(transaction),
            // A connection that broke while it was idle; the pool has thrown it away by now.
            Err(error) if !matches!(error, DbErr::ConnectionAcquire(_)) => writer
                .begin_with_options(write_options())
                .await
                .map_err(|error| self.classify("a turn", error)),
            Err(error) => Err(self.classify("a turn", error)),
        }
    }

    async fn read_log(
        &self,
        transaction: &DatabaseTransaction,
        seen: i64,
        upto: i64,
    ) -> Result<Vec<CommitChanges>, StoreError> {
        let backend = transaction.get_database_backend();
        // MariaDB gives a lock away a moment before what was written under it is seen by plain
        // reads; a locking read sees it.
        let locking = match backend {
            DbBackend::MySql => " LOCK IN SHARE MODE",
            _ => "",
        };
        let select = format!("{}{locking}", log::SELECT_UPTO);
        let select = statement(backend, &select, [seen.into(), upto.into()]);
        let rows = transaction.query_all_raw(select).await;
        let rows = rows.map_err(|error| self.classify("the commit log", error))?;
        let news = log::decode(&rows)?;
        let found = i64::try_from(news.len()).unwrap_or(i64::MAX);
        if upto < seen || found != upto - seen {
            return Err(self.behind(seen, upto));
        }
        Ok(news)
    }

    fn behind(&self, seen: i64, head: i64) -> StoreError {
        StoreError::Behind {
            url: self.url(),
            seen,
            head,
        }
    }
}

async fn lock_head(transaction: &DatabaseTransaction) -> Result<Head, DbErr> {
    let backend = transaction.get_database_backend();
    // An update and not only a lock: in a Galera cluster only what is written keeps other nodes
    // from committing at the same time.
    let update = statement(
        backend,
        "UPDATE lease SET commits = commits + 1 WHERE id = 1",
        [],
    );
    transaction.execute_raw(update).await?;
    let select = "SELECT holder, epoch, commits FROM lease WHERE id = 1";
    let row = transaction
        .query_one_raw(statement(backend, select, []))
        .await?;
    let row = row.ok_or_else(|| {
        DbErr::RecordNotFound("the row of the table lease; insert (1, '', 0, 0, 0)".to_owned())
    })?;
    Ok(Head {
        holder: row.try_get("", "holder")?,
        epoch: row.try_get("", "epoch")?,
        commits: row.try_get("", "commits")?,
    })
}

impl WriteTransaction {
    /// What the others have written, the earliest first.
    #[must_use]
    pub fn news(&self) -> &[CommitChanges] {
        &self.news
    }

    /// The number of the last commit before this turn.
    #[must_use]
    pub fn head(&self) -> i64 {
        self.head
    }

    /// True if the lease that was shown is the present one: this scheduler is on duty, and stays so
    /// until the turn ends.
    #[must_use]
    pub fn on_duty(&self) -> bool {
        self.on_duty
    }

    /// Ends the turn without writing anything.
    pub async fn give_back(self) {
        if let Some(transaction) = self.transaction {
            let rollback = self.store.in_time(transaction.rollback()).await;
            // If this fails, the connection is broken, and the database has rolled back by itself.
            if let Ok(Err(error)) = rollback {
                tracing::debug!(%error, "a turn could not be given back");
            }
        }
    }

    /// Ends the turn without writing anything, and checks that this scheduler still decides. The
    /// caller may settle a decision without effect only after this check. Where turns lock the
    /// database, the check always succeeds.
    ///
    /// # Errors
    /// `Fenced` if the lease was taken over; those of the database.
    pub async fn confirm(self) -> Result<(), StoreError> {
        match (&self.transaction, &self.duty) {
            (None, Some(lease)) => self.store.confirm_lease(lease).await,
            _ => {
                self.give_back().await;
                Ok(())
            }
        }
    }

    /// Writes all of the changes, or none, and ends the turn. Returns the commit's number. `token`
    /// must be different for every call; it identifies the commit in the log.
    ///
    /// If the connection breaks, the store checks whether the changes were written. If not, it
    /// writes them, unless another scheduler has written in the meantime.
    ///
    /// # Errors
    /// Those of [`Store::commit`]. After `Unavailable` it is unknown whether the changes were
    /// written: read everything again.
    pub async fn commit(
        mut self,
        at: Timestamp,
        token: Uuid,
        changes: &[Change],
    ) -> Result<i64, StoreError> {
        let Some(transaction) = self.transaction.take() else {
            let lease = self.duty.take().ok_or_else(|| StoreError::Fenced {
                epoch: 0,
                by: "this scheduler has no lease".to_owned(),
            })?;
            self.store.commit(&lease, changes).await?;
            return Ok(self.head);
        };
        let store = self.store.clone();
        let number = self.head + 1;
        let mut statements = store.statements(Batch::new(changes, &store.inner.encoder)?);
        let entry = LogEntry::of(changes);
        statements.extend(entry.statements(store.database(), number, at, token)?);
        let error = match store
            .in_time(write(transaction, &statements, changes))
            .await?
        {
            Ok(()) => return Ok(number),
            Err(error) => error,
        };
        let conflict = is_conflict(&error);
        let error = store.classify("a commit", error);
        if !conflict && !matches!(error, StoreError::Unavailable { .. }) {
            return Err(error);
        }
        tracing::debug!("a commit is looked for, and repeated if it was not written: {error}");
        let again = store.in_time(write_again(&store, number, token, &statements, changes));
        match again.await? {
            Some(Ok(())) => Ok(number),
            Some(Err(error)) => Err(error),
            None => Err(error),
        }
    }
}

async fn write(
    transaction: DatabaseTransaction,
    statements: &[Statement],
    changes: &[Change],
) -> Result<(), DbErr> {
    for statement in statements {
        if let Err(error) = transaction.execute_raw(statement.clone()).await {
            // Locks are given back now, not when the connection happens to be used again.
            if let Err(error) = transaction.rollback().await {
                tracing::debug!(%error, "a turn could not be rolled back");
            }
            return Err(error);
        }
    }
    reach_if(FailPoint::ClaimWritten, || changes.iter().any(is_claim));
    transaction.commit().await
}

fn is_claim(change: &Change) -> bool {
    matches!(change, Change::PutEvacuation(e) if e.state == EvacuationState::Claimed)
}

/// Checks whether the commit was written, and writes it if no other scheduler has written since.
/// `None` if another scheduler has written.
async fn write_again(
    store: &Store,
    number: i64,
    token: Uuid,
    statements: &[Statement],
    changes: &[Change],
) -> Option<Result<(), StoreError>> {
    let transaction = match store.begin().await {
        Ok(transaction) => transaction,
        Err(error) => return Some(Err(error)),
    };
    let look = async {
        let head = lock_head(&transaction).await?;
        let backend = transaction.get_database_backend();
        let select = statement(backend, log::SELECT_TOKEN, [number.into()]);
        let row = transaction.query_one_raw(select).await?;
        let found: Option<String> = row.map(|row| row.try_get_by_index(0)).transpose()?;
        Ok::<_, DbErr>((head, found))
    };
    let (head, found) = match look.await {
        Ok(found) => found,
        Err(error) => return Some(Err(store.classify("a commit", error))),
    };
    let written = found == Some(token.to_string());
    if written || head.commits != number {
        // The head was raised by the lock only.
        if let Err(error) = transaction.rollback().await {
            tracing::debug!(%error, "a turn could not be rolled back");
        }
        return written.then_some(Ok(()));
    }
    let again = write(transaction, statements, changes).await;
    Some(again.map_err(|error| store.classify("a commit", error)))
}
