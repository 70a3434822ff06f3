//! Several at once: readers, committers, purgers.

use crate::databases::{TestDb, at};
use crate::records::*;
use ebbtide_model::record::Change;
use ebbtide_model::{Evacuation, Server};
use ebbtide_store::{ServerFilter, Store};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::task::JoinSet;

on_every_database![
    readers_see_whole_commits_only_and_never_wait_for_the_writer,
    commits_of_several_tasks_all_arrive,
    a_purge_beside_commits_disturbs_neither,
];

/// A server and an evacuation that carry the same number.
fn pair(round: u64) -> [Change; 2] {
    let server = Server {
        name: format!("round-{round}"),
        ..server(1)
    };
    let evacuation = Evacuation {
        attempts: round as u32,
        ..evacuation(1)
    };
    [put_server(server), put_evacuation(evacuation)]
}

async fn readers_see_whole_commits_only_and_never_wait_for_the_writer(db: TestDb) {
    const ROUNDS: u64 = 150;
    const ROUNDS_AT_MOST: u64 = 20_000;
    const READS: u64 = 12;
    let (store, lease) = db.open_with_lease().await;
    store.commit(&lease, &pair(0)).await.unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let reads = Arc::new(AtomicU64::new(0));
    let mut readers = JoinSet::new();
    for _ in 0..3 {
        let (store, done, reads) = (store.clone(), Arc::clone(&done), Arc::clone(&reads));
        readers.spawn(async move {
            let mut last = 0;
            while !done.load(Ordering::Relaxed) {
                let snapshot = store.load(at(0)).await.unwrap();
                let round = snapshot.evacuations[0].attempts;
                assert_eq!(snapshot.servers[0].name, format!("round-{round}"));
                assert!(round >= last, "time ran backwards: {round} after {last}");
                last = round;
                reads.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    // A busy machine may give the readers their turn late; what counts is that they go on beside
    // the writer.
    let mut round = 0;
    while round < ROUNDS || (reads.load(Ordering::Relaxed) < READS && round < ROUNDS_AT_MOST) {
        round += 1;
        store.commit(&lease, &pair(round)).await.unwrap();
    }
    let reads = reads.load(Ordering::Relaxed);
    done.store(true, Ordering::Relaxed);
    readers.join_all().await;
    assert!(
        reads >= READS,
        "the readers stood still: {reads} reads in {round} commits"
    );
}

async fn commits_of_several_tasks_all_arrive(db: TestDb) {
    let (store, lease) = db.open_with_lease().await;
    let mut tasks = JoinSet::new();
    for task in 0..8_u64 {
        let (store, lease) = (store.clone(), lease.clone());
        tasks.spawn(async move {
            for n in 0..10 {
                // All tasks write one common record, in alternating order, which provokes
                // deadlocks.
                let mut changes =
                    vec![put_server(server(task * 100 + n)), put_server(server(9999))];
                if task % 2 == 0 {
                    changes.reverse();
                }
                store.commit(&lease, &changes).await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    let count = store.servers(&ServerFilter::default()).await.unwrap().len();
    assert_eq!(count, 81);
}

async fn a_purge_beside_commits_disturbs_neither(db: TestDb) {
    let (store, lease) = db.open_with_lease().await;
    let committed = Arc::new(AtomicU64::new(0));
    let purger = {
        let (store, committed) = (store.clone(), Arc::clone(&committed));
        async move {
            let mut purged = 0;
            while committed.load(Ordering::Relaxed) < 60 || purged < 60 {
                purged += store.purge(at(1000), 7).await.unwrap().servers;
                tokio::task::yield_now().await;
            }
            purged
        }
    };
    let committer = async {
        for n in 0..60 {
            let changes = [put_server(gone(n, 5)), put_server(server(n + 1000))];
            store.commit(&lease, &changes).await.unwrap();
            committed.fetch_add(1, Ordering::Relaxed);
        }
    };
    let ((), purged) = tokio::join!(committer, purger);
    assert_eq!(purged, 60);
    assert_eq!(left(&store).await, 60);
}

async fn left(store: &Store) -> usize {
    let filter = ServerFilter {
        include_gone: true,
        ..ServerFilter::default()
    };
    store.servers(&filter).await.unwrap().len()
}
