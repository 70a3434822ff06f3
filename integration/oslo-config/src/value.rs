//! Values, and how they are read from text (`oslo_config/types.py`).

use crate::option::{OptionType, Scalar};
use crate::parse::is_space;
use std::fmt;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A number that was left empty.
    Null,
    /// Text.
    Text(String),
    /// True or false.
    Bool(bool),
    /// Whole number.
    Int(i64),
    /// Number.
    Float(f64),
    /// List.
    List(Vec<Value>),
    /// Dictionary, in the order of the file.
    Dict(Vec<(String, Value)>),
}

/// As Python's `str` writes it: that is what `$name` stands for where the option is no text. Null
/// is empty text.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |value: &Self| match value {
            Self::Text(text) => repr(text),
            Self::Null => "None".to_owned(),
            other => other.to_string(),
        };
        match self {
            Self::Null => Ok(()),
            Self::Text(text) => f.write_str(text),
            Self::Bool(true) => f.write_str("True"),
            Self::Bool(false) => f.write_str("False"),
            Self::Int(number) => write!(f, "{number}"),
            Self::Float(number) => write!(f, "{number:?}"),
            Self::List(items) => {
                let items: Vec<String> = items.iter().map(quoted).collect();
                write!(f, "[{}]", items.join(", "))
            }
            Self::Dict(entries) => {
                let entries: Vec<String> = entries
                    .iter()
                    .map(|(key, value)| format!("{}: {}", repr(key), quoted(value)))
                    .collect();
                write!(f, "{{{}}}", entries.join(", "))
            }
        }
    }
}

/// Text within a list or a dictionary, as Python's `repr` writes it, but for what cannot be
/// printed.
fn repr(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    let mut out = String::from(quote);
    for char in text.chars() {
        match char {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            char if char == quote => out.extend(['\\', char]),
            char => out.push(char),
        }
    }
    out.push(quote);
    out
}

/// Reads a value; the error says what is allowed.
pub(crate) fn read(kind: OptionType, text: &str) -> Result<Value, String> {
    match kind {
        OptionType::One(scalar) | OptionType::Many(scalar) => read_scalar(scalar, text),
        OptionType::List { item, bounds } => {
            let inner = text.trim_matches(is_space).trim_end_matches(',');
            let inner = within(inner, bounds, '[', ']')?;
            joined(inner, |part| read_scalar(item, part.trim_matches(is_space))).map(Value::List)
        }
        OptionType::Dict { value, bounds } => {
            let inner = within(text.trim_matches(is_space), bounds, '{', '}')?;
            let mut read: Vec<(String, Value)> = Vec::new();
            let pairs = joined(inner, |part| {
                let Some((key, text)) = part.split_once(':') else {
                    return Err("has to be pairs of NAME:VALUE with commas between them".to_owned());
                };
                let value = read_scalar(value, text.trim_matches(is_space))?;
                Ok((key.trim_matches(is_space).to_owned(), value))
            })?;
            for (key, value) in pairs {
                if key.is_empty() {
                    return Err("has a value without a name".to_owned());
                }
                if read.iter().any(|(known, _)| *known == key) {
                    return Err(format!("has the name {key:.40} twice"));
                }
                read.push((key, value));
            }
            Ok(Value::Dict(read))
        }
    }
}

fn within(text: &str, bounds: bool, open: char, close: char) -> Result<&str, String> {
    if !bounds {
        return Ok(text);
    }
    // A lone bracket would be both ends of itself; Python makes empty text of it.
    let inner = text.strip_prefix(open).and_then(|rest| {
        if rest.is_empty() {
            None
        } else {
            rest.strip_suffix(close)
        }
    });
    inner.ok_or_else(|| format!("has to stand between {open} and {close}"))
}

/// Parts between commas. A part that does not read is tried again together with what follows,
/// because an item may hold commas itself; where nothing helps, the error is that of the last try.
fn joined<T>(text: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let mut items = Vec::new();
    let mut rest = Some(text);
    while let Some(from) = rest {
        let mut end = from.find(',');
        loop {
            match (read(&from[..end.unwrap_or(from.len())]), end) {
                (Ok(item), _) => {
                    items.push(item);
                    break;
                }
                (Err(error), None) => return Err(error),
                (Err(_), Some(at)) => {
                    end = from[at + 1..].find(',').map(|next| at + 1 + next);
                }
            }
        }
        rest = end.map(|at| &from[at + 1..]);
    }
    Ok(items)
}

fn read_scalar(scalar: Scalar, text: &str) -> Result<Value, String> {
    match scalar {
        Scalar::Text {
            choices,
            ignore_case,
            quotes,
        } => {
            let text = if quotes { closed(text)? } else { text };
            let lower = text.to_lowercase();
            let chosen = |choice: &&str| {
                **choice == *text || (ignore_case && choice.to_lowercase() == lower)
            };
            if choices.is_empty() || choices.iter().any(chosen) {
                Ok(Value::Text(text.to_owned()))
            } else {
                Err(format!("allowed is one of {}", choices.join(", ")))
            }
        }
        Scalar::Bool => match text.to_lowercase().as_str() {
            "true" | "1" | "on" | "yes" => Ok(Value::Bool(true)),
            "false" | "0" | "off" | "no" => Ok(Value::Bool(false)),
            _ => Err("allowed is true, yes, on, 1, false, no, off, 0".to_owned()),
        },
        Scalar::Int { min, max } => {
            let text = text.trim_matches(is_space);
            if text.is_empty() {
                return Ok(Value::Null);
            }
            digits(text)
                .and_then(|digits| digits.parse().ok())
                .filter(|number| min.is_none_or(|min| *number >= min))
                .filter(|number| max.is_none_or(|max| *number <= max))
                .map(Value::Int)
                .ok_or_else(|| allowed("a whole number", min, max))
        }
        Scalar::Float { min, max } => {
            let text = text.trim_matches(is_space);
            if text.is_empty() {
                return Ok(Value::Null);
            }
            // NaN is neither below nor above a bound: Python lets it through, and so do we.
            without_underscores(text)
                .and_then(|digits| digits.parse::<f64>().ok())
                .filter(|number| !min.is_some_and(|min| *number < min))
                .filter(|number| !max.is_some_and(|max| *number > max))
                .map(Value::Float)
                .ok_or_else(|| allowed("a number", min, max))
        }
    }
}

fn closed(text: &str) -> Result<&str, String> {
    for quote in ['"', '\''] {
        if let Some(rest) = text.strip_prefix(quote) {
            return rest
                .strip_suffix(quote)
                .ok_or_else(|| format!("the quote {quote} is not closed"));
        }
    }
    Ok(text)
}

fn allowed<T: fmt::Display>(what: &str, min: Option<T>, max: Option<T>) -> String {
    match (min, max) {
        (Some(min), Some(max)) => format!("allowed is {what} from {min} to {max}"),
        (Some(min), None) => format!("allowed is {what} of at least {min}"),
        (None, Some(max)) => format!("allowed is {what} of at most {max}"),
        (None, None) => format!("allowed is {what}"),
    }
}

/// Python lets single underscores stand between digits.
fn without_underscores(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let digit = |at: Option<usize>| {
        at.and_then(|at| bytes.get(at))
            .is_some_and(u8::is_ascii_digit)
    };
    let lonely = |(at, byte): (usize, &u8)| {
        *byte == b'_' && !(digit(at.checked_sub(1)) && digit(at.checked_add(1)))
    };
    (!bytes.iter().enumerate().any(lonely)).then(|| text.replace('_', ""))
}

fn digits(text: &str) -> Option<String> {
    without_underscores(text).filter(|text| {
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}
