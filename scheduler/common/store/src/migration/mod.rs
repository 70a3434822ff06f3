//! Brings a database to the schema that this program works with.
//!
//! Safe when several programs start at once: one migrates, the others wait for it. SQLite and
//! PostgreSQL migrate in one transaction; MariaDB commits every `CREATE` by itself, so that a lock
//! with a name is held meanwhile and every step is written to be repeatable (`IF NOT EXISTS`).

mod m20261120_000001_first;
mod m20261122_000002_commit_log;
mod m20261123_000003_plugins;
mod m20261123_000004_lives;
mod m20261123_000005_prices;
mod m20261127_000006_decision_requests;
mod m20261127_000007_idle_hours;
mod m20261129_000008_restore_marks;

use crate::connect::{Connections, write_options};
use crate::{Backend, StoreError};
use sea_orm::{
    ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbBackend, DbErr, Statement,
    TransactionTrait,
};
use sea_orm_migration::sea_query::{ColumnDef, Index, Table};
use sea_orm_migration::{MigrationTrait, MigratorTrait, SchemaManager};

/// All migrations, oldest first.
pub(crate) struct Migrator;

#[async_trait::async_trait]
impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![
            Box::new(m20261120_000001_first::Migration),
            Box::new(m20261122_000002_commit_log::Migration),
            Box::new(m20261123_000003_plugins::Migration),
            Box::new(m20261123_000004_lives::Migration),
            Box::new(m20261123_000005_prices::Migration),
            Box::new(m20261127_000006_decision_requests::Migration),
            Box::new(m20261127_000007_idle_hours::Migration),
            Box::new(m20261129_000008_restore_marks::Migration),
        ]
    }
}

/// The key of PostgreSQL's advisory lock: "ebbtide" in ASCII.
const POSTGRES_LOCK: i64 = 0x65_62_62_74_69_64_65;
/// How long a program waits for another one that migrates, in seconds.
const LOCK_SECONDS: u32 = 60;

/// Migrates, or finds that nothing is to be done.
///
/// # Errors
/// `SchemaTooNew`; `Locked` if another program migrates for too long; whatever the database
/// refuses.
pub(crate) async fn migrate<M: MigratorTrait>(connections: &Connections) -> Result<(), StoreError> {
    let url = connections.url();
    let classify = |error: DbErr| connections.classify("the migration", error);
    let writer = connections.writer();
    let guard = writer
        .begin_with_options(write_options())
        .await
        .map_err(classify)?;
    match url.backend() {
        Backend::Sqlite | Backend::Postgres => {
            if url.backend() == Backend::Postgres {
                let lock = format!("SELECT pg_advisory_xact_lock({POSTGRES_LOCK})");
                // Waiting for another program that migrates must not end at the timeout for locks.
                let wait = format!("SET LOCAL lock_timeout = '{LOCK_SECONDS}s'");
                guard.execute_unprepared(&wait).await.map_err(classify)?;
                guard.execute_unprepared(&lock).await.map_err(classify)?;
            }
            refuse_newer::<M>(connections, &guard).await?;
            M::up(&guard, None).await.map_err(classify)?;
            guard.commit().await.map_err(classify)
        }
        Backend::MySql => {
            let done = migrate_mysql::<M>(connections, &guard, writer).await;
            // The lock also ends with its connection.
            let release = "DO RELEASE_LOCK(CONCAT('ebbtide ', MD5(DATABASE())))";
            guard.execute_unprepared(release).await.map_err(classify)?;
            guard.rollback().await.map_err(classify)?;
            done
        }
    }
}

async fn migrate_mysql<M: MigratorTrait>(
    connections: &Connections,
    guard: &DatabaseTransaction,
    writer: &DatabaseConnection,
) -> Result<(), StoreError> {
    let classify = |error: DbErr| connections.classify("the migration", error);
    let lock =
        format!("SELECT GET_LOCK(CONCAT('ebbtide ', MD5(DATABASE())), {LOCK_SECONDS}) AS got");
    let lock = Statement::from_string(guard.get_database_backend(), lock);
    let row = guard.query_one_raw(lock).await.map_err(classify)?;
    let got: Option<i64> = match row {
        Some(row) => row.try_get("", "got").map_err(classify)?,
        None => None,
    };
    if got != Some(1) {
        return Err(StoreError::Locked {
            url: connections.url().to_string(),
            reason: format!("another program has been migrating it for {LOCK_SECONDS} s"),
        });
    }
    refuse_newer::<M>(connections, writer).await?;
    M::up(writer, None).await.map_err(classify)
}

/// Refuses a database to which a migration was applied that this program does not know.
async fn refuse_newer<M: MigratorTrait>(
    connections: &Connections,
    db: &impl ConnectionTrait,
) -> Result<(), StoreError> {
    let classify = |error: DbErr| connections.classify("the migration", error);
    let known: Vec<String> = M::migrations()
        .iter()
        .map(|migration| migration.name().to_owned())
        .collect();
    M::install(db).await.map_err(classify)?;
    let select = format!(
        "SELECT version FROM {} ORDER BY version",
        M::migration_table_name()
    );
    let select = Statement::from_string(db.get_database_backend(), select);
    for row in db.query_all_raw(select).await.map_err(classify)? {
        let version: String = row.try_get("", "version").map_err(classify)?;
        if !known.contains(&version) {
            return Err(StoreError::SchemaTooNew {
                url: connections.url().to_string(),
                found: version,
                known: known.last().cloned().unwrap_or_default(),
            });
        }
    }
    Ok(())
}

/// How the tables of a database stand to this program. Changes nothing.
///
/// # Errors
/// Whatever the database refuses.
pub(crate) async fn schema_state<M: MigratorTrait>(
    connections: &Connections,
) -> Result<SchemaState, StoreError> {
    let classify = |error: DbErr| connections.classify("the look at the schema", error);
    let reader = connections.reader();
    let table = M::migration_table_name().to_string();
    let has_table = SchemaManager::new(reader).has_table(&table).await;
    if !has_table.map_err(classify)? {
        return Ok(SchemaState::Empty);
    }
    let select = format!("SELECT version FROM {table} ORDER BY version");
    let select = Statement::from_string(reader.get_database_backend(), select);
    let mut pending: Vec<String> = M::migrations()
        .iter()
        .map(|migration| migration.name().to_owned())
        .collect();
    for row in reader.query_all_raw(select).await.map_err(classify)? {
        let version: String = row.try_get("", "version").map_err(classify)?;
        let Some(known) = pending.iter().position(|name| *name == version) else {
            return Ok(SchemaState::Newer { found: version });
        };
        pending.remove(known);
    }
    Ok(match pending.len() {
        0 => SchemaState::Current,
        pending => SchemaState::Older { pending },
    })
}

/// How the tables of a database stand to this program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemaState {
    /// There are none yet; the first start makes them.
    Empty,
    /// This program's.
    Current,
    /// An older program's; the next start migrates them.
    Older {
        /// Migrations that the next start applies.
        pending: usize,
    },
    /// A newer program's, which this one refuses.
    Newer {
        /// The first migration that this program does not know.
        found: String,
    },
}

/// True for MariaDB, whose tables need a collation that tells all texts apart.
fn is_mysql(manager: &SchemaManager<'_>) -> bool {
    manager.get_database_backend() == sea_orm::DbBackend::MySql
}

/// A table whose rows are records: a key, what is filtered and sorted by, and the record itself.
/// Repeatable, as every migration is.
struct RecordTable {
    name: &'static str,
    key: (&'static str, u32),
    /// Texts, with how many characters they have at most.
    texts: &'static [(&'static str, u32)],
    /// Milliseconds since 1970.
    times: &'static [&'static str],
    indexes: &'static [(&'static str, &'static [&'static str])],
}

impl RecordTable {
    async fn create(&self, manager: &SchemaManager<'_>) -> Result<(), DbErr> {
        let backend = manager.get_database_backend();
        let text = |(name, length): (&'static str, u32)| {
            let mut column = ColumnDef::new(name);
            column.string_len(length);
            if backend == DbBackend::Postgres {
                // Byte by byte, whatever the language of the database.
                column.extra("COLLATE \"C\"");
            }
            column.not_null();
            column
        };
        let mut table = Table::create();
        table
            .table(self.name)
            .if_not_exists()
            .col(text(self.key).primary_key());
        for column in self.texts {
            table.col(text(*column));
        }
        for name in self.times {
            table.col(ColumnDef::new(*name).big_integer().not_null());
        }
        let mut record = ColumnDef::new("record");
        match backend {
            DbBackend::MySql => record.custom("longtext"),
            _ => record.text(),
        };
        table.col(record.not_null());
        if is_mysql(manager) {
            table
                .engine("InnoDB")
                .character_set("utf8mb4")
                .collate("utf8mb4_bin");
        }
        manager.create_table(table).await?;
        for (name, columns) in self.indexes {
            // MySQL has no IF NOT EXISTS for indexes.
            if is_mysql(manager) && manager.has_index(self.name, name).await? {
                continue;
            }
            let mut index = Index::create();
            index.name(*name).table(self.name);
            for column in *columns {
                index.col(*column);
            }
            if !is_mysql(manager) {
                index.if_not_exists();
            }
            manager.create_index(index).await?;
        }
        Ok(())
    }
}
