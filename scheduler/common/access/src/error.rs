//! Why a caller is refused, and what is wrong with a token file.

use std::path::PathBuf;
use std::time::Duration;
use thiserror::Error;

/// A refusal, or a file that cannot be used. None of the texts contains a token.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AccessError {
    /// Neither a token nor a certificate that says who asks.
    #[error(
        "who are you? This region answers only to those whom it knows; give a token (EBBTIDE_TOKEN or --token-file) or a client \
         certificate (--certificate and --key)"
    )]
    Unauthenticated,
    /// A token that is not (or no longer) in the file, or that has expired.
    #[error(
        "this token is not valid: it is unknown, revoked or expired; ask an operator for a new one (`ebbtide-manage token create`)"
    )]
    BadToken,
    /// A certificate that is trusted, but no role goes with its names.
    #[error(
        "the client certificate is trusted, but none of its names ({names}) has a role; an operator can give one with \
         [[auth.certificates]] in the scheduler's configuration"
    )]
    NoRole {
        /// The certificate's names, or `none`.
        names: String,
    },
    /// The role does not allow this call.
    #[error(
        "{caller} may not call {method}: {why}; ask an operator, or use a token of another role"
    )]
    Forbidden {
        /// The caller, in words.
        caller: String,
        /// The call.
        method: String,
        /// Which role it needs.
        why: &'static str,
    },
    /// Something of another project.
    #[error(
        "{caller} may not {what} of project {project:?}; say one of its own projects with --project: {own}"
    )]
    OtherProject {
        /// The caller, in words.
        caller: String,
        /// What was tried.
        what: &'static str,
        /// The project that was named, shortened.
        project: String,
        /// The caller's projects.
        own: String,
    },
    /// A field that only operators may set.
    #[error("{caller} may not set {field}: only operators may; leave it out")]
    OperatorsField {
        /// The caller, in words.
        caller: String,
        field: &'static str,
    },
    /// Asked more often than allowed.
    #[error("{caller} asks too often; wait {} ms, or ask an operator for more ([limits] in the scheduler's configuration)", wait.as_millis())]
    TooOften {
        /// The caller, in words.
        caller: String,
        /// When to ask again.
        wait: Duration,
    },
    /// More event streams than allowed.
    #[error(
        "{caller} watches {most} times already; end one of them, or ask an operator for more (limits.watchers)"
    )]
    TooManyWatchers {
        /// The caller, in words.
        caller: String,
        /// How many are allowed.
        most: u32,
    },
    /// A token file that cannot be read or written.
    #[error("token file {}: {problem}", path.display())]
    File {
        path: PathBuf,
        /// What is wrong, with the line where that is known.
        problem: String,
    },
    /// A token that cannot be made as it was asked for.
    #[error("{0}")]
    Invalid(String),
    /// A report over a login to the broker that may not speak for its host.
    #[error(
        "the login {user:?} may not speak for host {host:?}; the agent's broker URL needs the host's own user and bus.identity = \
         \"user-id\" (see docs/operate/security.md)"
    )]
    OtherHost {
        /// The user that the broker confirms; empty if it confirms none.
        user: String,
        /// The host that the report is about.
        host: String,
    },
    /// The system has no randomness, so no token can be made.
    #[error("no randomness from the system: {0}; no token was made")]
    NoRandomness(String),
}

impl AccessError {
    /// The stable code of this error; `docs/reference/errors.md` has a paragraph for each.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unauthenticated => "EB-ACCESS-001",
            Self::BadToken => "EB-ACCESS-002",
            Self::NoRole { .. } => "EB-ACCESS-003",
            Self::Forbidden { .. } => "EB-ACCESS-004",
            Self::OtherProject { .. } => "EB-ACCESS-005",
            Self::OperatorsField { .. } => "EB-ACCESS-006",
            Self::TooOften { .. } => "EB-ACCESS-007",
            Self::TooManyWatchers { .. } => "EB-ACCESS-008",
            Self::File { .. } => "EB-ACCESS-009",
            Self::Invalid(_) => "EB-ACCESS-010",
            Self::NoRandomness(_) => "EB-ACCESS-011",
            Self::OtherHost { .. } => "EB-ACCESS-012",
        }
    }
}
