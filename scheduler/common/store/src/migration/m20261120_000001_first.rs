//! The first schema. See [`schema`](crate::schema) for what holds of all tables.
//!
//! A migration that has been released is never changed; write another one.

use super::is_mysql;
use sea_orm::{ConnectionTrait, DbBackend, DbErr};
use sea_orm_migration::sea_query::{
    ColumnDef, ForeignKey, ForeignKeyAction, Index, OnConflict, Query, Table, TableCreateStatement,
};
use sea_orm_migration::{MigrationName, MigrationTrait, SchemaManager};

pub(super) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m20261120_000001_first"
    }
}

/// An identifier's text.
const ID: u32 = 36;
/// Names and projects. The longest index holds one of them, a state, a time and an identifier: 1236
/// bytes in utf8mb4, InnoDB allows 3072.
const NAME: u32 = 255;
/// A budget's scope: a word and a project.
const SCOPE: u32 = 271;
/// A state, an outcome.
const WORD: u32 = 16;

/// Index, table, columns. Lists are sorted by time and identifier, so that every filter's index
/// ends with both.
const INDEXES: [(&str, &str, &[&str]); 16] = [
    ("servers_by_time", "servers", &["created_at", "id"]),
    (
        "servers_by_project",
        "servers",
        &["project_id", "created_at", "id"],
    ),
    ("servers_by_host", "servers", &["host", "created_at", "id"]),
    (
        "servers_by_status",
        "servers",
        &["status", "created_at", "id"],
    ),
    ("servers_by_name", "servers", &["name", "created_at", "id"]),
    (
        "servers_by_end",
        "servers",
        &["gone_at", "created_at", "id"],
    ),
    ("decisions_by_time", "decisions", &["created_at", "id"]),
    (
        "decisions_by_project",
        "decisions",
        &["project_id", "created_at", "id"],
    ),
    (
        "decision_servers_by_decision",
        "decision_servers",
        &["decision_id"],
    ),
    ("evacuations_by_time", "evacuations", &["created_at", "id"]),
    (
        "evacuations_by_project",
        "evacuations",
        &["project_id", "created_at", "id"],
    ),
    (
        "evacuations_by_host",
        "evacuations",
        &["host", "created_at", "id"],
    ),
    (
        "evacuations_by_state",
        "evacuations",
        &["state", "created_at", "id"],
    ),
    ("evacuations_by_victim", "evacuations", &["victim_id"]),
    ("evacuations_by_preemptor", "evacuations", &["preemptor_id"]),
    (
        "evacuations_by_end",
        "evacuations",
        &["final_at", "created_at", "id"],
    ),
];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    // The trait elides it, and async_trait tells the two spellings apart.
    #[allow(elided_lifetimes_in_paths)]
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in tables(&Columns {
            backend: manager.get_database_backend(),
        }) {
            let mut table = table;
            table.if_not_exists();
            if is_mysql(manager) {
                // Names that differ in case, accents or emoji are different names.
                table
                    .engine("InnoDB")
                    .character_set("utf8mb4")
                    .collate("utf8mb4_bin");
            }
            manager.create_table(table).await?;
        }
        for (name, table, columns) in INDEXES {
            let mut index = Index::create();
            index.name(name).table(table);
            for column in columns {
                index.col(*column);
            }
            // MySQL has no IF NOT EXISTS for indexes; a migration that was cut off there is
            // continued.
            if is_mysql(manager) {
                if manager.has_index(table, name).await? {
                    continue;
                }
            } else {
                index.if_not_exists();
            }
            manager.create_index(index).await?;
        }
        // The lease has exactly one row, at first without a holder.
        let mut lease = Query::insert();
        lease
            .into_table("lease")
            .columns(["id", "holder", "epoch", "expires_at", "commits"])
            .values_panic([1.into(), "".into(), 0.into(), 0.into(), 0.into()])
            .on_conflict(OnConflict::column("id").do_nothing_on(["id"]).to_owned());
        manager.get_connection().execute(&lease).await?;
        Ok(())
    }
}

/// Column types that differ between the databases.
struct Columns {
    backend: DbBackend,
}

impl Columns {
    /// A text that is compared and sorted byte by byte.
    fn text(&self, name: &'static str, length: u32) -> ColumnDef {
        let mut column = ColumnDef::new(name);
        column.string_len(length);
        if self.backend == DbBackend::Postgres {
            // The language of the database must not decide about the order of names, nor slow down
            // keys.
            column.extra("COLLATE \"C\"");
        }
        column.not_null();
        column
    }

    /// Such a text that may be missing.
    fn maybe(&self, name: &'static str, length: u32) -> ColumnDef {
        let mut column = ColumnDef::new(name);
        column.string_len(length).null();
        if self.backend == DbBackend::Postgres {
            column.extra("COLLATE \"C\"");
        }
        column
    }

    /// The record: JSON up to 16 MB. Not a JSON type, because those change numbers (MySQL) or do
    /// not exist.
    fn record(&self) -> ColumnDef {
        let mut column = ColumnDef::new("record");
        match self.backend {
            DbBackend::MySql => column.custom("longtext"),
            _ => column.text(),
        };
        column.not_null();
        column
    }

    fn bytes(&self, name: &'static str) -> ColumnDef {
        let mut column = ColumnDef::new(name);
        match self.backend {
            DbBackend::MySql => column.custom("longblob"),
            _ => column.blob(),
        };
        column.not_null();
        column
    }
}

/// Milliseconds since 1970.
fn millis(name: &'static str) -> ColumnDef {
    integer(name)
}

fn integer(name: &'static str) -> ColumnDef {
    let mut column = ColumnDef::new(name);
    column.big_integer().not_null();
    column
}

fn maybe_millis(name: &'static str) -> ColumnDef {
    let mut column = ColumnDef::new(name);
    column.big_integer().null();
    column
}

fn table(name: &'static str, columns: Vec<ColumnDef>) -> TableCreateStatement {
    let mut table = Table::create();
    table.table(name);
    for mut column in columns {
        table.col(&mut column);
    }
    table
}

/// The first column is the key.
fn keyed(name: &'static str, mut columns: Vec<ColumnDef>) -> TableCreateStatement {
    if let Some(key) = columns.first_mut() {
        key.primary_key();
    }
    table(name, columns)
}

fn tables(c: &Columns) -> Vec<TableCreateStatement> {
    let id = || c.text("id", ID);
    vec![
        keyed(
            "lease",
            vec![
                ColumnDef::new("id").integer().not_null().take(),
                c.text("holder", NAME),
                integer("epoch"),
                millis("expires_at"),
                // Counted where a commit has to write to the row to be sure of it (Galera).
                integer("commits"),
            ],
        ),
        keyed(
            "hosts",
            vec![c.text("name", NAME), millis("created_at"), c.record()],
        ),
        keyed("aggregates", vec![id(), c.record()]),
        keyed("flavors", vec![id(), c.record()]),
        keyed("server_groups", vec![id(), c.record()]),
        keyed("budgets", vec![c.text("scope", SCOPE), c.record()]),
        keyed(
            "servers",
            vec![
                id(),
                c.text("project_id", NAME),
                c.text("name", NAME),
                c.maybe("host", NAME),
                c.text("status", WORD),
                millis("created_at"),
                // When it ended for good; null while something can still happen to it.
                maybe_millis("gone_at"),
                c.record(),
            ],
        ),
        keyed(
            "decisions",
            vec![
                id(),
                c.text("project_id", NAME),
                c.text("outcome", WORD),
                millis("created_at"),
                c.record(),
            ],
        ),
        decision_servers(c),
        keyed(
            "evacuations",
            vec![
                id(),
                c.text("victim_id", ID),
                // The victim's.
                c.text("project_id", NAME),
                c.text("preemptor_id", ID),
                c.text("host", NAME),
                c.text("state", WORD),
                // When the claim was written.
                millis("created_at"),
                // When it came to its final state; null while it is under way.
                maybe_millis("final_at"),
                c.record(),
            ],
        ),
        table(
            "outbox",
            vec![
                // The order of writing.
                ColumnDef::new("seq")
                    .big_integer()
                    .not_null()
                    .auto_increment()
                    .primary_key()
                    .take(),
                c.text("id", ID).unique_key().take(),
                c.text("host", NAME),
                c.maybe("evacuation_id", ID),
                millis("created_at"),
                c.bytes("body"),
            ],
        ),
    ]
}

/// Which decisions were about a server: also those that found no host, of which no server knows.
fn decision_servers(c: &Columns) -> TableCreateStatement {
    let mut links = table(
        "decision_servers",
        vec![
            c.text("server_id", ID),
            c.text("decision_id", ID),
            millis("created_at"),
        ],
    );
    links.primary_key(Index::create().col("server_id").col("decision_id"));
    links.foreign_key(
        ForeignKey::create()
            .name("decision_servers_decision")
            .from("decision_servers", "decision_id")
            .to("decisions", "id")
            .on_delete(ForeignKeyAction::Cascade),
    );
    links
}
