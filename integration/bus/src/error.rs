//! Everything that can go wrong on the bus.
//!
//! Each variant has a stable code (`EB-BUS-NNN`), says what was wrong and where, and what to do
//! next. The errors are plain data (`Clone`, `PartialEq`), so that a caller can store one beside
//! the outbox row that it concerns. None of them ever contains a password.

use ebbtide_amqp::{TlsError, TlsFile};
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BusError {
    /// A broker URL that cannot be used. The text of the URL is not repeated: it may hold a
    /// password.
    #[error(
        "a broker URL is malformed: {reason}; write amqp://USER:PASSWORD@HOST:5672/VHOST \
         (amqps:// for TLS) and percent-encode special characters of the user, the password and the vhost"
    )]
    InvalidUrl {
        /// What is wrong with it, without its text.
        reason: String,
    },

    /// A setting that makes no sense.
    #[error("the bus setting {setting} is invalid: {reason}")]
    InvalidConfig {
        /// The field of [`AmqpConfig`](crate::AmqpConfig).
        setting: &'static str,
        /// What is wrong and which values are possible.
        reason: String,
    },

    /// A queue prefix or host name from which no queue name can be built.
    #[error("{what} {name:?} cannot be part of a queue name: {reason}")]
    InvalidName {
        /// `"host name"` or `"queue prefix"`.
        what: &'static str,
        /// The offending text, shortened to at most 64 characters.
        name: String,
        /// Which rule it breaks.
        reason: String,
    },

    /// A message that no transport would take.
    #[error("message {message_id} cannot be sent: {reason}")]
    InvalidMessage {
        message_id: Uuid,
        /// Which rule it breaks.
        reason: String,
    },

    /// A prefetch of zero, which in AMQP would mean "without limit".
    #[error(
        "a subscription needs a prefetch of at least 1: zero means no limit, and one slow consumer \
         would then hold the whole queue"
    )]
    InvalidPrefetch,

    /// The broker could not be reached, or did not confirm in time. The operation may or may not
    /// have taken effect; repeating it is safe because consumers recognise a repeated message id.
    #[error(
        "could not {operation} within {waited_seconds} s: {last_problem}; is the broker running and \
         reachable at {brokers}? Repeating this is safe, even if it took effect after all"
    )]
    Unavailable {
        /// What was tried, for example `publish to ebbtide.agent.host-1`.
        operation: String,
        /// How long it was tried, in whole seconds (rounded up).
        waited_seconds: u64,
        /// The configured brokers, without credentials.
        brokers: String,
        /// The most recent problem that was seen.
        last_problem: String,
    },

    /// The broker does not accept the user or the password.
    #[error(
        "the broker {broker} refused the login of user {user:?}: {detail}; check the user and password \
         in the broker URL and `rabbitmqctl list_users`"
    )]
    LoginRefused {
        /// Which broker, without credentials.
        broker: String,
        /// The user name that was tried.
        user: String,
        /// The broker's own words.
        detail: String,
    },

    /// The broker understood the request and will not do it; trying again does not help.
    #[error(
        "the broker refused to {operation}: {detail}; check that the vhost exists \
         (`rabbitmqctl list_vhosts`) and the user's permissions (`rabbitmqctl list_permissions`)"
    )]
    Refused {
        /// What was tried.
        operation: String,
        /// The broker's own words.
        detail: String,
    },

    /// The message reached the broker but there is no such queue. Nothing was stored.
    #[error(
        "message {message_id} could not be routed: queue {queue} does not exist; declare it before \
         publishing (has the agent of this host ever registered?)"
    )]
    Unroutable {
        /// The missing queue.
        queue: String,
        /// The message that was not stored.
        message_id: Uuid,
    },

    /// The queue exists with other arguments (for example classic instead of quorum).
    #[error(
        "queue {queue} exists already with other properties: {detail}; delete the queue once it is empty \
         (`rabbitmqctl delete_queue {queue}`) or set the queue kind back"
    )]
    QueueMismatch {
        queue: String,
        /// The broker's own words.
        detail: String,
    },

    /// Another client reads from a queue that has one reader.
    #[error(
        "queue {queue} is being read by another process, and has been for {waited_seconds} s: two agents have the same host name, as \
         after an image was cloned, or the same host has two. Give each host a name of its own (`host`), or stop the other agent; \
         `rabbitmqctl list_consumers` and `list_connections name peer_host` tell where it is"
    )]
    InUse {
        queue: String,
        /// How long it was tried: longer than a connection that has died is in the way.
        waited_seconds: u64,
    },

    /// The bus was closed by this process.
    #[error("the bus is closed; open a new one")]
    Closed,
}

impl BusError {
    /// The stable code of this error, listed in `docs/reference/errors.md`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::InvalidUrl { .. } => "EB-BUS-001",
            Self::InvalidConfig { .. } => "EB-BUS-002",
            Self::InvalidName { .. } => "EB-BUS-003",
            Self::InvalidMessage { .. } => "EB-BUS-004",
            Self::InvalidPrefetch => "EB-BUS-005",
            Self::Unavailable { .. } => "EB-BUS-006",
            Self::LoginRefused { .. } => "EB-BUS-007",
            Self::Refused { .. } => "EB-BUS-008",
            Self::Unroutable { .. } => "EB-BUS-009",
            Self::QueueMismatch { .. } => "EB-BUS-010",
            Self::Closed => "EB-BUS-011",
            Self::InUse { .. } => "EB-BUS-014",
        }
    }

    /// The cause alone, for use inside another message.
    pub(crate) fn cause(&self) -> String {
        match self {
            Self::Unavailable { last_problem, .. } => last_problem.clone(),
            other => other.to_string(),
        }
    }

    /// True if the same operation can succeed later without any intervention.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }
}

impl From<TlsError> for BusError {
    fn from(error: TlsError) -> Self {
        Self::InvalidConfig {
            setting: match &error {
                TlsError::File { file, .. } => match file {
                    TlsFile::Ca => "ca",
                    TlsFile::Certificate => "certificate",
                    TlsFile::Key => "key",
                },
                TlsError::Unpaired => "certificate",
            },
            reason: error.to_string(),
        }
    }
}
