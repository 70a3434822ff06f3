//! Database URLs as oslo.db takes them.

/// Which kind of database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// MariaDB or MySQL.
    MySql,
    /// PostgreSQL.
    Postgres,
    /// A file.
    Sqlite,
}

/// A database URL, understood.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl {
    backend: Backend,
}

impl DatabaseUrl {
    /// Which kind of database.
    #[must_use]
    pub fn backend(&self) -> Backend {
        self.backend
    }
}
