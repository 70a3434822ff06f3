//! The handle that everything goes through.

use crate::config::StoreConfig;
use crate::connect::Connections;
use crate::database::Database;
pub(crate) use crate::database::{TransactionFailure, TransactionFuture, statement};
use crate::migration::{Migrator, migrate};
use crate::row::Encoder;
use crate::sql::StatementTexts;
use crate::{Backend, StoreError};
use sea_orm::{DatabaseTransaction, DbBackend, DbErr, QueryResult, Value};
use std::fmt;
use std::sync::Arc;

/// An open database. Cheap to clone; all clones share the connections.
#[derive(Clone)]
pub struct Store {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) database: Database,
    pub(crate) texts: StatementTexts,
    pub(crate) encoder: Encoder,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store({})", self.inner.database.connections.url())
    }
}

impl Store {
    /// Connects, and brings the database to this program's schema. An SQLite file and its directory
    /// are made if missing.
    ///
    /// # Errors
    /// `Unavailable` or `LoginRefused` if there is no way in; `SchemaTooNew`; `Locked` if another
    /// program migrates the database for longer than a minute; `Corrupt` if the file is no
    /// database.
    pub async fn open(config: &StoreConfig) -> Result<Self, StoreError> {
        let connections = Connections::open(config).await?;
        let opened = migrate::<Migrator>(&connections).await;
        if opened.is_err() {
            connections.close().await;
        }
        opened?;
        let backend = connections.writer().get_database_backend();
        tracing::info!(database = %connections.url(), "the database is open");
        Ok(Self {
            inner: Arc::new(Inner {
                texts: StatementTexts::new(backend),
                encoder: Encoder {
                    max_record_bytes: connections.max_record_bytes(),
                },
                database: Database::new(connections, config),
            }),
        })
    }

    /// Which kind of database it is.
    #[must_use]
    pub fn backend(&self) -> Backend {
        self.inner.database.backend()
    }

    /// Asks the database whether it is there.
    ///
    /// # Errors
    /// `Unavailable` if it is not.
    pub async fn ping(&self) -> Result<(), StoreError> {
        self.query("the ping", "SELECT 1", []).await.map(drop)
    }

    /// Closes all connections, for every clone. Operations under way come to their end first, later
    /// ones fail with `Unavailable`.
    pub async fn close(&self) {
        self.inner.database.connections.close().await;
    }

    pub(crate) fn database(&self) -> DbBackend {
        self.inner.database.sea()
    }

    pub(crate) fn url(&self) -> String {
        self.inner.database.connections.url().to_string()
    }

    pub(crate) fn classify(&self, operation: &'static str, error: DbErr) -> StoreError {
        self.inner.database.connections.classify(operation, error)
    }

    /// Runs one query on a connection for reading. `sql` has the placeholder `?` for each value in
    /// order.
    pub(crate) async fn query(
        &self,
        operation: &'static str,
        sql: &str,
        values: impl IntoIterator<Item = Value>,
    ) -> Result<Vec<QueryResult>, StoreError> {
        self.inner.database.query(operation, sql, values).await
    }

    /// Runs `work` in a transaction that writes, as [`Database::write`] does.
    pub(crate) async fn write<T: Send>(
        &self,
        operation: &'static str,
        work: impl for<'t> Fn(&'t DatabaseTransaction) -> TransactionFuture<'t, T> + Send + Sync,
    ) -> Result<T, StoreError> {
        self.inner.database.write(operation, work).await
    }

    pub(crate) async fn in_time<T>(
        &self,
        work: impl Future<Output = T> + Send,
    ) -> Result<T, StoreError> {
        self.inner.database.in_time(work).await
    }
}
