//! Decisions are found by the request id of OpenStack's services, and refused ones without reading
//! all others.

use super::is_mysql;
use sea_orm::{DbBackend, DbErr};
use sea_orm_migration::sea_query::{ColumnDef, Index, Table};
use sea_orm_migration::{MigrationName, MigrationTrait, SchemaManager};

const TABLE: &str = "decisions";
const COLUMN: &str = "request_id";

/// Index, columns. Each ends with what lists are sorted by.
const INDEXES: [(&str, &[&str]); 2] = [
    ("decisions_by_request", &[COLUMN, "created_at", "id"]),
    ("decisions_by_outcome", &["outcome", "created_at", "id"]),
];

pub(super) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m20261127_000006_decision_requests"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    // The trait elides it, and async_trait tells the two spellings apart.
    #[allow(elided_lifetimes_in_paths)]
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // On MariaDB a migration that was cut off is continued.
        if !manager.has_column(TABLE, COLUMN).await? {
            let mut column = ColumnDef::new(COLUMN);
            column.string_len(255);
            if manager.get_database_backend() == DbBackend::Postgres {
                column.extra("COLLATE \"C\"");
            }
            // Decisions of a standalone region have none.
            column.not_null().default("");
            let mut table = Table::alter();
            table.table(TABLE).add_column(&mut column);
            manager.alter_table(table).await?;
        }
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
