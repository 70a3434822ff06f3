//! The tables of the ledger. Names begin with `nova_`, so that they can stand beside a store's.
//!
//! A migration that has been released is never changed; write another one.

use sea_orm::{DbBackend, DbErr};
use sea_orm_migration::sea_query::{
    Alias, ColumnDef, DynIden, Index, IntoIden, Table, TableCreateStatement,
};
use sea_orm_migration::{MigrationName, MigrationTrait, MigratorTrait, SchemaManager};

/// All migrations, oldest first.
pub(super) struct Migrator;

#[async_trait::async_trait]
impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![
            Box::new(First),
            Box::new(Requests),
            Box::new(Budgets),
            Box::new(Comebacks),
            Box::new(Reclaims),
            Box::new(RestoreMarks),
        ]
    }

    fn migration_table_name() -> DynIden {
        Alias::new("nova_ledger_migrations").into_iden()
    }
}

struct First;

impl MigrationName for First {
    fn name(&self) -> &'static str {
        "m20261121_000001_ledger"
    }
}

/// An identifier's text.
const ID: u32 = 36;
/// Names of schedulers, projects and flavors.
const NAME: u32 = 255;
/// The scope of a budget.
const SCOPE: u32 = crate::tables::MAX_SCOPE_CHARS as u32;
const STATE: u32 = super::MAX_STATE_CHARS as u32;

/// Index, table, columns.
const INDEXES: [(&str, &str, &[&str]); 5] = [
    (
        "nova_preemptions_by_end",
        "nova_preemptions",
        &["finished_at", "created_at", "id"],
    ),
    (
        "nova_preemption_instances_by_preemption",
        "nova_preemption_instances",
        &["preemption_id"],
    ),
    (
        "nova_preemption_victims_by_preemption",
        "nova_preemption_victims",
        &["preemption_id"],
    ),
    (
        "nova_usage_records_by_end",
        "nova_usage_records",
        &["ended_at", "evacuation_id"],
    ),
    (
        "nova_usage_records_by_project",
        "nova_usage_records",
        &["project_id", "ended_at", "evacuation_id"],
    ),
];

/// Table, index, columns.
const REQUEST_INDEXES: [(&str, &str, &[&str]); 1] = [(
    "nova_preemption_requests_by_preemption",
    "nova_preemption_requests",
    &["preemption_id"],
)];

#[async_trait::async_trait]
impl MigrationTrait for First {
    // The trait elides it, and async_trait tells the two spellings apart.
    #[allow(elided_lifetimes_in_paths)]
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        create(manager, tables, &INDEXES).await
    }
}

/// Which row answers a request.
struct Requests;

impl MigrationName for Requests {
    fn name(&self) -> &'static str {
        "m20261122_000001_requests"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Requests {
    #[allow(elided_lifetimes_in_paths)]
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        create(manager, request_tables, &REQUEST_INDEXES).await
    }
}

/// Disruption budgets.
struct Budgets;

impl MigrationName for Budgets {
    fn name(&self) -> &'static str {
        "m20261127_000001_budgets"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Budgets {
    #[allow(elided_lifetimes_in_paths)]
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        create(manager, budget_tables, &[]).await
    }
}

/// Servers that come back.
struct Comebacks;

impl MigrationName for Comebacks {
    fn name(&self) -> &'static str {
        "m20261127_000002_comebacks"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Comebacks {
    #[allow(elided_lifetimes_in_paths)]
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        create(manager, comeback_tables, &[]).await
    }
}

/// Hosts that an outside owner has taken back.
struct Reclaims;

impl MigrationName for Reclaims {
    fn name(&self) -> &'static str {
        "m20261128_000001_reclaims"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Reclaims {
    #[allow(elided_lifetimes_in_paths)]
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        create(manager, reclaim_tables, &[]).await
    }
}

/// The mark of a ledger that was restored from a backup: one row, or none.
struct RestoreMarks;

impl MigrationName for RestoreMarks {
    fn name(&self) -> &'static str {
        "m20261129_000001_restore_marks"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for RestoreMarks {
    #[allow(elided_lifetimes_in_paths)]
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        create(manager, restore_tables, &[]).await
    }
}

/// Creates tables and indexes, each unless it is there: a migration that was cut off is continued.
async fn create(
    manager: &SchemaManager<'_>,
    tables: fn(DbBackend) -> Vec<TableCreateStatement>,
    indexes: &[(&'static str, &'static str, &[&'static str])],
) -> Result<(), DbErr> {
    let backend = manager.get_database_backend();
    for mut table in tables(backend) {
        table.if_not_exists();
        if backend == DbBackend::MySql {
            table
                .engine("InnoDB")
                .character_set("utf8mb4")
                .collate("utf8mb4_bin");
        }
        manager.create_table(table).await?;
    }
    for (name, table, columns) in indexes {
        let mut index = Index::create();
        index.name(*name).table(*table);
        for column in *columns {
            index.col(*column);
        }
        // MySQL has no IF NOT EXISTS for indexes.
        if backend == DbBackend::MySql {
            if manager.has_index(table, name).await? {
                continue;
            }
        } else {
            index.if_not_exists();
        }
        manager.create_index(index).await?;
    }
    Ok(())
}

/// A text column, compared byte by byte, whatever the language of the database.
fn text(backend: DbBackend, name: &'static str, length: u32) -> ColumnDef {
    let mut column = ColumnDef::new(name);
    column.string_len(length).not_null();
    if backend == DbBackend::Postgres {
        column.extra("COLLATE \"C\"");
    }
    column
}

fn table(
    name: &'static str,
    key: &[&'static str],
    columns: Vec<ColumnDef>,
) -> TableCreateStatement {
    let mut table = Table::create();
    table.table(name);
    for mut column in columns {
        table.col(&mut column);
    }
    let mut primary = Index::create();
    for column in key {
        primary.col(*column);
    }
    table.primary_key(&mut primary);
    table
}

fn request_tables(backend: DbBackend) -> Vec<TableCreateStatement> {
    // The key is the point: a request is answered from one row only, however late another
    // scheduler's write comes.
    vec![table(
        "nova_preemption_requests",
        &["request_key"],
        vec![
            text(backend, "request_key", NAME),
            text(backend, "preemption_id", ID),
        ],
    )]
}

fn budget_tables(backend: DbBackend) -> Vec<TableCreateStatement> {
    vec![table(
        "nova_budgets",
        &["scope"],
        vec![
            text(backend, "scope", SCOPE),
            document(backend, "record"),
            ColumnDef::new("turn").big_integer().not_null().take(),
        ],
    )]
}

fn comeback_tables(backend: DbBackend) -> Vec<TableCreateStatement> {
    vec![versioned(backend, "nova_comebacks", "server_uuid", ID)]
}

fn reclaim_tables(backend: DbBackend) -> Vec<TableCreateStatement> {
    vec![versioned(backend, "nova_reclaims", "host", NAME)]
}

fn restore_tables(backend: DbBackend) -> Vec<TableCreateStatement> {
    let columns = vec![
        text(backend, "id", ID),
        // When the mark was set.
        ColumnDef::new("created_at").big_integer().not_null().take(),
        ColumnDef::new("backup_at").big_integer().null().take(),
    ];
    vec![table("nova_restore_marks", &["id"], columns)]
}

/// A table of documents with a key and a version.
fn versioned(
    backend: DbBackend,
    name: &'static str,
    key: &'static str,
    length: u32,
) -> TableCreateStatement {
    let columns = vec![
        text(backend, key, length),
        ColumnDef::new("version").big_integer().not_null().take(),
        document(backend, "document"),
    ];
    table(name, &[key], columns)
}

/// A JSON text.
fn document(backend: DbBackend, name: &'static str) -> ColumnDef {
    let mut document = ColumnDef::new(name);
    match backend {
        DbBackend::MySql => document.custom("longtext"),
        _ => document.text(),
    };
    document.not_null();
    document
}

fn tables(backend: DbBackend) -> Vec<TableCreateStatement> {
    let text = |name: &'static str, length: u32| text(backend, name, length);
    let number = |name: &'static str| ColumnDef::new(name).big_integer().not_null().take();
    let maybe = |name: &'static str| ColumnDef::new(name).big_integer().null().take();
    vec![
        table(
            "nova_preemptions",
            &["id"],
            vec![
                text("id", ID),
                text("request_id", NAME),
                text("state", STATE),
                text("owner", NAME),
                number("owner_epoch"),
                number("version"),
                // Whose write it was that led to this version: tells a repeated write from a lost
                // one.
                text("writer", ID),
                number("created_at"),
                number("updated_at"),
                maybe("finished_at"),
                document(backend, "document"),
            ],
        ),
        table(
            "nova_preemption_instances",
            &["instance_uuid", "preemption_id"],
            vec![text("instance_uuid", ID), text("preemption_id", ID)],
        ),
        // The primary key guarantees that no server is a victim twice.
        table(
            "nova_preemption_victims",
            &["victim_uuid"],
            vec![text("victim_uuid", ID), text("preemption_id", ID)],
        ),
        table(
            "nova_schedulers",
            &["name"],
            vec![text("name", NAME), number("epoch"), number("last_seen")],
        ),
        table(
            "nova_usage_records",
            &["evacuation_id"],
            vec![
                text("evacuation_id", ID),
                text("server_id", ID),
                text("project_id", NAME),
                text("flavor", NAME),
                maybe("launched_at"),
                number("ended_at"),
                number("unbilled_seconds"),
                number("created_at"),
            ],
        ),
    ]
}
