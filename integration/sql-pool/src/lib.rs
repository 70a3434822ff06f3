//! Connections to a database server that short queries keep between them.
//!
//! The driver's pool tests each connection that comes back, with a round trip of its own. A
//! scheduler that reads a few rows for each request would make as many tests as queries.
//! [`QueryConnections`] keeps a connection whose query has succeeded and uses it again; a failed or
//! cancelled query gives its connection back to the pool, which tests it as before.

mod held;
mod hosts;
mod server_pool;

use held::HeldConnections;
pub use hosts::{Hosts, Options, Writable, test_logins};
use sea_orm::sqlx::{MySql, MySqlPool, PgPool, Postgres};
use sea_orm::{ConnectionTrait, DatabaseConnection, DbErr, QueryResult, Statement};
pub use server_pool::{PoolLimits, server_pool};

/// Where queries of one database run.
pub struct QueryConnections(ConnectionKind);

enum ConnectionKind {
    MySql(HeldConnections<MySql>),
    Postgres(HeldConnections<Postgres>),
    /// SQLite has no server, and its pool's test costs nothing.
    Pool(DatabaseConnection),
}

impl QueryConnections {
    /// Of a pool to MariaDB or MySQL with at most `size` connections. One of them always stays with
    /// the pool, for its other users.
    #[must_use]
    pub fn mysql(pool: MySqlPool, size: u32) -> Self {
        Self(ConnectionKind::MySql(HeldConnections::new(pool, size)))
    }

    /// The same for PostgreSQL.
    #[must_use]
    pub fn postgres(pool: PgPool, size: u32) -> Self {
        Self(ConnectionKind::Postgres(HeldConnections::new(pool, size)))
    }

    /// Of a pool that keeps all of its connections.
    #[must_use]
    pub fn pool(connection: DatabaseConnection) -> Self {
        Self(ConnectionKind::Pool(connection))
    }

    /// Runs a query.
    ///
    /// # Errors
    /// Those of the driver, as sea-orm names them.
    pub async fn query_all(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        // The driver's futures are large, and callers keep several of them.
        match &self.0 {
            ConnectionKind::MySql(held) => Box::pin(held.query_all(statement)).await,
            ConnectionKind::Postgres(held) => Box::pin(held.query_all(statement)).await,
            ConnectionKind::Pool(connection) => connection.query_all_raw(statement).await,
        }
    }

    /// Gives back what is kept now: the pool finds out that another server is used.
    pub fn renew(&self) {
        match &self.0 {
            ConnectionKind::MySql(held) => held.renew(),
            ConnectionKind::Postgres(held) => held.renew(),
            ConnectionKind::Pool(_) => {}
        }
    }

    /// Gives back what is kept, and keeps nothing from now on: goes before the end of the pool,
    /// which waits for its connections.
    pub fn release(&self) {
        match &self.0 {
            ConnectionKind::MySql(held) => held.release(),
            ConnectionKind::Postgres(held) => held.release(),
            ConnectionKind::Pool(_) => {}
        }
    }
}
