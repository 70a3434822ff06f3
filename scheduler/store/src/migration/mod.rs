//! Brings a database to the schema that this program works with.
//!
//! Safe when several programs start at once: one migrates, the others wait for it. SQLite and PostgreSQL migrate in one
//! transaction; MariaDB commits every `CREATE` by itself, so that a lock with a name is held meanwhile and every step is
//! written to be repeatable (`IF NOT EXISTS`).

mod m20261120_000001_first;
mod m20261122_000002_commit_log;
mod m20261123_000003_plugins;
mod m20261123_000004_lives;

use crate::connect::{Connections, write_options};
use crate::{Backend, StoreError};
use sea_orm::{
    ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbErr, Statement, TransactionTrait,
};
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
/// `SchemaTooNew`; `Locked` if another program migrates for too long; whatever the database refuses.
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

/// True for MariaDB, whose tables need a collation that tells all texts apart.
fn is_mysql(manager: &SchemaManager<'_>) -> bool {
    manager.get_database_backend() == sea_orm::DbBackend::MySql
}
