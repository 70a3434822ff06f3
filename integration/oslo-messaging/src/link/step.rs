//! Steps on a channel, and why they fail.

use std::future::Future;

use ebbtide_amqp::BrokerFault;

use super::dial::BrokerSession;
use crate::MessagingError;

/// Why a step on a channel failed: for good, or in a way that a new channel may heal.
#[derive(Debug)]
pub(crate) enum StepError {
    Final(MessagingError),
    Again(String),
    /// The exchange to which something was published does not exist.
    NoExchange,
    /// Another program has declared this exchange or queue with another durability.
    Durability(String),
}

impl StepError {
    pub(crate) fn during(error: &lapin::Error, operation: impl FnOnce() -> String) -> Self {
        match BrokerFault::of(error) {
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

/// Waits for `step`, but no longer than the session lives.
pub(crate) async fn while_alive<T>(
    session: &BrokerSession,
    step: impl Future<Output = Result<T, StepError>>,
) -> Result<T, StepError> {
    tokio::select! {
        biased;
        outcome = step => outcome,
        () = session.gone().cancelled() => Err(StepError::Again(
            "the connection to the broker was lost".to_owned(),
        )),
    }
}
