//! Pools of connections, which connect when they are first used and again when the server comes
//! back.
//!
//! The drivers' pools are built here and not by sea-orm, which writes connect options, URL and
//! password included, into trace spans.

use crate::dialect::Dialect;
use crate::error::NovaDbError;
use crate::url::{Backend, DatabaseUrl};
use ebbtide_runtime::login::Renewal;
use ebbtide_sql_pool::{
    Hosts, Options, PoolLimits, QueryConnections, Writable, server_pool, test_logins,
};
use sea_orm::sqlx::mysql::{MySqlConnectOptions, MySqlConnection, MySqlPoolOptions, MySqlSslMode};
use sea_orm::sqlx::postgres::{PgConnectOptions, PgPoolOptions, PgSslMode};
use sea_orm::sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use sea_orm::sqlx::{ConnectOptions as _, Error, Executor as _, MySql, Pool, Postgres};
use sea_orm::{
    ConnectionTrait, DatabaseConnection, DbBackend, DbErr, QueryResult, RuntimeErr, SqlxError,
    SqlxMySqlConnector, SqlxMySqlError, SqlxPostgresConnector, SqlxSqliteConnector, Statement,
    Value,
};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// How many prepared statements a connection keeps.
const STATEMENT_CACHE: usize = 64;

/// How hard a database is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolOptions {
    /// Most connections to each database. Default 5, as `[database] max_pool_size`.
    pub max_connections: u32,
    /// How long a connection may take. Default 10 s.
    pub connect_timeout: Duration,
    /// After this time an operation is given up as `Unavailable`. Default 60 s, as Nova's cell
    /// timeout.
    pub operation_timeout: Duration,
    /// Connections are renewed after this time. Default one hour, as `[database]
    /// connection_recycle_time`.
    pub max_lifetime: Duration,
}

impl PoolOptions {
    fn limits(&self) -> PoolLimits {
        PoolLimits {
            max_connections: self.max_connections,
            acquire_timeout: self.connect_timeout,
            max_lifetime: self.max_lifetime,
        }
    }
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self {
            max_connections: 5,
            connect_timeout: Duration::from_secs(10),
            operation_timeout: Duration::from_secs(60),
            max_lifetime: Duration::from_secs(3600),
        }
    }
}

#[derive(Clone)]
pub(crate) struct DatabasePool {
    inner: Arc<Inner>,
}

struct Inner {
    label: String,
    /// With the login of connections that are opened from now on.
    url: RwLock<DatabaseUrl>,
    server: ServerPool,
    dialect: Dialect,
    connection: DatabaseConnection,
    /// The same database, for queries.
    queries: QueryConnections,
    timeout: Duration,
    /// True after an operation was given up because the server did not answer.
    silent: Arc<AtomicBool>,
}

/// The driver's pool, which takes new logins.
enum ServerPool {
    MySql(Arc<Hosts<MySql>>, Pool<MySql>),
    Postgres(Arc<Hosts<Postgres>>, Pool<Postgres>),
    /// A file has no login.
    File,
}

impl fmt::Debug for DatabasePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pool({}, {})", self.inner.label, self.shown())
    }
}

impl DatabasePool {
    /// Prepares a pool; nothing is connected yet.
    pub(crate) fn new(label: &str, url: &DatabaseUrl, options: &PoolOptions) -> Self {
        let silent = Arc::new(AtomicBool::new(false));
        let (connection, queries, server) = match url.backend() {
            Backend::MySql => {
                let hosts = Arc::new(Hosts::<MySql>::new(vec![(url.to_string(), mysql(url))]));
                let pool = server_pool(options.limits(), &silent, &hosts);
                let pool: MySqlPoolOptions =
                    pool.after_connect(|connection: &mut MySqlConnection, _| {
                        Box::pin(async move {
                            connection
                                .execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
                                .await?;
                            Ok(())
                        })
                    });
                let pool = pool.connect_lazy_with(mysql(url));
                (
                    SqlxMySqlConnector::from_sqlx_mysql_pool(pool.clone()),
                    QueryConnections::mysql(pool.clone(), options.max_connections),
                    ServerPool::MySql(hosts, pool),
                )
            }
            Backend::Postgres => {
                let hosts = vec![(url.to_string(), postgres(url))];
                let hosts = Arc::new(Hosts::<Postgres>::new(hosts));
                let pool: PgPoolOptions = server_pool(options.limits(), &silent, &hosts);
                let pool = pool.connect_lazy_with(postgres(url));
                (
                    SqlxPostgresConnector::from_sqlx_postgres_pool(pool.clone()),
                    QueryConnections::postgres(pool.clone(), options.max_connections),
                    ServerPool::Postgres(hosts, pool),
                )
            }
            Backend::Sqlite => {
                let pool = SqlitePoolOptions::new()
                    .max_connections(options.max_connections.max(1))
                    .acquire_timeout(options.connect_timeout);
                let options = SqliteConnectOptions::new()
                    .filename(&url.database)
                    .busy_timeout(options.connect_timeout)
                    .statement_cache_capacity(STATEMENT_CACHE)
                    .disable_statement_logging();
                let pool = pool.connect_lazy_with(options);
                let pool = SqlxSqliteConnector::from_sqlx_sqlite_pool(pool);
                (pool.clone(), QueryConnections::pool(pool), ServerPool::File)
            }
        };
        Self {
            inner: Arc::new(Inner {
                label: label.to_owned(),
                url: RwLock::new(url.clone()),
                server,
                dialect: Dialect(url.backend()),
                connection,
                queries,
                timeout: options.operation_timeout,
                silent,
            }),
        }
    }

    pub(crate) fn label(&self) -> &str {
        &self.inner.label
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.inner.dialect
    }

    /// Tests a new login for the same database. Connections that are opened from now on use it.
    /// Older ones are renewed when they are used next.
    ///
    /// # Errors
    /// `LoginRefused`: the old login stays.
    pub(crate) async fn renew_login(&self, url: &DatabaseUrl) -> Result<Renewal, NovaDbError> {
        let old = self.url();
        if old == *url {
            return Ok(Renewal::Unchanged);
        }
        if !old.is_same_place(url) {
            return Ok(Renewal::NextStart("the database, its server or parameters"));
        }
        let inner = &self.inner;
        let renewed = match &inner.server {
            ServerPool::MySql(hosts, pool) => renew(hosts, pool, &inner.queries, mysql(url)).await,
            ServerPool::Postgres(hosts, pool) => {
                renew(hosts, pool, &inner.queries, postgres(url)).await
            }
            ServerPool::File => Ok(Renewal::Unchanged),
        };
        let renewal = renewed.map_err(|error| {
            let error = DbErr::Conn(RuntimeErr::SqlxError(Arc::new(error)));
            self.classify("take a new login", &error)
        })?;
        *inner.url.write().unwrap_or_else(PoisonError::into_inner) = url.clone();
        Ok(renewal)
    }

    fn url(&self) -> DatabaseUrl {
        let url = self.inner.url.read();
        url.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn shown(&self) -> String {
        self.url().to_string()
    }

    /// Runs a query. `sql` has a `?` for each value. Repeated once on another connection if the
    /// first one turns out to be broken: reading twice does no harm.
    pub(crate) async fn rows(
        &self,
        operation: &'static str,
        sql: &str,
        values: Vec<Value>,
    ) -> Result<Vec<QueryResult>, NovaDbError> {
        let backend = self.inner.connection.get_database_backend();
        let queries = &self.inner.queries;
        let statement = statement(backend, sql, values);
        let work = async {
            match queries.query_all(statement.clone()).await {
                Err(error) if is_broken(&error) => queries.query_all(statement).await,
                done => done,
            }
        };
        self.in_time(operation, work).await
    }

    /// Runs a statement that writes, once. Returns how many rows it touched.
    pub(crate) async fn execute(
        &self,
        operation: &'static str,
        sql: &str,
        values: Vec<Value>,
    ) -> Result<u64, NovaDbError> {
        let connection = &self.inner.connection;
        let statement = statement(connection.get_database_backend(), sql, values);
        let done = self
            .in_time(operation, connection.execute_raw(statement))
            .await?;
        Ok(done.rows_affected())
    }

    /// What a column of another type than expected means.
    pub(crate) fn unreadable(&self, table: &'static str, error: &DbErr) -> NovaDbError {
        NovaDbError::Corrupt {
            database: self.inner.label.clone(),
            table,
            reason: format!("a value of another type than Nova's schema says ({error})"),
        }
    }

    pub(crate) async fn close(&self) {
        self.inner.queries.release();
        if let Err(error) = self.inner.connection.close_by_ref().await {
            tracing::debug!(database = self.inner.label, %error, "a pool could not be closed");
        }
    }

    async fn in_time<T>(
        &self,
        operation: &'static str,
        work: impl Future<Output = Result<T, DbErr>> + Send,
    ) -> Result<T, NovaDbError> {
        // Lives until the end: its connection must not come back before we have said why.
        let mut work = std::pin::pin!(work);
        match tokio::time::timeout(self.inner.timeout, work.as_mut()).await {
            Ok(done) => done.map_err(|error| self.classify(operation, &error)),
            Err(_) => {
                self.inner.silent.store(true, Ordering::Relaxed);
                Err(self.unavailable(format!(
                    "no answer within {} s",
                    self.inner.timeout.as_secs_f32()
                )))
            }
        }
    }

    fn unavailable(&self, reason: String) -> NovaDbError {
        NovaDbError::Unavailable {
            database: self.inner.label.clone(),
            url: self.shown(),
            reason,
        }
    }

    fn classify(&self, operation: &'static str, error: &DbErr) -> NovaDbError {
        let driver = driver_error(error);
        let reason = driver.map_or_else(|| error.to_string(), ToString::to_string);
        if is_unavailable(error) {
            return self.unavailable(reason);
        }
        let (database, url) = (self.inner.label.clone(), self.shown());
        if is_login(driver) {
            NovaDbError::LoginRefused {
                database,
                url,
                reason,
            }
        } else {
            NovaDbError::Refused {
                database,
                url,
                operation,
                reason,
            }
        }
    }
}

/// Whether a unique key was in the way.
pub(crate) fn is_duplicate(error: &NovaDbError) -> bool {
    matches!(error, NovaDbError::Refused { reason, .. }
        if reason.contains("1062") || reason.contains("23505")
            || reason.contains("uplicate") || reason.contains("UNIQUE"))
}

fn statement(backend: DbBackend, sql: &str, values: Vec<Value>) -> Statement {
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

fn mysql(url: &DatabaseUrl) -> MySqlConnectOptions {
    let mut options = MySqlConnectOptions::new()
        .database(&url.database)
        .host(url.host.as_deref().unwrap_or("localhost"))
        .port(url.port.unwrap_or(3306))
        .statement_cache_capacity(STATEMENT_CACHE)
        .disable_statement_logging();
    if let Some(user) = &url.user {
        options = options.username(user);
    }
    if let Some(password) = &url.password {
        options = options.password(password);
    }
    if let Some(socket) = &url.socket {
        options = options.socket(socket);
    }
    // PyMySQL speaks TLS only if told to, and checks the certificate only if it is told whom to
    // trust.
    let tls = &url.tls;
    options = options.ssl_mode(match (tls.wanted, &tls.ca, tls.check_name) {
        (false, ..) => MySqlSslMode::Disabled,
        (true, Some(_), true) => MySqlSslMode::VerifyIdentity,
        (true, Some(_), false) => MySqlSslMode::VerifyCa,
        (true, None, _) => MySqlSslMode::Required,
    });
    if let Some(ca) = &tls.ca {
        options = options.ssl_ca(ca);
    }
    if let (Some(certificate), Some(key)) = (&tls.certificate, &tls.key) {
        options = options.ssl_client_cert(certificate).ssl_client_key(key);
    }
    options
}

fn postgres(url: &DatabaseUrl) -> PgConnectOptions {
    let mut options = PgConnectOptions::new_without_pgpass()
        .database(&url.database)
        .host(url.host.as_deref().unwrap_or("localhost"))
        .port(url.port.unwrap_or(5432))
        .application_name("ebbtide-scheduler")
        .statement_cache_capacity(STATEMENT_CACHE)
        .disable_statement_logging();
    if let Some(user) = &url.user {
        options = options.username(user);
    }
    if let Some(password) = &url.password {
        options = options.password(password);
    }
    if let Some(socket) = &url.socket {
        options = options.socket(socket);
    }
    let tls = &url.tls;
    options = options.ssl_mode(match tls.mode.as_deref() {
        Some("disable") => PgSslMode::Disable,
        Some("allow") => PgSslMode::Allow,
        Some("require") => PgSslMode::Require,
        Some("verify-ca") => PgSslMode::VerifyCa,
        Some("verify-full") => PgSslMode::VerifyFull,
        _ => PgSslMode::Prefer,
    });
    if let Some(ca) = &tls.ca {
        options = options.ssl_root_cert(ca);
    }
    if let (Some(certificate), Some(key)) = (&tls.certificate, &tls.key) {
        options = options.ssl_client_cert(certificate).ssl_client_key(key);
    }
    options
}

async fn renew<D: Writable>(
    hosts: &Hosts<D>,
    pool: &Pool<D>,
    queries: &QueryConnections,
    login: Options<D>,
) -> Result<Renewal, Error> {
    let logins = vec![login];
    let renewal = test_logins::<D>(&logins).await?;
    hosts.replace_logins(logins);
    pool.set_connect_options(hosts.chosen());
    queries.renew();
    Ok(renewal)
}

fn driver_error(error: &DbErr) -> Option<&SqlxError> {
    match error {
        DbErr::Conn(RuntimeErr::SqlxError(e))
        | DbErr::Exec(RuntimeErr::SqlxError(e))
        | DbErr::Query(RuntimeErr::SqlxError(e)) => Some(e),
        _ => None,
    }
}

/// A connection that broke; another one may do.
fn is_broken(error: &DbErr) -> bool {
    match driver_error(error) {
        Some(SqlxError::Io(_) | SqlxError::Protocol(_) | SqlxError::WorkerCrashed) => true,
        Some(SqlxError::Database(error)) => server_is_gone(error.as_ref()),
        _ => false,
    }
}

fn is_unavailable(error: &DbErr) -> bool {
    matches!(error, DbErr::ConnectionAcquire(_))
        || is_broken(error)
        || matches!(
            driver_error(error),
            Some(
                SqlxError::Tls(_)
                    | SqlxError::PoolTimedOut
                    | SqlxError::PoolClosed
                    | SqlxError::BeginFailed
            )
        )
}

/// Shutting down, too many connections, killed, deadlocked, timed out: all of them pass.
fn server_is_gone(error: &dyn sea_orm::sqlx::error::DatabaseError) -> bool {
    if let Some(mysql) = error.try_downcast_ref::<SqlxMySqlError>() {
        return matches!(
            mysql.number(),
            1040 | 1053
                | 1077
                | 1079
                | 1152
                | 1203
                | 1205
                | 1213
                | 1317
                | 1927
                | 2006
                | 2013
                | 1047
        );
    }
    let code = error.code().unwrap_or_default();
    // SQLite's codes are numbers: 5 busy, 6 locked.
    code.starts_with("57P")
        || code.starts_with("08")
        || code.starts_with("53")
        || matches!(code.as_ref(), "40001" | "40P01" | "5" | "6")
}

fn is_login(error: Option<&SqlxError>) -> bool {
    let Some(SqlxError::Database(error)) = error else {
        return false;
    };
    if let Some(mysql) = error.as_ref().try_downcast_ref::<SqlxMySqlError>() {
        return matches!(mysql.number(), 1044 | 1045 | 1049 | 1698);
    }
    matches!(error.code().as_deref(), Some("28000" | "28P01" | "3D000"))
}
