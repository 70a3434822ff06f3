//! Why a call to a region failed, with its code and next step.

use thiserror::Error;
use tonic::Code;
use tonic_types::StatusExt;

/// Why a call to a region failed.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The endpoint or the credentials make no sense.
    #[error("{0}")]
    Usage(String),
    /// The endpoint does not answer, or the connection broke.
    #[error("cannot reach the region: {cause}")]
    Unreachable {
        /// What the network said.
        cause: String,
    },
    /// The region answered with an error.
    #[error("{message}")]
    Region {
        /// The stable code, from google.rpc.ErrorInfo; `EB-GRPC-<code>` if there is none.
        code: String,
        /// In the region's words.
        message: String,
        /// What to do next, if the region or the command knows.
        next: Option<String>,
        /// The kind of the error.
        kind: Code,
    },
}

impl ClientError {
    /// The stable code; the region's own where the region refused.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Self::Usage(_) => "EB-CLI-001",
            Self::Unreachable { .. } => "EB-CLI-003",
            Self::Region { code, .. } => code,
        }
    }

    /// True if the region says that the thing does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Region { kind, .. } if *kind == Code::NotFound)
    }

    /// True if the region may answer in a while: it cannot be reached, or says that something of it
    /// is away.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Usage(_) => false,
            Self::Unreachable { .. } => true,
            Self::Region { kind, .. } => *kind == Code::Unavailable,
        }
    }

    /// Says how to see what there is, where the region says only that it is not there.
    #[must_use]
    pub fn hint(mut self, hint: &str) -> Self {
        if let Self::Region {
            next,
            kind,
            message,
            ..
        } = &mut self
            && *kind == Code::NotFound
            && next.is_none()
            && !message.contains('`')
        {
            *next = Some(hint.to_owned());
        }
        self
    }
}

impl From<tonic::Status> for ClientError {
    fn from(status: tonic::Status) -> Self {
        let info = status.get_details_error_info();
        if info.is_none() && is_transport(&status) {
            return Self::Unreachable {
                cause: root_cause(&status).unwrap_or_else(|| status.message().to_owned()),
            };
        }
        let kind = status.code();
        let (code, next) = match info {
            Some(info) => {
                let next = ["next", "next_step", "help"]
                    .iter()
                    .find_map(|key| info.metadata.get(*key).cloned());
                (info.reason, next)
            }
            None => (format!("EB-GRPC-{}", kind as i32), None),
        };
        let message = if status.message().is_empty() {
            kind.description().to_owned()
        } else {
            status.message().to_owned()
        };
        Self::Region {
            code,
            message,
            next,
            kind,
        }
    }
}

impl From<tonic::transport::Error> for ClientError {
    fn from(error: tonic::transport::Error) -> Self {
        Self::Unreachable {
            cause: root_cause(&error).unwrap_or_else(|| error.to_string()),
        }
    }
}

/// Our own transport failed, as opposed to the region saying something.
fn is_transport(status: &tonic::Status) -> bool {
    use std::error::Error as _;
    match status.code() {
        Code::Unavailable => true,
        Code::Unknown | Code::Internal | Code::Cancelled | Code::DeadlineExceeded => {
            status.source().is_some()
        }
        _ => false,
    }
}

/// The innermost error: `Connection refused (os error 111)` says more than `transport error`.
fn root_cause(error: &dyn std::error::Error) -> Option<String> {
    let mut source = error.source()?;
    while let Some(inner) = source.source() {
        source = inner;
    }
    Some(source.to_string())
}
