//! What can happen to a file.

use crate::databases::{TestDb, at};
use crate::records::*;
use ebbtide_model::record::Change;
use ebbtide_model::{Seconds, Server};
use ebbtide_store::{Store, StoreConfig};
use sea_orm::{ConnectionTrait, TransactionTrait};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

#[tokio::test]
async fn a_file_locked_by_another_writer_is_reported_after_the_timeout_and_readers_go_on() {
    let db = TestDb::sqlite().await;
    let mut config = db.config();
    config.lock_timeout = Duration::from_millis(300);
    let store = Store::open(&config).await.unwrap();
    let lease = store
        .acquire_lease("test", at(0), Seconds(60))
        .await
        .unwrap();
    store
        .commit(&lease, &[put_server(server(1))])
        .await
        .unwrap();
    let other = db.raw().await;
    let lock = other.begin().await.unwrap();
    lock.execute_unprepared("UPDATE servers SET name = 'taken'")
        .await
        .unwrap();
    let patience = Duration::from_secs(30);
    let changes = [put_server(server(2))];
    let error = tokio::time::timeout(patience, store.commit(&lease, &changes));
    let error = error.await.expect("an answer in time").unwrap_err();
    assert_eq!(error.code(), "EB-STORE-002", "{error}");
    assert!(error.is_retryable());
    // Readers see the last commit, not the other's open transaction.
    assert_eq!(store.load(at(0)).await.unwrap().servers, [server(1)]);
    lock.rollback().await.unwrap();
    store
        .commit(&lease, &[put_server(server(2))])
        .await
        .unwrap();
    assert_eq!(store.load(at(0)).await.unwrap().servers.len(), 2);
}

#[tokio::test]
async fn a_full_disk_is_reported_and_what_was_committed_is_intact() {
    let db = TestDb::sqlite().await;
    let mut config = db.config();
    // 400 KiB, a good part of it the empty schema.
    config.sqlite_max_pages = Some(100);
    let store = Store::open(&config).await.unwrap();
    let lease = store
        .acquire_lease("test", at(0), Seconds(60))
        .await
        .unwrap();
    let mut committed: Vec<Server> = Vec::new();
    let error = loop {
        let n = committed.len() as u64;
        assert!(n < 1000, "the disk never became full");
        match store
            .commit(
                &lease,
                &[put_server(gone(n, 5)), put_decision(decision(n, &[], 3))],
            )
            .await
        {
            Ok(()) => committed.push(gone(n, 5)),
            Err(error) => break error,
        }
    };
    assert_eq!(error.code(), "EB-STORE-003", "{error}");
    assert!(error.is_retryable());
    assert!(
        committed.len() > 10,
        "full after {} commits",
        committed.len()
    );
    for (server, n) in committed.iter().zip(0..) {
        assert_eq!(
            store.server(server_id(n)).await.unwrap().as_ref(),
            Some(server)
        );
    }
    let n = committed.len() as u64;
    assert_eq!(store.server(server_id(n)).await.unwrap(), None);
    assert_eq!(store.decision(decision_id(n)).await.unwrap(), None);
    // After several such errors the connection must not be stuck in a transaction that never ends:
    // other connections must see later writes.
    for _ in 0..3 {
        let again = store
            .commit(
                &lease,
                &[put_server(gone(n, 5)), put_decision(decision(n, &[], 3))],
            )
            .await;
        assert_eq!(again.unwrap_err().code(), "EB-STORE-003");
    }
    // Purging makes room again, in the same process and without a restart.
    let purged = store.purge(at(1_000_000), u64::MAX).await.unwrap();
    assert_eq!(purged.servers, n);
    store
        .commit(&lease, &[put_server(server(n))])
        .await
        .unwrap();
    assert_eq!(store.load(at(0)).await.unwrap().servers, [server(n)]);
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notes.txt");
    let text = "These are my notes, and not a database.\n".repeat(100);
    std::fs::write(&path, &text).unwrap();
    let config = StoreConfig::new(&format!("sqlite:{}", path.display())).unwrap();
    let error = Store::open(&config).await.unwrap_err();
    assert_eq!(error.code(), "EB-STORE-008", "{error}");
    assert!(error.to_string().contains("notes.txt"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}

#[tokio::test]
async fn a_directory_that_cannot_be_made_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let path = file.join("sub/state.db");
    let config = StoreConfig::new(&format!("sqlite:{}", path.display())).unwrap();
    let error = Store::open(&config).await.unwrap_err();
    assert_eq!(error.code(), "EB-STORE-013", "{error}");
    assert!(error.to_string().contains("file/sub"), "{error}");
}

#[tokio::test]
async fn a_store_in_memory_does_all_that_a_file_does() {
    let config = StoreConfig::new("sqlite::memory:").unwrap();
    let store = Store::open(&config).await.unwrap();
    let lease = store
        .acquire_lease("test", at(0), Seconds(60))
        .await
        .unwrap();
    store.commit(&lease, &everything()).await.unwrap();
    assert_eq!(store.load(at(0)).await.unwrap().servers, [server(1)]);
    // Another one is another database.
    let other = Store::open(&config).await.unwrap();
    assert_eq!(other.load(at(0)).await.unwrap().servers, []);
}

/// The environment variable by which the test below makes a child of itself, and tells it the
/// database.
const CHILD: &str = "EBBTIDE_STORE_TEST_CHILD_DATABASE";

#[tokio::test]
async fn every_commit_before_a_kill_is_there_after_it() {
    if let Ok(url) = std::env::var(CHILD) {
        return commit_until_killed(&url).await;
    }
    let db = TestDb::sqlite().await;
    let mut confirmed = 0;
    for round in 0..3 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "sqlite::every_commit_before_a_kill_is_there_after_it",
                "--nocapture",
            ])
            .env(CHILD, &db.url)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let goal = confirmed + 40;
        while confirmed < goal {
            let line = lines.next().expect("a child that goes on").unwrap();
            if let Some((_, number)) = line.split_once("committed ") {
                confirmed = number.trim().parse().unwrap();
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let rest = lines.map_while(Result::ok);
        for number in rest.filter_map(|line| line.split_once("committed ")?.1.trim().parse().ok()) {
            confirmed = number;
        }
        let store = db.open().await;
        let snapshot = store.load(at(0)).await.unwrap();
        let count = snapshot.servers.len() as u64;
        // The last commit may have been written without being confirmed.
        assert!(
            (confirmed..=confirmed + 1).contains(&count),
            "{count} of {confirmed}, round {round}"
        );
        assert_eq!(
            snapshot.outbox.len() as u64,
            count,
            "half a commit was left"
        );
        confirmed = count;
        store.close().await;
    }
}

/// What the child does.
async fn commit_until_killed(url: &str) {
    let store = Store::open(&StoreConfig::new(url).unwrap()).await.unwrap();
    let lease = store
        .acquire_lease("child", at(0), Seconds(60))
        .await
        .unwrap();
    let mut n = store.load(at(0)).await.unwrap().servers.len() as u64;
    loop {
        n += 1;
        let changes = [put_server(server(n)), Change::Enqueue(message(n))];
        store.commit(&lease, &changes).await.unwrap();
        println!("committed {n}");
    }
}
