//! Databases and ledgers that were restored from a backup.

use crate::databases::{TestDb, at};
use crate::ledger::uuid;
use crate::records::*;
use ebbtide_model::Seconds;
use ebbtide_model::record::Change;
use ebbtide_store::StoreError;
use ebbtide_store::ledger::{
    Ledger, LedgerError, LedgerReconciliation, LostRow, NewRow, ReconciledRow, RowEnd, UpdateResult,
};
use serde_json::json;

on_every_database![
    a_mark_fences_the_scheduler_that_was_left_running,
    a_mark_moves_epoch_and_commits_ahead_of_all_that_was_there,
    a_mark_that_is_repeated_keeps_the_time_of_the_backup,
    a_mark_is_removed_by_a_commit_and_loaded_until_then,
    a_marked_ledger_supersedes_every_scheduler,
    a_reconciliation_is_written_with_the_end_of_the_mark_or_not_at_all,
    a_row_that_the_backup_does_not_have_is_an_orphan_of_no_scheduler,
];

const TTL: Seconds = Seconds(10);

async fn a_mark_fences_the_scheduler_that_was_left_running(db: TestDb) {
    let running = db.open().await;
    let lease = running.acquire_lease("a", at(0), TTL).await.unwrap();
    db.open().await.mark_restored(at(1)).await.unwrap();
    let written = running
        .commit(&lease, &[Change::PutHost(Box::new(host(1)))])
        .await;
    assert!(
        matches!(written, Err(StoreError::Fenced { .. })),
        "{written:?}"
    );
    let snapshot = running.load(at(1)).await.unwrap();
    assert_eq!(snapshot.hosts, [], "nothing of it is there");
}

async fn a_mark_moves_epoch_and_commits_ahead_of_all_that_was_there(db: TestDb) {
    let store = db.open().await;
    let before = store.acquire_lease("a", at(0), TTL).await.unwrap();
    store.mark_restored(at(1)).await.unwrap();
    // Free at once, although the lease had not expired.
    let after = store.acquire_lease("b", at(1), TTL).await.unwrap();
    assert!(after.epoch() > before.epoch());
    assert!(after.epoch() > at(1).as_millis() / 1000);
}

async fn a_mark_that_is_repeated_keeps_the_time_of_the_backup(db: TestDb) {
    let store = db.open().await;
    let lease = store.acquire_lease("a", at(0), TTL).await.unwrap();
    let mut heard = host(1);
    heard.last_seen = Some(at(3));
    let put = [Change::PutHost(Box::new(heard))];
    store.commit(&lease, &put).await.unwrap();
    let first = store.mark_restored(at(5)).await.unwrap();
    assert_eq!((first.at, first.backup_at), (at(5), Some(at(3))));
    let again = store.mark_restored(at(9)).await.unwrap();
    assert_eq!((again.at, again.backup_at), (at(9), Some(at(3))));
}

async fn a_mark_is_removed_by_a_commit_and_loaded_until_then(db: TestDb) {
    let store = db.open().await;
    assert_eq!(store.load(at(0)).await.unwrap().restored, None);
    let mark = store.mark_restored(at(1)).await.unwrap();
    let other = db.open().await;
    assert_eq!(other.load(at(1)).await.unwrap().restored, Some(mark));
    let lease = other.acquire_lease("a", at(1), TTL).await.unwrap();
    let done = [Change::DeleteRestoreMark];
    other.commit(&lease, &done).await.unwrap();
    assert_eq!(store.load(at(1)).await.unwrap().restored, None);
}

async fn a_marked_ledger_supersedes_every_scheduler(db: TestDb) {
    let ledger = Ledger::open(&db.config()).await.unwrap();
    let owner = ledger.register("a").await.unwrap();
    assert_eq!(ledger.restore_mark().await.unwrap(), None);
    let mark = ledger.mark_restored().await.unwrap();
    assert!(mark.backup_at.is_some(), "its heartbeat tells the time");
    let beat = ledger.beat(&owner).await;
    assert!(
        matches!(beat, Err(LedgerError::Superseded { .. })),
        "{beat:?}"
    );
    let seen = ledger.owners().await.unwrap();
    assert!(seen[0].silent_millis > 1_000_000, "{seen:?}");
    let again = ledger.mark_restored().await.unwrap();
    assert_eq!(again.backup_at, mark.backup_at);
    assert!(again.at >= mark.at);
    assert_eq!(ledger.restore_mark().await.unwrap(), Some(again));
    let next = ledger.register("a").await.unwrap();
    assert!(owner.is_superseded_by(&next));
    ledger.beat(&next).await.unwrap();
}

async fn a_reconciliation_is_written_with_the_end_of_the_mark_or_not_at_all(db: TestDb) {
    let ledger = Ledger::open(&db.config()).await.unwrap();
    let owner = ledger.register("a").await.unwrap();
    for n in [1, 2] {
        let row = NewRow {
            id: uuid(n),
            request_id: format!("req-{n}"),
            request_key: None,
            state: "planned".to_owned(),
            owner: owner.clone(),
            newcomers: vec![uuid(n + 10)],
            victims: vec![uuid(n + 20)],
            document: json!({"n": n}),
        };
        ledger.insert(&row).await.unwrap();
    }
    let reclaimed = json!({"owner": "batch"});
    assert!(ledger.put_reclaim("h1", None, &reclaimed).await.unwrap());
    let mark = ledger.mark_restored().await.unwrap();
    let row = |n, version| ReconciledRow {
        id: uuid(n),
        version,
        state: "done".to_owned(),
        document: json!({"n": n, "over": true}),
    };
    let mut work = LedgerReconciliation {
        rows: vec![row(1, 1), row(2, 7)],
        lost: vec![lost(3, 23)],
        ended_reclaims: vec![("h1".to_owned(), 1)],
    };
    let refused = ledger.end_restore(mark, &work).await;
    assert_eq!(refused, Err(LedgerError::RestoreMoved));
    let first = ledger.row(uuid(1)).await.unwrap().unwrap();
    assert_eq!((first.version, first.state.as_str()), (1, "planned"));
    assert_eq!(ledger.row(uuid(3)).await.unwrap(), None);
    assert_eq!(ledger.restore_mark().await.unwrap(), Some(mark));
    work.rows[1].version = 1;
    ledger.end_restore(mark, &work).await.unwrap();
    for n in [1, 2] {
        let row = ledger.row(uuid(n)).await.unwrap().unwrap();
        assert_eq!((row.version, row.state.as_str()), (2, "done"));
        assert_eq!(row.document, json!({"n": n, "over": true}));
        let next = ledger.finish(row.id, 2, "done", &row.document, RowEnd::Answers);
        assert_eq!(next.await.unwrap(), UpdateResult::Updated(3));
    }
    assert_eq!(ledger.reclaims().await.unwrap(), []);
    assert_eq!(ledger.restore_mark().await.unwrap(), None);
    let twice = ledger.end_restore(mark, &work).await;
    assert_eq!(twice, Err(LedgerError::RestoreMoved));
}

fn lost(n: u128, victim: u128) -> LostRow {
    LostRow {
        id: uuid(n),
        request_id: "lost preemption on h1".to_owned(),
        state: "withdrawing".to_owned(),
        newcomers: vec![uuid(31), uuid(30)],
        victims: vec![uuid(victim)],
        document: json!({"n": 3}),
    }
}

async fn a_row_that_the_backup_does_not_have_is_an_orphan_of_no_scheduler(db: TestDb) {
    let ledger = Ledger::open(&db.config()).await.unwrap();
    let mark = ledger.mark_restored().await.unwrap();
    let work = |n, victim| LedgerReconciliation {
        lost: vec![lost(n, victim)],
        ..LedgerReconciliation::default()
    };
    ledger.end_restore(mark, &work(3, 23)).await.unwrap();
    let row = ledger.row(uuid(3)).await.unwrap().unwrap();
    assert_eq!((row.version, row.state.as_str()), (1, "withdrawing"));
    assert_eq!(row.document, json!({"n": 3}));
    assert_eq!(row.victims, [uuid(23)]);
    let mut newcomers = row.newcomers;
    newcomers.sort_unstable();
    assert_eq!(newcomers, [uuid(30), uuid(31)]);
    // Every scheduler that looks finds no owner that lives, whatever it is called itself.
    let owner = ledger.register("reconcile").await.unwrap();
    assert_ne!(owner, row.owner);
    assert!(!owner.is_superseded_by(&row.owner));
    let adopted = ledger.adopt(row.id, 1, &owner, &row.document).await;
    assert_eq!(adopted.unwrap(), UpdateResult::Updated(2));
    // Its victim is in this row now.
    let mark = ledger.mark_restored().await.unwrap();
    let refused = ledger.end_restore(mark, &work(4, 23)).await;
    assert_eq!(refused, Err(LedgerError::RestoreMoved));
    assert_eq!(ledger.row(uuid(4)).await.unwrap(), None);
    assert_eq!(ledger.restore_mark().await.unwrap(), Some(mark));
}
