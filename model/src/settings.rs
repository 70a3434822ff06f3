//! Declarations of configuration keys: one for each key, at the field that holds its value.
//!
//! [`settings!`](crate::settings!) turns the declaration into the struct that serde reads, its
//! defaults, the check of its ranges, and the list of its keys. `ebbtide-manage config check` and
//! `config explain` and `docs/reference/configuration.md` are made of that list.

mod changes;
mod declare;
mod value;

pub use changes::changes_for_next_start;
pub use declare::{KeyList, field_out_of_range, shown};
pub use value::words;

use std::fmt;
use std::ops::{RangeFrom, RangeInclusive};
use thiserror::Error;

/// What a key takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Type {
    /// Text.
    Text,
    /// A file or directory.
    Path,
    /// True or false.
    Switch,
    /// A whole number.
    Whole,
    /// A number.
    Number,
    /// One of a few words.
    Words(Vec<&'static str>),
    /// A list.
    List,
    /// A table whose keys are the operator's.
    Table,
    /// Text, or a list of it.
    TextOrList,
}

/// When a changed value counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applies {
    /// At the next start.
    Start,
    /// On SIGHUP, without a restart.
    Sighup,
    /// It is never used: it has no effect on Ebbtide.
    Never,
}

/// One key.
#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    /// With dots; `[]` behind a list, `*` for names of the operator's.
    pub path: String,
    /// What it takes.
    pub ty: Type,
    /// Unit of a number; may be empty.
    pub unit: &'static str,
    /// Written as in the file; empty: not set.
    pub default: String,
    /// The least and the most, of numbers with limits.
    pub range: Option<(f64, f64)>,
    /// True if it has to be there as soon as its table is.
    pub required: bool,
    /// When a change counts.
    pub applies: Applies,
    /// A value, written as in the file.
    pub example: String,
    /// True if the value may be a secret, or holds one.
    pub secret: bool,
    /// What it does.
    pub what: String,
}

/// The part of a declaration behind `=>`.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyMeta {
    pub(crate) example: &'static str,
    pub(crate) unit: Option<&'static str>,
    pub(crate) range: Option<(f64, f64)>,
    pub(crate) words: Option<&'static [&'static str]>,
    pub(crate) required: bool,
    pub(crate) secret: bool,
    pub(crate) sighup: bool,
    pub(crate) internal: bool,
}

/// A key with an example of its value, written as in the file; quotes around text are added.
#[must_use]
pub fn key(example: &'static str) -> KeyMeta {
    KeyMeta {
        example,
        unit: None,
        range: None,
        words: None,
        required: false,
        secret: false,
        sighup: false,
        internal: false,
    }
}

/// A table with keys of its own.
#[must_use]
pub fn section() -> KeyMeta {
    key("")
}

/// A field that is no key: the program sets it.
#[must_use]
pub fn internal() -> KeyMeta {
    KeyMeta {
        internal: true,
        ..key("")
    }
}

impl KeyMeta {
    /// Allowed numbers, both ends included.
    #[must_use]
    pub fn range(mut self, range: impl Limits) -> Self {
        self.range = Some(range.ends());
        self
    }

    /// The unit, where the end of the name (`_seconds`, `_bytes`, …) does not say it.
    #[must_use]
    pub fn unit(mut self, unit: &'static str) -> Self {
        self.unit = Some(unit);
        self
    }

    /// Allowed words, where the type of the field does not say them.
    #[must_use]
    pub fn words(mut self, words: &'static [&'static str]) -> Self {
        self.words = Some(words);
        self
    }

    /// It has to be there, although serde could do without. A field without a default is required
    /// anyway.
    #[must_use]
    pub fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// The value may be a secret, or hold one.
    #[must_use]
    pub fn secret(mut self) -> Self {
        self.secret = true;
        self
    }

    /// A change counts on SIGHUP. Of a table: of all its keys.
    #[must_use]
    pub fn sighup(mut self) -> Self {
        self.sighup = true;
        self
    }

    /// The unit of the key with this name.
    pub(crate) fn unit_of(&self, name: &str) -> &'static str {
        const SUFFIXES: [(&str, &str); 7] = [
            ("_seconds", "seconds"),
            ("_ms", "milliseconds"),
            ("_minutes", "minutes"),
            ("_days", "days"),
            ("_percent", "percent"),
            ("_bytes", "bytes"),
            ("_mb", "MiB"),
        ];
        let by_name = || SUFFIXES.iter().find(|(suffix, _)| name.ends_with(suffix));
        self.unit
            .or_else(|| by_name().map(|(_, unit)| *unit))
            .unwrap_or_default()
    }
}

/// A range of numbers.
pub trait Limits {
    /// The least and the most; the most may be infinite.
    fn ends(self) -> (f64, f64);
}

impl<T: Into<f64> + Copy> Limits for RangeInclusive<T> {
    fn ends(self) -> (f64, f64) {
        ((*self.start()).into(), (*self.end()).into())
    }
}

impl<T: Into<f64>> Limits for RangeFrom<T> {
    fn ends(self) -> (f64, f64) {
        (self.start.into(), f64::INFINITY)
    }
}

/// What a field takes, as its type says.
pub enum Shape {
    /// A value.
    Value(Type),
    /// A table with these keys.
    Section(fn() -> Vec<Key>),
    /// A list of such tables.
    Rows(fn() -> Vec<Key>),
    /// A table of such tables, with names of the operator's.
    Named(fn() -> Vec<Key>),
    /// No key.
    Internal,
}

/// A type that a configuration can hold.
pub trait Setting {
    /// What it takes.
    fn shape() -> Shape;

    /// Its value as a number; `None` if it is none, or not set.
    fn number(&self) -> Option<f64> {
        None
    }

    /// The first number below it that is out of its range.
    fn out_of_range(&self) -> Option<OutOfRange> {
        None
    }
}

/// All keys of a configuration.
#[must_use]
pub fn keys<T: Setting>() -> Vec<Key> {
    match T::shape() {
        Shape::Section(keys) => keys(),
        _ => Vec::new(),
    }
}

/// Checks every number of a configuration against the range that its key declares.
///
/// # Errors
/// The first one that is out of range.
pub fn check_ranges<T: Setting>(settings: &T) -> Result<(), OutOfRange> {
    settings.out_of_range().map_or(Ok(()), Err)
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => f.write_str("text"),
            Self::Path => f.write_str("path"),
            Self::Switch => f.write_str("true or false"),
            Self::Whole => f.write_str("whole number"),
            Self::Number => f.write_str("number"),
            Self::Words(words) => f.write_str(&words.join(", ")),
            Self::List => f.write_str("list"),
            Self::Table => f.write_str("table"),
            Self::TextOrList => f.write_str("text or list"),
        }
    }
}

impl Applies {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Sighup => "SIGHUP",
            Self::Never => "never",
        }
    }
}

impl Key {
    /// The table or section in which it is: `engine` of `engine.weighers[].name`.
    #[must_use]
    pub fn section(&self) -> &str {
        let section = self.path.split_once('.').map(|(section, _)| section);
        section.unwrap_or_default().trim_end_matches("[]")
    }

    /// The example as lines of TOML: its table, and the key in it.
    #[must_use]
    pub fn example_in_file(&self) -> String {
        let Some((table, name)) = self.path.rsplit_once('.') else {
            return format!("{} = {}", self.path, self.example);
        };
        let table = table.replace('*', "NAME");
        match table.strip_suffix("[]") {
            Some(list) => format!("[[{list}]]\n{name} = {}", self.example),
            None => format!("[{table}]\n{name} = {}", self.example),
        }
    }

    /// The range, in words; empty where there is none.
    #[must_use]
    pub fn range_shown(&self) -> String {
        self.range
            .map(|(least, most)| range_in_words(least, most))
            .unwrap_or_default()
    }

    /// The same, of a table with this name.
    #[must_use]
    pub fn within(mut self, table: &str) -> Self {
        self.path = format!("{table}.{}", self.path);
        self
    }
}

/// A number is out of its range.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("{key} = {value}: use {}", self.allowed())]
pub struct OutOfRange {
    /// The key, below the configuration that was checked.
    pub key: String,
    /// Its value.
    pub value: f64,
    /// The least that is allowed.
    pub least: f64,
    /// The most that is allowed; may be infinite.
    pub most: f64,
}

impl OutOfRange {
    /// The allowed range in words.
    #[must_use]
    pub fn allowed(&self) -> String {
        range_in_words(self.least, self.most)
    }

    /// What is wrong, without the key.
    #[must_use]
    pub fn problem(&self) -> String {
        format!(
            "{} is out of range, allowed is {}",
            self.value,
            self.allowed()
        )
    }

    /// The same, of a key of this table.
    #[must_use]
    pub fn within(mut self, table: &str) -> Self {
        let dot = if self.key.starts_with('[') { "" } else { "." };
        self.key = format!("{table}{dot}{}", self.key);
        self
    }
}

/// A range in words: `1 to 100`, `1 or more`.
#[must_use]
pub fn range_in_words(least: f64, most: f64) -> String {
    if most.is_finite() {
        format!("{least} to {most}")
    } else {
        format!("{least} or more")
    }
}

#[cfg(test)]
mod tests;
