//! A fresh cloud's databases for each test.

pub(crate) use ebbtide_nova_databases::{
    CELL0, CELL1, CloudDatabases, NOVA_26, NOVA_34, RawDatabase, at, compute_uuid, flavor_json,
    instance_uuid, quote,
};

/// Makes a test of each function for each release on MariaDB, one on PostgreSQL and one on SQLite.
macro_rules! on_every_database {
    ($($test:ident),* $(,)?) => { $(
        mod $test {
            use crate::cloud::{CloudDatabases, NOVA_26, NOVA_34};

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn mariadb_of_nova_26() {
                super::$test(CloudDatabases::mariadb(NOVA_26).await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn mariadb_of_nova_34() {
                super::$test(CloudDatabases::mariadb(NOVA_34).await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                super::$test(CloudDatabases::postgres().await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                super::$test(CloudDatabases::sqlite().await).await;
            }
        }
    )* };
}
