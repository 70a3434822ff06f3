//! How Nova's versioned objects take values in (`oslo_versionedobjects/fields.py`): each field
//! brings what it is given to its type or raises.

use crate::fault::NovaException;
use crate::python::{Dict, Value, number};

/// ValueError.
pub fn value_error(message: impl Into<String>) -> NovaException {
    NovaException::new("ValueError", message)
}

/// TypeError.
pub fn type_error(message: impl Into<String>) -> NovaException {
    NovaException::new("TypeError", message)
}

/// `object[key]`.
///
/// # Errors
/// KeyError.
pub fn key<'a>(object: &'a Dict<Value>, name: &str) -> Result<&'a Value, NovaException> {
    object
        .get(name)
        .ok_or_else(|| NovaException::new("KeyError", format!("there is no {name:?}")))
}

/// `object.get(key)` where null and absent are alike.
pub fn get<'a>(object: &'a Dict<Value>, name: &str) -> Option<&'a Value> {
    object.get(name).filter(|v| !matches!(v, Value::None))
}

/// A value that has to be a dict.
///
/// # Errors
/// TypeError, as Python gives for an index or an attribute of something else.
pub fn dict(value: &Value) -> Result<&Dict<Value>, NovaException> {
    match value {
        Value::Dict(dict) => Ok(dict),
        other => Err(type_error(format!("a {} is no object", other.class()))),
    }
}

/// `int(value)` without limits.
///
/// # Errors
/// ValueError for text that is no number and for NaN, OverflowError for infinities, TypeError for
/// anything else.
pub fn wide(value: &Value) -> Result<i128, NovaException> {
    match value {
        Value::Int(n) => Ok(*n),
        Value::Bool(b) => Ok(i128::from(*b)),
        Value::Float(f) => truncated(*f),
        Value::Str(text) => {
            number::int(text).ok_or_else(|| value_error(format!("{text:?} is no whole number")))
        }
        other => Err(type_error(format!("a {} is no number", other.class()))),
    }
}

/// `int(float)`.
///
/// # Errors
/// ValueError for NaN, OverflowError for infinities.
pub fn truncated(number: f64) -> Result<i128, NovaException> {
    if number.is_nan() {
        Err(value_error("NaN is no whole number"))
    } else if number.is_infinite() {
        Err(NovaException::new(
            "OverflowError",
            "infinity is no whole number",
        ))
    } else {
        // Beyond 128 bits the cast stops at the limit; no quantity comes near it.
        Ok(number as i128)
    }
}

/// A whole number within 64 bits: what is beyond stops at the limit, as a database column would
/// refuse it.
pub fn narrow(number: i128) -> i64 {
    i64::try_from(number).unwrap_or(if number < 0 { i64::MIN } else { i64::MAX })
}

/// An IntegerField.
///
/// # Errors
/// See [`wide`]; ValueError for null.
pub fn integer(value: &Value) -> Result<i64, NovaException> {
    not_none(value)?;
    wide(value).map(narrow)
}

/// A nullable IntegerField.
///
/// # Errors
/// See [`wide`].
pub fn nullable_integer(value: Option<&Value>) -> Result<Option<i64>, NovaException> {
    nullable(value, integer)
}

/// A FloatField.
///
/// # Errors
/// ValueError for null and for text that is no number, TypeError for anything that is none.
pub fn float(value: &Value) -> Result<f64, NovaException> {
    not_none(value)?;
    match value {
        Value::Int(n) => Ok(*n as f64),
        Value::Bool(b) => Ok(f64::from(u8::from(*b))),
        Value::Float(f) => Ok(*f),
        Value::Str(text) => {
            number::float(text).ok_or_else(|| value_error(format!("{text:?} is no number")))
        }
        other => Err(type_error(format!("a {} is no number", other.class()))),
    }
}

/// A StringField: text and numbers.
///
/// # Errors
/// ValueError for everything else.
pub fn string(value: &Value) -> Result<String, NovaException> {
    match value {
        Value::Str(text) => Ok(text.clone()),
        Value::Int(_) | Value::Float(_) | Value::Bool(_) => Ok(value.text()),
        other => Err(value_error(format!("a {} is no text", other.class()))),
    }
}

/// A nullable StringField.
///
/// # Errors
/// See [`string`].
pub fn nullable_string(value: Option<&Value>) -> Result<Option<String>, NovaException> {
    nullable(value, string)
}

/// A StringField that knows its values.
///
/// # Errors
/// ValueError for any other.
pub fn one_of(value: &Value, known: &[&str]) -> Result<String, NovaException> {
    match value {
        Value::Str(text) if known.contains(&text.as_str()) => Ok(text.clone()),
        other => Err(value_error(format!(
            "{} is none of {known:?}",
            other.text()
        ))),
    }
}

/// Null stays null.
///
/// # Errors
/// Those of `read`.
pub fn nullable<T>(
    value: Option<&Value>,
    read: impl Fn(&Value) -> Result<T, NovaException>,
) -> Result<Option<T>, NovaException> {
    match value {
        None | Some(Value::None) => Ok(None),
        Some(value) => read(value).map(Some),
    }
}

/// A list field.
///
/// # Errors
/// ValueError if it is no list; those of `read` for its elements.
pub fn list<T>(
    value: &Value,
    read: impl Fn(&Value) -> Result<T, NovaException>,
) -> Result<Vec<T>, NovaException> {
    match value {
        Value::List(items) => items.iter().map(read).collect(),
        other => Err(value_error(format!("a {} is no list", other.class()))),
    }
}

/// A dict field.
///
/// # Errors
/// ValueError if it is no dict; those of `read` for its values.
pub fn map<T, C: FromIterator<(String, T)>>(
    value: &Value,
    read: impl Fn(&Value) -> Result<T, NovaException>,
) -> Result<C, NovaException> {
    match value {
        Value::Dict(dict) => dict
            .iter()
            .map(|(key, value)| Ok((key.clone(), read(value)?)))
            .collect(),
        other => Err(value_error(format!("a {} is no dictionary", other.class()))),
    }
}

fn not_none(value: &Value) -> Result<(), NovaException> {
    match value {
        Value::None => Err(value_error("null is not allowed here")),
        _ => Ok(()),
    }
}
