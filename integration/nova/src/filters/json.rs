//! JsonFilter (`json_filter.py`).

use super::attributes;
use super::contract::{Context, Filter};
use crate::fault::NovaException;
use crate::model::{HostState, RequestSpec};
use crate::python::{Value, json};
use std::cmp::Ordering;

/// The hint `query` is JSON, a prefix expression such as `["and", [">=", "$free_ram_mb", 1024],
/// …]`, and it is true of the host.
pub struct Json;

impl Filter for Json {
    fn name(&self) -> &'static str {
        "JsonFilter"
    }

    fn passes(
        &self,
        host: &HostState,
        spec: &RequestSpec,
        _: &Context<'_>,
    ) -> Result<bool, NovaException> {
        let query = match spec.hint("query") {
            None | Some([]) => return Ok(true),
            Some([query]) if query.is_empty() => return Ok(true),
            Some([query]) => query,
            Some(_) => return Err(NovaException::new("TypeError", "several hints query")),
        };
        // A list, which only `not` gives, is true if any of it is.
        Ok(match evaluate(&json::loads(query)?, host)? {
            Value::List(values) => values.iter().any(Value::truth),
            value => value.truth(),
        })
    }
}

/// The value of an expression. What is empty is true; text is read as a list of its characters.
fn evaluate(query: &Value, host: &HostState) -> Result<Value, NovaException> {
    if !query.truth() {
        return Ok(Value::Bool(true));
    }
    let parts: Vec<Value> = match query {
        Value::List(parts) => parts.clone(),
        Value::Str(text) => text.chars().map(|c| Value::Str(c.to_string())).collect(),
        Value::Dict(_) => {
            return Err(NovaException::new(
                "KeyError",
                "a query is a list, not a dict",
            ));
        }
        _ => {
            return Err(NovaException::new(
                "TypeError",
                format!("{} is no query", query.repr()),
            ));
        }
    };
    let Some((operator, arguments)) = parts.split_first() else {
        return Ok(Value::Bool(true));
    };
    let operator = match operator {
        Value::Str(operator) => operator.as_str(),
        Value::List(_) | Value::Dict(_) => {
            return Err(NovaException::new("TypeError", "an operator is text"));
        }
        other => return Err(NovaException::new("KeyError", other.repr())),
    };
    if !matches!(
        operator,
        "=" | "<" | ">" | "in" | "<=" | ">=" | "not" | "or" | "and"
    ) {
        return Err(NovaException::new("KeyError", operator));
    }
    let mut cooked = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let value = match argument {
            Value::List(_) => evaluate(argument, host)?,
            Value::Str(text) => resolve(text, host)?,
            other => other.clone(),
        };
        // What does not resolve is dropped.
        if !matches!(value, Value::None) {
            cooked.push(value);
        }
    }
    Ok(match operator {
        "not" => Value::List(
            cooked
                .iter()
                .map(|value| Value::Bool(!value.truth()))
                .collect(),
        ),
        "or" => Value::Bool(cooked.iter().any(Value::truth)),
        "and" => Value::Bool(cooked.iter().all(Value::truth)),
        _ => Value::Bool(compare(operator, &cooked)?),
    })
}

/// Whether the first argument stands so to all others (or, for `in`, is one of them); fewer than
/// two never do.
fn compare(operator: &str, arguments: &[Value]) -> Result<bool, NovaException> {
    let Some((first, others)) = arguments
        .split_first()
        .filter(|(_, others)| !others.is_empty())
    else {
        return Ok(false);
    };
    if operator == "in" {
        return Ok(others.iter().any(|other| first.equals(other)));
    }
    // All are compared, so that one that has no order raises even after one that fails.
    let mut good = true;
    for other in others {
        good &= match operator {
            "=" => first.equals(other),
            "<" => first.compare(other)? == Some(Ordering::Less),
            ">" => first.compare(other)? == Some(Ordering::Greater),
            "<=" => matches!(
                first.compare(other)?,
                Some(Ordering::Less | Ordering::Equal)
            ),
            _ => matches!(
                first.compare(other)?,
                Some(Ordering::Greater | Ordering::Equal)
            ),
        };
    }
    Ok(good)
}

/// Text is itself; `$name.key` is an attribute of the host state and then a key. Empty text and
/// what is missing are None.
fn resolve(text: &str, host: &HostState) -> Result<Value, NovaException> {
    if text.is_empty() {
        return Ok(Value::None);
    }
    let Some(path) = text.strip_prefix('$') else {
        return Ok(Value::Str(text.to_owned()));
    };
    let mut names = path.split('.');
    let mut value =
        attributes::attribute(host, names.next().unwrap_or_default()).unwrap_or(Value::None);
    for name in names {
        let next = match &value {
            Value::None => return Ok(Value::None),
            Value::Dict(entries) => entries.get(name),
            Value::Object(object) if object.mapping && name != "data" => {
                object.attributes.get(name)
            }
            Value::Object(object) if object.mapping => None,
            other => {
                return Err(NovaException::new(
                    "AttributeError",
                    format!("{} has no keys", other.repr()),
                ));
            }
        };
        value = next.cloned().unwrap_or(Value::None);
    }
    Ok(value)
}
