//! A fresh database for each test, and raw SQL for what the store does not do.

use ebbtide_harness::SharedServers;
use ebbtide_model::{Seconds, Timestamp};
use ebbtide_store::{Lease, Store, StoreConfig};
use sea_orm::{ConnectionTrait, Database, DatabaseConnection};
use std::time::Duration;

/// A database of the test's own.
pub(crate) struct TestDb {
    pub(crate) url: String,
    _directory: Option<tempfile::TempDir>,
    /// Keeps the database, and drops it in the end.
    _server: Option<Box<dyn Send>>,
}

impl TestDb {
    pub(crate) async fn sqlite() -> Self {
        let directory = tempfile::tempdir().unwrap();
        // A directory that does not exist yet, a blank and an umlaut.
        let path = directory.path().join("région 1/state.db");
        Self {
            url: format!("sqlite:{}", path.display()),
            _directory: Some(directory),
            _server: None,
        }
    }

    pub(crate) async fn mariadb() -> Self {
        let database = SharedServers::mariadb().await.expect("a MariaDB server");
        Self::on(database.url().to_owned(), Box::new(database))
    }

    pub(crate) async fn postgres() -> Self {
        let database = SharedServers::postgres()
            .await
            .expect("a PostgreSQL server");
        Self::on(database.url().to_owned(), Box::new(database))
    }

    fn on(url: String, server: Box<dyn Send>) -> Self {
        Self {
            url,
            _directory: None,
            _server: Some(server),
        }
    }

    pub(crate) fn config(&self) -> StoreConfig {
        let mut config = StoreConfig::new(&self.url).unwrap();
        // Long, so that only tests that set a shorter timeout fail on a lock.
        config.lock_timeout = Duration::from_secs(20);
        config.connect_timeout = Duration::from_secs(20);
        config
    }

    pub(crate) async fn open(&self) -> Store {
        Store::open(&self.config()).await.unwrap()
    }

    /// An open store and its lease.
    pub(crate) async fn open_with_lease(&self) -> (Store, Lease) {
        let store = self.open().await;
        let lease = store.acquire_lease("test", at(0), Seconds(60)).await;
        (store, lease.unwrap())
    }

    /// A connection beside the store.
    pub(crate) async fn raw(&self) -> DatabaseConnection {
        Database::connect(&self.url).await.unwrap()
    }

    /// One statement beside the store.
    pub(crate) async fn sql(&self, statement: &str) {
        let connection = self.raw().await;
        connection.execute_unprepared(statement).await.unwrap();
        connection.close().await.unwrap();
    }
}

/// A time, in seconds after an arbitrary point.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_771_000_000_000 + seconds * 1000)
}

/// Makes three tests of each function.
macro_rules! on_every_database {
    ($($test:ident),* $(,)?) => { $(
        mod $test {
            use crate::databases::TestDb;

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                super::$test(TestDb::sqlite().await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn mariadb() {
                super::$test(TestDb::mariadb().await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                super::$test(TestDb::postgres().await).await;
            }
        }
    )* };
}
