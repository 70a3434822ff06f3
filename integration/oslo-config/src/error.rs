//! What is wrong with a configuration.

use std::fmt;
use std::path::PathBuf;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, ConfigError>;

/// Where a value stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueLocation {
    /// A line of a file.
    Line {
        /// The file.
        file: PathBuf,
        /// Number of the line, from 1.
        line: usize,
    },
    /// An environment variable.
    Variable(String),
    /// The default of the option.
    Default,
}

impl fmt::Display for ValueLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { file, line } => write!(f, "{}:{line}", file.display()),
            Self::Variable(name) => write!(f, "environment variable {name}"),
            Self::Default => f.write_str("the default"),
        }
    }
}

/// What can be wrong. Contents of lines are never quoted: any line may hold a password.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file or directory that was named is not there.
    #[error("EB-CONF-001: there is no configuration file or directory {}", .0.display())]
    NotFound(PathBuf),
    /// A file cannot be read.
    #[error("EB-CONF-002: {} cannot be read: {source}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A line that is no comment, section, assignment or continuation.
    #[error("EB-CONF-003: {}:{line}: {what}", .path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A value that the option does not take.
    #[error("EB-CONF-004: {place}: [{group}] {name} = {shown}: {allowed}")]
    Value {
        /// Where it stands.
        place: Box<ValueLocation>,
        /// Group of the option.
        group: String,
        /// Name of the option.
        name: String,
        /// The value, or `***` where the option is secret.
        shown: String,
        /// What is allowed.
        allowed: String,
    },
    /// A `$variable` in a value stands for nothing, or for itself.
    #[error("EB-CONF-005: {place}: [{group}] {name}: ${variable}: {why}")]
    Variable {
        /// Where it stands.
        place: Box<ValueLocation>,
        /// Group of the option.
        group: String,
        /// Name of the option.
        name: String,
        /// Name of the variable.
        variable: String,
        /// What is wrong with it.
        why: &'static str,
    },
}

impl ConfigError {
    /// The stable code of this error; `docs/reference/errors.md` has a paragraph for each.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFound(_) => "EB-CONF-001",
            Self::Unreadable { .. } => "EB-CONF-002",
            Self::Line { .. } => "EB-CONF-003",
            Self::Value { .. } => "EB-CONF-004",
            Self::Variable { .. } => "EB-CONF-005",
        }
    }
}
