//! Everything that can go wrong between the store and its database.

use ebbtide_model::Timestamp;
use thiserror::Error;

/// An error of the store. Unless a variant says otherwise, nothing of the operation has been
/// written.
///
/// The messages never contain a password.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StoreError {
    /// The database cannot be reached, went away in the middle, or has no connection to spare.
    /// Whether a commit that failed like this was written is not known; repeating it is safe, and
    /// right.
    #[error(
        "the database {url} is not available: {reason}; check that it runs and can be reached from here, the operation can be repeated as it is"
    )]
    Unavailable {
        /// Which database, without the password.
        url: String,
        /// What the driver said.
        reason: String,
    },
    /// Another process holds a lock for longer than the lock timeout.
    #[error(
        "the database {url} is locked by another writer: {reason}; find who else writes to it (a second scheduler, a backup, an open shell), the operation can be repeated as it is"
    )]
    Locked {
        /// Which database, without the password.
        url: String,
        /// What the driver said.
        reason: String,
    },
    /// There is no room for what was to be written. What was there before is intact.
    #[error(
        "the database {url} has no room left: {reason}; free space on its disk, raise its size limit, or purge old records, then repeat the operation"
    )]
    DiskFull {
        /// Which database, without the password.
        url: String,
        /// What the database said.
        reason: String,
    },
    /// The lease of this scheduler was taken over or given back. It must stop deciding at once.
    #[error(
        "this scheduler's lease (epoch {epoch}) is no longer valid: {by}; stop, and start again to take part"
    )]
    Fenced {
        /// The epoch of the lease that was shown.
        epoch: i64,
        /// The scheduler that has it now, in words.
        by: String,
    },
    /// Other schedulers have written more than the commit log still has. Internal: a scheduler that
    /// follows the log reads everything again.
    #[error(
        "the commits after number {seen} of the database {url} are not in its log any more (the last is {head}); everything is read anew"
    )]
    Behind {
        /// Which database, without the password.
        url: String,
        /// The last commit that was seen.
        seen: i64,
        /// The last commit, or the first that is there.
        head: i64,
    },
    /// Another scheduler uses this database.
    #[error(
        "the database {url} is in use by the scheduler {holder:?}, whose lease ends at {until}; stop that one, or wait until its lease has ended"
    )]
    LeaseHeld {
        /// Which database, without the password.
        url: String,
        /// The scheduler that holds the lease.
        holder: String,
        /// When the lease ends if it is not renewed.
        until: Timestamp,
    },
    /// A newer program has changed the tables.
    #[error(
        "the database {url} was migrated by a newer program (it has {found:?}, this program knows up to {known:?}); run the newer program, or restore a backup from before the upgrade"
    )]
    SchemaTooNew {
        /// Which database, without the password.
        url: String,
        /// The first migration that this program does not know.
        found: String,
        /// The last migration that this program knows.
        known: String,
    },
    /// The URL names no database that the store can use.
    #[error(
        "the database URL {url:?} cannot be used: {reason}; write sqlite:PATH, mysql://USER:PASSWORD@HOST:PORT/DATABASE or postgres://USER:PASSWORD@HOST:PORT/DATABASE with special characters percent-encoded"
    )]
    BadUrl {
        /// The URL, without the password.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A row, or the whole file, cannot be read.
    #[error(
        "table {table}, key {key:?}: the record cannot be read: {reason}; repair it by hand or restore a backup, nothing was changed"
    )]
    Corrupt {
        /// The table; `*` if the whole database is concerned.
        table: String,
        /// The key of the row; empty if the whole database is concerned.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A record that is larger than the store or the database server takes.
    #[error(
        "table {table}, key {key:?}: the record has {bytes} bytes, at most {limit} can be stored; keep fewer hosts in explanations, or raise max_allowed_packet of a MariaDB server that is set below 16 MiB"
    )]
    TooLarge {
        table: &'static str,
        /// The key of the record.
        key: String,
        /// Its size in bytes.
        bytes: usize,
        /// How many bytes are allowed.
        limit: usize,
    },
    /// A record that would not come back as it went in.
    #[error(
        "table {table}, key {key:?}: the record cannot be stored: {reason}; this is a mistake of the program that wrote it, please report it"
    )]
    Unstorable {
        table: &'static str,
        /// The key of the record.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A page was asked for after a record that does not exist (any more).
    #[error(
        "there is no {what} {marker} to continue the list after; it may have been purged, start again without a marker"
    )]
    NoSuchMarker {
        /// What is listed.
        what: &'static str,
        marker: String,
    },
    /// The database does not let the user in.
    #[error(
        "the database {url} refuses the login: {reason}; check user, password, database name and the user's rights"
    )]
    LoginRefused {
        /// Which database, without the password.
        url: String,
        /// What the database said.
        reason: String,
    },
    /// The database refused a statement for a reason that has nothing to do with load or
    /// connections.
    #[error(
        "the database {url} refused {operation}: {reason}; check that its tables are as this program made them and that the user may use them"
    )]
    Refused {
        /// Which database, without the password.
        url: String,
        /// What was being done.
        operation: &'static str,
        /// What the database said.
        reason: String,
    },
}

impl StoreError {
    /// The stable code, as in `docs/reference/errors.md`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unavailable { .. } => "EB-STORE-001",
            Self::Locked { .. } => "EB-STORE-002",
            Self::DiskFull { .. } => "EB-STORE-003",
            Self::Fenced { .. } => "EB-STORE-004",
            Self::LeaseHeld { .. } => "EB-STORE-005",
            Self::SchemaTooNew { .. } => "EB-STORE-006",
            Self::BadUrl { .. } => "EB-STORE-007",
            Self::Corrupt { .. } => "EB-STORE-008",
            Self::TooLarge { .. } => "EB-STORE-009",
            Self::Unstorable { .. } => "EB-STORE-010",
            Self::NoSuchMarker { .. } => "EB-STORE-011",
            Self::LoginRefused { .. } => "EB-STORE-012",
            Self::Refused { .. } => "EB-STORE-013",
            Self::Behind { .. } => "EB-STORE-014",
        }
    }

    /// True if the same operation can succeed later without any intervention. The caller may repeat
    /// it unchanged.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::Unavailable { .. }
                | Self::Locked { .. }
                | Self::DiskFull { .. }
                | Self::Behind { .. }
        )
    }
}
