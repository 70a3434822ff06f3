//! Lives that are over: kept apart from servers, because one server may have had several.

use super::RecordTable;
use sea_orm::DbErr;
use sea_orm_migration::{MigrationName, MigrationTrait, SchemaManager};

const TABLE: RecordTable = RecordTable {
    name: "lives",
    // The server, and which of its lives.
    key: ("id", 47),
    texts: &[("project_id", 255), ("flavor", 255)],
    // `created_at` is when it began.
    times: &["created_at", "ended_at"],
    // Each ends with what lists are sorted by.
    indexes: &[
        ("lives_by_time", &["created_at", "id"]),
        ("lives_by_project", &["project_id", "created_at", "id"]),
        ("lives_by_flavor", &["flavor", "created_at", "id"]),
        ("lives_by_end", &["ended_at"]),
    ],
};

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
        TABLE.create(manager).await
    }
}
