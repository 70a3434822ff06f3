//! What is wrong with what came over the wire.

use ebbtide_nova::fault::NovaException;
use std::fmt;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, ObjectError>;

/// What can be wrong. The words never quote a database URL, a transport URL or a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObjectProblem {
    /// The value of a field is not what the field takes.
    #[error("{0}")]
    Value(String),
    /// A field that has to be there is not.
    #[error("is missing")]
    Missing,
    /// An argument that the method does not know.
    #[error("SchedulerManager.{method}() got an unexpected keyword argument '{name}'")]
    Argument {
        /// Name of the method.
        method: &'static str,
        /// Name of the argument, cut off where it is long.
        name: String,
    },
    /// Another object than the one that belongs here.
    #[error("is no {expected} object: {found}")]
    Kind {
        /// Name of the object.
        expected: &'static str,
        /// What is there, in our words.
        found: String,
    },
    /// The object in a version that this release does not read.
    #[error(
        "is {name} {found}; this release reads {name} {major}.x: upgrade the scheduler, or pin [upgrade_levels]"
    )]
    Version {
        /// Name of the object.
        name: &'static str,
        /// Its version in the message.
        found: String,
        /// The major version that is read.
        major: u32,
    },
}

/// An error with the path to its place: `EB-OBJECT-001: spec_obj.flavor.vcpus: -1 is not from 0 to
/// 2147483647`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectError {
    /// Field names from the outermost on, joined by dots; items of lists as `[2]`.
    pub path: String,
    pub wrong: ObjectProblem,
}

impl ObjectError {
    /// An error at the value that is being read.
    #[must_use]
    pub fn here(wrong: ObjectProblem) -> Self {
        Self {
            path: String::new(),
            wrong,
        }
    }

    /// A wrong value.
    #[must_use]
    pub fn value(message: impl Into<String>) -> Self {
        Self::here(ObjectProblem::Value(message.into()))
    }

    /// What a reader of `ebbtide-nova` refused.
    #[must_use]
    pub fn refused(fault: NovaException) -> Self {
        Self::value(fault.message)
    }

    /// The same error, seen from the object around it.
    #[must_use]
    pub fn within(mut self, name: &str) -> Self {
        self.path = match self.path.as_str() {
            "" => name.to_owned(),
            inner if inner.starts_with('[') => format!("{name}{inner}"),
            inner => format!("{name}.{inner}"),
        };
        self
    }

    /// The same error, seen from the list around it.
    #[must_use]
    pub fn within_item(self, index: usize) -> Self {
        self.within(&format!("[{index}]"))
    }

    /// The stable code of this error; `docs/reference/errors.md` has a paragraph for each.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self.wrong {
            ObjectProblem::Value(_) => "EB-OBJECT-001",
            ObjectProblem::Missing => "EB-OBJECT-002",
            ObjectProblem::Kind { .. } => "EB-OBJECT-003",
            ObjectProblem::Version { .. } => "EB-OBJECT-004",
            ObjectProblem::Argument { .. } => "EB-OBJECT-005",
        }
    }

    /// As Nova would raise it: the class that the caller gets in the failure reply.
    #[must_use]
    pub fn fault(&self) -> NovaException {
        let class = match self.wrong {
            ObjectProblem::Value(_) => "ValueError",
            ObjectProblem::Missing => "KeyError",
            ObjectProblem::Kind { .. } => "UnsupportedObjectError",
            ObjectProblem::Version { .. } => "IncompatibleObjectVersion",
            ObjectProblem::Argument { .. } => "TypeError",
        };
        // As Nova words it: the code is for our own logs.
        NovaException::new(class, self.text())
    }
}

impl ObjectError {
    /// Where and what, without the code.
    fn text(&self) -> String {
        if self.path.is_empty() {
            self.wrong.to_string()
        } else {
            format!("{}: {}", self.path, self.wrong)
        }
    }
}

impl fmt::Display for ObjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code(), self.text())
    }
}

impl std::error::Error for ObjectError {}
