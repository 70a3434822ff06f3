//! A database server that dies, falls silent, and comes back.

use crate::cloud::{CELL1, CloudDatabases, NOVA_34, RawDatabase};
use ebbtide_harness::MariaDb;
use ebbtide_nova_db::{NovaDb, NovaDbError};
use std::time::Duration;

fn unavailable(error: &NovaDbError, what: &str) {
    assert_eq!(error.code(), "EB-NOVADB-001", "{error}");
    assert!(error.is_retryable());
    let said = error.to_string();
    assert!(
        said.contains(what) && said.contains("nova_cell") && !said.contains("hidden-word"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cell_whose_database_dies_or_falls_silent_is_named_and_comes_back() {
    let cloud = CloudDatabases::mariadb(NOVA_34).await;
    let mut server = MariaDb::start().await.unwrap();
    let url = server.create_database("nova_cell").await.unwrap();
    let cell = RawDatabase::over(url.clone(), Box::new(())).await;
    cell.sql("CREATE USER nova IDENTIFIED BY 'hidden-word'")
        .await;
    cell.sql("GRANT ALL ON nova_cell.* TO nova").await;
    let address = url.split_once('@').unwrap().1;
    let url = format!("mysql+pymysql://nova:hidden-word@{address}?charset=utf8");
    cloud
        .api
        .sql(&format!(
            "UPDATE cell_mappings SET database_connection = '{url}' WHERE id = 2"
        ))
        .await;
    let mut config = cloud.config();
    config.pool.connect_timeout = Duration::from_secs(2);
    config.pool.operation_timeout = Duration::from_secs(2);
    server.kill();
    // A cell that is down does not prevent the start.
    let db = NovaDb::connect(&config).await.unwrap();
    let down = db.cell(CELL1).unwrap();
    unavailable(&down.ping().await.unwrap_err(), "cell cell1");
    server.restart().await.unwrap();
    down.ping().await.unwrap();
    server.kill();
    server.restart().await.unwrap();
    // The old connections are dead. The caller sees no error.
    down.ping().await.unwrap();
    server.freeze().unwrap();
    for _ in 0..3 {
        let error = tokio::time::timeout(Duration::from_secs(60), down.ping()).await;
        unavailable(
            &error.expect("an answer in time").unwrap_err(),
            "cell cell1",
        );
    }
    server.thaw().unwrap();
    let again = async { while down.ping().await.is_err() {} };
    tokio::time::timeout(Duration::from_secs(60), again)
        .await
        .expect("it comes back");
    // Tables that are not there, and a wrong password.
    let error = down.compute_nodes().await.unwrap_err();
    assert_eq!(error.code(), "EB-NOVADB-003", "{error}");
    let wrong = url.replace("hidden-word", "hidden-word2");
    cloud
        .api
        .sql(&format!(
            "UPDATE cell_mappings SET database_connection = '{wrong}' WHERE id = 2"
        ))
        .await;
    db.cells().await.unwrap();
    let error = db.cell(CELL1).unwrap().ping().await.unwrap_err();
    assert_eq!(error.code(), "EB-NOVADB-002", "{error}");
    assert!(!error.to_string().contains("hidden-word"), "{error}");
}
