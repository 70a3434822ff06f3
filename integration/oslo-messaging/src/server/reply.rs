//! Answers: published until the broker confirms, or until the caller is known to be gone
//! (`AMQPIncomingMessage.reply`).

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use ebbtide_amqp::PublishOutcome;
use ebbtide_runtime::{clock, ids};
use serde_json::Value;
use tokio::time::Instant;

use super::Inner;
use super::work::direct;
use crate::wire::{ReplyTo, encode_failure, encode_result};
use crate::{CallState, CallerState, MessagingError, RemoteError};

/// Pause between two attempts while the caller's queue is missing, as in Python.
const RETRY: Duration = Duration::from_millis(250);

/// How many gone queues are remembered and for how long (`ObsoleteReplyQueuesCache`).
const GONE_QUEUES: usize = 200;
const GONE_FOR: Duration = Duration::from_secs(60);

/// The transport was closed before the answer was out.
pub(super) struct TransportClosed;

/// Callers' queues that were missing for too long lately. Other calls of the same caller do not
/// wait for them again.
#[derive(Debug, Default)]
pub(super) struct GoneQueues(VecDeque<(String, Instant)>);

impl GoneQueues {
    fn add(&mut self, queue: &str) {
        if self.0.len() == GONE_QUEUES {
            self.0.pop_front();
        }
        self.0.push_back((queue.to_owned(), clock::timer()));
    }

    fn contains(&mut self, queue: &str) -> bool {
        let now = clock::timer();
        self.0
            .retain(|(_, since)| now.saturating_duration_since(*since) < GONE_FOR);
        self.0.iter().any(|(gone, _)| gone == queue)
    }
}

/// Sends the answer. `Ok` means that nothing more can be done: it is confirmed, or the caller is
/// gone, or the broker will never take it.
pub(super) async fn send(
    inner: &Arc<Inner>,
    reply_to: &ReplyTo,
    outcome: Result<Value, RemoteError>,
    state: &CallState,
) -> Result<(), TransportClosed> {
    let body = encode(reply_to, &outcome);
    match publish(inner, reply_to, body, state).await {
        Ok(()) => Ok(()),
        Err(MessagingError::Closed) => Err(TransportClosed),
        Err(error) => {
            tracing::error!(code = error.code(), %error, "the broker does not take an answer; its caller gets a failure instead");
            // Most likely it was too large; this one is not. If it is refused as well, nothing can
            // be done.
            let failure =
                RemoteError::builtin("RuntimeError", format!("the answer was refused: {error}"));
            let body = encode(reply_to, &Err(failure));
            match publish(inner, reply_to, body, state).await {
                Err(MessagingError::Closed) => Err(TransportClosed),
                Ok(()) | Err(_) => Ok(()),
            }
        }
    }
}

fn encode(reply_to: &ReplyTo, outcome: &Result<Value, RemoteError>) -> Vec<u8> {
    let id = &reply_to.message_id;
    let encoded = match outcome {
        Ok(result) => encode_result(result, id, &ids::hex()),
        Err(failure) => encode_failure(failure, id, &ids::hex()),
    };
    // A JSON value can always be written as JSON; an empty body would be rejected by the caller.
    encoded.unwrap_or_default()
}

async fn publish(
    inner: &Arc<Inner>,
    reply_to: &ReplyTo,
    body: Vec<u8>,
    state: &CallState,
) -> Result<(), MessagingError> {
    let publication = direct(inner, reply_to, body);
    let limit = inner.transport.options().missing_consumer_timeout;
    loop {
        match inner.transport.publisher.publish(&publication).await? {
            PublishOutcome::Routed => return Ok(()),
            PublishOutcome::Unroutable => {}
        }
        state.note_missing();
        let missing_for = state.missing_for();
        let known_gone =
            state.caller() == CallerState::Gone || inner.gone_queues().contains(&reply_to.queue);
        if known_gone || missing_for >= limit {
            if !known_gone {
                inner.gone_queues().add(&reply_to.queue);
                state.note_gone();
            }
            let error = MessagingError::ReplyAbandoned {
                message_id: reply_to.message_id.clone(),
                reply_queue: reply_to.queue.clone(),
                seconds: missing_for.as_secs(),
            };
            tracing::warn!(code = error.code(), %error, "an answer is given up");
            return Ok(());
        }
        tokio::time::sleep(RETRY).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn gone_queues_are_forgotten_after_a_minute_and_bounded() {
        let mut gone = GoneQueues::default();
        gone.add("a");
        assert!(gone.contains("a") && !gone.contains("b"));
        tokio::time::advance(GONE_FOR).await;
        assert!(!gone.contains("a"));
        for number in 0..=GONE_QUEUES {
            gone.add(&number.to_string());
        }
        assert!(!gone.contains("0") && gone.contains("1") && gone.0.len() == GONE_QUEUES);
    }
}
