//! What filters read from the metadata of a host's aggregates (`nova/scheduler/filters/utils.py`).
//!
//! Nova holds the values of a key in a set, whose order is that of a hash. Ours is the order of the
//! aggregates in the input, then that of the values in the text, each value once at its first
//! place.

use crate::fault::NovaException;
use crate::model::HostState;
use crate::python::{number, text};

/// The values of a key over the host's aggregates, as they are.
pub(super) fn of_key<'a>(host: &'a HostState, key: &str) -> Vec<&'a str> {
    let mut values: Vec<&str> = Vec::new();
    for value in host
        .aggregates
        .iter()
        .filter_map(|aggregate| aggregate.metadata.get(key))
    {
        if !values.contains(&value.as_str()) {
            values.push(value);
        }
    }
    values
}

/// The values of a key over the host's aggregates, split at commas and stripped. Never empty for a
/// key that is set: empty text is one empty value.
pub(super) fn split<'a>(host: &'a HostState, key: &str) -> Vec<&'a str> {
    let mut values: Vec<&str> = Vec::new();
    for value in of_key(host, key)
        .into_iter()
        .flat_map(|value| value.split(','))
        .map(text::strip)
    {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

/// All keys of the host's aggregates, each once.
pub(super) fn keys(host: &HostState) -> Vec<&str> {
    let mut keys: Vec<&str> = Vec::new();
    for key in host
        .aggregates
        .iter()
        .flat_map(|aggregate| aggregate.metadata.keys())
    {
        if !keys.contains(&key.as_str()) {
            keys.push(key);
        }
    }
    keys
}

/// The least of a key's values, or the configured limit where there is none or where one of them is
/// no whole number.
pub(super) fn least(host: &HostState, key: &str, configured: Option<i64>) -> Option<i128> {
    let configured = configured.map(i128::from);
    let values = of_key(host, key);
    let numbers: Option<Vec<i128>> = values.into_iter().map(number::int).collect();
    numbers.map_or(configured, |numbers| {
        numbers.into_iter().min().or(configured)
    })
}

/// Whether a count is below a limit.
///
/// # Errors
/// TypeError without a limit: the option is null.
pub(super) fn below(count: i64, limit: Option<i128>) -> Result<bool, NovaException> {
    limit
        .map(|limit| i128::from(count) < limit)
        .ok_or_else(|| NovaException::new("TypeError", "the limit is null"))
}
