//! Everything that can go wrong with a service over HTTP.
//!
//! Each variant has a stable code (`EB-HTTP-NNN`) and says which service, what, and what to do
//! next. The errors are plain data, so that a caller can keep one. None of them contains a password
//! or a token.

use thiserror::Error;

/// Whether something that failed may have happened nevertheless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestEffect {
    /// The service has not seen the request.
    None,
    /// The request may have arrived and the answer got lost. Read before you decide.
    Unknown,
}

/// What kind of conflict a service answered with. Placement says it in `errors[0].code`, Nova's API
/// does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConflictCode {
    /// `placement.concurrent_update`: a generation was not the one that we named, or Placement
    /// itself ran into another writer.
    ConcurrentUpdate,
    /// `placement.undefined_code`: among others, the capacity does not suffice. A lost race can
    /// look so, too.
    Undefined,
    /// Another code, or none at all (Nova's API).
    Other(String),
}

impl ConflictCode {
    pub(crate) fn from_code(code: Option<&str>) -> Self {
        match code {
            Some("placement.concurrent_update") => Self::ConcurrentUpdate,
            Some("placement.undefined_code") => Self::Undefined,
            other => Self::Other(other.unwrap_or_default().to_owned()),
        }
    }
}

/// An error of Keystone, Placement or Nova's API, or on the way to them.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OpenStackError {
    /// An option that is missing or makes no sense.
    #[error("{place}: {option}: {problem}")]
    Config {
        /// Where the option is from, for example a section of nova.conf.
        place: String,
        /// Its name.
        option: String,
        /// What is wrong and what is possible.
        problem: String,
    },
    /// The credentials were not accepted, or the token that they gave.
    #[error(
        "{service} does not accept our credentials: {problem}; check user, project, domains and password"
    )]
    Unauthorized {
        service: String,
        /// What is known.
        problem: String,
    },
    /// The credentials are good, but they do not allow this.
    #[error(
        "{service} does not allow {what}: {text}; give the user the role that the service's policy asks for"
    )]
    Forbidden {
        service: String,
        /// Method and path.
        what: String,
        /// The service's words.
        text: String,
    },
    /// What was asked about does not exist.
    #[error("{service}: {what}: not found: {text}")]
    NotFound {
        service: String,
        /// Method and path.
        what: String,
        /// The service's words.
        text: String,
    },
    /// Another writer was first, or the claim does not fit. Nothing was changed.
    #[error("{service}: {what}: conflict: {text}")]
    Conflict {
        service: String,
        /// Method and path.
        what: String,
        code: ConflictCode,
        /// The service's words.
        text: String,
    },
    /// The service understood and refused. Nothing was changed.
    #[error("{service}: {what}: refused with status {status}: {text}")]
    Refused {
        service: String,
        /// Method and path.
        what: String,
        /// The HTTP status.
        status: u16,
        /// The service's words.
        text: String,
    },
    /// The service cannot be reached, does not answer in time, or fails.
    #[error(
        "{service} is not available for {what}: {problem}{}; look at the service, then at the network between",
        if matches!(effect, RequestEffect::Unknown) { " (it may have been done nevertheless)" } else { "" }
    )]
    Unavailable {
        service: String,
        /// Method and path.
        what: String,
        /// What happened.
        problem: String,
        /// Whether it may have been done.
        effect: RequestEffect,
    },
    /// An answer that cannot be understood. What was asked for may have been done.
    #[error(
        "{service}: {what}: an answer that cannot be understood: {problem}; is it really {service} that answers there?"
    )]
    BadAnswer {
        service: String,
        /// Method and path.
        what: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The service is not in the catalog.
    #[error(
        "the service catalog has no endpoint of {service} with interface {interfaces} and region {region}; \
         register it in Keystone or set endpoint_override"
    )]
    NoEndpoint {
        /// The service type.
        service: String,
        /// What was looked for.
        interfaces: String,
        /// What was looked for, or `any`.
        region: String,
    },
    /// The service is too old or too new.
    #[error(
        "{service} supports microversions {min} to {max}, but {needed} is needed; upgrade {service}"
    )]
    Version {
        service: String,
        /// The oldest that it has.
        min: String,
        /// The newest that it has.
        max: String,
        /// What we need.
        needed: String,
    },
    /// Another process changed a consumer while it was being claimed for: Nova's
    /// `AllocationUpdateFailed`.
    #[error(
        "the allocations of consumer {consumer} were changed by another process during the claim: {text}; read them anew"
    )]
    ConsumerChanged {
        consumer: String,
        /// Placement's words.
        text: String,
    },
}

impl OpenStackError {
    /// The stable code, as in `docs/reference/errors.md`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Config { .. } => "EB-HTTP-001",
            Self::Unauthorized { .. } => "EB-HTTP-002",
            Self::Forbidden { .. } => "EB-HTTP-003",
            Self::NotFound { .. } => "EB-HTTP-004",
            Self::Conflict { .. } => "EB-HTTP-005",
            Self::Refused { .. } => "EB-HTTP-006",
            Self::Unavailable { .. } => "EB-HTTP-007",
            Self::BadAnswer { .. } => "EB-HTTP-008",
            Self::NoEndpoint { .. } => "EB-HTTP-009",
            Self::Version { .. } => "EB-HTTP-010",
            Self::ConsumerChanged { .. } => "EB-HTTP-011",
        }
    }

    /// Whether what was asked for may have been done although it failed: the caller has to read
    /// before it decides.
    #[must_use]
    pub fn effect(&self) -> RequestEffect {
        match self {
            Self::Unavailable { effect, .. } => *effect,
            Self::BadAnswer { .. } => RequestEffect::Unknown,
            _ => RequestEffect::None,
        }
    }

    /// Whether the same call may succeed later without anybody changing anything but the service's
    /// health.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::BadAnswer { .. })
    }

    pub(crate) fn config(place: &str, option: &str, problem: impl Into<String>) -> Self {
        let (place, option) = (place.to_owned(), option.to_owned());
        let problem = problem.into();
        Self::Config {
            place,
            option,
            problem,
        }
    }
}
