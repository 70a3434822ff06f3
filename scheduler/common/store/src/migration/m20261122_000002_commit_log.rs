//! The commit log, which the schedulers of a database follow (see
//! [`WriteTransaction`](crate::WriteTransaction)).

use sea_orm::{DbBackend, DbErr};
use sea_orm_migration::sea_query::{ColumnDef, Index, Table};
use sea_orm_migration::{MigrationName, MigrationTrait, SchemaManager};

pub(super) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m20261122_000002_commit_log"
    }
}

const TABLE: &str = "commit_log";

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    // The trait elides it, and async_trait tells the two spellings apart.
    #[allow(elided_lifetimes_in_paths)]
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let mysql = manager.get_database_backend() == DbBackend::MySql;
        let mut record = ColumnDef::new("record");
        if mysql {
            record.custom("longtext");
        } else {
            record.text();
        }
        let mut table = Table::create();
        table
            .table(TABLE)
            .if_not_exists()
            // Counted by the row of the lease, without gaps.
            .col(ColumnDef::new("number").big_integer().not_null())
            // Large commits are cut.
            .col(ColumnDef::new("part").big_integer().not_null())
            // By which a scheduler knows its own commit again.
            .col(ColumnDef::new("token").string_len(36).not_null())
            .col(ColumnDef::new("written_at").big_integer().not_null())
            .col(record.not_null().take())
            .primary_key(Index::create().col("number").col("part"));
        if mysql {
            table
                .engine("InnoDB")
                .character_set("utf8mb4")
                .collate("utf8mb4_bin");
        }
        manager.create_table(table).await?;
        if mysql && manager.has_index(TABLE, "commit_log_by_time").await? {
            return Ok(());
        }
        let mut index = Index::create();
        index
            .name("commit_log_by_time")
            .table(TABLE)
            .col("written_at");
        if !mysql {
            index.if_not_exists();
        }
        manager.create_index(index).await
    }
}
