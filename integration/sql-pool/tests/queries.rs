//! Connections between queries, on real servers.

#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

use ebbtide_harness::SharedServers;
use ebbtide_sql_pool::QueryConnections;
use sea_orm::sqlx::mysql::MySqlPoolOptions;
use sea_orm::sqlx::postgres::PgPoolOptions;
use sea_orm::sqlx::{MySqlPool, PgPool};
use sea_orm::{DbBackend, DbErr, Statement};

const SIZE: u32 = 3;

async fn mariadb(url: &str) -> (MySqlPool, QueryConnections) {
    let pool = MySqlPoolOptions::new().max_connections(SIZE);
    let pool = pool.connect(url).await.unwrap();
    (pool.clone(), QueryConnections::mysql(pool, SIZE))
}

async fn postgresql(url: &str) -> (PgPool, QueryConnections) {
    let pool = PgPoolOptions::new().max_connections(SIZE);
    let pool = pool.connect(url).await.unwrap();
    (pool.clone(), QueryConnections::postgres(pool, SIZE))
}

async fn number(queries: &QueryConnections, backend: DbBackend, sql: &str) -> Result<i64, DbErr> {
    let rows = queries.query_all(Statement::from_string(backend, sql));
    rows.await?[0].try_get_by_index(0)
}

#[tokio::test]
async fn queries_one_after_the_other_use_one_connection_without_tests_between_them() {
    let server = SharedServers::mariadb().await.unwrap();
    let (_pool, queries) = mariadb(server.url()).await;
    let ask = |sql| number(&queries, DbBackend::MySql, sql);
    // A test of the driver is an administrative command of the session.
    let tests = "SELECT CAST(variable_value AS SIGNED) FROM information_schema.session_status \
                 WHERE variable_name = 'COM_ADMIN_COMMANDS'";
    let id = "SELECT CAST(CONNECTION_ID() AS SIGNED)";
    let (connection, before) = (ask(id).await.unwrap(), ask(tests).await.unwrap());
    for _ in 0..20 {
        assert_eq!(ask(id).await.unwrap(), connection);
    }
    assert_eq!(ask(tests).await.unwrap(), before);

    let server = SharedServers::postgres().await.unwrap();
    let (of_postgresql, queries) = postgresql(server.url()).await;
    let ask = |sql| number(&queries, DbBackend::Postgres, sql);
    let id = "SELECT pg_backend_pid()::bigint";
    let connection = ask(id).await.unwrap();
    assert_eq!(ask(id).await.unwrap(), connection);

    // What is kept does not keep a pool from its end.
    queries.release();
    of_postgresql.close().await;
}

#[tokio::test]
async fn more_queries_than_connections_all_get_their_answer() {
    let server = SharedServers::mariadb().await.unwrap();
    let (_pool, queries) = mariadb(server.url()).await;
    let statement = || Statement::from_string(DbBackend::MySql, "SELECT SLEEP(0.01)");
    for _ in 0..3 {
        let all = (0..20).map(|_| queries.query_all(statement()));
        let answers = futures::future::join_all(all).await;
        assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    }
}

#[tokio::test]
async fn a_connection_that_failed_or_was_given_up_is_not_kept() {
    let server = SharedServers::mariadb().await.unwrap();
    let (pool, queries) = mariadb(server.url()).await;
    let ask = |sql| number(&queries, DbBackend::MySql, sql);
    assert!(ask("SELECT nonsense").await.is_err());
    assert_eq!(ask("SELECT 7").await.unwrap(), 7);
    // The server ends the connection in the middle of its query.
    assert!(ask("KILL CONNECTION CONNECTION_ID()").await.is_err());
    assert_eq!(ask("SELECT 8").await.unwrap(), 8);
    // The caller gives up while the answer is on its way.
    {
        let mut asked = std::pin::pin!(ask("SELECT SLEEP(0.2)"));
        let at_once = std::future::poll_fn(|context| {
            let polled = asked.as_mut().poll(context);
            std::task::Poll::Ready(polled.is_ready())
        });
        assert!(!at_once.await);
    }
    assert_eq!(ask("SELECT 9").await.unwrap(), 9);
    queries.release();
    pool.close().await;
}
