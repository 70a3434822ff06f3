//! The ledger that several schedulers share, while its database server is killed.

use crate::ledger::{one, row, uuid};
use ebbtide_harness::{MariaDb, Postgres};
use ebbtide_store::StoreConfig;
use ebbtide_store::ledger::{Ledger, LedgerError, RowEnd, UpdateResult};
use serde_json::json;
use std::time::Duration;
use tokio::task::JoinSet;

/// Two schedulers move rows on while their database server is killed again and again: what was
/// confirmed is there, and no row ever has a victim of another one.
macro_rules! survives_a_killed_server {
    ($test:ident, $server:ty) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $test() {
            let mut server = <$server>::start().await.unwrap();
            let mut config = StoreConfig::new(&server.url()).unwrap();
            config.connect_timeout = Duration::from_secs(2);
            let probe = Ledger::open(&config).await.unwrap();
            let (progress, mut watched) = tokio::sync::watch::channel(0u32);
            let progress = std::sync::Arc::new(progress);
            let (stop, stopped) = tokio::sync::watch::channel(false);
            let mut tasks = JoinSet::new();
            for scheduler in 0..2u128 {
                let ledger = Ledger::open(&config).await.unwrap();
                let (progress, stopped) = (progress.clone(), stopped.clone());
                // Before the first progress, and so before the server is killed for the first time.
                let owner = ledger.register(&format!("s{scheduler}")).await.unwrap();
                tasks.spawn(async move {
                    let mut confirmed = Vec::new();
                    let mut failures = 0;
                    for n in 1.. {
                        if *stopped.borrow() {
                            break;
                        }
                        let id = n * 2 + scheduler;
                        // Both want the victims 1 to 3.
                        let new = row(id, &owner, &[1 + n % 3]);
                        let done = async {
                            ledger.insert(&new).await?;
                            ledger
                                .finish(uuid(id), 1, "done", &json!(1), RowEnd::Answers)
                                .await
                        };
                        match done.await {
                            Ok(UpdateResult::Updated(2)) => {
                                confirmed.push(id);
                                progress.send_modify(|count| *count += 1);
                            }
                            Err(LedgerError::VictimTaken { .. }) => {}
                            Ok(other) => panic!("row {id} of one scheduler: {other:?}"),
                            Err(error) => {
                                assert!(error.is_retryable(), "{error}");
                                failures += 1;
                                assert!(failures < 2000, "the ledger does not come back: {error}");
                                // Brings the row to its end, as a restarted scheduler does,
                                // whatever happened to it.
                                while let Err(error) = tidy(&ledger, id).await {
                                    assert!(error.is_retryable(), "{error}");
                                    tokio::time::sleep(Duration::from_millis(20)).await;
                                }
                            }
                        }
                    }
                    confirmed
                });
            }
            for _ in 0..3 {
                let goal = *watched.borrow() + 20;
                let reached = watched.wait_for(|count| *count >= goal);
                tokio::time::timeout(Duration::from_secs(120), reached)
                    .await
                    .expect("rows go on")
                    .unwrap();
                server.kill();
                // A read must fail before the server is back.
                let error = probe
                    .row(uuid(1))
                    .await
                    .expect_err("a killed server answers");
                assert!(error.is_retryable(), "{error}");
                server.restart().await.unwrap();
            }
            let goal = *watched.borrow() + 20;
            let reached = watched.wait_for(|count| *count >= goal);
            tokio::time::timeout(Duration::from_secs(120), reached)
                .await
                .expect("rows go on")
                .unwrap();
            stop.send_replace(true);
            let results = tasks.join_all().await;
            let ledger = Ledger::open(&config).await.unwrap();
            for id in results.iter().flatten() {
                let found = one(&ledger, *id).await;
                assert!(found.finished && found.version == 2, "{found:?}");
            }
            assert_eq!(ledger.victims_of_open_rows().await.unwrap(), []);
        }
    };
}

/// Finishes a row whose progress is unknown.
async fn tidy(ledger: &Ledger, id: u128) -> Result<(), LedgerError> {
    if let Some(row) = ledger.row(uuid(id)).await?
        && !row.finished
    {
        let ended = ledger
            .finish(row.id, row.version, "failed", &json!(2), RowEnd::Answers)
            .await?;
        assert_ne!(ended, UpdateResult::Lost, "no other scheduler touches it");
    }
    Ok(())
}

survives_a_killed_server!(
    what_mariadb_confirmed_survives_its_death_in_the_ledger,
    MariaDb
);
survives_a_killed_server!(
    what_postgres_confirmed_survives_its_death_in_the_ledger,
    Postgres
);
