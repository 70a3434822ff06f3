//! Who is asked, and the forms of answers. Pure.

use super::{Document, Request, Tokens, azure, ec2, gce, own};
use ebbtide_model::{EvacuationId, Timestamp};
use std::time::Duration;

/// What is to be done about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Say this.
    Reply(Reply),
    /// Ask again until the entity tag is another one or the time is over, then say what it is.
    Hold(Held),
    /// Note that the guest needs no more time, then say this.
    Release(EvacuationId, Reply),
}

/// What a guest is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The status of HTTP.
    pub status: u16,
    /// Headers beside those of the transport.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: String,
}

/// A reply that is kept back until something changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The entity tag that the guest knows.
    pub tag: String,
    /// How long it may be kept.
    pub limit: Duration,
    /// What it is now.
    pub now: Reply,
}

impl Reply {
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

/// What a guest about which `document` is known hears to `request` at `now`.
pub fn answer(
    request: &Request,
    document: &Document,
    now: Timestamp,
    tokens: &mut Tokens,
) -> Answer {
    let parts: Vec<&str> = request
        .path
        .split('/')
        .filter(|part| !part.is_empty())
        .collect();
    match parts.as_slice() {
        ["latest", rest @ ..] => ec2::answer(request, rest, document, now, tokens),
        ["computeMetadata", "v1", rest @ ..] => gce::answer(request, rest, document),
        ["metadata", "scheduledevents"] => azure::answer(request, document),
        ["ebbtide", "v1", rest @ ..] => own::answer(request, rest, document),
        [] => Answer::Reply(Reply::text(
            "latest\ncomputeMetadata/v1/\nmetadata/scheduledevents\nebbtide/v1/\n",
        )),
        _ => Answer::Reply(Reply::not_found()),
    }
}
