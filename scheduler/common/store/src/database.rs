//! One database and how it is used: queries, transactions that are repeated where that is safe, and
//! an end to all waiting.

use crate::classify::{is_conflict, unavailable};
use crate::config::StoreConfig;
use crate::connect::{Connections, write_options};
use crate::{Backend, StoreError};
use sea_orm::{
    ConnectionTrait, DatabaseTransaction, DbBackend, DbErr, QueryResult, Statement,
    TransactionTrait, Value,
};
use std::pin::Pin;
use std::time::Duration;

/// How often a transaction that lost against another one is tried in all. Each time the others got
/// further, so that more than two or three are never needed unless something is wrong.
const CONFLICT_TRIES: u32 = 6;
/// The first pause after such a loss; it doubles each time.
const CONFLICT_PAUSE: Duration = Duration::from_millis(4);

/// Why a transaction did not come to its end.
pub(crate) enum TransactionFailure<E = StoreError> {
    /// The database, or the way to it.
    Database(DbErr),
    /// We did not want to go on.
    Refused(E),
}

impl<E> From<DbErr> for TransactionFailure<E> {
    fn from(error: DbErr) -> Self {
        Self::Database(error)
    }
}

impl From<StoreError> for TransactionFailure<StoreError> {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

/// What is done in a transaction; may be called again if the transaction has to be repeated.
pub(crate) type TransactionFuture<'t, T, E = StoreError> =
    Pin<Box<dyn Future<Output = Result<T, TransactionFailure<E>>> + Send + 't>>;

/// An open database.
pub(crate) struct Database {
    pub(crate) connections: Connections,
    operation_timeout: Duration,
}

impl Database {
    pub(crate) fn new(connections: Connections, config: &StoreConfig) -> Self {
        Self {
            connections,
            operation_timeout: config.operation_timeout,
        }
    }

    pub(crate) fn backend(&self) -> Backend {
        self.connections.url().backend()
    }

    pub(crate) fn sea(&self) -> DbBackend {
        self.connections.writer().get_database_backend()
    }

    pub(crate) fn classify(&self, operation: &'static str, error: DbErr) -> StoreError {
        self.connections.classify(operation, error)
    }

    /// Runs one query on a connection for reading. `sql` has the placeholder `?` for each value in
    /// order.
    pub(crate) async fn query(
        &self,
        operation: &'static str,
        sql: &str,
        values: impl IntoIterator<Item = Value>,
    ) -> Result<Vec<QueryResult>, StoreError> {
        let statement = statement(self.sea(), sql, values);
        let rows = self.connections.queries().query_all(statement);
        self.in_time(rows)
            .await?
            .map_err(|error| self.classify(operation, error))
    }

    /// Runs `work` in a transaction that writes, and commits it. Repeats it if it lost against
    /// another transaction, and once if the connection broke: `work` must be safe to repeat even if
    /// it was committed.
    pub(crate) async fn write<T: Send, E: From<StoreError> + Send>(
        &self,
        operation: &'static str,
        work: impl for<'t> Fn(&'t DatabaseTransaction) -> TransactionFuture<'t, T, E> + Send + Sync,
    ) -> Result<T, E> {
        self.repeated(operation, || self.write_once(&work)).await
    }

    /// Runs one statement that writes and returns how many rows it changed. It is a transaction by
    /// itself, so that it costs one round trip and not three. Repeated as [`Self::write`] is.
    pub(crate) async fn write_statement(
        &self,
        operation: &'static str,
        sql: &str,
        values: &[Value],
    ) -> Result<u64, StoreError> {
        let statement = statement(self.sea(), sql, values.iter().cloned());
        let once = || {
            let statement = statement.clone();
            async move {
                let done = self.connections.writer().execute_raw(statement).await?;
                Ok::<_, TransactionFailure>(done.rows_affected())
            }
        };
        self.repeated(operation, once).await
    }

    async fn repeated<T: Send, E: From<StoreError> + Send, F>(
        &self,
        operation: &'static str,
        once: impl Fn() -> F + Send + Sync,
    ) -> Result<T, E>
    where
        F: Future<Output = Result<T, TransactionFailure<E>>> + Send,
    {
        let tries = async {
            let mut pause = CONFLICT_PAUSE;
            let mut tries = 1;
            let mut reconnected = false;
            loop {
                let error = match once().await {
                    Ok(done) => return Ok(done),
                    Err(TransactionFailure::Refused(error)) => return Err(error),
                    Err(TransactionFailure::Database(error)) => error,
                };
                if is_conflict(&error) && tries < CONFLICT_TRIES {
                    tries += 1;
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                    continue;
                }
                // A timeout of the pool is final. A broken connection is worth a second attempt.
                let waited = matches!(error, DbErr::ConnectionAcquire(_));
                let error = self.classify(operation, error);
                if matches!(error, StoreError::Unavailable { .. }) && !waited && !reconnected {
                    reconnected = true;
                    continue;
                }
                return Err(error.into());
            }
        };
        self.in_time(Box::pin(tries)).await?
    }

    async fn write_once<T: Send, E>(
        &self,
        work: &(impl for<'t> Fn(&'t DatabaseTransaction) -> TransactionFuture<'t, T, E> + Send + Sync),
    ) -> Result<T, TransactionFailure<E>> {
        let writer = self.connections.writer();
        let transaction = writer.begin_with_options(write_options()).await?;
        match work(&transaction).await {
            Ok(done) => {
                transaction.commit().await?;
                Ok(done)
            }
            Err(failure) => {
                // Locks are given back now and not when the connection happens to be used again. If
                // this fails, the connection is broken, and the database has rolled back by itself.
                if let Err(error) = transaction.rollback().await {
                    tracing::debug!(%error, "a transaction could not be rolled back");
                }
                Err(failure)
            }
        }
    }

    /// Gives up after the operation timeout, because a dead network reports no error.
    pub(crate) async fn in_time<T>(
        &self,
        work: impl Future<Output = T> + Send,
    ) -> Result<T, StoreError> {
        let limit = self.operation_timeout;
        // Lives until the end: its connection must not come back before we have said why.
        let mut work = std::pin::pin!(work);
        tokio::time::timeout(limit, work.as_mut())
            .await
            .map_err(|_| {
                self.connections.fell_silent();
                let seconds = limit.as_secs_f32();
                unavailable(
                    self.connections.url(),
                    format!("no answer within {seconds} s"),
                )
            })
    }
}

/// A statement from a text with `?` for each value. PostgreSQL wants them numbered.
pub(crate) fn statement(
    backend: DbBackend,
    sql: &str,
    values: impl IntoIterator<Item = Value>,
) -> Statement {
    if backend != DbBackend::Postgres {
        return Statement::from_sql_and_values(backend, sql, values);
    }
    let mut numbered = String::with_capacity(sql.len() + 16);
    for (number, part) in sql.split('?').enumerate() {
        if number > 0 {
            numbered.push('$');
            numbered.push_str(&number.to_string());
        }
        numbered.push_str(part);
    }
    Statement::from_sql_and_values(backend, numbered, values)
}
