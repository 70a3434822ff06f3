//! Steps on a channel, and why they fail.

use std::future::Future;

use crate::{BrokerFault, BrokerSession, ClientError};

/// The reason why a step on a channel failed.
#[derive(Debug)]
pub enum StepError<E> {
    /// A repetition does not help.
    Final(E),
    /// A new channel may heal it.
    Again(String),
}

impl<E: ClientError> StepError<E> {
    /// The meaning of a fault for a step that has no better one. `operation` completes "the broker
    /// refuses to …".
    pub fn of(fault: BrokerFault, operation: impl FnOnce() -> String) -> Self {
        match fault {
            // 404 included: a queue that was deleted between two steps is declared again.
            BrokerFault::Transient(problem) | BrokerFault::NotFound(problem) => {
                Self::Again(problem)
            }
            BrokerFault::AccessRefused(detail)
            | BrokerFault::Precondition(detail)
            | BrokerFault::Refused(detail) => Self::Final(E::refused(operation(), detail)),
        }
    }

    /// The same for an error of lapin.
    pub fn during(error: &lapin::Error, operation: impl FnOnce() -> String) -> Self {
        Self::of(BrokerFault::of(error), operation)
    }
}

/// The connection was lost during a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the connection to the broker was lost")]
pub struct ConnectionLost;

impl<E> From<ConnectionLost> for StepError<E> {
    fn from(lost: ConnectionLost) -> Self {
        Self::Again(lost.to_string())
    }
}

/// Waits for `step`, but no longer than the session lives.
///
/// # Errors
///
/// Those of the step, and [`ConnectionLost`].
pub async fn while_alive<T, F: From<ConnectionLost>>(
    session: &BrokerSession,
    step: impl Future<Output = Result<T, F>>,
) -> Result<T, F> {
    tokio::select! {
        biased;
        outcome = step => outcome,
        () = session.gone().cancelled() => Err(ConnectionLost.into()),
    }
}
