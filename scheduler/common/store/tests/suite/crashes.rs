//! A database server that is killed and comes back.

use crate::databases::at;
use crate::records::{message, put_server, server as server_record, server_id};
use ebbtide_harness::{MariaDb, Postgres};
use ebbtide_model::record::Change;
use ebbtide_model::{Seconds, ServerId};
use ebbtide_store::{Lease, Store, StoreConfig};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

fn config(url: &str) -> StoreConfig {
    let mut config = StoreConfig::new(url).unwrap();
    config.connect_timeout = Duration::from_secs(2);
    config
}

/// Commits one server and one message after the other until `stop` is set, and reports its
/// progress. A commit that fails must report that the database was unavailable, and is repeated.
async fn commit_and_count(
    store: Store,
    lease: Lease,
    count: Arc<watch::Sender<u64>>,
    stop: watch::Receiver<bool>,
) -> u32 {
    let mut failures = 0;
    let mut n = 0;
    while !*stop.borrow() {
        let changes = [put_server(server_record(n)), Change::Enqueue(message(n))];
        match store.commit(&lease, &changes).await {
            Ok(()) => {
                n += 1;
                count.send_replace(n);
            }
            Err(error) => {
                assert_eq!(error.code(), "EB-STORE-001", "{error}");
                failures += 1;
                assert!(failures < 1000, "the store does not come back: {error}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
    failures
}

/// A server that can be killed.
macro_rules! survives_a_killed_server {
    ($test:ident, $server:ty) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $test() {
            let patience = Duration::from_secs(120);
            let mut server = <$server>::start().await.unwrap();
            let store = Store::open(&config(&server.url())).await.unwrap();
            let lease = store
                .acquire_lease("test", at(0), Seconds(60))
                .await
                .unwrap();
            let (count, mut counted) = watch::channel(0);
            let (stop, stopped) = watch::channel(false);
            let count = Arc::new(count);
            let mut committer = JoinSet::new();
            committer.spawn(commit_and_count(store.clone(), lease, count, stopped));
            for _ in 0..3 {
                let goal = *counted.borrow() + 50;
                let reached = counted.wait_for(|n| *n >= goal);
                tokio::time::timeout(patience, reached)
                    .await
                    .expect("commits go on")
                    .unwrap();
                server.kill();
                let gone = store.ping().await.unwrap_err();
                assert_eq!(gone.code(), "EB-STORE-001", "{gone}");
                server.restart().await.unwrap();
            }
            let goal = *counted.borrow() + 50;
            let reached = counted.wait_for(|n| *n >= goal);
            tokio::time::timeout(patience, reached)
                .await
                .expect("commits go on")
                .unwrap();
            stop.send_replace(true);
            let failures: u32 = committer.join_all().await.iter().sum();
            assert!(failures > 0, "no commit noticed that the server was gone");
            let confirmed = *counted.borrow();
            let snapshot = store.load(at(0)).await.unwrap();
            let found: BTreeSet<ServerId> = snapshot.servers.iter().map(|s| s.id).collect();
            for n in 0..confirmed {
                assert!(
                    found.contains(&server_id(n)),
                    "{n} of {confirmed} was confirmed and is lost"
                );
            }
            assert_eq!(
                snapshot.outbox.len(),
                snapshot.servers.len(),
                "half a commit was left"
            );
        }
    };
}

survives_a_killed_server!(
    every_commit_that_mariadb_confirmed_survives_its_death_and_the_store_reconnects,
    MariaDb
);
survives_a_killed_server!(
    every_commit_that_postgres_confirmed_survives_its_death_and_the_store_reconnects,
    Postgres
);

async fn a_store_cannot_be_opened_while_the_server_is_down(url: &str) {
    let error = Store::open(&config(url)).await.unwrap_err();
    assert_eq!(error.code(), "EB-STORE-001", "{error}");
}

#[tokio::test]
async fn mariadb_that_is_down_is_reported_and_found_again_when_it_is_up() {
    let mut server = MariaDb::start().await.unwrap();
    server.kill();
    a_store_cannot_be_opened_while_the_server_is_down(&server.url()).await;
    server.restart().await.unwrap();
    Store::open(&config(&server.url()))
        .await
        .unwrap()
        .ping()
        .await
        .unwrap();
}

#[tokio::test]
async fn postgres_that_is_down_is_reported_and_found_again_when_it_is_up() {
    let mut server = Postgres::start().await.unwrap();
    server.kill();
    a_store_cannot_be_opened_while_the_server_is_down(&server.url()).await;
    server.restart().await.unwrap();
    Store::open(&config(&server.url()))
        .await
        .unwrap()
        .ping()
        .await
        .unwrap();
}

/// A server that runs but no longer answers, as after a network cut or while the machine swaps.
macro_rules! a_silent_server_is_given_up {
    ($test:ident, $server:ty) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $test() {
            let server = <$server>::start().await.unwrap();
            let mut config = config(&server.url());
            config.operation_timeout = Duration::from_millis(500);
            let store = Store::open(&config).await.unwrap();
            let lease = store
                .acquire_lease("test", at(0), Seconds(60))
                .await
                .unwrap();
            store
                .commit(&lease, &[put_server(server_record(1))])
                .await
                .unwrap();
            server.freeze().unwrap();
            let patience = Duration::from_secs(60);
            let changes = [put_server(server_record(2))];
            for _ in 0..4 {
                let error = tokio::time::timeout(patience, store.commit(&lease, &changes)).await;
                let error = error.expect("an answer in time").unwrap_err();
                assert_eq!(error.code(), "EB-STORE-001", "{error}");
                let error = tokio::time::timeout(patience, store.load(at(0))).await;
                let error = error.expect("an answer in time").unwrap_err();
                assert_eq!(error.code(), "EB-STORE-001", "{error}");
            }
            server.thaw().unwrap();
            let again = async {
                while let Err(error) = store.commit(&lease, &changes).await {
                    assert_eq!(error.code(), "EB-STORE-001", "{error}");
                }
            };
            tokio::time::timeout(patience, again)
                .await
                .expect("the store comes back");
            assert_eq!(store.load(at(0)).await.unwrap().servers.len(), 2);
        }
    };
}

a_silent_server_is_given_up!(
    mariadb_that_falls_silent_is_given_up_and_used_again,
    MariaDb
);
a_silent_server_is_given_up!(
    postgres_that_falls_silent_is_given_up_and_used_again,
    Postgres
);
