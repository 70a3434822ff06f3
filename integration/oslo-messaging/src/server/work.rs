//! One request from delivery to acknowledgement.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ebbtide_runtime::task;
use futures::FutureExt;
use lapin::message::Delivery;
use lapin::types::AMQPValue;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::heartbeat;
use super::receipt::Receipt;
use super::reply::{self, TransportClosed};
use super::{AckMode, Inner, ServerRole};
use crate::dedup::Arrival;
use crate::endpoint::ReplyPath;
use crate::wire::{BadRequest, Properties, ReplyTo, RpcRequest, decode_request};
use crate::{ArrivalQueue, CallEnd, CallState, IncomingCall, RemoteError};

/// Takes a delivery: begins with the work as soon as there is room, or settles it.
///
/// If this future is dropped, the delivery is not begun and the broker still has it.
pub(super) async fn accept(
    inner: &Arc<Inner>,
    delivery: Delivery,
    receipt: Receipt,
    source: ArrivalQueue,
    permits: &Arc<Semaphore>,
) {
    let Ok(permit) = Arc::clone(permits).acquire_owned().await else {
        return;
    };
    let facts = Facts::of(&delivery);
    let properties = Properties {
        content_type: facts.content_type.as_deref(),
        compression: facts.compression.as_deref(),
    };
    let most = inner.options.max_message_bytes;
    let mut decoded = decode_request(&delivery.data, properties, most);
    if inner.options.role == ServerRole::Observer {
        // A worker answers the caller. Neither a reply nor a heartbeat may come from here.
        match &mut decoded {
            Ok(request) => request.reply_to = None,
            Err(bad) => bad.reply_to = None,
        }
    }
    let request = match decoded {
        Ok(request) => request,
        Err(bad) => return refuse(inner, bad, receipt, source, permit),
    };
    let id = request
        .unique_id
        .clone()
        .unwrap_or_else(|| inner.anonymous_id());
    let arrival = inner.seen().arrive(&id, receipt);
    match arrival {
        Arrival::New => begin(inner, request, facts, source, id, permit),
        Arrival::Working => {
            tracing::debug!(
                unique_id = id,
                "a request that is being worked on was delivered again"
            );
        }
        Arrival::Done(receipt) => {
            tracing::debug!(unique_id = id, "a request that is done was delivered again");
            receipt.ack().await;
        }
    }
}

/// Rejects an unusable message. Answers its caller with an error if the message has a readable
/// reply address.
fn refuse(
    inner: &Arc<Inner>,
    bad: BadRequest,
    receipt: Receipt,
    source: ArrivalQueue,
    permit: OwnedSemaphorePermit,
) {
    let BadRequest { error, reply_to } = bad;
    tracing::error!(code = error.code(), ?source, %error, "a request was rejected");
    let answering = Arc::clone(inner);
    task::spawn_tracked(&inner.tracker, tracing::Span::current(), async move {
        let _permit = permit;
        if let Some(reply_to) = reply_to {
            let state = CallState::new(answering.stopping.clone(), None);
            let failure = RemoteError::builtin("ValueError", error.to_string());
            let answer = reply::send(&answering, &reply_to, Err(failure), &state);
            tokio::select! {
                _ = answer => {}
                () = answering.given_up.cancelled() => {}
            }
        }
        receipt.reject().await;
    });
}

fn begin(
    inner: &Arc<Inner>,
    request: RpcRequest,
    facts: Facts,
    source: ArrivalQueue,
    id: String,
    permit: OwnedSemaphorePermit,
) {
    let request_id = request.context.get("request_id").and_then(Value::as_str);
    let span = tracing::info_span!(
        "rpc",
        method = request.method,
        unique_id = id,
        message_id = request.reply_to.as_ref().map(|to| to.message_id.as_str()),
        request_id,
    );
    let guard = Guard {
        inner: Arc::clone(inner),
        id,
        finished: false,
    };
    task::spawn_tracked(&inner.tracker, span, async move {
        let _permit = permit;
        Box::pin(run(guard, request, facts, source)).await;
    });
}

async fn run(guard: Guard, request: RpcRequest, facts: Facts, source: ArrivalQueue) {
    let inner = Arc::clone(&guard.inner);
    if inner.options.ack == AckMode::Early {
        guard.ack_early().await;
    }
    let reply_to = request.reply_to.clone();
    let state = CallState::new(
        inner.stopping.clone(),
        reply_to.as_ref().map(|to| ReplyPath {
            publisher: Arc::clone(&inner.transport.publisher),
            reply_queue: to.queue.clone(),
        }),
    );
    let work = async {
        let outcome = perform(&inner, request, facts, source, &state).await;
        match state.ending() {
            Some(CallEnd::GivenBack) => return Ok(false),
            Some(CallEnd::Unanswered) => return Ok(true),
            None => note(&outcome),
        }
        match &reply_to {
            Some(reply_to) => reply::send(&inner, reply_to, outcome, &state)
                .await
                .map(|()| true),
            None => Ok(true),
        }
    };
    let done = tokio::select! {
        biased;
        done = work => done,
        () = inner.given_up.cancelled() => return,
    };
    match done {
        Ok(true) => guard.finish().await,
        Ok(false) => tracing::info!("a request is given back to the broker"),
        // The transport is closed, so nothing can be said to anybody; the broker gives the request
        // to another server.
        Err(TransportClosed) => {
            tracing::warn!("a request could not be answered before the transport was closed")
        }
    }
}

/// Finds the endpoint and lets it work, with heartbeats to the caller meanwhile.
async fn perform(
    inner: &Arc<Inner>,
    request: RpcRequest,
    facts: Facts,
    source: ArrivalQueue,
    state: &CallState,
) -> Result<Value, RemoteError> {
    let found = inner.dispatcher.find(
        request.namespace.as_deref(),
        request.version.as_deref(),
        &request.method,
    )?;
    let (reply_to, monitor) = (request.reply_to.clone(), request.call_monitor_timeout);
    let call = IncomingCall {
        context: request.context,
        method: request.method,
        namespace: request.namespace,
        version: found.version,
        args: request.args,
        message_id: request.reply_to.map(|to| to.message_id),
        unique_id: request.unique_id,
        source,
        redelivered: facts.redelivered,
        delivery_count: facts.delivery_count,
        expiration: facts.expiration,
        sent_at: facts.sent_at,
        call_monitor_timeout: monitor,
        state: state.clone(),
    };
    let handled = AssertUnwindSafe(found.endpoint.handle(call)).catch_unwind();
    let heartbeats = async {
        if let (Some(reply_to), Some(monitor)) = (&reply_to, monitor) {
            heartbeat::beat(inner, reply_to, monitor, facts.redelivered, state).await;
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        biased;
        outcome = handled => outcome.unwrap_or_else(|_| {
            tracing::error!("a handler panicked; its caller gets a RuntimeError");
            Err(RemoteError::builtin("RuntimeError", "the handler of this method failed"))
        }),
        () = heartbeats => Err(RemoteError::builtin("RuntimeError", "heartbeats ended")),
    }
}

fn note(outcome: &Result<Value, RemoteError>) {
    match outcome {
        Ok(_) => {}
        Err(error) if error.expected => {
            tracing::debug!(
                class = error.class,
                message = error.message,
                "the request ends with an expected failure"
            );
        }
        Err(error) => {
            tracing::warn!(
                class = error.class,
                message = error.message,
                "the request ends with a failure"
            );
        }
    }
}

/// Settles the receipts of a request: acknowledged when it is finished, given back if its work ends
/// in any other way.
struct Guard {
    inner: Arc<Inner>,
    id: String,
    finished: bool,
}

impl Guard {
    async fn finish(mut self) {
        self.finished = true;
        let receipts = self.inner.seen().finish(&self.id);
        for receipt in receipts {
            receipt.ack().await;
        }
    }

    async fn ack_early(&self) {
        let receipts = self.inner.seen().take_receipts(&self.id);
        for receipt in receipts {
            receipt.ack().await;
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.finished {
            self.inner.unfinished.fetch_add(1, Ordering::Relaxed);
            let receipts = self.inner.seen().give_up(&self.id);
            for receipt in receipts {
                receipt.requeue();
            }
        }
    }
}

/// What AMQP says about a delivery.
struct Facts {
    redelivered: bool,
    delivery_count: Option<u64>,
    expiration: Option<Duration>,
    sent_at: Option<u64>,
    content_type: Option<String>,
    compression: Option<String>,
}

impl Facts {
    fn of(delivery: &Delivery) -> Self {
        let properties = &delivery.properties;
        let header = |name: &str| properties.headers().as_ref()?.inner().get(name).cloned();
        Self {
            redelivered: delivery.redelivered,
            delivery_count: header("x-delivery-count").as_ref().and_then(number),
            expiration: properties
                .expiration()
                .as_ref()
                .and_then(|text| text.as_str().parse().ok())
                .map(Duration::from_millis),
            sent_at: *properties.timestamp(),
            content_type: properties.content_type().as_ref().map(ToString::to_string),
            compression: match header("compression") {
                Some(AMQPValue::LongString(text)) => Some(text.to_string()),
                Some(AMQPValue::ShortString(text)) => Some(text.to_string()),
                _ => None,
            },
        }
    }
}

fn number(value: &AMQPValue) -> Option<u64> {
    match value {
        AMQPValue::LongLongInt(n) => u64::try_from(*n).ok(),
        AMQPValue::LongInt(n) => u64::try_from(*n).ok(),
        AMQPValue::LongUInt(n) => Some((*n).into()),
        AMQPValue::ShortInt(n) => u64::try_from(*n).ok(),
        AMQPValue::ShortShortInt(n) => u64::try_from(*n).ok(),
        _ => None,
    }
}

/// Used by [`reply`] and [`heartbeat`], too.
pub(super) fn direct(inner: &Inner, reply_to: &ReplyTo, body: Vec<u8>) -> crate::link::Publication {
    crate::link::Publication {
        exchange: None,
        queue: None,
        routing_key: reply_to.queue.clone(),
        mandatory: inner.transport.options().direct_mandatory,
        expiration: None,
        body,
    }
}
