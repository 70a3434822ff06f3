//! The ledger of preemptions on a real Nova, which several schedulers share.
//!
//! Placement holds the truth about capacity. The ledger holds what the schedulers are about to do:
//! which newcomers get the capacity of which victims, and how far that is. A scheduler writes a row
//! before it acts elsewhere. Every further step moves the row from one version to the next, so that
//! of two schedulers that work on one row only one succeeds. A victim is in one open row at most; a
//! unique key guarantees that. Another scheduler adopts the rows of a scheduler that died.
//!
//! The tables can be in a database of their own, or beside those of a [`Store`](crate::Store): no
//! table name is shared, and the migrations have a table of their own. Times are those of the
//! database's clock.
//!
//! Invariants:
//! - A write that returned `Ok` survives whatever the database's durability survives. One that
//!   returned `Unavailable` may or may not have been written; repeating it is safe, but an update
//!   may then say `Lost` although it was ours: read the row.
//! - Versions only grow, by one for each write.

mod budgets;
mod comebacks;
mod documents;
mod error;
mod heads;
mod migration;
mod owner;
mod read;
mod reclaims;
mod restored;
mod row;
mod usage;

pub use budgets::{BudgetTurn, LedgerBudget};
pub use comebacks::ComebackRow;
pub use error::LedgerError;
pub use heads::{LedgerHead, LedgerHeads};
pub use owner::{Owner, OwnerObservation};
pub use read::FinishedMark;
pub use reclaims::ReclaimRow;
pub use restored::{LedgerReconciliation, LostRow, ReconciledRow};
pub use row::{LedgerRow, NewRow, RowEnd, UpdateResult};
pub use usage::{NewUsage, UsageFilter, UsageRecord};

use crate::connect::Connections;
use crate::database::Database;
use crate::migration::{SchemaState, migrate, schema_state};
use crate::{StoreConfig, StoreError};
use ebbtide_model::BudgetScope;
use sea_orm::{DbBackend, DbErr, QueryResult, SqlErr, TryGetable, Value};
use std::fmt;
use std::sync::Arc;
use uuid::Uuid;

/// Longest state, in characters.
pub(crate) const MAX_STATE_CHARS: usize = 32;
/// Longest name of a scheduler, a project or a flavor, and longest request id.
const MAX_NAME_CHARS: usize = 255;
/// Most values in one list of a statement.
const CHUNK: usize = 200;

/// An open ledger. Cheap to clone; all clones share the connections.
#[derive(Clone)]
pub struct Ledger {
    inner: Arc<Inner>,
}

struct Inner {
    database: Database,
    /// The database's clock as an expression, milliseconds since 1970.
    now: &'static str,
}

/// Why a transaction of the ledger did not come to its end.
enum Stop {
    Store(StoreError),
    /// A unique key was in the way.
    Duplicate,
    /// A budget has changed, or another preemption has counted against it.
    BudgetMoved(BudgetScope),
    /// A restored ledger has changed since it was compared.
    RestoreMoved,
}

impl From<Stop> for LedgerError {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Store(error) => error.into(),
            Stop::BudgetMoved(scope) => Self::BudgetMoved { scope },
            Stop::RestoreMoved => Self::RestoreMoved,
            // Callers that write unique keys look up which one it was.
            Stop::Duplicate => corrupt("nova_preemptions", "", "a key is there twice"),
        }
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ledger({})", self.inner.database.connections.url())
    }
}

impl Ledger {
    /// Connects and brings the tables to this program's schema.
    ///
    /// # Errors
    /// Those of [`Store::open`](crate::Store::open).
    pub async fn open(config: &StoreConfig) -> Result<Self, LedgerError> {
        let connections = Connections::open(config).await?;
        if let Err(error) = migrate::<migration::Migrator>(&connections).await {
            connections.close().await;
            return Err(error.into());
        }
        tracing::info!(database = %connections.url(), "the ledger of preemptions is open");
        let database = Database::new(connections, config);
        let now = match database.sea() {
            DbBackend::MySql => "CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)",
            DbBackend::Postgres => "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
            _ => "CAST((julianday('now') - 2440587.5) * 86400000.0 AS INTEGER)",
        };
        Ok(Self {
            inner: Arc::new(Inner { database, now }),
        })
    }

    /// How the ledger's tables stand to this program. Connects, and changes nothing but that SQLite
    /// makes a missing file.
    ///
    /// # Errors
    /// Those of [`Store::open`](crate::Store::open), but not `SchemaTooNew`.
    pub async fn schema_state(config: &StoreConfig) -> Result<SchemaState, LedgerError> {
        let connections = Connections::open(config).await?;
        let state = schema_state::<migration::Migrator>(&connections).await;
        connections.close().await;
        Ok(state?)
    }

    /// Asks the database whether it is there.
    ///
    /// # Errors
    /// `Unavailable` if it is not.
    pub async fn ping(&self) -> Result<(), LedgerError> {
        self.query("the ping", "SELECT 1", Vec::new())
            .await
            .map(drop)
    }

    /// Closes all connections of all clones.
    pub async fn close(&self) {
        self.inner.database.connections.close().await;
    }

    fn database(&self) -> &Database {
        &self.inner.database
    }

    fn now(&self) -> &'static str {
        self.inner.now
    }

    async fn query(
        &self,
        operation: &'static str,
        sql: &str,
        values: Vec<Value>,
    ) -> Result<Vec<QueryResult>, LedgerError> {
        Ok(self.database().query(operation, sql, values).await?)
    }
}

/// Whether a unique key was in the way.
fn is_duplicate(error: &DbErr) -> bool {
    matches!(error.sql_err(), Some(SqlErr::UniqueConstraintViolation(_)))
}

/// A column, where a value of another type is corruption.
fn column<T: TryGetable>(
    row: &QueryResult,
    table: &'static str,
    place: usize,
) -> Result<T, LedgerError> {
    row.try_get_by_index(place)
        .map_err(|error: DbErr| corrupt(table, "", &error.to_string()))
}

fn id(text: &str, table: &'static str) -> Result<Uuid, LedgerError> {
    text.parse()
        .map_err(|_| corrupt(table, text, "the identifier is no UUID"))
}

fn corrupt(table: &str, key: &str, reason: &str) -> LedgerError {
    LedgerError::Store(StoreError::Corrupt {
        table: table.to_owned(),
        key: key.to_owned(),
        reason: reason.to_owned(),
    })
}

fn places(count: usize) -> String {
    vec!["?"; count].join(", ")
}

/// Placeholders of several rows of two.
fn pairs(count: usize) -> String {
    vec!["(?, ?)"; count].join(", ")
}

/// The UUIDs as values, each once, in order: of two that insert the same keys, none waits for the
/// other in a circle.
fn sorted(uuids: &[Uuid]) -> Vec<Uuid> {
    let mut uuids = uuids.to_vec();
    uuids.sort_unstable();
    uuids.dedup();
    uuids
}

fn text(uuid: Uuid) -> Value {
    Value::from(uuid.to_string())
}
