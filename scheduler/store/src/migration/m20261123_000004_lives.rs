//! Lives that are over: kept apart from servers, because one server may have had several.

use super::is_mysql;
use sea_orm::{DbBackend, DbErr};
use sea_orm_migration::sea_query::{ColumnDef, Index, Table};
use sea_orm_migration::{MigrationName, MigrationTrait, SchemaManager};

const TABLE: &str = "lives";

/// By what lists are read; each ends with what they are sorted by.
const INDEXES: [(&str, &[&str]); 4] = [
    ("lives_by_time", &["created_at", "id"]),
    ("lives_by_project", &["project_id", "created_at", "id"]),
    ("lives_by_flavor", &["flavor", "created_at", "id"]),
    ("lives_by_end", &["ended_at"]),
];

pub(super) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m20261123_000004_lives"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    // The trait elides it, and async_trait tells the two spellings apart.
    #[allow(elided_lifetimes_in_paths)]
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let backend = manager.get_database_backend();
        let text = |name: &'static str, length: u32| {
            let mut column = ColumnDef::new(name);
            column.string_len(length);
            if backend == DbBackend::Postgres {
                // As in the first schema: byte by byte, whatever the language of the database.
                column.extra("COLLATE \"C\"");
            }
            column.not_null();
            column
        };
        let mut record = ColumnDef::new("record");
        match backend {
            DbBackend::MySql => record.custom("longtext"),
            _ => record.text(),
        };
        let mut table = Table::create();
        table
            .table(TABLE)
            .if_not_exists()
            // The server, and which of its lives.
            .col(text("id", 47).primary_key())
            .col(&mut text("project_id", 255))
            .col(&mut text("flavor", 255))
            // When it began.
            .col(ColumnDef::new("created_at").big_integer().not_null())
            .col(ColumnDef::new("ended_at").big_integer().not_null())
            .col(record.not_null());
        if is_mysql(manager) {
            table
                .engine("InnoDB")
                .character_set("utf8mb4")
                .collate("utf8mb4_bin");
        }
        manager.create_table(table).await?;
        for (name, columns) in INDEXES {
            if is_mysql(manager) && manager.has_index(TABLE, name).await? {
                continue;
            }
            let mut index = Index::create();
            index.name(name).table(TABLE);
            for column in columns {
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
