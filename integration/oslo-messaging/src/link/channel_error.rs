//! Steps on a channel, and why they fail.

use ebbtide_amqp::{BrokerFault, ConnectionLost};

use crate::MessagingError;

/// Why a step on a channel failed: for good, or in a way that a new channel may heal.
#[derive(Debug)]
pub(crate) enum ChannelError {
    Final(MessagingError),
    Again(String),
    /// The exchange to which something was published does not exist.
    NoExchange,
    /// Another program has declared this exchange or queue with another durability.
    Durability(String),
}

impl ChannelError {
    pub(crate) fn during(error: &lapin::Error, operation: impl FnOnce() -> String) -> Self {
        Self::of(BrokerFault::of(error), operation)
    }

    pub(crate) fn of(fault: BrokerFault, operation: impl FnOnce() -> String) -> Self {
        match fault {
            BrokerFault::Transient(problem) => Self::Again(problem),
            BrokerFault::AccessRefused(detail) | BrokerFault::Refused(detail) => {
                Self::Final(MessagingError::Refused {
                    operation: operation(),
                    detail,
                })
            }
            BrokerFault::Precondition(detail) if detail.contains("inequivalent arg 'durable'") => {
                Self::Durability(detail)
            }
            BrokerFault::Precondition(detail) => Self::Final(MessagingError::Mismatch {
                name: operation(),
                detail,
            }),
            BrokerFault::NotFound(_) => Self::NoExchange,
        }
    }

    /// For steps that know no better: everything that is not final is tried again.
    pub(crate) fn plain(self, name: impl FnOnce() -> String) -> Self {
        match self {
            Self::Durability(detail) => Self::Final(MessagingError::Mismatch {
                name: name(),
                detail,
            }),
            Self::NoExchange => Self::Again("it was deleted in between".to_owned()),
            other => other,
        }
    }
}

impl From<ConnectionLost> for ChannelError {
    fn from(lost: ConnectionLost) -> Self {
        Self::Again(lost.to_string())
    }
}
