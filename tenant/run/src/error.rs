//! What can be wrong with what a run is told.

use thiserror::Error;

/// Why a run cannot begin, or cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RunError {
    /// A number that makes no sense.
    #[error("{what} has to be above zero")]
    Zero {
        /// Which one.
        what: &'static str,
    },
    /// A record of an earlier run that cannot be used.
    #[error("the record is not usable: {problem}")]
    Record {
        /// What is wrong, with the line or the field.
        problem: String,
    },
    /// An answer of a metadata server that is not what its form promises.
    #[error("the metadata server's answer to {path} is not understood: {problem}")]
    Answer {
        /// What was asked for.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
}

impl RunError {
    /// The stable code of this error; `docs/errors.md` has a paragraph for each.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Zero { .. } => "EB-RUN-001",
            Self::Record { .. } => "EB-RUN-002",
            Self::Answer { .. } => "EB-RUN-003",
        }
    }
}
