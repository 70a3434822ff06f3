//! Plugins that operators add and change while schedulers run.

use sea_orm::{DbBackend, DbErr};
use sea_orm_migration::sea_query::{ColumnDef, Table};
use sea_orm_migration::{MigrationName, MigrationTrait, SchemaManager};

pub(super) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m20261123_000003_plugins"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    // The trait elides it, and async_trait tells the two spellings apart.
    #[allow(elided_lifetimes_in_paths)]
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let mysql = manager.get_database_backend() == DbBackend::MySql;
        let (mut record, mut component) = (ColumnDef::new("record"), ColumnDef::new("component"));
        if mysql {
            record.custom("longtext");
            component.custom("longblob");
        } else {
            record.text();
            component.binary();
        }
        let mut table = Table::create();
        table
            .table("plugins")
            .if_not_exists()
            .col(
                ColumnDef::new("name")
                    .string_len(255)
                    .not_null()
                    .primary_key(),
            )
            .col(record.not_null().take())
            // SHA-256 of the component in hexadecimal digits; empty if there is none.
            .col(ColumnDef::new("digest").string_len(64).not_null())
            .col(component.null().take());
        if mysql {
            table
                .engine("InnoDB")
                .character_set("utf8mb4")
                .collate("utf8mb4_bin");
        }
        manager.create_table(table).await
    }
}
