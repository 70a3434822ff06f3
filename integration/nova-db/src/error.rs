//! What can go wrong between us and one of Nova's databases.

use thiserror::Error;

/// An error of one database. The messages never contain a password.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NovaDbError {
    /// The database cannot be reached, or went away in the middle. The operation can be repeated as
    /// it is.
    #[error(
        "the database of {database} ({url}) is not available: {reason}; check that it runs and can be reached from here"
    )]
    Unavailable {
        /// Which: `the API`, `cell NAME`, or `this service`.
        database: String,
        /// URL without the password.
        url: String,
        /// What the driver said.
        reason: String,
    },
    /// User, password or database are not accepted.
    #[error(
        "the database of {database} ({url}) refuses the login: {reason}; check user, password and grants in nova.conf or in `nova-manage cell_v2 list_cells`"
    )]
    LoginRefused {
        database: String,
        /// URL without the password.
        url: String,
        /// What the database said.
        reason: String,
    },
    /// A statement was refused: the schema is not the one of a Nova that we know, or rights are
    /// missing.
    #[error(
        "the database of {database} ({url}) refuses to {operation}: {reason}; check that `nova-manage api_db sync` and `db sync` ran and that the user may read the tables"
    )]
    Refused {
        database: String,
        /// URL without the password.
        url: String,
        /// What was tried.
        operation: &'static str,
        /// What the database said.
        reason: String,
    },
    /// A URL that is none, or names a database that is not supported.
    #[error(
        "the database URL of {database} ({url}) cannot be used: {reason}; correct it in nova.conf or with `nova-manage cell_v2 update_cell`"
    )]
    BadUrl {
        database: String,
        /// URL without the password.
        url: String,
        reason: String,
    },
    /// A cell that does not exist (any more).
    #[error(
        "there is no cell {cell}; read the cells again (SIGHUP), or see `nova-manage cell_v2 list_cells`"
    )]
    NoSuchCell {
        /// UUID.
        cell: String,
    },
    /// The computes are older than what we can work with (`raise_if_old_compute`).
    #[error(
        "the oldest nova-compute has service version {found}, and at least {needed} is needed; upgrade the computes first, or set [workarounds] disable_compute_service_check_for_ffu"
    )]
    TooOldCompute {
        /// The lowest version.
        found: i64,
        /// The lowest that is supported.
        needed: i64,
    },
    /// The scheduler's own row in `services` is gone: the operator or another process deleted it.
    #[error(
        "the services record of nova-scheduler on {host} is gone; stop this scheduler if it was deleted on purpose, or restart it to make a new record"
    )]
    RecordGone {
        /// Host of the record.
        host: String,
    },
    /// A value in a row that Nova itself could not have written.
    #[error(
        "{database}: table {table} has a row with {reason}; repair it, Nova cannot use it either"
    )]
    Corrupt {
        database: String,
        table: &'static str,
        /// What is wrong.
        reason: String,
    },
}

impl NovaDbError {
    /// The stable code, as listed in `docs/reference/errors.md`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unavailable { .. } => "EB-NOVADB-001",
            Self::LoginRefused { .. } => "EB-NOVADB-002",
            Self::Refused { .. } => "EB-NOVADB-003",
            Self::BadUrl { .. } => "EB-NOVADB-004",
            Self::NoSuchCell { .. } => "EB-NOVADB-005",
            Self::TooOldCompute { .. } => "EB-NOVADB-006",
            Self::RecordGone { .. } => "EB-NOVADB-007",
            Self::Corrupt { .. } => "EB-NOVADB-008",
        }
    }

    /// True if a repetition of the operation can succeed without any intervention.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }
}
