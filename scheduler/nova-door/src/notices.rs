//! Notifications `scheduler.select_destinations.start` and `.end`, sent in order beside the work: nobody waits for them, and a broker
//! that takes none holds up nothing.

use crate::task::Tasks;
use ebbtide_nova_objects::notification::{END, START, legacy_payload, versioned_payload};
use ebbtide_nova_objects::{RpcContext, SelectDestinations};
use oslo_messaging::{Map, Notification, Notifier, Priority};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::mpsc;

/// Notifications that wait for the broker. More are thrown away, and told.
const WAITING: usize = 10_000;

/// Whoever sends.
#[derive(Clone, Default)]
pub(crate) struct Notices {
    queue: Option<mpsc::Sender<(Arc<Payload>, &'static str)>>,
}

/// What a request's notifications say.
#[derive(Default)]
struct Payload {
    legacy: Value,
    versioned: Value,
    context: Map,
}

/// A request's notifications, and whether the first was sent.
#[derive(Default)]
pub(crate) struct Start {
    payload: Arc<Payload>,
    said: AtomicBool,
}

impl Start {
    pub(crate) fn new(
        notices: &Notices,
        wanted: &SelectDestinations,
        context: &RpcContext,
        fields: &Map,
    ) -> Self {
        if notices.queue.is_none() {
            return Self::default();
        }
        let mut context_fields = fields.clone();
        // As Python's `redacted_copy`: what lets others act in the user's name stays here.
        for secret in ["auth_token", "service_token"] {
            context_fields.remove(secret);
        }
        Self {
            payload: Arc::new(Payload {
                legacy: legacy_payload(&wanted.request, context),
                versioned: versioned_payload(&wanted.request),
                context: context_fields,
            }),
            said: AtomicBool::new(false),
        }
    }
}

impl Notices {
    /// Sends with these: one for the old form, one for the versioned.
    pub(crate) fn new(
        legacy: Option<Notifier>,
        versioned: Option<Notifier>,
        tasks: &Tasks,
    ) -> Self {
        if legacy.is_none() && versioned.is_none() {
            return Self::default();
        }
        let (queue, mut waiting) = mpsc::channel::<(Arc<Payload>, &'static str)>(WAITING);
        let stop = tasks.stop().clone();
        tasks.spawn("notifications", async move {
            loop {
                let next = tokio::select! {
                    next = waiting.recv() => next,
                    () = stop.cancelled() => None,
                };
                let Some((payload, event)) = next else { return };
                for (notifier, body) in
                    [(&legacy, &payload.legacy), (&versioned, &payload.versioned)]
                {
                    let Some(notifier) = notifier else { continue };
                    let notification = Notification {
                        event_type: event.to_owned(),
                        priority: Priority::Info,
                        payload: body.clone(),
                        context: payload.context.clone(),
                    };
                    let sent = tokio::select! {
                        sent = notifier.notify(&notification) => sent,
                        () = stop.cancelled() => return,
                    };
                    if let Err(error) = sent {
                        tracing::warn!(code = error.code(), "{event}: {error}");
                    }
                }
            }
        });
        Self { queue: Some(queue) }
    }

    /// The request has candidates. Only the first time.
    pub(crate) fn start(&self, start: &Start) {
        if !start.said.swap(true, Ordering::Relaxed) {
            self.send(start, START);
        }
    }

    /// The request has its hosts.
    pub(crate) fn end(&self, start: &Start) {
        self.start(start);
        self.send(start, END);
    }

    fn send(&self, start: &Start, event: &'static str) {
        if let Some(queue) = &self.queue
            && queue.try_send((Arc::clone(&start.payload), event)).is_err()
        {
            tracing::warn!(
                code = "EB-DOOR-040",
                "{event} is not sent: {WAITING} notifications wait for the broker already"
            );
        }
    }
}
