//! What lay idle, by hour and flavor: a shadow writes it.

use super::RecordTable;
use sea_orm::DbErr;
use sea_orm_migration::{MigrationName, MigrationTrait, SchemaManager};

const TABLE: RecordTable = RecordTable {
    name: "idle_hours",
    // The hour in milliseconds, and the flavor.
    key: ("id", 271),
    texts: &[("flavor", 255)],
    // The beginning of the hour.
    times: &["created_at"],
    indexes: &[("idle_hours_by_time", &["created_at", "id"])],
};

pub(super) struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m20261127_000007_idle_hours"
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
