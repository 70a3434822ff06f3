//! Connections that are kept between queries.

use crate::server_pool::TEST_AFTER_IDLE;
use ebbtide_runtime::clock::Stopwatch;
use sea_orm::error::ConnAcquireErr;
use sea_orm::sqlx::pool::PoolConnection;
use sea_orm::sqlx::{
    AssertSqlSafe, Connection, Database, Error, MySql, Pool, Postgres, query_with,
};
use sea_orm::{DbErr, QueryResult, RuntimeErr, Statement, Values};
use sea_query_sqlx::SqlxValues;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A connection goes back to the pool after this time, which renews connections by their age.
const LONGEST: Duration = Duration::from_secs(60);

/// A database server that is asked over connections.
pub(super) trait Server: Database {
    /// Runs a query.
    fn rows(
        connection: &mut Self::Connection,
        statement: Statement,
    ) -> impl Future<Output = Result<Vec<QueryResult>, Error>> + Send;
}

fn values(values: Option<Values>) -> SqlxValues {
    SqlxValues(values.unwrap_or(Values(Vec::new())))
}

impl Server for MySql {
    async fn rows(
        connection: &mut Self::Connection,
        statement: Statement,
    ) -> Result<Vec<QueryResult>, Error> {
        let query = query_with(AssertSqlSafe(statement.sql), values(statement.values));
        let rows = query.fetch_all(connection).await?;
        Ok(rows.into_iter().map(QueryResult::from).collect())
    }
}

impl Server for Postgres {
    async fn rows(
        connection: &mut Self::Connection,
        statement: Statement,
    ) -> Result<Vec<QueryResult>, Error> {
        let query = query_with(AssertSqlSafe(statement.sql), values(statement.values));
        let rows = query.fetch_all(connection).await?;
        Ok(rows.into_iter().map(QueryResult::from).collect())
    }
}

/// The connections of one pool that are kept between queries.
pub(super) struct HeldConnections<D: Database> {
    pool: Pool<D>,
    /// Most that are kept while no query uses them.
    most: usize,
    state: Mutex<State<D>>,
}

struct State<D: Database> {
    /// The one that was used last is used next, so that it needs no test.
    idle: Vec<HeldConnection<D>>,
    /// Queries that wait for the pool. While there are any, nothing is kept from it.
    waiting: usize,
    is_closed: bool,
}

struct HeldConnection<D: Database> {
    connection: PoolConnection<D>,
    /// Since it was taken from the pool.
    held: Stopwatch,
    /// Since its last query.
    used: Stopwatch,
}

impl<D: Database> HeldConnection<D> {
    fn is_due(&self) -> bool {
        self.held.elapsed() >= LONGEST
    }
}

/// A query that waits for the pool, until it is dropped.
struct Waiting<'a, D: Database>(&'a HeldConnections<D>);

impl<D: Database> Drop for Waiting<'_, D> {
    fn drop(&mut self) {
        self.0.state().waiting -= 1;
    }
}

impl<D: Server> HeldConnections<D> {
    pub(super) async fn query_all(&self, statement: Statement) -> Result<Vec<QueryResult>, DbErr> {
        let mut held = self.take().await?;
        match D::rows(&mut held.connection, statement).await {
            Ok(rows) => {
                self.keep(held);
                Ok(rows)
            }
            Err(error) => {
                // A server that ended one connection has probably ended all of them.
                drop(self.take_idle());
                Err(DbErr::Query(RuntimeErr::SqlxError(Arc::new(error))))
            }
        }
    }
}

impl<D: Database> HeldConnections<D> {
    pub(super) fn new(pool: Pool<D>, size: u32) -> Self {
        let state = State {
            idle: Vec::new(),
            waiting: 0,
            is_closed: false,
        };
        Self {
            pool,
            most: size.saturating_sub(1) as usize,
            state: Mutex::new(state),
        }
    }

    pub(super) fn renew(&self) {
        drop(self.take_idle());
    }

    pub(super) fn release(&self) {
        self.state().is_closed = true;
        drop(self.take_idle());
    }

    fn state(&self) -> MutexGuard<'_, State<D>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_idle(&self) -> Vec<HeldConnection<D>> {
        std::mem::take(&mut self.state().idle)
    }

    /// An idle connection, or one of the pool.
    async fn take(&self) -> Result<HeldConnection<D>, DbErr> {
        let waiting = loop {
            let mut held = {
                let mut state = self.state();
                match state.idle.pop() {
                    Some(held) => held,
                    None => {
                        state.waiting += 1;
                        break Waiting(self);
                    }
                }
            };
            if held.is_due() {
                continue;
            }
            if held.used.elapsed() < TEST_AFTER_IDLE || held.connection.ping().await.is_ok() {
                return Ok(held);
            }
        };
        let connection = self.pool.acquire().await.map_err(not_acquired)?;
        drop(waiting);
        Ok(HeldConnection {
            connection,
            held: Stopwatch::start(),
            used: Stopwatch::start(),
        })
    }

    /// Keeps a connection for the next query, or gives it back to the pool.
    fn keep(&self, mut held: HeldConnection<D>) {
        held.used = Stopwatch::start();
        let mut due = Vec::new();
        let mut state = self.state();
        if state.idle.first().is_some_and(HeldConnection::is_due) {
            due.extend(state.idle.extract_if(.., |idle| idle.is_due()));
        }
        let is_kept = state.waiting == 0
            && !state.is_closed
            && state.idle.len() < self.most
            && !held.is_due();
        match is_kept {
            true => state.idle.push(held),
            false => due.push(held),
        }
        // A connection that is dropped goes back to the pool: not under the lock.
        drop(state);
        drop(due);
    }
}

/// Why the pool gave no connection, as sea-orm says it.
fn not_acquired(error: Error) -> DbErr {
    match error {
        Error::PoolTimedOut => DbErr::ConnectionAcquire(ConnAcquireErr::Timeout),
        Error::PoolClosed => DbErr::ConnectionAcquire(ConnAcquireErr::ConnectionClosed),
        error => DbErr::Conn(RuntimeErr::SqlxError(Arc::new(error))),
    }
}
