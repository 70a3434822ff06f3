//! What can be wrong with data that comes from outside.

use thiserror::Error;

/// A value that was refused. Every variant names the offending value and what would be accepted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ModelError {
    /// A resource class that Placement would not accept either.
    #[error(
        "resource class {0:?} is not valid: use 1 to 255 of A-Z, 0-9 and _, standard (VCPU, MEMORY_MB, …) or starting with CUSTOM_"
    )]
    ResourceClass(String),
    /// A trait name that Placement would not accept either.
    #[error("trait {0:?} is not valid: use 1 to 255 of A-Z, 0-9 and _")]
    Trait(String),
    /// An amount outside of what can be counted.
    #[error("{what}: {value} is out of range, allowed is {allowed}")]
    Range {
        /// What the value was for.
        what: String,
        /// The value as it came.
        value: String,
        /// What is allowed, in words.
        allowed: String,
    },
    /// A name with characters that cannot stand in queue names, logs and tables.
    #[error("{what} {value:?} is not valid: {allowed}")]
    Name {
        /// What the name is for.
        what: &'static str,
        /// The name as it came.
        value: String,
        /// What is allowed, in words.
        allowed: &'static str,
    },
    /// An extra spec whose value cannot be understood.
    #[error("extra spec {key}={value:?}: {problem}")]
    ExtraSpec {
        key: String,
        /// The value as it came.
        value: String,
        /// What is wrong and what is accepted.
        problem: String,
    },
    /// An amount of money that cannot be understood.
    #[error(
        "{0:?} is not an amount of money: use a decimal number with at most six decimal places, not negative"
    )]
    Money(String),
    /// A point of time that cannot be understood.
    #[error("{0:?} is not a point of time: use RFC 3339, for example 2026-11-20T20:37:00Z")]
    Timestamp(String),
    /// An unknown word where one of a few is expected.
    #[error("{what}: {value:?} is unknown, use one of {allowed}")]
    Unknown {
        /// What the word is for.
        what: &'static str,
        /// The word as it came.
        value: String,
        /// The words that are known.
        allowed: &'static str,
    },
    /// A message of the bus that cannot be understood.
    #[error("message: {0}")]
    Message(String),
}

impl ModelError {
    /// The stable code of this error; `docs/reference/errors.md` has a paragraph for each.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::ResourceClass(_) => "EB-MODEL-001",
            Self::Trait(_) => "EB-MODEL-002",
            Self::Range { .. } => "EB-MODEL-003",
            Self::Name { .. } => "EB-MODEL-004",
            Self::ExtraSpec { .. } => "EB-MODEL-005",
            Self::Money(_) => "EB-MODEL-006",
            Self::Timestamp(_) => "EB-MODEL-007",
            Self::Unknown { .. } => "EB-MODEL-008",
            Self::Message(_) => "EB-MODEL-009",
        }
    }
}
