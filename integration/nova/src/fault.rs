//! What makes Nova fail a whole request.

use ebbtide_model::extra_specs_ops::Incomparable;
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

    /// What Nova raises for two values that it cannot compare.
    #[must_use]
    pub fn incomparable(problem: Incomparable<'_>) -> Self {
        let class = match problem {
            Incomparable::NotANumber(_) => "ValueError",
            Incomparable::NoOperand => "IndexError",
        };
        Self::new(class, problem.to_string())
    }
}

impl fmt::Display for NovaException {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.class, self.message)
    }
}

impl std::error::Error for NovaException {}

#[cfg(test)]
mod tests {
    use super::*;
    use ebbtide_model::extra_specs_ops::matches;

    #[test]
    fn a_failed_comparison_has_the_class_that_nova_raises() {
        let class = |requirement| {
            let compared = matches("abc", requirement);
            compared.map_err(|problem| NovaException::incomparable(problem).class)
        };
        assert_eq!(class(">= 3"), Err("ValueError"));
        assert_eq!(class("<or>"), Err("IndexError"));
    }
}
