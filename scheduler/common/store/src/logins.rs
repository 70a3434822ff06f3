//! How to connect to the servers of a URL, and what a new login changes.

use crate::StoreError;
use crate::classify::classify;
use crate::config::StoreConfig;
use crate::sql;
use crate::url::{DatabaseTarget, DatabaseUrl};
use ebbtide_runtime::login::{Login, Renewal};
use ebbtide_sql_pool::{Hosts, Options, QueryConnections, Writable, test_logins};
use sea_orm::sqlx::mysql::MySqlConnectOptions;
use sea_orm::sqlx::postgres::PgConnectOptions;
use sea_orm::sqlx::{ConnectOptions as _, Error, MySql, Pool, Postgres};
use sea_orm::{DbErr, RuntimeErr};
use std::sync::Arc;

/// A kind of server to which the store connects.
pub(crate) trait Server: Writable {
    /// How to connect to each server of this URL; none if the URL is of another kind.
    fn options(url: &DatabaseUrl) -> Result<Vec<Options<Self>>, Error>;

    /// The name of a server for people.
    fn name(options: &Options<Self>) -> String;
}

impl Server for MySql {
    fn options(url: &DatabaseUrl) -> Result<Vec<MySqlConnectOptions>, Error> {
        let DatabaseTarget::MySql(servers) = url.target() else {
            return Ok(Vec::new());
        };
        let options = |server: &String| {
            let options: MySqlConnectOptions = server.parse()?;
            Ok(options
                .statement_cache_capacity(sql::STATEMENT_CACHE)
                .disable_statement_logging())
        };
        servers.iter().map(options).collect()
    }

    fn name(options: &MySqlConnectOptions) -> String {
        format!("{}:{}", options.get_host(), options.get_port())
    }
}

impl Server for Postgres {
    fn options(url: &DatabaseUrl) -> Result<Vec<PgConnectOptions>, Error> {
        let DatabaseTarget::Postgres(servers) = url.target() else {
            return Ok(Vec::new());
        };
        let options = |server: &String| {
            let options: PgConnectOptions = server.parse()?;
            Ok(options
                .application_name("ebbtide")
                .statement_cache_capacity(sql::STATEMENT_CACHE)
                .disable_statement_logging())
        };
        servers.iter().map(options).collect()
    }

    fn name(options: &PgConnectOptions) -> String {
        format!("{}:{}", options.get_host(), options.get_port())
    }
}

/// The servers of a URL.
pub(crate) fn hosts<D: Server>(url: &DatabaseUrl) -> Result<Arc<Hosts<D>>, Error> {
    let each = D::options(url)?.into_iter();
    let named = each.map(|options| (D::name(&options), options)).collect();
    Ok(Arc::new(Hosts::new(named)))
}

/// Gives each new login to the pools. Each of their connections is renewed at its next use, so that
/// soon none is left with the old login.
pub(crate) async fn follow<D: Server>(
    login: Login<DatabaseUrl>,
    hosts: Arc<Hosts<D>>,
    pools: [Pool<D>; 2],
    queries: Arc<QueryConnections>,
) {
    let mut replacements = login.replacements();
    while replacements.changed().await.is_ok() {
        let url = replacements.borrow_and_update().clone();
        match D::options(&url) {
            Ok(logins) => hosts.replace_logins(logins),
            Err(error) => {
                tracing::error!(%error, "the new login for the database cannot be used");
                continue;
            }
        }
        for pool in &pools {
            pool.set_connect_options(hosts.chosen());
        }
        queries.renew();
    }
}

impl StoreConfig {
    /// Tests a new login for the same database, and gives it to every store of this configuration
    /// and of its clones. Connections are renewed when they are used next; a transaction under way
    /// comes to its end first.
    ///
    /// # Errors
    /// [`StoreError::LoginRefused`]: the old login stays.
    pub async fn renew_login(&self, url: &DatabaseUrl) -> Result<Renewal, StoreError> {
        let old = self.url.current();
        if old.target() == url.target() {
            return Ok(Renewal::Unchanged);
        }
        if !old.is_same_place(url) {
            return Ok(Renewal::NextStart(
                "the database, its servers or parameters",
            ));
        }
        let tested = match url.target() {
            DatabaseTarget::MySql(_) => test::<MySql>(url).await,
            DatabaseTarget::Postgres(_) => test::<Postgres>(url).await,
            // A file has no login.
            DatabaseTarget::SqliteFile(_) | DatabaseTarget::SqliteMemory => Ok(Renewal::Unchanged),
        };
        let renewal = tested.map_err(|error| {
            let error = DbErr::Conn(RuntimeErr::SqlxError(Arc::new(error)));
            classify(url, "the new login", error)
        })?;
        self.url.replace(url.clone());
        Ok(renewal)
    }
}

async fn test<D: Server>(url: &DatabaseUrl) -> Result<Renewal, Error> {
    test_logins::<D>(&D::options(url)?).await
}
