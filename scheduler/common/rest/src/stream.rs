//! Streams of messages: Server-Sent Events, and documents in pieces.

use crate::json;
use crate::problem::Problem;
use crate::request_id::RequestIds;
use axum::http::{HeaderValue, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures::{Stream, StreamExt as _};
use prost_reflect::{DynamicMessage, Value};
use std::convert::Infallible;
use std::time::Duration;
use tonic::Status;
use tonic::body::Body;

/// Interval of comments in a stream without events. Common proxies close connections that are
/// silent for 30 to 60 s.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// An answer of Server-Sent Events: one event for each message, named after the member of its
/// `oneof`. `position` is the field that is the id of an event.
///
/// The contract cannot continue from a position. A client that reconnects with `Last-Event-ID`
/// gets an event `gap` first: events in between may be missing.
pub(crate) fn events<M>(
    messages: M,
    position: &'static str,
    last: Option<String>,
    ids: RequestIds,
) -> Response<Body>
where
    M: Stream<Item = Result<DynamicMessage, Status>> + Send + 'static,
{
    let gap = last.map(|last| {
        let data = serde_json::json!({ "last_event_id": last });
        Event::default().event("gap").data(data.to_string())
    });
    let events = messages.map(move |message| match message {
        Ok(message) => event(&message, position, &ids),
        Err(status) => failure(&Problem::of_status(&status, &ids)),
    });
    // Headers are sent with the first byte of the body. Without this a reader of a quiet region
    // would wait for them until the first keep-alive.
    let open = futures::stream::iter([Event::default().comment("open")]);
    let all = open.chain(futures::stream::iter(gap)).chain(events);
    let stream = Sse::new(all.map(Ok::<Event, Infallible>))
        .keep_alive(KeepAlive::new().interval(KEEP_ALIVE).text("keep-alive"));
    let mut answer = stream.into_response();
    // nginx would hold events back otherwise.
    let header = header::HeaderName::from_static("x-accel-buffering");
    answer
        .headers_mut()
        .insert(header, HeaderValue::from_static("no"));
    answer.map(Body::new)
}

fn event(message: &DynamicMessage, position: &str, ids: &RequestIds) -> Event {
    let written = match json::write(message) {
        Ok(written) => written,
        Err(error) => return failure(&Problem::of_error(&error, ids)),
    };
    let mut event = Event::default().data(written.to_string());
    // A message without a position is about the stream itself, as `lagged`.
    if let Some(Value::U64(at)) = message.get_field_by_name(position).as_deref()
        && *at > 0
    {
        event = event.id(at.to_string());
    }
    match member(message) {
        Some(name) => event.event(name),
        None => event,
    }
}

fn failure(problem: &Problem) -> Event {
    Event::default().event("error").data(problem.text())
}

/// The name of the member of the message's `oneof` that is set.
fn member(message: &DynamicMessage) -> Option<String> {
    use prost_reflect::ReflectMessage as _;
    let descriptor = message.descriptor();
    let mut members = descriptor.oneofs().flat_map(|oneof| {
        let fields: Vec<_> = oneof.fields().collect();
        fields
    });
    let set = members.find(|field| message.has_field(field))?;
    Some(set.name().to_owned())
}

/// An answer of one JSON document whose parts are a field of the messages. If the call fails on
/// the way, the connection breaks: a part of a document is not taken for the whole.
pub(crate) fn document<M>(messages: M, field: &'static str) -> Response<Body>
where
    M: Stream<Item = Result<DynamicMessage, Status>> + Send + 'static,
{
    let parts = messages.map(move |message| {
        let message = message?;
        match message.get_field_by_name(field).as_deref() {
            Some(Value::Bytes(part)) => Ok(part.clone()),
            _ => Err(Status::internal(format!("there is no field {field}"))),
        }
    });
    let mut answer = Response::new(Body::new(axum::body::Body::from_stream(parts)));
    let kind = HeaderValue::from_static("application/json");
    answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    answer
}
