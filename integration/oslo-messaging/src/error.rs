//! The errors of this crate.

use ebbtide_amqp::{TlsError, TlsFile};

use crate::RemoteError;

/// What can go wrong with messages. No text ever contains a password or the content of a message.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MessagingError {
    /// The transport URL is malformed.
    #[error(
        "transport_url: {reason}; write rabbit://USER:PASSWORD@HOST:PORT[,USER:PASSWORD@HOST:PORT…]/VHOST"
    )]
    InvalidUrl {
        /// What is wrong, without repeating the URL.
        reason: String,
    },
    /// An option of `[oslo_messaging_rabbit]` has a value that cannot be used.
    #[error("[oslo_messaging_rabbit] {option}: {reason}")]
    InvalidOption {
        /// The option's name.
        option: String,
        /// What is wrong and what would be possible.
        reason: String,
    },
    /// A certificate or key cannot be read.
    #[error("[oslo_messaging_rabbit] {option}: cannot read {path}: {reason}")]
    TlsFile {
        /// The option that names the file.
        option: &'static str,
        /// The file.
        path: String,
        /// The system's words.
        reason: String,
    },
    /// No broker can be reached, or it does not answer. Trying again may help.
    #[error(
        "cannot {operation}: the broker ({brokers}) cannot be used for now: {last_problem}; it is tried again"
    )]
    Unavailable {
        /// What was to be done.
        operation: String,
        /// The brokers, without credentials.
        brokers: String,
        /// The last thing that went wrong.
        last_problem: String,
    },
    /// The broker does not accept user or password.
    #[error(
        "the broker {broker} does not let user {user:?} in: {detail}; check transport_url and rabbitmqctl list_users"
    )]
    LoginRefused {
        /// The broker, without credentials.
        broker: String,
        /// The user's name.
        user: String,
        /// The broker's words.
        detail: String,
    },
    /// The broker understood and refuses, for example because of missing permissions.
    #[error(
        "the broker refuses to {operation}: {detail}; check the vhost and rabbitmqctl list_permissions"
    )]
    Refused {
        /// What was to be done.
        operation: String,
        /// The broker's words.
        detail: String,
    },
    /// A queue or exchange exists with other properties.
    #[error(
        "{name} exists with other properties: {detail}; make the queue options the same for all services, or delete it"
    )]
    Mismatch {
        /// `queue …` or `exchange …`.
        name: String,
        /// The broker's words.
        detail: String,
    },
    /// An unusable message from outside. It is rejected and not redelivered.
    #[error("a message that cannot be used: {reason}")]
    BadMessage {
        /// What is wrong, without repeating the content.
        reason: String,
    },
    /// A message in an envelope of another major version, or of a newer minor one.
    #[error("a message in an envelope of version {version:?}; understood is 2.0")]
    EnvelopeVersion {
        /// The version that it says.
        version: String,
    },
    /// No reply, or no heartbeat, in time (Python's `MessagingTimeout`).
    #[error("timed out waiting for the reply to {method:?} ({message_id}): {detail}")]
    Timeout {
        /// The method that was called.
        method: String,
        /// The call's `_msg_id`.
        message_id: String,
        /// Which time ran out, and in which step.
        detail: String,
    },
    /// The broker has no queue for a mandatory message (Python's `MessageUndeliverable`).
    #[error(
        "no service listens: exchange {exchange:?} has no queue for {routing_key:?}; is the service running?"
    )]
    Undeliverable {
        /// The exchange.
        exchange: String,
        /// The routing key.
        routing_key: String,
    },
    /// The other side answered with a failure.
    #[error("{0}")]
    Remote(Box<RemoteError>),
    /// A target or version that makes no sense.
    #[error("invalid target: {reason}")]
    InvalidTarget {
        /// What is wrong.
        reason: String,
    },
    /// The transport, server or client has been closed.
    #[error("the messaging transport has been closed")]
    Closed,
    /// The caller's reply queue was missing for too long; the reply is given up.
    #[error(
        "the reply to {message_id} is given up: the caller's queue {reply_queue} has been missing for {seconds} s"
    )]
    ReplyAbandoned {
        /// The call's `_msg_id`.
        message_id: String,
        /// The caller's queue.
        reply_queue: String,
        /// For how long.
        seconds: u64,
    },
    /// A request above the version cap (Python's `RPCVersionCapError`).
    #[error("version {version} is above the version cap {cap}")]
    VersionCap {
        /// The version wanted.
        version: String,
        /// The cap.
        cap: String,
    },
}

impl MessagingError {
    /// The stable code of this error; `docs/reference/errors.md` has a paragraph for each.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::InvalidUrl { .. } => "EB-OSLO-001",
            Self::InvalidOption { .. } => "EB-OSLO-002",
            Self::TlsFile { .. } => "EB-OSLO-003",
            Self::Unavailable { .. } => "EB-OSLO-004",
            Self::LoginRefused { .. } => "EB-OSLO-005",
            Self::Refused { .. } => "EB-OSLO-006",
            Self::Mismatch { .. } => "EB-OSLO-007",
            Self::BadMessage { .. } => "EB-OSLO-008",
            Self::EnvelopeVersion { .. } => "EB-OSLO-009",
            Self::Timeout { .. } => "EB-OSLO-010",
            Self::Undeliverable { .. } => "EB-OSLO-011",
            Self::Remote(_) => "EB-OSLO-012",
            Self::InvalidTarget { .. } => "EB-OSLO-013",
            Self::Closed => "EB-OSLO-014",
            Self::ReplyAbandoned { .. } => "EB-OSLO-015",
            Self::VersionCap { .. } => "EB-OSLO-016",
        }
    }

    /// Whether waiting may help.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }

    pub(crate) fn bad(reason: impl Into<String>) -> Self {
        Self::BadMessage {
            reason: reason.into(),
        }
    }
}

impl From<RemoteError> for MessagingError {
    fn from(error: RemoteError) -> Self {
        Self::Remote(Box::new(error))
    }
}

impl From<TlsError> for MessagingError {
    fn from(error: TlsError) -> Self {
        match error {
            TlsError::File { file, path, reason } => Self::TlsFile {
                option: match file {
                    TlsFile::Ca => "ssl_ca_file",
                    TlsFile::Certificate => "ssl_cert_file",
                    TlsFile::Key => "ssl_key_file",
                },
                path: path.display().to_string(),
                reason,
            },
            TlsError::Unpaired => Self::InvalidOption {
                option: "ssl_cert_file".to_owned(),
                reason: error.to_string(),
            },
        }
    }
}
