//! Several schedulers on one database.

use crate::databases::{TestDb, at};
use crate::records::*;
use ebbtide_model::Seconds;
use ebbtide_model::record::Change;
use ebbtide_store::{Store, StoreError};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use uuid::Uuid;

on_every_database![
    what_one_scheduler_commits_the_next_turn_of_another_shows,
    who_begins_a_turn_waits_for_the_one_before,
    a_turn_that_is_given_back_leaves_nothing,
    commits_of_many_are_numbered_without_gaps_and_everybody_reads_the_same,
    who_is_too_far_behind_is_told_to_read_everything,
    a_turn_knows_who_is_on_duty,
    a_turn_whose_holder_stands_still_is_ended,
    a_large_commit_comes_back_in_one_piece,
    news_of_everything_come_back_as_they_went_in,
];

/// Each is another one.
fn token() -> Uuid {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    Uuid::from_u128(NEXT.fetch_add(1, Ordering::Relaxed).into())
}

async fn commit(store: &Store, seen: i64, changes: &[Change]) -> i64 {
    let turn = store.begin_write(seen, None).await.unwrap();
    turn.commit(at(1), token(), changes).await.unwrap()
}

async fn what_one_scheduler_commits_the_next_turn_of_another_shows(db: TestDb) {
    let (first, second) = (db.open().await, db.open().await);
    if !first.is_shared() {
        return one_only(&first).await;
    }
    let (_, seen) = second.load_all(at(0)).await.unwrap();
    let number = commit(&first, seen, &[put_server(server(1))]).await;
    assert_eq!(number, seen + 1);
    let turn = second.begin_write(seen, None).await.unwrap();
    assert_eq!(turn.head(), number);
    assert_eq!(turn.news().len(), 1);
    assert_eq!(turn.news()[0].changes, [put_server(server(1))]);
    turn.give_back().await;
    assert_eq!(second.news(seen).await.unwrap()[0].number, number);
    assert_eq!(second.news(number).await.unwrap(), []);
}

/// SQLite has one active scheduler: a turn without the lease writes nothing.
async fn one_only(store: &Store) {
    let turn = store.begin_write(0, None).await.unwrap();
    let refused = turn.commit(at(1), token(), &[put_server(server(1))]).await;
    assert_eq!(refused.unwrap_err().code(), "EB-STORE-004");
    let lease = store.acquire_lease("a", at(0), Seconds(9)).await.unwrap();
    let turn = store.begin_write(0, Some(&lease)).await.unwrap();
    assert!(turn.on_duty());
    turn.commit(at(1), token(), &[put_server(server(1))])
        .await
        .unwrap();
    assert_eq!(store.load(at(0)).await.unwrap().servers, [server(1)]);
    assert_eq!(store.news(0).await.unwrap(), []);
}

async fn who_begins_a_turn_waits_for_the_one_before(db: TestDb) {
    let (first, second) = (db.open().await, db.open().await);
    if !first.is_shared() {
        return;
    }
    let (_, seen) = first.load_all(at(0)).await.unwrap();
    let turn = first.begin_write(seen, None).await.unwrap();
    let mut waiting = tokio::task::JoinSet::new();
    waiting.spawn(async move { second.begin_write(seen, None).await.unwrap().head() });
    let early = tokio::time::timeout(Duration::from_millis(300), waiting.join_next());
    assert!(early.await.is_err(), "two turns at the same time");
    let number = turn.commit(at(1), token(), &[put_server(server(1))]).await;
    let head = waiting.join_next().await.unwrap().unwrap();
    assert_eq!(head, number.unwrap());
}

async fn a_turn_that_is_given_back_leaves_nothing(db: TestDb) {
    let store = db.open().await;
    if !store.is_shared() {
        return;
    }
    let (_, seen) = store.load_all(at(0)).await.unwrap();
    store
        .begin_write(seen, None)
        .await
        .unwrap()
        .give_back()
        .await;
    drop(store.begin_write(seen, None).await.unwrap());
    let turn = store.begin_write(seen, None).await.unwrap();
    assert_eq!(turn.head(), seen);
    turn.give_back().await;
}

async fn commits_of_many_are_numbered_without_gaps_and_everybody_reads_the_same(db: TestDb) {
    let watcher = db.open().await;
    if !watcher.is_shared() {
        return;
    }
    let (_, begin) = watcher.load_all(at(0)).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for scheduler in 0..4_u64 {
        let store = Arc::new(db.open().await);
        tasks.spawn(async move {
            let mut seen = begin;
            let mut read = Vec::new();
            for n in 0..25_u64 {
                let turn = store.begin_write(seen, None).await.unwrap();
                read.extend(turn.news().iter().map(|news| news.number));
                let id = 1000 * (scheduler + 1) + n;
                let changes = [put_server(server(id))];
                seen = turn.commit(at(1), token(), &changes).await.unwrap();
                read.push(seen);
            }
            read
        });
    }
    for read in tasks.join_all().await {
        let expected: Vec<i64> = (begin + 1..=*read.last().unwrap()).collect();
        assert_eq!(read, expected);
    }
    let news = watcher.news(begin).await.unwrap();
    assert_eq!(news.len(), 100);
    assert_eq!(watcher.load(at(0)).await.unwrap().servers.len(), 100);
}

async fn who_is_too_far_behind_is_told_to_read_everything(db: TestDb) {
    let store = db.open().await;
    if !store.is_shared() {
        return;
    }
    let (_, begin) = store.load_all(at(0)).await.unwrap();
    let mut seen = begin;
    for n in 0..3 {
        seen = commit(&store, seen, &[put_server(server(n))]).await;
    }
    assert_eq!(store.trim_log(at(1)).await.unwrap(), 0);
    assert_eq!(store.trim_log(at(2)).await.unwrap(), 3);
    commit(&store, seen, &[put_server(server(9))]).await;
    for behind in [
        store.begin_write(begin, None).await.err(),
        store.news(begin).await.err(),
    ] {
        assert!(
            matches!(behind, Some(StoreError::Behind { .. })),
            "{behind:?}"
        );
    }
    let (snapshot, head) = store.load_all(at(0)).await.unwrap();
    assert_eq!((snapshot.servers.len(), head), (4, seen + 1));
}

async fn a_turn_knows_who_is_on_duty(db: TestDb) {
    let store = db.open().await;
    let (_, seen) = store.load_all(at(0)).await.unwrap();
    let old = store.acquire_lease("a", at(0), Seconds(5)).await.unwrap();
    let turn = store.begin_write(seen, Some(&old)).await.unwrap();
    assert!(turn.on_duty());
    turn.give_back().await;
    if !store.is_shared() {
        return;
    }
    let new = store.acquire_lease("b", at(6), Seconds(5)).await.unwrap();
    for (lease, on_duty) in [(Some(&old), false), (None, false), (Some(&new), true)] {
        let turn = store.begin_write(seen, lease).await.unwrap();
        assert_eq!(turn.on_duty(), on_duty);
        turn.give_back().await;
    }
}

async fn a_turn_whose_holder_stands_still_is_ended(db: TestDb) {
    let (stopped, other) = (db.open().await, db.open().await);
    if !stopped.is_shared() {
        return;
    }
    let (_, seen) = stopped.load_all(at(0)).await.unwrap();
    let held = stopped.begin_write(seen, None).await.unwrap();
    // The database ends the turn after some seconds. The waiting scheduler may have to try again.
    let mut tries = 0;
    let turn = loop {
        tries += 1;
        match other.begin_write(seen, None).await {
            Ok(turn) => break turn,
            Err(error) => assert!(error.is_retryable() && tries < 10, "{error}"),
        }
    };
    let number = turn.commit(at(1), token(), &[put_server(server(1))]).await;
    assert_eq!(number.unwrap(), seen + 1);
    // The stalled scheduler continues, and must not overwrite the other's changes.
    let late = held.commit(at(1), token(), &[put_server(server(2))]).await;
    assert!(late.is_err(), "{late:?}");
    assert_eq!(other.load(at(0)).await.unwrap().servers, [server(1)]);
}

async fn a_large_commit_comes_back_in_one_piece(db: TestDb) {
    let store = db.open().await;
    if !store.is_shared() {
        return;
    }
    let (_, seen) = store.load_all(at(0)).await.unwrap();
    let changes: Vec<Change> = (0..6000).map(|n| put_server(server(n))).collect();
    let number = commit(&store, seen, &changes).await;
    let news = store.news(seen).await.unwrap();
    assert_eq!((news.len(), news[0].number), (1, number));
    assert_eq!(news[0].changes, changes);
}

async fn news_of_everything_come_back_as_they_went_in(db: TestDb) {
    let store = db.open().await;
    if !store.is_shared() {
        return;
    }
    let (_, seen) = store.load_all(at(0)).await.unwrap();
    let all = everything();
    commit(&store, seen, &all).await;
    let news = store.news(seen).await.unwrap();
    let decisions = |c: &Change| matches!(c, Change::PutDecision(_));
    let kept: Vec<Change> = all.iter().filter(|c| !decisions(c)).cloned().collect();
    assert_eq!(news[0].changes, kept);
    let named = all.iter().filter(|c| decisions(c)).count();
    assert_eq!(news[0].decisions.len(), named);
}
