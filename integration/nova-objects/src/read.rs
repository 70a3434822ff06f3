//! How fields of versioned objects take values in (`oslo_versionedobjects/fields.py`), with bounds
//! where Nova's database has them.

use crate::error::{ObjectError, Result};
use ebbtide_nova::python::datetime;
use ebbtide_nova::python::{Dict, Value, number};
use std::collections::BTreeSet;

/// Largest number in an integer column of Nova's databases.
pub(crate) const COLUMN_MAX: i64 = 2_147_483_647;

fn kind(value: &Value) -> &'static str {
    match value {
        Value::None => "null",
        Value::Bool(_) => "a boolean",
        Value::Int(_) | Value::Float(_) => "a number",
        Value::Str(_) => "text",
        Value::List(_) => "a list",
        Value::Dict(_) | Value::Object(_) => "an object",
    }
}

fn refused<T>(value: &Value, wanted: &str) -> Result<T> {
    Err(ObjectError::value(format!(
        "{} is not {wanted}",
        kind(value)
    )))
}

/// An IntegerField: numbers, and text that `int()` takes.
pub(crate) fn integer(value: &Value) -> Result<i64> {
    let whole = match value {
        Value::Int(n) => Some(*n),
        Value::Bool(b) => Some(i128::from(*b)),
        // `int()` cuts off the fraction; NaN and what does not fit fall out at the end.
        #[allow(
            clippy::cast_possible_truncation,
            reason = "int() truncates; the range is checked"
        )]
        Value::Float(f) if f.is_finite() && f.abs() < 9.2e18 => Some(f.trunc() as i128),
        Value::Str(text) => number::int(text),
        Value::Float(_) => None,
        other => return refused(other, "a whole number"),
    };
    whole
        .and_then(|n| i64::try_from(n).ok())
        .ok_or_else(|| ObjectError::value("is not a whole number of 64 bits"))
}

/// A whole number from 0 to what the database's column holds.
pub(crate) fn quantity(value: &Value) -> Result<i64> {
    let number = integer(value)?;
    if (0..=COLUMN_MAX).contains(&number) {
        Ok(number)
    } else {
        Err(ObjectError::value(format!(
            "{number} is not from 0 to {COLUMN_MAX}"
        )))
    }
}

/// A FloatField.
pub(crate) fn float(value: &Value) -> Result<f64> {
    let number = match value {
        #[allow(clippy::cast_precision_loss, reason = "float() rounds as well")]
        Value::Int(n) => Some(*n as f64),
        Value::Bool(b) => Some(f64::from(u8::from(*b))),
        Value::Float(f) => Some(*f),
        Value::Str(text) => number::float(text),
        other => return refused(other, "a number"),
    };
    number.ok_or_else(|| ObjectError::value("is not a number"))
}

/// A BooleanField: `bool()` of anything.
pub(crate) fn boolean(value: &Value) -> Result<bool> {
    Ok(value.truth())
}

/// A StringField: text and numbers.
pub(crate) fn text(value: &Value) -> Result<String> {
    match value {
        Value::Str(text) => Ok(text.clone()),
        Value::Int(_) | Value::Float(_) | Value::Bool(_) => Ok(value.text()),
        other => refused(other, "text"),
    }
}

/// A list of what `read` takes.
pub(crate) fn list<T>(value: &Value, read: impl Fn(&Value) -> Result<T>) -> Result<Vec<T>> {
    let Value::List(items) = value else {
        return refused(value, "a list");
    };
    items
        .iter()
        .enumerate()
        .map(|(index, item)| read(item).map_err(|error| error.within_item(index)))
        .collect()
}

/// A list of text.
pub(crate) fn texts(value: &Value) -> Result<Vec<String>> {
    list(value, text)
}

/// A set of text; on the wire it is a list.
pub(crate) fn text_set(value: &Value) -> Result<BTreeSet<String>> {
    Ok(texts(value)?.into_iter().collect())
}

/// A list of lists of text.
pub(crate) fn text_lists(value: &Value) -> Result<Vec<Vec<String>>> {
    list(value, texts)
}

/// A set of whole numbers; on the wire it is a list.
pub(crate) fn integer_set(value: &Value) -> Result<BTreeSet<i64>> {
    Ok(list(value, integer)?.into_iter().collect())
}

/// A dictionary.
pub(crate) fn dict(value: &Value) -> Result<&Dict<Value>> {
    match value {
        Value::Dict(dict) => Ok(dict),
        other => refused(other, "an object"),
    }
}

/// A dictionary of what `read` takes, in the order of the message.
pub(crate) fn map<T, C: FromIterator<(String, T)>>(
    value: &Value,
    read: impl Fn(&Value) -> Result<T>,
) -> Result<C> {
    dict(value)?
        .iter()
        .map(|(key, item)| {
            read(item)
                .map(|item| (key.clone(), item))
                .map_err(|error| error.within(key))
        })
        .collect()
}

/// One of some words.
pub(crate) fn one_of(value: &Value, words: &[&str]) -> Result<String> {
    let word = text(value)?;
    if words.contains(&word.as_str()) {
        Ok(word)
    } else {
        Err(ObjectError::value(format!("is none of {words:?}")))
    }
}

/// A DateTimeField: microseconds since 1970, UTC.
pub(crate) fn time(value: &Value) -> Result<i64> {
    let Value::Str(text) = value else {
        return refused(value, "a time in ISO 8601");
    };
    // The reader cuts at bytes; times are plain ASCII anyway.
    if !text.is_ascii() {
        return Err(ObjectError::value("is not a time in ISO 8601"));
    }
    datetime::read(text).ok_or_else(|| ObjectError::value("is not a time in ISO 8601"))
}

/// Null stays null.
pub(crate) fn nullable<T>(
    value: &Value,
    read: impl FnOnce(&Value) -> Result<T>,
) -> Result<Option<T>> {
    match value {
        Value::None => Ok(None),
        value => read(value).map(Some),
    }
}

/// A member of a plain dictionary; unset and null are one.
pub(crate) fn member<T>(
    object: &Dict<Value>,
    name: &str,
    read: impl FnOnce(&Value) -> Result<T>,
) -> Result<Option<T>> {
    match object.get(name) {
        None | Some(Value::None) => Ok(None),
        Some(value) => read(value).map(Some).map_err(|error| error.within(name)),
    }
}

/// A member of a plain dictionary that is empty or zero where it is unset or null.
pub(crate) fn or_default<T: Default>(
    object: &Dict<Value>,
    name: &str,
    read: impl FnOnce(&Value) -> Result<T>,
) -> Result<T> {
    Ok(member(object, name, read)?.unwrap_or_default())
}
