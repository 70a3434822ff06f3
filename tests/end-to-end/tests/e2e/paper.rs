//! The four tables of the preemptible-scheduler paper, through the running service with its agents.

use ebbtide_demo::story::{self, StoryWriter};
use ebbtide_engine::papers;
use ebbtide_integration_tests::{Database, Region, RegionOptions};
use ebbtide_model::Seconds;
use ebbtide_runtime::clock::now;

async fn table_agrees(number: u8, database: Database) {
    let region = Region::start(RegionOptions {
        database,
        ..RegionOptions::default()
    })
    .await
    .unwrap();
    let table = papers::tables()
        .into_iter()
        .find(|t| t.id.starts_with(&format!("table{number}_")))
        .unwrap();
    let mut told = Vec::new();
    let mut teller = StoryWriter::new(&mut told, now);
    let ending = story::tell(&region.endpoint().unwrap(), &table, Seconds(1), &mut teller).await;
    let told = String::from_utf8_lossy(&told).into_owned();
    let ending =
        ending.unwrap_or_else(|error| panic!("{error:#}\n{told}\n{}", region.scheduler_log()));
    let mut expected = table.expected_victims.clone();
    expected.sort();
    assert_eq!(ending.victims, expected, "{told}");
    assert_eq!(ending.host, table.expected_host, "{told}");
    super::kit::nothing_is_overcommitted(&region).await;
}

#[tokio::test]
async fn table_3_same_size_1_loses_bp1() {
    table_agrees(3, Database::Sqlite).await;
}

#[tokio::test]
async fn table_4_same_size_2_loses_cp1() {
    table_agrees(4, Database::MariaDb).await;
}

#[tokio::test]
async fn table_5_mixed_size_1_loses_ap2_ap3_and_ap4() {
    table_agrees(5, Database::Postgres).await;
}

#[tokio::test]
async fn table_6_mixed_size_2_loses_bp3() {
    table_agrees(6, Database::Sqlite).await;
}
