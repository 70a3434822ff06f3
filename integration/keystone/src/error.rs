//! Everything that can go wrong between a request with a token and a caller that is known.
//!
//! Each variant has a stable code (`EB-KEYSTONE-NNN`) and a [`Meaning`] for the one who called. The
//! texts are for logs and hold no token.

use thiserror::Error;

/// What a failure means for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Meaning {
    /// 401: authenticate (anew). The answer carries `WWW-Authenticate`.
    Unauthenticated,
    /// 403: the caller is known and may not do this.
    Forbidden,
    /// 503: nothing is known about the caller now; the same request may succeed later.
    Unavailable,
}

impl Meaning {
    /// The HTTP status.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::Unauthenticated => 401,
            Self::Forbidden => 403,
            Self::Unavailable => 503,
        }
    }
}

/// An error of this crate. Plain data, so that it can be cached.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KeystoneError {
    /// An option that is missing, makes no sense or is not supported.
    #[error("EB-KEYSTONE-001: [{section}] {option}: {problem}")]
    Config {
        /// The section of nova.conf.
        section: String,
        option: String,
        /// What is wrong and what is possible.
        problem: String,
    },
    /// A request without a token.
    #[error("EB-KEYSTONE-002: the request has no token; send one in X-Auth-Token")]
    NoToken,
    /// Text that cannot be a token; Keystone is not asked.
    #[error(
        "EB-KEYSTONE-003: what the request sends as a token is none: {0}; \
         get one of Keystone"
    )]
    Malformed(&'static str),
    /// Keystone does not know the token: it is expired, revoked, of another cloud or invented.
    #[error(
        "EB-KEYSTONE-004: Keystone does not accept the token (expired, revoked or of another \
         cloud); \
         get a new one"
    )]
    Invalid,
    /// The token has expired by our clock.
    #[error(
        "EB-KEYSTONE-005: the token expired at {0}; get a new one, \
         and compare the clocks if it is new"
    )]
    Expired(String),
    /// The token is good for no project, domain or system.
    #[error("EB-KEYSTONE-006: the token of user {user} is unscoped; get one for a project")]
    Unscoped {
        /// The user's id.
        user: String,
    },
    /// The access rules of an application credential do not allow the request.
    #[error(
        "EB-KEYSTONE-007: application credential {credential} does not allow {request}: {problem}"
    )]
    AccessRule {
        /// The credential's id.
        credential: String,
        /// Method and path.
        request: String,
        /// What is missing.
        problem: &'static str,
    },
    /// The second token, which a service adds, is no good.
    #[error("EB-KEYSTONE-008: the token in X-Service-Token is not accepted: {0}")]
    ServiceToken(String),
    /// The token is bound to something that cannot be verified here.
    #[error(
        "EB-KEYSTONE-009: the token is bound to {0}, which cannot be verified; \
         use one that is not bound"
    )]
    Bound(String),
    /// Keystone is away or slow.
    #[error("EB-KEYSTONE-010: Keystone cannot be asked: {0}")]
    Unavailable(String),
    /// Keystone does not accept our own credentials, or does not let our user ask.
    #[error(
        "EB-KEYSTONE-011: Keystone refuses the scheduler itself: {0}; \
         check the user of the section and its role `service`"
    )]
    OwnCredentials(String),
    /// An answer that cannot be understood.
    #[error("EB-KEYSTONE-012: an answer of Keystone cannot be understood: {0}")]
    BadAnswer(String),
    /// The token has none of the roles that the API knows.
    #[error(
        "EB-KEYSTONE-013: user {user} has no role for this API; \
         admin, member or reader is needed"
    )]
    NoRole {
        /// The user's id.
        user: String,
    },
    /// The scope of the token is not one that the API serves.
    #[error("EB-KEYSTONE-014: the token is for {scope}; get one for a project")]
    WrongScope {
        /// What it is for.
        scope: String,
    },
    /// Keystone has no limit of this name for the service.
    #[error(
        "EB-KEYSTONE-015: Keystone has no registered limit {resource} of service type \
         {service_type} in region {region}; \
         create it: openstack registered limit create"
    )]
    LimitUnknown {
        resource: String,
        service_type: String,
        /// The region, or `any`.
        region: String,
    },
    /// A project that does not exist (any more).
    #[error("EB-KEYSTONE-016: Keystone has no project {0}")]
    ProjectUnknown(String),
    /// The service is not in the catalog, so its limits cannot be found.
    #[error("EB-KEYSTONE-017: the limits cannot be found: {0}")]
    ServiceUnknown(String),
    /// Keystone enforces limits in a way that is not known here.
    #[error(
        "EB-KEYSTONE-018: Keystone's enforcement model {0:?} is not supported; \
         use flat or strict_two_level"
    )]
    ModelUnknown(String),
    /// A policy file that cannot be used.
    #[error("EB-KEYSTONE-019: {0}")]
    Policy(String),
}

impl KeystoneError {
    /// The stable code, as in `docs/reference/errors.md`.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Config { .. } => "EB-KEYSTONE-001",
            Self::NoToken => "EB-KEYSTONE-002",
            Self::Malformed(_) => "EB-KEYSTONE-003",
            Self::Invalid => "EB-KEYSTONE-004",
            Self::Expired(_) => "EB-KEYSTONE-005",
            Self::Unscoped { .. } => "EB-KEYSTONE-006",
            Self::AccessRule { .. } => "EB-KEYSTONE-007",
            Self::ServiceToken(_) => "EB-KEYSTONE-008",
            Self::Bound(_) => "EB-KEYSTONE-009",
            Self::Unavailable(_) => "EB-KEYSTONE-010",
            Self::OwnCredentials(_) => "EB-KEYSTONE-011",
            Self::BadAnswer(_) => "EB-KEYSTONE-012",
            Self::NoRole { .. } => "EB-KEYSTONE-013",
            Self::WrongScope { .. } => "EB-KEYSTONE-014",
            Self::LimitUnknown { .. } => "EB-KEYSTONE-015",
            Self::ProjectUnknown(_) => "EB-KEYSTONE-016",
            Self::ServiceUnknown(_) => "EB-KEYSTONE-017",
            Self::ModelUnknown(_) => "EB-KEYSTONE-018",
            Self::Policy(_) => "EB-KEYSTONE-019",
        }
    }

    /// What the caller is to be told. Access rules are 401, as keystonemiddleware has it. A limit
    /// that does not exist is 403: oslo.limit takes it for a limit of zero.
    #[must_use]
    pub const fn meaning(&self) -> Meaning {
        match self {
            Self::NoToken
            | Self::Malformed(_)
            | Self::Invalid
            | Self::Expired(_)
            | Self::AccessRule { .. }
            | Self::ServiceToken(_)
            | Self::Bound(_) => Meaning::Unauthenticated,
            Self::Unscoped { .. }
            | Self::NoRole { .. }
            | Self::WrongScope { .. }
            | Self::LimitUnknown { .. }
            | Self::ProjectUnknown(_) => Meaning::Forbidden,
            Self::Config { .. }
            | Self::Unavailable(_)
            | Self::OwnCredentials(_)
            | Self::BadAnswer(_)
            | Self::ServiceUnknown(_)
            | Self::ModelUnknown(_)
            | Self::Policy(_) => Meaning::Unavailable,
        }
    }

    pub(crate) fn config(section: &str, option: &str, problem: impl Into<String>) -> Self {
        Self::Config {
            section: section.to_owned(),
            option: option.to_owned(),
            problem: problem.into(),
        }
    }
}

impl From<ebbtide_openstack::OpenStackError> for KeystoneError {
    /// What a failed request of ours means, wherever the request has no meaning of its own for a
    /// status.
    fn from(error: ebbtide_openstack::OpenStackError) -> Self {
        use ebbtide_openstack::OpenStackError as E;
        let text = error.to_string();
        match error {
            E::Config {
                place,
                option,
                problem,
            } => Self::Config {
                section: place,
                option,
                problem,
            },
            E::Unauthorized { .. } | E::Forbidden { .. } => Self::OwnCredentials(text),
            E::BadAnswer { .. } => Self::BadAnswer(text),
            _ => Self::Unavailable(text),
        }
    }
}
