//! From what a driver says to what a caller can act on.

use crate::StoreError;
use crate::url::DatabaseUrl;
use sea_orm::sqlx::error::DatabaseError;
use sea_orm::{DbErr, RuntimeErr, SqlxError, SqlxMySqlError, SqlxSqliteError};

/// True if the transaction lost against another one and can be repeated at once.
pub(crate) fn is_conflict(error: &DbErr) -> bool {
    let Some(SqlxError::Database(error)) = driver_error(error) else {
        return false;
    };
    let error = error.as_ref();
    if let Some(mysql) = error.try_downcast_ref::<SqlxMySqlError>() {
        // ER_LOCK_DEADLOCK; ER_CHECKREAD ("record has changed since last read").
        return matches!(mysql.number(), 1213 | 1020);
    }
    if error.try_downcast_ref::<SqlxSqliteError>().is_some() {
        return false;
    }
    // serialization_failure, deadlock_detected
    matches!(error.code().as_deref(), Some("40001" | "40P01"))
}

pub(crate) fn unavailable(url: &DatabaseUrl, reason: impl Into<String>) -> StoreError {
    StoreError::Unavailable {
        url: url.to_string(),
        reason: reason.into(),
    }
}

pub(crate) fn classify(url: &DatabaseUrl, operation: &'static str, error: DbErr) -> StoreError {
    let reason = match driver_error(&error) {
        Some(driver) => driver.to_string(),
        None => error.to_string(),
    };
    let shown = || url.to_string();
    match kind(&error) {
        Kind::Unavailable => unavailable(url, reason),
        Kind::Locked => StoreError::Locked {
            url: shown(),
            reason,
        },
        Kind::DiskFull => StoreError::DiskFull {
            url: shown(),
            reason,
        },
        Kind::LoginRefused => StoreError::LoginRefused {
            url: shown(),
            reason,
        },
        Kind::Corrupt => StoreError::Corrupt {
            table: "*".to_owned(),
            key: String::new(),
            reason: format!("{url}: {reason}"),
        },
        Kind::Refused => StoreError::Refused {
            url: shown(),
            operation,
            reason,
        },
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Unavailable,
    Locked,
    DiskFull,
    LoginRefused,
    Corrupt,
    Refused,
}

fn driver_error(error: &DbErr) -> Option<&SqlxError> {
    match error {
        DbErr::Conn(RuntimeErr::SqlxError(e))
        | DbErr::Exec(RuntimeErr::SqlxError(e))
        | DbErr::Query(RuntimeErr::SqlxError(e)) => Some(e),
        _ => None,
    }
}

fn kind(error: &DbErr) -> Kind {
    if matches!(error, DbErr::ConnectionAcquire(_)) {
        return Kind::Unavailable;
    }
    match driver_error(error) {
        Some(
            SqlxError::Io(_)
            | SqlxError::Tls(_)
            | SqlxError::PoolTimedOut
            | SqlxError::PoolClosed
            | SqlxError::WorkerCrashed
            // A connection that broke in the middle of an answer.
            | SqlxError::Protocol(_)
            | SqlxError::BeginFailed,
        ) => Kind::Unavailable,
        Some(SqlxError::Database(error)) => database_kind(error.as_ref()),
        Some(SqlxError::ColumnDecode { .. } | SqlxError::Decode(_)) => Kind::Corrupt,
        _ => Kind::Refused,
    }
}

fn database_kind(error: &dyn DatabaseError) -> Kind {
    let code = error.code().unwrap_or_default();
    if let Some(mysql) = error.try_downcast_ref::<SqlxMySqlError>() {
        mysql_kind(mysql.number(), &code)
    } else if error.try_downcast_ref::<SqlxSqliteError>().is_some() {
        sqlite_kind(code.parse().unwrap_or(1))
    } else {
        postgres_kind(&code)
    }
}

/// The low byte of SQLite's extended result code is the result code (sqlite.org/rescode.html).
fn sqlite_kind(extended: u32) -> Kind {
    /// SQLITE_IOERR_WRITE, _SHMSIZE and _TRUNCATE: what a full disk or a quota looks like where the
    /// system says so late.
    const WRITE_ERRORS: [u32; 3] = [778, 4874, 1546];
    match extended & 0xff {
        // BUSY, LOCKED
        5 | 6 => Kind::Locked,
        // FULL
        13 => Kind::DiskFull,
        10 if WRITE_ERRORS.contains(&extended) => Kind::DiskFull,
        // CORRUPT, NOTADB
        11 | 26 => Kind::Corrupt,
        // IOERR, INTERRUPT
        10 | 9 => Kind::Unavailable,
        _ => Kind::Refused,
    }
}

/// mariadb.com/kb/en/mariadb-error-codes
fn mysql_kind(number: u16, state: &str) -> Kind {
    match number {
        // lock wait timeout, deadlock (after all repetitions), record changed
        1205 | 1213 | 1020 => Kind::Locked,
        // disk full, table full, too much disk space used by temporary files
        1021 | 1114 | 3675 => Kind::DiskFull,
        // access denied to the database, for the user, unknown database
        1044 | 1045 | 1049 | 1698 => Kind::LoginRefused,
        // too many connections, shutdown, query interrupted, killed, read-only while failing over
        // and a Galera node without a quorum
        1040 | 1047 | 1053 | 1317 | 1927 | 1203 | 1290 | 1836 | 1792 | 4031 => Kind::Unavailable,
        // crashed tables and damaged indexes
        126 | 127 | 1034 | 1194 | 1712 => Kind::Corrupt,
        _ if state.starts_with("08") => Kind::Unavailable,
        _ => Kind::Refused,
    }
}

/// postgresql.org/docs/current/errcodes-appendix.html
fn postgres_kind(state: &str) -> Kind {
    match state {
        // lock_not_available, serialization failure and deadlock (after all repetitions)
        "55P03" | "40001" | "40P01" => Kind::Locked,
        "53100" => Kind::DiskFull,
        // invalid authorization, password; database does not exist; may not connect
        "28000" | "28P01" | "3D000" | "42501" => Kind::LoginRefused,
        // too many connections, out of memory, admin and crash shutdown, cannot connect now, idle
        // session or transaction ended, read-only
        "53300" | "53200" | "57P01" | "57P02" | "57P03" | "57P05" | "57014" | "25006" | "25P03" => {
            Kind::Unavailable
        }
        // data and index corrupted
        "XX001" | "XX002" => Kind::Corrupt,
        _ if state.starts_with("08") => Kind::Unavailable,
        _ => Kind::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_databases_say_is_told_apart() {
        assert_eq!(sqlite_kind(5), Kind::Locked);
        assert_eq!(sqlite_kind(517), Kind::Locked, "BUSY_SNAPSHOT");
        assert_eq!(sqlite_kind(13), Kind::DiskFull);
        assert_eq!(sqlite_kind(778), Kind::DiskFull, "IOERR_WRITE");
        assert_eq!(sqlite_kind(266), Kind::Unavailable, "IOERR_READ");
        assert_eq!(sqlite_kind(26), Kind::Corrupt);
        assert_eq!(sqlite_kind(1), Kind::Refused);
        assert_eq!(mysql_kind(1205, "HY000"), Kind::Locked);
        assert_eq!(mysql_kind(1045, "28000"), Kind::LoginRefused);
        assert_eq!(mysql_kind(1053, "08S01"), Kind::Unavailable);
        assert_eq!(mysql_kind(1146, "42S02"), Kind::Refused, "no such table");
        assert_eq!(postgres_kind("57P01"), Kind::Unavailable);
        assert_eq!(postgres_kind("53100"), Kind::DiskFull);
        assert_eq!(postgres_kind("08006"), Kind::Unavailable);
        assert_eq!(postgres_kind("42P01"), Kind::Refused, "no such table");
    }
}
