//! Signs of life to the caller while the work lasts (`RPCDispatcher._watchdog`).

use std::sync::Arc;
use std::time::Duration;

use ebbtide_amqp::PublishOutcome;
use ebbtide_runtime::ids;

use super::Inner;
use super::work::direct;
use crate::wire::{ReplyTo, encode_heartbeat};
use crate::{CallState, MessagingError};

/// While the caller's queue is missing it is looked for this often: after a restart of the broker
/// it comes back soon.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Sends heartbeats every half of the caller's timeout, and one at once for a request that had been
/// delivered before: its caller has waited through the death of another server. Ends when the
/// caller is gone for good.
pub(super) async fn beat(
    inner: &Arc<Inner>,
    reply_to: &ReplyTo,
    timeout: Duration,
    at_once: bool,
    state: &CallState,
) {
    let interval = timeout / 2;
    let mut pause = if at_once { Duration::ZERO } else { interval };
    loop {
        tokio::time::sleep(pause).await;
        pause = interval;
        let Ok(body) = encode_heartbeat(&reply_to.message_id, &ids::hex()) else {
            return;
        };
        match inner
            .transport
            .publisher
            .publish(&direct(inner, reply_to, body))
            .await
        {
            Ok(PublishOutcome::Routed) => state.note_listening(),
            Ok(PublishOutcome::Unroutable) => {
                state.note_missing();
                if state.missing_for() >= inner.transport.options().missing_consumer_timeout {
                    tracing::warn!(reply_queue = reply_to.queue, "the caller is gone");
                    state.note_gone();
                    return;
                }
                pause = interval.min(LOOK_AGAIN);
            }
            Err(MessagingError::Closed) => return,
            Err(error) => {
                tracing::warn!(code = error.code(), %error, "a heartbeat could not be sent");
            }
        }
    }
}
