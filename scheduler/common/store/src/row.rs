//! From values to rows, and what no row may hold. Which columns a record fills is in
//! [`tables`](crate::tables).

use crate::StoreError;
use crate::tables::{MAX_KEY_CHARS, Table};
use ebbtide_model::Timestamp;
use sea_orm::Value;
use serde::Serialize;

/// One row: the values of [`Table::columns`], in that order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) values: Vec<Value>,
    /// Roughly how many bytes it adds to a statement.
    pub(crate) bytes: usize,
}

/// Makes the rows of one kind of database server.
pub(crate) struct Encoder {
    /// Largest record or message, in bytes.
    pub(crate) max_record_bytes: usize,
}

pub(crate) type EncodedRow = Result<Row, StoreError>;

impl Encoder {
    pub(crate) fn with_record(
        &self,
        table: &'static Table,
        key: &str,
        mut values: Vec<Value>,
        record: &impl Serialize,
    ) -> EncodedRow {
        let json = serde_json::to_string(record)
            .map_err(|error| unstorable(table, key, error.to_string()))?;
        self.fits(table, key, json.len())?;
        let bytes = json.len() + 256;
        values.push(Value::String(Some(json)));
        Ok(Row { values, bytes })
    }

    pub(crate) fn fits(
        &self,
        table: &'static Table,
        key: &str,
        bytes: usize,
    ) -> Result<(), StoreError> {
        if bytes <= self.max_record_bytes {
            return Ok(());
        }
        Err(StoreError::TooLarge {
            table: table.name,
            key: key.to_owned(),
            bytes,
            limit: self.max_record_bytes,
        })
    }
}

pub(crate) fn text(value: &str) -> Value {
    Value::String(Some(value.to_owned()))
}

pub(crate) fn millis(at: Timestamp) -> Value {
    Value::BigInt(Some(at.as_millis()))
}

/// A text that goes into an indexed column.
pub(crate) fn key(table: &'static Table, record: &str, value: &str) -> Result<Value, StoreError> {
    check(table, record, value, MAX_KEY_CHARS)?;
    Ok(text(value))
}

/// Checks a name that must be there and goes into a column of its own.
pub(crate) fn check_key(table: &'static Table, what: &str, value: &str) -> Result<(), StoreError> {
    if value.is_empty() {
        return Err(unstorable(table, what, "it is empty".to_owned()));
    }
    check(table, what, value, MAX_KEY_CHARS)
}

/// What the databases do not agree on is refused before they see it: PostgreSQL takes no NUL,
/// MariaDB ignores blanks at the end of keys, SQLite takes any length.
pub(crate) fn check(
    table: &'static Table,
    record: &str,
    value: &str,
    max_chars: usize,
) -> Result<(), StoreError> {
    let reason = if value.chars().count() > max_chars {
        format!("a name in it has more than {max_chars} characters")
    } else if value.contains('\0') {
        "a name in it contains the character NUL".to_owned()
    } else if value.ends_with(' ') {
        "a name in it ends with a blank".to_owned()
    } else {
        return Ok(());
    };
    let shown = ebbtide_model::names::shorten(record);
    Err(unstorable(table, &shown, reason))
}

fn unstorable(table: &'static Table, key: &str, reason: String) -> StoreError {
    StoreError::Unstorable {
        table: table.name,
        key: key.to_owned(),
        reason,
    }
}

/// JSON has no infinities and no NaN; serde_json writes `null`, which could not be read again.
pub(crate) fn finite(
    table: &'static Table,
    key: &str,
    what: &str,
    number: f64,
) -> Result<(), StoreError> {
    if number.is_finite() {
        return Ok(());
    }
    Err(unstorable(table, key, format!("{what} is {number}")))
}
