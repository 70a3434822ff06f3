//! Notifications `scheduler.select_destinations.start` and `.end`. A separate task sends them in
//! order; requests do not wait for them, and a broker that accepts none delays nothing.

use crate::Tasks;
use ebbtide_nova_objects::notification::{
    END, START, legacy_payload, legacy_payload_after_versioned, versioned_payload,
};
use ebbtide_nova_objects::{RpcContext, ScheduleRequest};
use oslo_messaging::{Map, Notification, Notifier, Priority};
use serde_json::Value;
use tokio::sync::mpsc;

/// Limit of notifications that wait for the broker. The scheduler drops further ones and logs that.
const WAITING: usize = 10_000;

/// Sender of notifications.
#[derive(Clone, Default)]
pub(crate) struct Notices {
    queue: Option<mpsc::Sender<Payload>>,
    /// Versioned notifications are sent, too. They change the content of the legacy ones that
    /// follow.
    versioned: bool,
}

/// The content of one notification in its two forms.
struct Payload {
    event: &'static str,
    legacy: Value,
    versioned: Value,
    context: Map,
}

impl Notices {
    /// A sender with a notifier for the legacy form and one for the versioned form.
    pub(crate) fn new(
        legacy: Option<Notifier>,
        versioned: Option<Notifier>,
        tasks: &Tasks,
    ) -> Self {
        if legacy.is_none() && versioned.is_none() {
            return Self::default();
        }
        let told = versioned.is_some();
        let (queue, mut waiting) = mpsc::channel::<Payload>(WAITING);
        let stop = tasks.stop().clone();
        tasks.spawn("notifications", async move {
            loop {
                let next = tokio::select! {
                    next = waiting.recv() => next,
                    () = stop.cancelled() => None,
                };
                let Some(payload) = next else { return };
                let event = payload.event;
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
        Self {
            queue: Some(queue),
            versioned: told,
        }
    }

    /// Notifies that the scheduler has candidates for the request.
    pub(crate) fn start(&self, request: &ScheduleRequest, context: &RpcContext, fields: &Map) {
        self.send(START, request, context, fields, false);
    }

    /// Notifies that the scheduler has selected hosts. The request is in the state in which Nova
    /// leaves it.
    pub(crate) fn end(&self, request: &ScheduleRequest, context: &RpcContext, fields: &Map) {
        self.send(END, request, context, fields, self.versioned);
    }

    fn send(
        &self,
        event: &'static str,
        request: &ScheduleRequest,
        context: &RpcContext,
        fields: &Map,
        after_versioned: bool,
    ) {
        let Some(queue) = &self.queue else { return };
        let mut fields = fields.clone();
        // As Python's `redacted_copy`: removes credentials with which a reader could act in the
        // user's name.
        for secret in ["auth_token", "service_token"] {
            fields.remove(secret);
        }
        let payload = Payload {
            event,
            legacy: if after_versioned {
                legacy_payload_after_versioned(request, context)
            } else {
                legacy_payload(request, context)
            },
            versioned: versioned_payload(request),
            context: fields,
        };
        if queue.try_send(payload).is_err() {
            tracing::warn!(
                code = "EB-DOOR-040",
                "{event} is not sent: {WAITING} notifications wait for the broker already"
            );
        }
    }
}
