//! Servers that many tests use at the same time, each with a corner of its own.
//!
//! The test runner starts the servers once (`ebbtide-harness run … -- cargo nextest run`) and tells
//! their URLs by environment variables. Without them, a private server is started for the process
//! and shared by its tests; with nextest, which runs each test in a process of its own, that is a
//! server a test: correct, but slow.
//!
//! The corners are databases for MariaDB and PostgreSQL, and *name prefixes* for RabbitMQ. Not
//! virtual hosts: creating one takes `rabbitmqctl`, a whole Erlang machine that costs each test
//! about two seconds of a core. So a test gives every exchange and every queue a name that begins
//! with [`SharedBroker::prefix`].

use crate::error::Result;
use crate::server::mariadb::Maria;
use crate::server::postgres::Postgresql;
use crate::server::rabbitmq::Rabbit;
use crate::server::{PrivateServer, ServerKind};
use crate::sql::{Access, Dialect};
use ebbtide_runtime::ids;
use std::sync::{Arc, Weak};
use tokio::sync::Mutex;

/// The environment variable with the URL of a RabbitMQ for tests.
pub const ENV_AMQP_URL: &str = "EBBTIDE_TEST_AMQP_URL";
/// The environment variable with the URL of a MariaDB or MySQL for tests, whose user may create and
/// drop databases.
pub const ENV_MYSQL_URL: &str = "EBBTIDE_TEST_MYSQL_URL";
/// The environment variable with the URL of a PostgreSQL for tests, whose user may create and drop
/// databases.
pub const ENV_POSTGRES_URL: &str = "EBBTIDE_TEST_POSTGRES_URL";

/// This process's own servers. They run as long as a test of this process uses them.
static RABBITMQ: Mutex<Weak<PrivateServer<Rabbit>>> = Mutex::const_new(Weak::new());
static MARIADB: Mutex<Weak<PrivateServer<Maria>>> = Mutex::const_new(Weak::new());
static POSTGRES: Mutex<Weak<PrivateServer<Postgresql>>> = Mutex::const_new(Weak::new());

/// The way to shared servers.
#[derive(Debug)]
pub enum SharedServers {}

impl SharedServers {
    /// A broker, and a prefix for names that no other test uses.
    ///
    /// # Errors
    ///
    /// Those of [`PrivateServer::start`], when there is no [`ENV_AMQP_URL`].
    pub async fn rabbitmq() -> Result<SharedBroker> {
        let (url, own) = find(ENV_AMQP_URL, &RABBITMQ).await?;
        Ok(SharedBroker {
            url,
            prefix: format!("t{}.", ids::short()),
            _own: own,
        })
    }

    /// An empty database of its own on a MariaDB.
    ///
    /// # Errors
    ///
    /// Those of [`PrivateServer::start`], when there is no [`ENV_MYSQL_URL`];
    /// [`crate::Error::BadUrl`] when that is not usable; [`crate::Error::Failed`] when the database
    /// cannot be created.
    pub async fn mariadb() -> Result<SharedDatabase<Maria>> {
        SharedDatabase::create(ENV_MYSQL_URL, &MARIADB, Dialect::MariaDb).await
    }

    /// An empty database of its own on a PostgreSQL.
    ///
    /// # Errors
    ///
    /// Those of [`PrivateServer::start`], when there is no [`ENV_POSTGRES_URL`];
    /// [`crate::Error::BadUrl`] when that is not usable; [`crate::Error::Failed`] when the database
    /// cannot be created.
    pub async fn postgres() -> Result<SharedDatabase<Postgresql>> {
        SharedDatabase::create(ENV_POSTGRES_URL, &POSTGRES, Dialect::Postgres).await
    }
}

/// The URL from the environment, or a server of this process.
async fn find<K: ServerKind>(
    variable: &str,
    own: &Mutex<Weak<PrivateServer<K>>>,
) -> Result<(String, Option<Arc<PrivateServer<K>>>)> {
    if let Ok(url) = std::env::var(variable)
        && !url.is_empty()
    {
        return Ok((url, None));
    }
    // Held while it starts: the other tests of this process wait for the one start.
    let mut own = own.lock().await;
    let server = match own.upgrade() {
        Some(server) => server,
        None => {
            let server = Arc::new(PrivateServer::start().await?);
            *own = Arc::downgrade(&server);
            server
        }
    };
    Ok((server.url(), Some(server)))
}

/// A broker that others use as well.
#[derive(Debug)]
pub struct SharedBroker {
    url: String,
    prefix: String,
    /// Held, not used: keeps this process's own server alive.
    _own: Option<Arc<PrivateServer<Rabbit>>>,
}

impl SharedBroker {
    /// The broker's URL.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What the names of all exchanges and queues of this test must begin with: a letter, twelve
    /// hexadecimal digits, a dot.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }
}

/// A database for one user, on a server that other tests use as well. Dropped from the server when
/// this value is dropped.
#[derive(Debug)]
pub struct SharedDatabase<K: ServerKind> {
    url: String,
    name: String,
    access: Access,
    /// Keeps this process's own server alive.
    own: Option<Arc<PrivateServer<K>>>,
}

impl<K: ServerKind> SharedDatabase<K> {
    async fn create(
        variable: &str,
        own: &Mutex<Weak<PrivateServer<K>>>,
        dialect: Dialect,
    ) -> Result<Self> {
        let (server, own) = find(variable, own).await?;
        let access = Access::parse(dialect, &server)?;
        let name = format!("t_{}", ids::short());
        Ok(Self {
            url: access.create_database(&name).await?,
            name,
            access,
            own,
        })
    }

    /// The database's URL.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The database's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl<K: ServerKind> Drop for SharedDatabase<K> {
    fn drop(&mut self) {
        // The last user of this process's own server needs not tidy up in it.
        if self
            .own
            .as_ref()
            .is_some_and(|own| Arc::strong_count(own) == 1)
        {
            return;
        }
        if let Err(error) = self.access.drop_database(&self.name) {
            tracing::warn!(%error, database = self.name, "could not drop a test's database");
        }
    }
}
