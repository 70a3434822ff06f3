//! Prices of preemptible capacity, as they were published.

use super::RecordTable;
use sea_orm::DbErr;
use sea_orm_migration::{MigrationName, MigrationTrait, SchemaManager};

const TABLE: RecordTable = RecordTable {
    name: "prices",
    // The flavor, and the time in milliseconds.
    key: ("id", 57),
    texts: &[("flavor_id", 36), ("flavor", 255)],
    // From when it counts.
    times: &["created_at"],
    indexes: &[
        ("prices_by_time", &["created_at", "id"]),
        ("prices_by_flavor", &["flavor", "created_at", "id"]),
        // The last one of each flavor.
        ("prices_by_flavor_id", &["flavor_id", "created_at"]),
    ],
};

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
        TABLE.create(manager).await
    }
}
