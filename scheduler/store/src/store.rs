//! The handle that everything goes through.

use crate::classify::{is_conflict, unavailable};
use crate::config::StoreConfig;
use crate::connect::{Connections, write_options};
use crate::migration::migrate;
use crate::row::Encoder;
use crate::sql::Texts;
use crate::{Backend, StoreError};
use sea_orm::{
    ConnectionTrait, DatabaseTransaction, DbBackend, DbErr, QueryResult, Statement,
    TransactionTrait, Value,
};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// How often a transaction that lost against another one is tried in all. Each time the others got further, so that more
/// than two or three are never needed unless something is wrong.
const CONFLICT_TRIES: u32 = 6;
/// The first pause after such a loss; it doubles each time.
const CONFLICT_PAUSE: Duration = Duration::from_millis(4);

/// An open database. Cheap to clone; all clones share the connections.
#[derive(Clone)]
pub struct Store {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) connections: Connections,
    pub(crate) texts: Texts,
    pub(crate) encoder: Encoder,
    operation_timeout: Duration,
}

/// Why a transaction did not come to its end.
pub(crate) enum Failure {
    /// The database, or the way to it.
    Database(DbErr),
    /// We did not want to go on.
    Refused(StoreError),
}

impl From<DbErr> for Failure {
    fn from(error: DbErr) -> Self {
        Self::Database(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

/// What is done in a transaction; may be called again if the transaction has to be repeated.
pub(crate) type Work<'t, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send + 't>>;

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store({})", self.inner.connections.url())
    }
}

impl Store {
    /// Connects, and brings the database to this program's schema. An SQLite file and its directory are made if missing.
    ///
    /// # Errors
    /// `Unavailable` or `LoginRefused` if there is no way in; `SchemaTooNew`; `Locked` if another program migrates the database
    /// for longer than a minute; `Corrupt` if the file is no database.
    pub async fn open(config: &StoreConfig) -> Result<Self, StoreError> {
        let connections = Connections::open(config).await?;
        let opened = migrate(&connections).await;
        if opened.is_err() {
            connections.close().await;
        }
        opened?;
        let backend = connections.writer().get_database_backend();
        tracing::info!(database = %connections.url(), "the database is open");
        Ok(Self {
            inner: Arc::new(Inner {
                texts: Texts::new(backend),
                encoder: Encoder {
                    max_record_bytes: connections.max_record_bytes(),
                },
                connections,
                operation_timeout: config.operation_timeout,
            }),
        })
    }

    /// Which kind of database it is.
    #[must_use]
    pub fn backend(&self) -> Backend {
        self.inner.connections.url().backend()
    }

    /// Asks the database whether it is there.
    ///
    /// # Errors
    /// `Unavailable` if it is not.
    pub async fn ping(&self) -> Result<(), StoreError> {
        self.query("the ping", "SELECT 1", []).await.map(drop)
    }

    /// Closes all connections, for every clone. Operations under way come to their end first, later ones fail with `Unavailable`.
    pub async fn close(&self) {
        self.inner.connections.close().await;
    }

    pub(crate) fn database(&self) -> DbBackend {
        self.inner.connections.writer().get_database_backend()
    }

    pub(crate) fn url(&self) -> String {
        self.inner.connections.url().to_string()
    }

    pub(crate) fn classify(&self, operation: &'static str, error: DbErr) -> StoreError {
        self.inner.connections.classify(operation, error)
    }

    /// Runs one query on a connection for reading. `sql` has the placeholder `?` for each value in order.
    pub(crate) async fn query(
        &self,
        operation: &'static str,
        sql: &str,
        values: impl IntoIterator<Item = Value>,
    ) -> Result<Vec<QueryResult>, StoreError> {
        let statement = statement(self.database(), sql, values);
        let rows = self.inner.connections.reader().query_all_raw(statement);
        self.in_time(rows)
            .await?
            .map_err(|error| self.classify(operation, error))
    }

    /// Runs `work` in a transaction that writes, and commits it. Repeats it if it lost against another transaction, and once if
    /// the connection broke: `work` must be safe to repeat even if it was committed.
    pub(crate) async fn write<T: Send>(
        &self,
        operation: &'static str,
        work: impl for<'t> Fn(&'t DatabaseTransaction) -> Work<'t, T> + Send + Sync,
    ) -> Result<T, StoreError> {
        let tries = async {
            let mut pause = CONFLICT_PAUSE;
            let mut tries = 1;
            let mut reconnected = false;
            loop {
                let error = match self.write_once(&work).await {
                    Ok(done) => return Ok(done),
                    Err(Failure::Refused(error)) => return Err(error),
                    Err(Failure::Database(error)) => error,
                };
                if is_conflict(&error) && tries < CONFLICT_TRIES {
                    tries += 1;
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                    continue;
                }
                // Having waited for a connection in vain is an answer; a broken one is worth a second look.
                let waited = matches!(error, DbErr::ConnectionAcquire(_));
                let error = self.classify(operation, error);
                if matches!(error, StoreError::Unavailable { .. }) && !waited && !reconnected {
                    reconnected = true;
                    continue;
                }
                return Err(error);
            }
        };
        self.in_time(Box::pin(tries)).await?
    }

    async fn write_once<T: Send>(
        &self,
        work: &(impl for<'t> Fn(&'t DatabaseTransaction) -> Work<'t, T> + Send + Sync),
    ) -> Result<T, Failure> {
        let writer = self.inner.connections.writer();
        let transaction = writer.begin_with_options(write_options()).await?;
        match work(&transaction).await {
            Ok(done) => {
                transaction.commit().await?;
                Ok(done)
            }
            Err(failure) => {
                // Locks are given back now and not when the connection happens to be used again. If this fails, the connection is
                // broken, and the database has rolled back by itself.
                if let Err(error) = transaction.rollback().await {
                    tracing::debug!(%error, "a transaction could not be rolled back");
                }
                Err(failure)
            }
        }
    }

    /// Gives up when the database takes absurdly long: a dead network is silent.
    pub(crate) async fn in_time<T>(
        &self,
        work: impl Future<Output = T> + Send,
    ) -> Result<T, StoreError> {
        let limit = self.inner.operation_timeout;
        // Lives until the end: its connection must not come back before we have said why.
        let mut work = std::pin::pin!(work);
        tokio::time::timeout(limit, work.as_mut())
            .await
            .map_err(|_| {
                self.inner.connections.fell_silent();
                let seconds = limit.as_secs_f32();
                unavailable(
                    self.inner.connections.url(),
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
