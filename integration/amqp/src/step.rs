//! Steps on a channel, and why they fail.

use std::future::Future;

use crate::BrokerSession;

/// The connection was lost during a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the connection to the broker was lost")]
pub struct ConnectionLost;

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
