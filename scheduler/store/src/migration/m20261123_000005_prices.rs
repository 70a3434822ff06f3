//! Prices of preemptible capacity, as they were published.

use super::is_mysql;
use sea_orm::{DbBackend, DbErr};
use sea_orm_migration::sea_query::{ColumnDef, Index, Table};
use sea_orm_migration::{MigrationName, MigrationTrait, SchemaManager};

const TABLE: &str = "prices";

/// By what lists are read; each ends with what they are sorted by.
const INDEXES: [(&str, &[&str]); 3] = [
    ("prices_by_time", &["created_at", "id"]),
    ("prices_by_flavor", &["flavor", "created_at", "id"]),
    // The last one of each flavor.
    ("prices_by_flavor_id", &["flavor_id", "created_at"]),
];

pub(super) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m20261123_000005_prices"
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
            // The flavor, and the time in milliseconds.
            .col(text("id", 57).primary_key())
            .col(text("flavor_id", 36))
            .col(text("flavor", 255))
            // From when it counts.
            .col(ColumnDef::new("created_at").big_integer().not_null())
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
