//! Values that were given for options, on their way into the fields.

use crate::fault::NovaException;
use crate::python::Value;
use std::collections::BTreeMap;

/// What was given, converted, by `group.name`.
pub(crate) struct OptionValues(pub(crate) BTreeMap<String, Value>);

impl OptionValues {
    pub(crate) fn set(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// Null is as good as false.
    pub(crate) fn bool(&self, name: &str, field: &mut bool) {
        match self.set(name) {
            Some(Value::Bool(value)) => *field = *value,
            Some(Value::None) => *field = false,
            _ => {}
        }
    }

    pub(crate) fn int(&self, name: &str, field: &mut i64) {
        if let Some(Value::Int(value)) = self.set(name) {
            *field = clamp(*value);
        }
    }

    pub(crate) fn optional_int(&self, name: &str, field: &mut Option<i64>) {
        match self.set(name) {
            Some(Value::Int(value)) => *field = Some(clamp(*value)),
            Some(Value::None) => *field = None,
            _ => {}
        }
    }

    pub(crate) fn float(&self, name: &str, field: &mut f64) {
        if let Some(Value::Float(value)) = self.set(name) {
            *field = *value;
        }
    }

    pub(crate) fn optional_float(&self, name: &str, field: &mut Option<f64>) {
        match self.set(name) {
            Some(Value::Float(value)) => *field = Some(*value),
            Some(Value::None) => *field = None,
            _ => {}
        }
    }

    pub(crate) fn optional_text(&self, name: &str, field: &mut Option<String>) {
        match self.set(name) {
            Some(Value::Str(value)) => *field = Some(value.clone()),
            Some(Value::None) => *field = None,
            _ => {}
        }
    }

    /// A list that Nova walks at start: null is a TypeError there.
    pub(crate) fn words(&self, name: &str, field: &mut Vec<String>) -> Result<(), NovaException> {
        match self.set(name) {
            Some(Value::List(values)) => *field = values.iter().map(Value::text).collect(),
            Some(_) => return Err(NovaException::new("TypeError", format!("{name} is null"))),
            None => {}
        }
        Ok(())
    }
}

/// A number within 64 bits.
pub(crate) fn clamp(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}
