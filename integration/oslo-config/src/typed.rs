//! Readers by type.

use crate::config::Config;
use crate::error::{ConfigError, Result, ValueLocation};
use crate::option::Opt;
use crate::value::Value;

impl Config {
    /// Text; of another type its value as text.
    ///
    /// # Errors
    /// See [`Config::value`].
    pub fn text(&self, option: &Opt) -> Result<Option<String>> {
        Ok(self.value(option)?.and_then(|value| match value {
            Value::Null => None,
            Value::Text(text) => Some(text),
            other => Some(other.to_string()),
        }))
    }

    /// True or false.
    ///
    /// # Errors
    /// See [`Config::value`].
    pub fn bool(&self, option: &Opt) -> Result<Option<bool>> {
        self.typed(option, |value| match value {
            Value::Bool(value) => Some(Some(value)),
            Value::Null => Some(None),
            _ => None,
        })
    }

    /// A whole number; `None` where it is empty.
    ///
    /// # Errors
    /// See [`Config::value`].
    pub fn int(&self, option: &Opt) -> Result<Option<i64>> {
        self.typed(option, |value| match value {
            Value::Int(value) => Some(Some(value)),
            Value::Null => Some(None),
            _ => None,
        })
    }

    /// A number; `None` where it is empty.
    ///
    /// # Errors
    /// See [`Config::value`].
    pub fn float(&self, option: &Opt) -> Result<Option<f64>> {
        self.typed(option, |value| match value {
            Value::Float(value) => Some(Some(value)),
            Value::Null => Some(None),
            _ => None,
        })
    }

    /// A list, or all values of an option that may come several times; each as text. Empty where
    /// there is none.
    ///
    /// # Errors
    /// See [`Config::value`].
    pub fn list(&self, option: &Opt) -> Result<Vec<String>> {
        Ok(match self.value(option)? {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::List(items)) => items.iter().map(Value::to_string).collect(),
            Some(one) => vec![one.to_string()],
        })
    }

    /// A dictionary; each value as text. Empty where there is none.
    ///
    /// # Errors
    /// See [`Config::value`].
    pub fn dict(&self, option: &Opt) -> Result<Vec<(String, String)>> {
        let read = self.typed(option, |value| match value {
            Value::Dict(entries) => Some(Some(entries)),
            _ => None,
        })?;
        Ok(read
            .unwrap_or_default()
            .into_iter()
            .map(|(key, value)| (key, value.to_string()))
            .collect())
    }

    /// Reads an option and checks that it is declared with the type that is read. A mismatch is an
    /// error in the declaration.
    fn typed<T>(
        &self,
        option: &Opt,
        take: impl Fn(Value) -> Option<Option<T>>,
    ) -> Result<Option<T>> {
        let Some(value) = self.value(option)? else {
            return Ok(None);
        };
        take(value).ok_or_else(|| ConfigError::Value {
            place: Box::new(ValueLocation::Default),
            group: option.group.to_owned(),
            name: option.name.to_owned(),
            shown: "***".to_owned(),
            allowed: format!(
                "the option is declared as {:?}, and is read as another type",
                option.kind
            ),
        })
    }
}
