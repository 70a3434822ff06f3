//! What makes Nova fail a whole request.

use std::fmt;

/// An error by which Nova fails the whole request, under the class name that Nova raises. Nothing
/// in Nova catches what a filter or a weigher raises, so the caller gets an RPC error and not
/// NoValidHost; we answer with the same class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NovaException {
    /// Class name of the exception, without its module, for example `ValueError` or
    /// `ComputeHostMetricNotFound`.
    pub class: &'static str,
    /// What was wrong, in our words. Never compared with Nova's.
    pub message: String,
}

impl NovaException {
    /// A fault of a class.
    #[must_use]
    pub fn new(class: &'static str, message: impl Into<String>) -> Self {
        Self {
            class,
            message: message.into(),
        }
    }
}

impl fmt::Display for NovaException {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.class, self.message)
    }
}

impl std::error::Error for NovaException {}
