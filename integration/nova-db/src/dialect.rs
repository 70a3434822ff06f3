//! What differs between the databases: how columns have to be asked for, so that each driver gives
//! one and the same type.
//!
//! Moments come as text, because Nova's columns are DATETIME in one, TIMESTAMP in another and text
//! in the third database. Floats come as text from MariaDB, because its FLOAT has 32 bits: Nova
//! reads them as text as well, 0.9 and not 0.8999999761581421.

use crate::url::Backend;
use sea_orm::{DbErr, QueryResult};
use time::OffsetDateTime;

/// How one kind of database wants its columns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dialect(pub(crate) Backend);

impl Dialect {
    /// A name that is a word of SQL.
    pub(crate) fn quoted(self, name: &str) -> String {
        match self.0 {
            Backend::MySql => format!("`{name}`"),
            Backend::Postgres | Backend::Sqlite => format!("\"{name}\""),
        }
    }

    /// A whole number.
    pub(crate) fn int(self, column: &str) -> String {
        match self.0 {
            Backend::MySql => column.to_owned(),
            Backend::Postgres => format!("CAST({column} AS BIGINT)"),
            Backend::Sqlite => format!("CAST({column} AS INTEGER)"),
        }
    }

    /// A truth, as 0 and 1.
    pub(crate) fn truth(self, column: &str) -> String {
        match self.0 {
            Backend::Postgres => format!("CAST(CAST({column} AS INTEGER) AS BIGINT)"),
            Backend::MySql | Backend::Sqlite => self.int(column),
        }
    }

    /// A moment, as text.
    pub(crate) fn moment(self, column: &str) -> String {
        match self.0 {
            Backend::MySql => format!("CAST({column} AS CHAR)"),
            Backend::Postgres | Backend::Sqlite => format!("CAST({column} AS TEXT)"),
        }
    }

    /// A float, as text.
    pub(crate) fn float(self, column: &str) -> String {
        match self.0 {
            Backend::MySql => format!("CAST({column} AS CHAR)"),
            Backend::Postgres => format!("CAST({column} AS TEXT)"),
            // The text of a float has 15 digits there, its repr has 17.
            Backend::Sqlite => format!("printf('%!.17g', {column})"),
        }
    }

    /// An address, which PostgreSQL has a type for.
    pub(crate) fn address(self, column: &str) -> String {
        match self.0 {
            Backend::Postgres => format!("host({column})"),
            Backend::MySql | Backend::Sqlite => column.to_owned(),
        }
    }

    /// The placeholder of a moment that is compared with a column.
    pub(crate) fn at(self) -> &'static str {
        match self.0 {
            Backend::Postgres => "CAST(? AS TIMESTAMP)",
            Backend::MySql | Backend::Sqlite => "?",
        }
    }

    /// `column = false` where the column is a truth.
    pub(crate) fn is_false(self, column: &str) -> String {
        match self.0 {
            Backend::Postgres => format!("{column} = FALSE"),
            Backend::MySql | Backend::Sqlite => format!("{column} = 0"),
        }
    }

    /// `column <> false`.
    pub(crate) fn is_true(self, column: &str) -> String {
        match self.0 {
            Backend::Postgres => format!("{column} = TRUE"),
            Backend::MySql | Backend::Sqlite => format!("{column} <> 0"),
        }
    }
}

/// The whole second that a moment falls in, as SQL text. Moments before 1970 or after 9999 are held
/// at these.
pub(crate) fn second(micros: i64) -> String {
    sql_time(micros.div_euclid(1_000_000) * 1_000_000, false)
}

/// A moment with microseconds.
pub(crate) fn moment(micros: i64) -> String {
    sql_time(micros, true)
}

fn sql_time(micros: i64, fraction: bool) -> String {
    let micros = micros.clamp(0, 253_402_300_799_999_999);
    let at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(micros) * 1000)
        .unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let mut text = format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02}",
        at.year(),
        u8::from(at.month()),
        at.day(),
        at.hour(),
        at.minute(),
        at.second()
    );
    if fraction {
        text.push_str(&format!(".{:06}", at.microsecond()));
    }
    text
}

/// Reads the columns of a row one after the other.
pub(crate) struct RowReader<'r> {
    row: &'r QueryResult,
    next: usize,
}

impl<'r> RowReader<'r> {
    pub(crate) fn new(row: &'r QueryResult) -> Self {
        Self { row, next: 0 }
    }

    fn place(&mut self) -> usize {
        self.next += 1;
        self.next - 1
    }

    pub(crate) fn int(&mut self) -> Result<Option<i64>, DbErr> {
        let place = self.place();
        self.row.try_get_by_index::<Option<i64>>(place)
    }

    pub(crate) fn text(&mut self) -> Result<Option<String>, DbErr> {
        let place = self.place();
        self.row.try_get_by_index::<Option<String>>(place)
    }

    /// A truth; NULL is false.
    pub(crate) fn truth(&mut self) -> Result<bool, DbErr> {
        Ok(self.int()?.unwrap_or(0) != 0)
    }

    /// A moment, microseconds since 1970. What is none (MySQL's zero date) is taken for NULL.
    pub(crate) fn moment(&mut self) -> Result<Option<i64>, DbErr> {
        Ok(self
            .text()?
            .and_then(|text| ebbtide_nova::python::datetime::read(&text)))
    }

    pub(crate) fn float(&mut self) -> Result<Option<f64>, DbErr> {
        Ok(self.text()?.and_then(|text| text.trim().parse().ok()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_databases_read_them() {
        assert_eq!(second(1_772_366_400_999_999), "2026-03-01 12:00:00");
        assert_eq!(moment(1_772_366_400_250_000), "2026-03-01 12:00:00.250000");
        assert_eq!(second(-5), "1970-01-01 00:00:00");
        assert_eq!(second(i64::MAX), "9999-12-31 23:59:59");
        for text in [second(1_709_164_800_000_000), moment(1_709_164_800_000_001)] {
            assert!(
                ebbtide_nova::python::datetime::read(&text).is_some(),
                "{text}"
            );
        }
    }
}
