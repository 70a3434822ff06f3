//! How a [`Store`](crate::Store) is opened.

use ebbtide_runtime::login::Login;
use std::time::Duration;

/// Where the state lives and how hard the database is used. [`StoreConfig::new`] gives every
/// setting its default.
#[derive(Debug, Clone)]
pub struct StoreConfig {
    /// `sqlite:PATH` (or `sqlite://PATH`, `sqlite::memory:`),
    /// `mysql://USER:PASSWORD@HOST:PORT/DATABASE` (also `mariadb:`), or
    /// `postgres://USER:PASSWORD@HOST:PORT/DATABASE` (also `postgresql:`). A driver as in oslo's
    /// `mysql+pymysql:` is ignored. `HOST:PORT` may be a list with commas: of these servers the
    /// first one that takes writes is used, and another one when it takes none any more.
    /// Clones share the login: [`StoreConfig::renew_login`] is for every store that was opened from
    /// one of them, or will be.
    pub url: Login<DatabaseUrl>,
    /// Most connections in all, at least 2 are used. One (SQLite) or two (servers) of them are kept
    /// for writing, so that slow reads never hold up a commit. Default 8.
    pub max_connections: u32,
    /// How long an operation waits for a connection, and how long opening waits for the database.
    /// Default 5 s.
    pub connect_timeout: Duration,
    /// How long a write waits for a lock that another process holds before it fails with `Locked`.
    /// Default 5 s.
    pub lock_timeout: Duration,
    /// After this time an operation is given up as `Unavailable`, whatever the database is doing.
    /// Default 60 s.
    pub operation_timeout: Duration,
    /// SQLite only: what a commit survives. Servers have settings of their own for this. Default
    /// [`Durability::Full`].
    pub durability: Durability,
    /// SQLite only: the file never grows beyond this many pages of 4096 bytes; a commit that needs
    /// more fails with `DiskFull`. Default: no limit but the disk.
    pub sqlite_max_pages: Option<u32>,
}

pub use crate::url::DatabaseUrl;

/// What a commit to an SQLite file survives (`PRAGMA synchronous`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// A power failure: every commit waits for the disk.
    #[default]
    Full,
    /// A crash of the scheduler. A power failure of the machine may lose the last commits, but the
    /// file stays consistent. Such a failure can break the rule that a victim receives its notice
    /// only after the claim is durable, so use this for tests and demonstrations only.
    Normal,
}

impl StoreConfig {
    /// The defaults, for a URL.
    ///
    /// # Errors
    /// [`StoreError::BadUrl`](crate::StoreError::BadUrl) if the URL names no database that the
    /// store can use.
    pub fn new(url: &str) -> Result<Self, crate::StoreError> {
        Ok(Self {
            url: Login::new(url.parse()?),
            max_connections: 8,
            connect_timeout: Duration::from_secs(5),
            lock_timeout: Duration::from_secs(5),
            operation_timeout: Duration::from_secs(60),
            durability: Durability::Full,
            sqlite_max_pages: None,
        })
    }
}
