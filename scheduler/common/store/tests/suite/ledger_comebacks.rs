//! Servers that come back and reclaimed hosts, in the ledger.

use crate::databases::TestDb;
use crate::ledger::uuid;
use ebbtide_store::ledger::{ComebackRow, Ledger};
use serde_json::json;
use tokio::task::JoinSet;

async fn open(db: &TestDb) -> Ledger {
    Ledger::open(&db.config()).await.unwrap()
}

async fn a_row_is_written_changed_and_deleted_by_the_version_that_is_known(db: TestDb) {
    let (first, second) = (open(&db).await, open(&db).await);
    let (server, one, two) = (uuid(7), json!({"n": 1}), json!({"n": 2}));
    assert_eq!(first.comeback(server).await.unwrap(), None);
    assert!(first.put_comeback(server, None, &one).await.unwrap());
    assert!(!second.put_comeback(server, None, &two).await.unwrap());
    let row = |version, document: &serde_json::Value| ComebackRow {
        server,
        version,
        document: document.clone(),
    };
    let known = second.comeback(server).await.unwrap();
    assert_eq!(known, Some(row(1, &one)));
    assert!(second.put_comeback(server, Some(1), &two).await.unwrap());
    assert!(!first.put_comeback(server, Some(1), &one).await.unwrap());
    assert_eq!(first.comebacks().await.unwrap(), [row(2, &two)]);
    assert!(!first.delete_comeback(server, 1).await.unwrap());
    assert!(first.delete_comeback(server, 2).await.unwrap());
    assert!(!second.put_comeback(server, Some(2), &two).await.unwrap());
    assert_eq!(first.comebacks().await.unwrap(), []);
}

async fn of_schedulers_at_the_same_moment_one_writes(db: TestDb) {
    let server = uuid(7);
    let mut tasks = JoinSet::new();
    for scheduler in 0..4 {
        let ledger = open(&db).await;
        tasks.spawn(async move {
            let mut written = 0;
            for known in [None, Some(1), Some(2)] {
                let document = json!({"by": scheduler});
                let put = ledger.put_comeback(server, known, &document).await;
                written += u32::from(put.unwrap());
            }
            written
        });
    }
    let written: u32 = tasks.join_all().await.into_iter().sum();
    let row = open(&db).await.comeback(server).await.unwrap().unwrap();
    assert_eq!(i64::from(written), row.version);
}

async fn a_reclaim_is_written_by_the_version_that_is_known(db: TestDb) {
    let (first, second) = (open(&db).await, open(&db).await);
    let (one, two) = (json!({"n": 1}), json!({"n": 2}));
    assert!(first.put_reclaim("node1", None, &one).await.unwrap());
    assert!(!second.put_reclaim("node1", None, &two).await.unwrap());
    assert!(second.put_reclaim("node1", Some(1), &two).await.unwrap());
    let row = first.reclaim("node1").await.unwrap().unwrap();
    assert_eq!((row.version, &row.document), (2, &two));
    assert_eq!(first.reclaims().await.unwrap(), [row]);
    assert_eq!(first.reclaim("NODE1").await.unwrap(), None);
    assert!(!first.delete_reclaim("node1", 1).await.unwrap());
    assert!(first.delete_reclaim("node1", 2).await.unwrap());
    assert_eq!(first.reclaims().await.unwrap(), []);
    first.put_reclaim("", None, &one).await.unwrap_err();
}

on_every_database!(
    a_reclaim_is_written_by_the_version_that_is_known,
    a_row_is_written_changed_and_deleted_by_the_version_that_is_known,
    of_schedulers_at_the_same_moment_one_writes,
);
