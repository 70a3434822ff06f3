//! Dispatches requests, and defines the forms of answers. Pure.

use super::{Document, MetadataRequest, Tokens, azure, ebbtide, ec2, gce};
use ebbtide_model::{EvacuationId, Timestamp};
use std::time::Duration;

/// What the listener does with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetadataAnswer {
    /// Send this reply.
    Reply(GuestReply),
    /// Repeat the request until the entity tag changes or the time is over, then send the current
    /// reply.
    Hold(LongPollReply),
    /// Record that the guest releases the rest of its time, then send this reply.
    Release(EvacuationId, GuestReply),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestReply {
    /// The HTTP status.
    pub status: u16,
    /// Headers besides those of the transport.
    pub headers: Vec<(&'static str, String)>,
    pub body: String,
}

/// A reply that is held until something changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LongPollReply {
    /// The entity tag that the guest knows.
    pub tag: String,
    /// Maximum time to hold it.
    pub limit: Duration,
    /// The current reply.
    pub now: GuestReply,
}

impl GuestReply {
    /// A reply with a body of this type.
    #[must_use]
    pub(super) fn new(status: u16, kind: &str, body: impl Into<String>) -> Self {
        Self {
            status,
            headers: vec![("content-type", kind.to_owned())],
            body: body.into(),
        }
    }

    pub(super) fn text(body: impl Into<String>) -> Self {
        Self::new(200, "text/plain", body)
    }

    pub(super) fn json(body: &serde_json::Value) -> Self {
        Self::new(200, "application/json", body.to_string())
    }

    pub(super) fn not_found() -> Self {
        Self::new(404, "text/plain", "404 - Not Found\n")
    }

    pub(super) fn not_allowed() -> Self {
        Self::new(405, "text/plain", "405 - Method Not Allowed\n")
    }

    pub(super) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// The answer to `request` at `now`, for a guest with this `document`.
pub fn answer(
    request: &MetadataRequest,
    document: &Document,
    now: Timestamp,
    tokens: &mut Tokens,
) -> MetadataAnswer {
    let parts: Vec<&str> = request
        .path
        .split('/')
        .filter(|part| !part.is_empty())
        .collect();
    match parts.as_slice() {
        ["latest", rest @ ..] => ec2::answer(request, rest, document, now, tokens),
        ["computeMetadata", "v1", rest @ ..] => gce::answer(request, rest, document),
        ["metadata", "scheduledevents"] => azure::answer(request, document),
        ["ebbtide", "v1", rest @ ..] => ebbtide::answer(request, rest, document),
        [] => MetadataAnswer::Reply(GuestReply::text(
            "latest\ncomputeMetadata/v1/\nmetadata/scheduledevents\nebbtide/v1/\n",
        )),
        _ => MetadataAnswer::Reply(GuestReply::not_found()),
    }
}
