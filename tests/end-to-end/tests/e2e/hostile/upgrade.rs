//! An old program on a newer database: it says so, ends, and has changed nothing.

use ebbtide_harness::ProcessCommand;
use ebbtide_integration_tests::region::PATIENCE;
use ebbtide_integration_tests::{Database, Region, RegionOptions, bin};
use std::path::{Path, PathBuf};

/// What the newer program has done: a migration that this one does not know.
const NEWER: &str =
    "INSERT INTO seaql_migrations (version, applied_at) VALUES ('m29990101_000001_newer', 1)";

/// Statements for the database of a region; what it holds, as a text, comes back.
async fn on_file(file: &Path, statement: &str) -> String {
    const PROGRAM: &str = "import sqlite3, sys\n\
        c = sqlite3.connect(sys.argv[1], timeout=60)\nc.execute(sys.argv[2]); c.commit()\n\
        print('\\n'.join(c.iterdump()))";
    let log = file.with_extension("dump");
    let _ = std::fs::remove_file(&log);
    let process = ProcessCommand::new("dump", "/usr/bin/python3")
        .args(["-c", PROGRAM])
        .arg(file)
        .arg(statement)
        .spawn(&log)
        .unwrap();
    let status = process.wait_exit(PATIENCE).await.unwrap();
    assert!(status.success(), "{}", process.log_tail());
    std::fs::read_to_string(&log).unwrap()
}

#[tokio::test]
async fn an_old_program_on_a_newer_database_ends_with_the_reason_and_changes_nothing() {
    let options = RegionOptions {
        database: Database::Sqlite,
        ..RegionOptions::default()
    };
    let mut region = Region::start(options).await.unwrap();
    crate::kit::fill(&region, 1).await;
    region.stop_scheduler().await.unwrap();
    let file: PathBuf = region.dir().join("region.db");
    let before = on_file(&file, NEWER).await;
    assert!(before.contains("m29990101_000001_newer"), "{before}");
    let log = region.dir().join("old.log");
    let process = ProcessCommand::new("old scheduler", bin("ebbtide-scheduler"))
        .arg("--config")
        .arg(region.scheduler_config().unwrap())
        .spawn(&log)
        .unwrap();
    let status = process.wait_exit(PATIENCE).await.unwrap();
    let said = process.log_tail();
    assert!(!status.success(), "{said}");
    for words in ["EB-STORE-006", "newer program", "m29990101_000001_newer"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert_eq!(on_file(&file, "SELECT 1").await, before);
    // The newer one, or this one after a step back, goes on where it was.
    on_file(
        &file,
        "DELETE FROM seaql_migrations WHERE version = 'm29990101_000001_newer'",
    )
    .await;
    region.start_scheduler().await.unwrap();
    region.wait_for_hosts_up().await.unwrap();
    crate::kit::nothing_is_overcommitted(&region).await;
}
