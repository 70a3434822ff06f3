//! Errors in a question.

use ebbtide_lifetime::LifetimeError;
use thiserror::Error;

/// Why there is no advice.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum AdviceError {
    /// An invalid number in the question.
    #[error("field {field}: {value} h is {problem}")]
    Query {
        /// The field of the request, as in the gRPC contract.
        field: &'static str,
        /// The given value, hours.
        value: f64,
        /// What is wrong, and what is allowed.
        problem: String,
    },
    #[error(transparent)]
    Model(#[from] LifetimeError),
}

impl AdviceError {
    /// The stable code of this error; `docs/reference/errors.md` has a paragraph for each.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Query { .. } => "EB-ADVICE-001",
            Self::Model(error) => error.code(),
        }
    }
}
