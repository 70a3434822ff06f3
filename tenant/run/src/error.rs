//! Errors in the input of a run.

use thiserror::Error;

/// Why a run cannot begin, or cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RunError {
    /// An invalid number.
    #[error("{what} has to be above zero")]
    Zero { what: &'static str },
    /// A record of an earlier run that cannot be used.
    #[error("the record is not usable: {problem}")]
    Record {
        /// What is wrong, with the line or the field.
        problem: String,
    },
    /// An answer of a metadata server that does not have the expected form.
    #[error("the metadata server's answer to {path} is not understood: {problem}")]
    Answer {
        /// The requested path.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
}

impl RunError {
    /// The stable code of this error; `docs/reference/errors.md` has a paragraph for each.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Zero { .. } => "EB-RUN-001",
            Self::Record { .. } => "EB-RUN-002",
            Self::Answer { .. } => "EB-RUN-003",
        }
    }
}
