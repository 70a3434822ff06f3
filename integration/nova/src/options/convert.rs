//! How oslo.config turns a given value into an option's value (`oslo_config/types.py`), and what it
//! raises.

use crate::fault::NovaException;
use crate::python::{Value, number, text};

/// An option as Nova declares it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct OptionDeclaration<'a> {
    kind: &'a str,
    least: Option<f64>,
    most: Option<f64>,
    choices: &'a str,
}

/// What Nova declares, one option a line: group, name, kind, least, most, choices. Written by
/// `integration/nova/declared_options.py`.
const DECLARED: &str = include_str!("declared.tsv");

/// The declaration of `group.name`.
///
/// # Errors
/// NoSuchGroupError, NoSuchOptError.
pub(crate) fn declared(
    group: &str,
    name: &str,
) -> Result<OptionDeclaration<'static>, NovaException> {
    let mut group_known = false;
    for line in DECLARED.lines() {
        let mut columns = line.split('\t');
        let mut column = || columns.next().unwrap_or_default();
        if column() != group {
            continue;
        }
        group_known = true;
        if column() == name {
            return Ok(OptionDeclaration {
                kind: column(),
                least: column().parse().ok(),
                most: column().parse().ok(),
                choices: column(),
            });
        }
    }
    if group_known {
        Err(NovaException::new(
            "NoSuchOptError",
            format!("no such option {name} in group [{group}]"),
        ))
    } else {
        Err(NovaException::new(
            "NoSuchGroupError",
            format!("no such group [{group}]"),
        ))
    }
}

/// Every option that Nova declares, by group and name.
pub fn declared_names() -> impl Iterator<Item = (&'static str, &'static str)> {
    DECLARED.lines().filter_map(|line| {
        let mut columns = line.split('\t');
        Some((columns.next()?, columns.next()?))
    })
}

/// Checks what a configuration says of an option that shapes a decision.
///
/// # Errors
/// What is allowed, in our words.
pub fn check(group: &str, name: &str, given: &Value) -> Result<(), String> {
    let option = declared(group, name).map_err(|fault| fault.message)?;
    option
        .convert(given)
        .map(drop)
        .map_err(|_| option.allowed())
}

impl OptionDeclaration<'_> {
    fn allowed(&self) -> String {
        let what = match self.kind {
            "bool" => "true, yes, on, 1, false, no, off, 0",
            "int" => "a whole number",
            "float" => "a number",
            "words" => "a list with commas between",
            "ints" => "a list of whole numbers with commas between",
            _ => "text",
        };
        let bound = |word: &str, bound: Option<f64>| {
            bound.map_or(String::new(), |bound| format!(" of {word} {bound}"))
        };
        if self.choices.is_empty() {
            let (least, most) = (bound("at least", self.least), bound("at most", self.most));
            format!("allowed is {what}{least}{most}")
        } else {
            format!("allowed is one of {}", self.choices.replace('|', ", "))
        }
    }

    /// The value that `set_override` keeps. Null stays null, whatever the type.
    ///
    /// # Errors
    /// ValueError, TypeError, AttributeError, OverflowError, as the type raises.
    pub(crate) fn convert(&self, given: &Value) -> Result<Value, NovaException> {
        if matches!(given, Value::None) {
            return Ok(Value::None);
        }
        match self.kind {
            "bool" => boolean(given),
            "int" => self.integer(given),
            "float" => self.float(given),
            "str" => self.string(given),
            "words" => list(given, |item| self.string(item)),
            "ints" => list(given, |item| self.integer(item)),
            "names" => names(given),
            _ => Ok(given.clone()),
        }
    }

    fn string(&self, given: &Value) -> Result<Value, NovaException> {
        let text = given.text();
        if self.choices.is_empty() || self.choices.split('|').any(|choice| choice == text) {
            Ok(Value::Str(text))
        } else {
            Err(bad_value(given))
        }
    }

    fn integer(&self, given: &Value) -> Result<Value, NovaException> {
        if text::strip(&given.text()).is_empty() {
            return Ok(Value::None);
        }
        let value = int_of(given)?;
        self.bounded(Value::Int(value), given)
    }

    fn float(&self, given: &Value) -> Result<Value, NovaException> {
        if text::strip(&given.text()).is_empty() {
            return Ok(Value::None);
        }
        let value = float_of(given)?;
        self.bounded(Value::Float(value), given)
    }

    fn bounded(&self, value: Value, given: &Value) -> Result<Value, NovaException> {
        use std::cmp::Ordering::{Greater, Less};
        let beyond = |bound: Option<f64>, side| {
            bound.is_some_and(|bound| {
                value
                    .compare(&Value::Float(bound))
                    .is_ok_and(|order| order == Some(side))
            })
        };
        let chosen =
            self.choices.is_empty() || self.choices.split('|').any(|choice| choice == value.text());
        if beyond(self.least, Less) || beyond(self.most, Greater) || !chosen {
            Err(bad_value(given))
        } else {
            Ok(value)
        }
    }
}

fn bad_value(given: &Value) -> NovaException {
    NovaException::new("ValueError", format!("{} is not allowed", given.repr()))
}

pub(crate) fn boolean(given: &Value) -> Result<Value, NovaException> {
    match given {
        Value::Bool(_) => Ok(given.clone()),
        Value::Str(text) => match text.to_lowercase().as_str() {
            "true" | "1" | "on" | "yes" => Ok(Value::Bool(true)),
            "false" | "0" | "off" | "no" => Ok(Value::Bool(false)),
            _ => Err(bad_value(given)),
        },
        _ => Err(NovaException::new(
            "AttributeError",
            "a boolean is not a number or a list",
        )),
    }
}

/// `int(value)`: floats lose their fraction.
///
/// # Errors
/// ValueError, TypeError, OverflowError.
pub fn int_of(given: &Value) -> Result<i128, NovaException> {
    match given {
        Value::Bool(value) => Ok(i128::from(*value)),
        Value::Int(value) => Ok(*value),
        Value::Float(value) if value.is_nan() => Err(bad_value(given)),
        Value::Float(value) if value.is_infinite() => Err(NovaException::new(
            "OverflowError",
            "infinity is not a whole number",
        )),
        #[allow(
            clippy::cast_possible_truncation,
            reason = "int() truncates, and the limit of 128 bits is documented"
        )]
        Value::Float(value) => Ok(value.trunc() as i128),
        Value::Str(text) => number::int(text).ok_or_else(|| bad_value(given)),
        _ => Err(NovaException::new(
            "TypeError",
            format!("{} is no number", given.repr()),
        )),
    }
}

/// `float(value)`.
///
/// # Errors
/// ValueError, TypeError.
pub fn float_of(given: &Value) -> Result<f64, NovaException> {
    match given {
        Value::Bool(value) => Ok(f64::from(u8::from(*value))),
        #[allow(
            clippy::cast_precision_loss,
            reason = "float() rounds to nearest, as this does"
        )]
        Value::Int(value) => Ok(*value as f64),
        Value::Float(value) => Ok(*value),
        Value::Str(text) => number::float(text).ok_or_else(|| bad_value(given)),
        _ => Err(NovaException::new(
            "TypeError",
            format!("{} is no number", given.repr()),
        )),
    }
}

/// A list, or text with commas. Where an item of the text is bad, oslo.config tries it again
/// together with the next one.
fn list(
    given: &Value,
    item: impl Fn(&Value) -> Result<Value, NovaException>,
) -> Result<Value, NovaException> {
    let whole = match given {
        Value::List(values) => {
            return values
                .iter()
                .map(item)
                .collect::<Result<_, _>>()
                .map(Value::List);
        }
        Value::Str(text) => text,
        _ => {
            return Err(NovaException::new(
                "AttributeError",
                "a list is not a number or a dict",
            ));
        }
    };
    let whole = text::strip(whole).trim_end_matches(',');
    if whole.is_empty() {
        return Ok(Value::List(Vec::new()));
    }
    let mut values = Vec::new();
    let mut parts = whole.split(',');
    while let Some(part) = parts.next() {
        let mut part = part.to_owned();
        loop {
            match item(&Value::Str(text::strip(&part).to_owned())) {
                Ok(value) => {
                    values.push(value);
                    break;
                }
                Err(fault) => {
                    part = format!("{part},{}", parts.next().ok_or(fault)?);
                }
            }
        }
    }
    Ok(Value::List(values))
}

/// A multi-valued option: whatever can be walked, each as text. Text is walked by characters, a
/// dict by its keys.
fn names(given: &Value) -> Result<Value, NovaException> {
    let values = match given {
        Value::List(values) => values
            .iter()
            .map(|value| Value::Str(value.text()))
            .collect(),
        Value::Str(text) => text.chars().map(|c| Value::Str(c.to_string())).collect(),
        Value::Dict(entries) => entries.keys().map(|key| Value::Str(key.clone())).collect(),
        _ => {
            return Err(NovaException::new(
                "TypeError",
                format!("{} cannot be walked", given.repr()),
            ));
        }
    };
    Ok(Value::List(values))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(group: &str, name: &str, given: Value) -> Result<String, &'static str> {
        declared(group, name)
            .and_then(|declared| declared.convert(&given))
            .map(|value| value.repr())
            .map_err(|fault| fault.class)
    }

    #[test]
    fn an_unknown_option_and_an_unknown_group_are_told_apart() {
        assert_eq!(
            read("filter_scheduler", "nosuch", Value::None),
            Err("NoSuchOptError")
        );
        assert_eq!(read("nosuch", "x", Value::None), Err("NoSuchGroupError"));
    }

    #[test]
    fn numbers_convert_within_their_bounds() {
        let max = |given: Value| read("filter_scheduler", "max_io_ops_per_host", given);
        assert_eq!(max(Value::Float(2.7)), Ok("2".into()));
        assert_eq!(max("7".into()), Ok("7".into()));
        assert_eq!(max("".into()), Ok("None".into()));
        assert_eq!(max("2.7".into()), Err("ValueError"));
        assert_eq!(max(Value::Int(-1)), Err("ValueError"));
        assert_eq!(max(Value::List(vec![])), Err("TypeError"));
        assert_eq!(
            read(
                "filter_scheduler",
                "pci_weight_multiplier",
                Value::Float(-1.0)
            ),
            Err("ValueError")
        );
        assert_eq!(
            read("filter_scheduler", "pci_weight_multiplier", "nan".into()),
            Ok("nan".into())
        );
    }

    #[test]
    fn a_boolean_is_a_word_without_spaces_or_a_boolean() {
        let track = |given: Value| read("filter_scheduler", "track_instance_changes", given);
        assert_eq!(track("Yes".into()), Ok("True".into()));
        assert_eq!(track(" yes".into()), Err("ValueError"));
        assert_eq!(track(Value::Int(1)), Err("AttributeError"));
    }

    #[test]
    fn a_list_is_a_list_or_text_with_commas() {
        let filters = |given: Value| read("filter_scheduler", "enabled_filters", given);
        assert_eq!(filters("A, B,".into()), Ok("['A', 'B']".into()));
        assert_eq!(
            filters(Value::List(vec![Value::Int(1), " A".into()])),
            Ok("['1', ' A']".into())
        );
        assert_eq!(filters(Value::Int(5)), Err("AttributeError"));
    }
}
