//! The mark of a database that was restored from a backup: one row, or none.

use super::RecordTable;
use sea_orm::DbErr;
use sea_orm_migration::{MigrationName, MigrationTrait, SchemaManager};

const TABLE: RecordTable = RecordTable {
    name: "restore_marks",
    key: ("id", 36),
    texts: &[],
    // When the mark was set.
    times: &["created_at"],
    indexes: &[],
};

pub(super) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m20261129_000008_restore_marks"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    // The trait elides it, and async_trait tells the two spellings apart.
    #[allow(elided_lifetimes_in_paths)]
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        TABLE.create(manager).await
    }
}
