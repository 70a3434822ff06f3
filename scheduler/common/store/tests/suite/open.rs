//! Opening a database: a new one, an old one, a newer one, a broken one, and one that is not there.

use crate::databases::{TestDb, at};
use crate::records::*;
use ebbtide_store::{Store, StoreConfig, StoreError};
use std::time::Duration;
use tokio::task::JoinSet;

on_every_database![
    many_programs_that_start_at_once_all_find_the_schema,
    a_database_of_a_newer_program_is_left_alone,
    a_migration_that_was_cut_off_is_completed,
    a_row_that_cannot_be_read_is_named,
    a_table_that_is_missing_is_named,
];

async fn many_programs_that_start_at_once_all_find_the_schema(db: TestDb) {
    let mut programs = JoinSet::new();
    for n in 0..6 {
        let config = db.config();
        programs.spawn(async move {
            let store = Store::open(&config).await.unwrap();
            store.server(server_id(n)).await.unwrap()
        });
    }
    assert_eq!(programs.join_all().await, vec![None; 6]);
    let (store, lease) = db.open_with_lease().await;
    store.commit(&lease, &everything()).await.unwrap();
}

async fn a_database_of_a_newer_program_is_left_alone(db: TestDb) {
    let (store, lease) = db.open_with_lease().await;
    store.commit(&lease, &everything()).await.unwrap();
    store.close().await;
    let migration =
        "INSERT INTO seaql_migrations (version, applied_at) VALUES ('m29990101_000001_future', 1)";
    db.sql(migration).await;
    let error = Store::open(&db.config()).await.unwrap_err();
    assert_eq!(error.code(), "EB-STORE-006");
    let said = error.to_string();
    assert!(said.contains("m29990101_000001_future"), "{said}");
    assert!(said.contains("m20261129_000008_restore_marks"), "{said}");
    // When that was a mistake, everything is as it was.
    db.sql("DELETE FROM seaql_migrations WHERE version = 'm29990101_000001_future'")
        .await;
    assert_eq!(
        db.open().await.load(at(0)).await.unwrap().servers,
        [server(1)]
    );
}

async fn a_migration_that_was_cut_off_is_completed(db: TestDb) {
    db.open().await.close().await;
    // As if the program had been killed before these were made. MariaDB cannot roll them back.
    for statement in [
        "DELETE FROM seaql_migrations",
        "DROP TABLE outbox",
        "DROP TABLE evacuations",
        "DELETE FROM lease",
    ] {
        db.sql(statement).await;
    }
    let (store, lease) = db.open_with_lease().await;
    store.commit(&lease, &everything()).await.unwrap();
    assert_eq!(store.load(at(0)).await.unwrap().outbox.len(), 2);
}

async fn a_row_that_cannot_be_read_is_named(db: TestDb) {
    let (store, lease) = db.open_with_lease().await;
    store.commit(&lease, &everything()).await.unwrap();
    store
        .commit(&lease, &[put_server(server(2))])
        .await
        .unwrap();
    let id = server_id(1);
    for bad in ["", "no json", "{}", "[1,2"] {
        db.sql(&format!(
            "UPDATE servers SET record = '{bad}' WHERE id = '{id}'"
        ))
        .await;
        for error in [
            store.load(at(0)).await.unwrap_err(),
            store.server(id).await.unwrap_err(),
        ] {
            match &error {
                StoreError::Corrupt { table, key, .. } => {
                    assert_eq!(
                        (table.as_str(), key.as_str()),
                        ("servers", id.to_string().as_str())
                    );
                }
                other => panic!("expected Corrupt, got {other:?}"),
            }
            assert!(!error.is_retryable());
        }
    }
    // The others can still be read, and writing the record again repairs it.
    assert_eq!(store.server(server_id(2)).await.unwrap(), Some(server(2)));
    store
        .commit(&lease, &[put_server(server(1))])
        .await
        .unwrap();
    assert_eq!(
        store.load(at(0)).await.unwrap().servers,
        [server(1), server(2)]
    );
    let bad_link = format!(
        "UPDATE outbox SET evacuation_id = 'x' WHERE id = '{}'",
        message(2).id
    );
    db.sql(&bad_link).await;
    let error = store.load(at(0)).await.unwrap_err();
    assert_eq!(error.code(), "EB-STORE-008");
    assert!(
        error.to_string().contains(&message(2).id.to_string()),
        "{error}"
    );
}

async fn a_table_that_is_missing_is_named(db: TestDb) {
    let store = db.open().await;
    db.sql("DROP TABLE flavors").await;
    let error = store.load(at(0)).await.unwrap_err();
    assert_eq!(error.code(), "EB-STORE-013", "{error}");
    assert!(error.to_string().contains("flavors"), "{error}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_reported_soon_and_without_the_password() {
    for scheme in ["mysql", "postgres"] {
        // Nothing listens on the discard port.
        let url = format!("{scheme}://someone:hunter2@127.0.0.1:9/ebbtide");
        let mut config = StoreConfig::new(&url).unwrap();
        config.connect_timeout = Duration::from_secs(5);
        let error = tokio::time::timeout(Duration::from_secs(20), Store::open(&config)).await;
        let error = error.expect("an answer in time").unwrap_err();
        assert_eq!(error.code(), "EB-STORE-001", "{error}");
        assert!(error.is_retryable());
        let said = format!("{error} {error:?} {config:?}");
        assert!(said.contains("127.0.0.1:9"), "{said}");
        assert!(said.contains("refused"), "{said}");
        assert!(!said.contains("hunter2"), "{said}");
    }
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up() {
    // It accepts, by way of the kernel's backlog, and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    for scheme in ["mysql", "postgres"] {
        let mut config = StoreConfig::new(&format!("{scheme}://a:b@127.0.0.1:{port}/d")).unwrap();
        config.connect_timeout = Duration::from_millis(300);
        let error = tokio::time::timeout(Duration::from_secs(20), Store::open(&config)).await;
        let error = error.expect("an answer in time").unwrap_err();
        assert_eq!(error.code(), "EB-STORE-001", "{error}");
        assert!(
            error.to_string().contains("no answer within 0.3 s"),
            "{error}"
        );
    }
}

async fn a_database_that_does_not_exist_is_named(db: TestDb) {
    let (server, _) = db.url.rsplit_once('/').unwrap();
    let config = StoreConfig::new(&format!("{server}/never_made")).unwrap();
    let error = Store::open(&config).await.unwrap_err();
    assert_eq!(error.code(), "EB-STORE-012", "{error}");
    assert!(error.to_string().contains("never_made"), "{error}");
}

#[tokio::test]
async fn a_mariadb_database_that_does_not_exist_is_named() {
    a_database_that_does_not_exist_is_named(TestDb::mariadb().await).await;
}

#[tokio::test]
async fn a_postgres_database_that_does_not_exist_is_named() {
    a_database_that_does_not_exist_is_named(TestDb::postgres().await).await;
}
