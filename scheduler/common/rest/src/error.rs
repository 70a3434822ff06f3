//! Errors of the REST layer itself. Errors of a call are [`crate::problem`]'s.

use axum::http::StatusCode;
use thiserror::Error;

/// An error of the REST layer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RestError {
    /// No route has this path.
    #[error("there is no path {path:?} in this API")]
    NoSuchPath {
        /// The path of the request.
        path: String,
    },
    /// The path has no route with this method.
    #[error("{path} takes no {method}, only {allow}")]
    Method {
        /// The path of the request.
        path: String,
        /// The method of the request.
        method: String,
        /// The methods that the path has, separated by commas.
        allow: String,
    },
    /// The body is not the JSON that the contract asks for.
    #[error("{}{problem}", in_front(.field, "body field "))]
    Body {
        /// The field, as a path from the top of the body; empty for the body as a whole.
        field: String,
        /// What is wrong.
        problem: String,
    },
    /// A parameter of the path or query is unknown or invalid.
    #[error("parameter {name}: {problem}")]
    Parameter {
        name: String,
        /// What is wrong.
        problem: String,
    },
    /// The body is larger than the limit.
    #[error("the body is larger than {most} bytes")]
    TooLarge {
        /// The limit in bytes.
        most: usize,
    },
    /// The body is not declared as JSON.
    #[error("the body is {given:?}, and this API reads application/json")]
    MediaType {
        /// The header `content-type`; empty if there is none.
        given: String,
    },
    /// The request carries a condition that the contract cannot check.
    #[error("the contract has no generations, so {header} cannot be checked")]
    Condition {
        /// The header with the condition.
        header: &'static str,
    },
    /// A page of another origin sent the request from a browser.
    #[error("the request comes from a page of another site ({site:?})")]
    CrossSite {
        /// The header `sec-fetch-site` or `origin`.
        site: String,
    },
    /// The connection broke inside the body.
    #[error("the body ended early: {problem}")]
    Broken {
        /// The error of the connection.
        problem: String,
    },
    /// The answer of the call cannot be written as JSON.
    #[error("the answer cannot be written: {0}")]
    Answer(String),
    /// The table of routes does not fit the contracts.
    #[error("{0}")]
    Contract(String),
}

/// `prefix field: `, or nothing without a field.
fn in_front(field: &str, prefix: &str) -> String {
    match field {
        "" => String::new(),
        field => format!("{prefix}{field}: "),
    }
}

impl RestError {
    /// The stable code of this error; `docs/reference/errors.md` has a paragraph for each.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoSuchPath { .. } => "EB-REST-001",
            Self::Method { .. } => "EB-REST-002",
            Self::Body { .. } => "EB-REST-003",
            Self::Parameter { .. } => "EB-REST-004",
            Self::TooLarge { .. } => "EB-REST-005",
            Self::MediaType { .. } => "EB-REST-006",
            Self::Condition { .. } => "EB-REST-007",
            Self::Broken { .. } => "EB-REST-008",
            Self::Answer(_) => "EB-REST-009",
            Self::Contract(_) => "EB-REST-010",
            Self::CrossSite { .. } => "EB-REST-011",
        }
    }

    /// The HTTP status of the answer.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::NoSuchPath { .. } => StatusCode::NOT_FOUND,
            Self::Method { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::Body { .. } | Self::Parameter { .. } | Self::Broken { .. } => {
                StatusCode::BAD_REQUEST
            }
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::MediaType { .. } => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Condition { .. } => StatusCode::NOT_IMPLEMENTED,
            Self::CrossSite { .. } => StatusCode::FORBIDDEN,
            Self::Answer(_) | Self::Contract(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// What to do next.
    pub(crate) fn next(&self) -> &'static str {
        match self {
            Self::NoSuchPath { .. } => "GET /v1/openapi.json lists every path",
            Self::Method { .. } => "use one of the methods of the header Allow",
            Self::Body { .. } | Self::Parameter { .. } => {
                "GET /v1/openapi.json has every field with its type"
            }
            Self::TooLarge { .. } => "send less in one request",
            Self::MediaType { .. } => {
                "send the header content-type: application/json (curl: --json)"
            }
            Self::Condition { .. } => "repeat the request without the header",
            Self::CrossSite { .. } => {
                "use the console of this scheduler, or a client outside of a browser"
            }
            Self::Broken { .. } => "repeat the request",
            Self::Answer(_) | Self::Contract(_) => "report it with the request id",
        }
    }

    /// The field or parameter that the error is about.
    pub(crate) fn field(&self) -> Option<&str> {
        match self {
            Self::Body { field: name, .. } | Self::Parameter { name, .. } if !name.is_empty() => {
                Some(name)
            }
            _ => None,
        }
    }
}
