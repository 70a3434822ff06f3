//! Between values as Python knows them and `serde_json`'s.

use super::{Dict, Value};

/// As `serde_json` holds it. Whole numbers beyond 64 bits become floats. JSON has no NaN and no
/// infinities: they become the text that the oracle writes for them, and that `float()` reads back.
#[must_use]
pub fn to_json(value: &Value) -> serde_json::Value {
    match value {
        Value::None | Value::Object(_) => serde_json::Value::Null,
        Value::Bool(b) => (*b).into(),
        Value::Int(n) => i64::try_from(*n)
            .map(Into::into)
            .or_else(|_| u64::try_from(*n).map(Into::into))
            .unwrap_or_else(|_| (*n as f64).into()),
        Value::Float(f) if f.is_nan() => "NaN".into(),
        Value::Float(f) if f.is_infinite() => {
            (if *f > 0.0 { "Infinity" } else { "-Infinity" }).into()
        }
        Value::Float(f) => (*f).into(),
        Value::Str(text) => text.as_str().into(),
        Value::List(items) => items.iter().map(to_json).collect(),
        Value::Dict(dict) => serde_json::Value::Object(
            dict.iter()
                .map(|(key, value)| (key.clone(), to_json(value)))
                .collect(),
        ),
    }
}

/// As Python would read it.
#[must_use]
pub fn from_json(value: &serde_json::Value) -> Value {
    match value {
        serde_json::Value::Null => Value::None,
        serde_json::Value::Bool(b) => Value::Bool(*b),
        serde_json::Value::Number(n) => n
            .as_i64()
            .map(i128::from)
            .or_else(|| n.as_u64().map(i128::from))
            .map_or_else(|| Value::Float(n.as_f64().unwrap_or(f64::NAN)), Value::Int),
        serde_json::Value::String(text) => Value::Str(text.clone()),
        serde_json::Value::Array(items) => Value::List(items.iter().map(from_json).collect()),
        serde_json::Value::Object(map) => Value::Dict(
            map.iter()
                .map(|(key, value)| (key.clone(), from_json(value)))
                .collect::<Dict<Value>>(),
        ),
    }
}
