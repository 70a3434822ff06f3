//! Connections to the three databases, each set up for safety first.
//!
//! Writers and readers have pools of their own. On SQLite there is exactly one writing connection,
//! so that the writers of this process queue up in order instead of running into each other's
//! locks; on the others there are two (a commit, and the renewal of the lease beside it), so that
//! slow reads never keep a commit from its connection.
//!
//! The drivers' pools are built here and not by sea-orm, because sea-orm writes its connect
//! options, URL and password included, into trace spans.

use crate::classify::{classify, unavailable};
use crate::config::{Durability, StoreConfig};
use crate::logins::Server;
use crate::private;
use crate::url::{DatabaseTarget, DatabaseUrl};
use crate::{StoreError, logins, sql};
use ebbtide_runtime::task::{self, Task};
use ebbtide_sql_pool::{Hosts, Options, PoolLimits, QueryConnections, Writable, server_pool};
use sea_orm::sqlx::mysql::{MySqlConnection, MySqlPoolOptions};
use sea_orm::sqlx::postgres::{PgConnection, PgPoolOptions};
use sea_orm::sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous,
};
use sea_orm::sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, Error, Executor as _, MySql, Pool,
    Postgres,
};
use sea_orm::{
    ConnectionTrait, DatabaseConnection, DbErr, RuntimeErr, SqliteTransactionMode,
    SqlxMySqlConnector, SqlxPostgresConnector, SqlxSqliteConnector, Statement, TransactionOptions,
};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Connections to a server are renewed after half an hour, so that changed addresses and rights are
/// noticed.
const MAX_LIFETIME: Duration = Duration::from_secs(1800);
/// How long a transaction may be idle before the server ends it. A scheduler that was stopped in
/// the middle of its turn delays the others no longer than that.
const IDLE_TRANSACTION: Duration = Duration::from_secs(5);
/// Of several programs that open a new SQLite file at once, one turns on the write-ahead log, and
/// the others are refused at once: for this SQLite does not wait as for other locks. They try again
/// after this pause, and then after twice the one before, until it is as long as they would wait
/// for a lock.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
/// How long closing waits for operations that are under way.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);
/// Room for rows that SQLite keeps in memory for the connection that writes, in KiB (negative is
/// KiB in `PRAGMA cache_size`).
const SQLITE_CACHE: &str = "-32768";
/// The same for each of those that read: they are several, and the region itself is in memory.
const SQLITE_READER_CACHE: &str = "-4096";
/// The write-ahead log is cut back to this size, in bytes, after it had to grow.
const SQLITE_JOURNAL_LIMIT: &str = "67108864";
/// Statements of a session on a Galera node see what other nodes have committed before: schedulers
/// may use different nodes, and a commit whose node died is looked up on another one. A server
/// outside of a cluster does not wait.
const GALERA_ORDER: &str = "/*M!100300 SET SESSION wsrep_sync_wait = 7 */";
/// Part of a MariaDB packet that is kept for everything beside the record.
const PACKET_RESERVE: usize = 64 << 10;

/// The connections of one store.
pub(crate) struct Connections {
    url: DatabaseUrl,
    writer: DatabaseConnection,
    reader: DatabaseConnection,
    /// The connections of `reader`, for single queries.
    queries: Arc<QueryConnections>,
    /// Watches which of several servers takes writes, and gives new logins to the pools.
    _watch: Option<Task>,
    max_record_bytes: usize,
    /// True after an operation was given up because the server did not answer.
    silent: Arc<AtomicBool>,
}

impl Connections {
    pub(crate) async fn open(config: &StoreConfig) -> Result<Self, StoreError> {
        let url = config.url.current();
        let refused = |error: Error| {
            let error = DbErr::Conn(RuntimeErr::SqlxError(Arc::new(error)));
            classify(&url, "the connection", error)
        };
        let silent = Arc::new(AtomicBool::new(false));
        let readers = config.max_connections.saturating_sub(1).max(1);
        let (writer, reader, queries, watch) = match url.target() {
            DatabaseTarget::SqliteMemory => {
                // Every connection to memory would be a database of its own.
                let options = sqlite_options(config).in_memory(true).filename(":memory:");
                let pool = SqlitePoolOptions::new()
                    .max_connections(1)
                    .min_connections(1)
                    .idle_timeout(None)
                    .max_lifetime(None)
                    .acquire_timeout(config.connect_timeout)
                    .connect_with(options)
                    .await
                    .map_err(refused)?;
                let pool = SqlxSqliteConnector::from_sqlx_sqlite_pool(pool);
                let queries = Arc::new(QueryConnections::pool(pool.clone()));
                (pool.clone(), pool, queries, None)
            }
            DatabaseTarget::SqliteFile(path) => {
                make_directory(&url, path)?;
                private::make_private(path).map_err(|error| StoreError::Refused {
                    url: url.to_string(),
                    operation: "to be opened",
                    reason: error.to_string(),
                })?;
                let options = sqlite_options(config)
                    .filename(path)
                    .create_if_missing(true);
                let pool = |size| {
                    SqlitePoolOptions::new()
                        .max_connections(size)
                        .idle_timeout(None)
                        .max_lifetime(None)
                        .acquire_timeout(config.connect_timeout.max(config.lock_timeout))
                        .after_release(|connection: &mut SqliteConnection, _| {
                            Box::pin(is_out_of_transactions(connection))
                        })
                };
                // The first connection makes the file and turns on the write-ahead log; two at once
                // would lock each other out.
                let mut pause = FIRST_PAUSE;
                let writer = loop {
                    let error = match pool(1).connect_with(options.clone()).await {
                        Ok(writer) => break writer,
                        Err(error) => refused(error),
                    };
                    if !matches!(error, StoreError::Locked { .. }) || pause > config.lock_timeout {
                        return Err(error);
                    }
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                };
                let reader = pool(readers)
                    .connect_lazy_with(options.pragma("cache_size", SQLITE_READER_CACHE));
                let reader = SqlxSqliteConnector::from_sqlx_sqlite_pool(reader);
                (
                    SqlxSqliteConnector::from_sqlx_sqlite_pool(writer),
                    reader.clone(),
                    Arc::new(QueryConnections::pool(reader)),
                    None,
                )
            }
            DatabaseTarget::MySql(_) => {
                let hosts = logins::hosts::<MySql>(&url).map_err(refused)?;
                let options = first(&url, config, &hosts).await?.map_err(refused)?;
                let pool = |size| -> MySqlPoolOptions {
                    let setup = format!(
                        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, \
                         SESSION innodb_lock_wait_timeout = {seconds}, \
                         SESSION sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES')",
                        seconds = config.lock_timeout.as_secs().max(1)
                    );
                    // SET TRANSACTION cannot be part of a list.
                    let (isolation, rest) = setup.split_once(", ").unwrap_or((&setup, ""));
                    // Versioned for MariaDB: MySQL has no such limit.
                    let idle = format!(
                        "/*M!100300 SESSION idle_write_transaction_timeout = {}, */",
                        IDLE_TRANSACTION.as_secs()
                    );
                    let rest = format!("SET {idle} {rest}");
                    let steps: Arc<[String]> = [isolation.to_owned(), rest].into();
                    let among = Arc::clone(&hosts);
                    server_pool(limits(config, size), &silent, &hosts).after_connect(
                        move |connection: &mut MySqlConnection, _| {
                            let (steps, among) = (Arc::clone(&steps), Arc::clone(&among));
                            Box::pin(async move {
                                takes_writes(&among, connection).await?;
                                if among.are_several() {
                                    connection.execute(GALERA_ORDER).await?;
                                }
                                for step in steps.iter() {
                                    connection.execute(AssertSqlSafe(step.clone())).await?;
                                }
                                Ok(())
                            })
                        },
                    )
                };
                let reader = pool(readers).connect_lazy_with(options.clone());
                let writer = pool(2).connect_lazy_with(options);
                let queries = Arc::new(QueryConnections::mysql(reader.clone(), readers));
                (
                    SqlxMySqlConnector::from_sqlx_mysql_pool(writer.clone()),
                    SqlxMySqlConnector::from_sqlx_mysql_pool(reader.clone()),
                    Arc::clone(&queries),
                    Some(watch(config, hosts, [writer, reader], queries)),
                )
            }
            DatabaseTarget::Postgres(_) => {
                let hosts = logins::hosts::<Postgres>(&url).map_err(refused)?;
                let options = first(&url, config, &hosts).await?.map_err(refused)?;
                let pool = |size| -> PgPoolOptions {
                    let setup = format!(
                        "SET lock_timeout = {}; SET idle_in_transaction_session_timeout = {}",
                        config.lock_timeout.as_millis().max(1),
                        IDLE_TRANSACTION.as_millis()
                    );
                    let among = Arc::clone(&hosts);
                    server_pool(limits(config, size), &silent, &hosts).after_connect(
                        move |connection: &mut PgConnection, _| {
                            let (setup, among) = (setup.clone(), Arc::clone(&among));
                            Box::pin(async move {
                                takes_writes(&among, connection).await?;
                                connection.execute(AssertSqlSafe(setup)).await?;
                                Ok(())
                            })
                        },
                    )
                };
                let reader = pool(readers).connect_lazy_with(options.clone());
                let writer = pool(2).connect_lazy_with(options);
                let queries = Arc::new(QueryConnections::postgres(reader.clone(), readers));
                (
                    SqlxPostgresConnector::from_sqlx_postgres_pool(writer.clone()),
                    SqlxPostgresConnector::from_sqlx_postgres_pool(reader.clone()),
                    Arc::clone(&queries),
                    Some(watch(config, hosts, [writer, reader], queries)),
                )
            }
        };
        let mut connections = Self {
            url,
            writer,
            reader,
            queries,
            _watch: watch,
            max_record_bytes: crate::tables::MAX_RECORD_BYTES,
            silent,
        };
        if matches!(connections.url.target(), DatabaseTarget::MySql(_)) {
            connections.respect_packet_size().await?;
        }
        Ok(connections)
    }

    /// A MariaDB server may be set to smaller packets than the records that the store takes.
    async fn respect_packet_size(&mut self) -> Result<(), StoreError> {
        let select = "SELECT CAST(@@max_allowed_packet AS SIGNED) AS packet";
        let select = Statement::from_string(self.writer.get_database_backend(), select);
        let row = self
            .writer
            .query_one_raw(select)
            .await
            .map_err(|e| self.classify("a query", e))?;
        let packet = match row {
            Some(row) => row
                .try_get::<i64>("", "packet")
                .map_err(|e| self.classify("a query", e))?,
            None => 0,
        };
        let fits = usize::try_from(packet)
            .unwrap_or(0)
            .saturating_sub(PACKET_RESERVE);
        if fits < self.max_record_bytes {
            tracing::warn!(
                max_allowed_packet = packet,
                "the MariaDB server takes records of at most {fits} bytes; set max_allowed_packet to 16 MiB or more"
            );
            self.max_record_bytes = fits;
        }
        Ok(())
    }

    pub(crate) fn url(&self) -> &DatabaseUrl {
        &self.url
    }

    pub(crate) fn writer(&self) -> &DatabaseConnection {
        &self.writer
    }

    pub(crate) fn reader(&self) -> &DatabaseConnection {
        &self.reader
    }

    pub(crate) fn queries(&self) -> &QueryConnections {
        &self.queries
    }

    pub(crate) fn max_record_bytes(&self) -> usize {
        self.max_record_bytes
    }

    pub(crate) fn classify(&self, operation: &'static str, error: DbErr) -> StoreError {
        let of_connecting = matches!(error, DbErr::Conn(_));
        match classify(&self.url, operation, error) {
            // The login worked when the store was opened: the password is being changed, and a
            // reload brings the new one. Callers try again, as with a server that is away.
            error @ StoreError::LoginRefused { .. } if of_connecting => {
                unavailable(&self.url, format!("{}: {error}", error.code()))
            }
            error => error,
        }
    }

    /// Records that the server did not answer. Connections are then tested before they are used
    /// again.
    pub(crate) fn fell_silent(&self) {
        self.silent.store(true, Ordering::Relaxed);
    }

    /// Closes all connections. Readers first: the last one to leave an SQLite file tidies up its
    /// log.
    pub(crate) async fn close(&self) {
        self.queries.release();
        for pool in [&self.reader, &self.writer] {
            match tokio::time::timeout(CLOSE_TIMEOUT, pool.close_by_ref()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(%error, "the database could not be closed"),
                Err(_) => tracing::warn!("the database was left with operations under way"),
            }
        }
    }
}

/// How a transaction that writes begins: on SQLite with the lock for writing, because one that
/// begins as a reader cannot always become a writer. The other databases ignore it.
pub(crate) fn write_options() -> TransactionOptions {
    TransactionOptions {
        sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
        ..TransactionOptions::default()
    }
}

fn sqlite_options(config: &StoreConfig) -> SqliteConnectOptions {
    let options = SqliteConnectOptions::new()
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(match config.durability {
            Durability::Full => SqliteSynchronous::Full,
            Durability::Normal => SqliteSynchronous::Normal,
        })
        .busy_timeout(config.lock_timeout)
        .foreign_keys(true)
        .statement_cache_capacity(sql::STATEMENT_CACHE)
        .pragma("cache_size", SQLITE_CACHE)
        .pragma("journal_size_limit", SQLITE_JOURNAL_LIMIT)
        .disable_statement_logging();
    match config.sqlite_max_pages {
        Some(pages) => options.pragma("max_page_count", pages.to_string()),
        None => options,
    }
}

/// False for a connection that has to be closed.
///
/// When a disk is full, SQLite rolls back by itself. The driver's own rollback then fails, and the
/// driver believes forever that a transaction is open. All later statements would be savepoints in
/// a transaction that is never committed: visible to this connection only, and lost with it.
async fn is_out_of_transactions(connection: &mut SqliteConnection) -> Result<bool, Error> {
    if connection.is_in_transaction() {
        // A rollback may be on its way still; the answer comes behind it.
        connection.ping().await?;
    }
    Ok(!connection.is_in_transaction())
}

fn make_directory(url: &DatabaseUrl, path: &Path) -> Result<(), StoreError> {
    let Some(directory) = path.parent().filter(|d| !d.as_os_str().is_empty()) else {
        return Ok(());
    };
    std::fs::create_dir_all(directory).map_err(|error| StoreError::Refused {
        url: url.to_string(),
        operation: "to be created",
        reason: format!(
            "the directory {} cannot be made: {error}",
            directory.display()
        ),
    })
}

/// The server that is used first, and whether it can be reached at all.
async fn first<D: Writable>(
    url: &DatabaseUrl,
    config: &StoreConfig,
    hosts: &Hosts<D>,
) -> Result<Result<Options<D>, Error>, StoreError> {
    let answer = tokio::time::timeout(config.connect_timeout, hosts.choose()).await;
    answer.map_err(|_| {
        let seconds = config.connect_timeout.as_secs_f32();
        unavailable(url, format!("no answer within {seconds} s"))
    })
}

/// Refuses a new connection to one of several servers that takes no writes: the pool tries again,
/// with the server that is chosen then.
async fn takes_writes<D: Writable>(
    hosts: &Hosts<D>,
    connection: &mut D::Connection,
) -> Result<(), Error> {
    if hosts.are_several() && !D::takes_writes(connection).await? {
        return Err(Error::Io(std::io::Error::other(
            "this server takes no writes",
        )));
    }
    Ok(())
}

/// Sends connections to another server when the chosen one of several takes no writes any more, and
/// gives them new logins.
fn watch<D: Server>(
    config: &StoreConfig,
    hosts: Arc<Hosts<D>>,
    pools: [Pool<D>; 2],
    queries: Arc<QueryConnections>,
) -> Task {
    let new_logins = logins::follow(
        config.url.clone(),
        Arc::clone(&hosts),
        pools.clone(),
        Arc::clone(&queries),
    );
    task::spawn("database hosts", async move {
        let switch = |options: &Options<D>| {
            for pool in &pools {
                pool.set_connect_options(options.clone());
            }
            queries.renew();
        };
        let other_hosts = async {
            match hosts.are_several() {
                true => hosts.follow(switch).await,
                false => std::future::pending().await,
            }
        };
        tokio::join!(other_hosts, new_logins);
    })
}

fn limits(config: &StoreConfig, size: u32) -> PoolLimits {
    PoolLimits {
        max_connections: size,
        acquire_timeout: config.connect_timeout,
        max_lifetime: MAX_LIFETIME,
    }
}
