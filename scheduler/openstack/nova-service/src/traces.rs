//! The spans of a request of Nova.

use ebbtide_model::message::Body;
use ebbtide_telemetry::{Span, SpanKind, TraceContext, current};
use oslo_messaging::IncomingCall;

/// The span of a request, a child of what Nova's context says of a trace: osprofiler's, which is
/// the only one that Nova's services put there.
pub(crate) fn request(call: &IncomingCall) -> Span {
    let id = |name: &str| call.context.get("trace_info")?.get(name)?.as_str();
    let parent = id("base_id")
        .zip(id("parent_id"))
        .and_then(|(base, parent)| TraceContext::of_osprofiler(base, parent));
    let mut span = Span::request(|| call.method.clone(), parent);
    for (attribute, name) in [
        ("openstack.request_id", "request_id"),
        ("openstack.project_id", "project_id"),
    ] {
        if let Some(text) = call.context.get(name).and_then(|value| value.as_str()) {
            span.set(attribute, || text.to_owned());
        }
    }
    span
}

/// A part of the request on which this task works.
pub(crate) fn part(name: &'static str) -> Span {
    Span::part(name, SpanKind::Internal, current())
}

/// The writing of an agent's report, a child of what the agent did.
pub(crate) fn report(body: &Body, trace: Option<TraceContext>) -> Span {
    let name = match body {
        Body::Draining(_) => "draining",
        Body::Evacuated(_) => "gone",
        Body::EvacuationFailed(_) => "evacuation failed",
        Body::Spared(_) => "spared",
        _ => "report",
    };
    of_server(Span::part(name, SpanKind::Internal, trace), body)
}

/// The sending of a message to an agent.
pub(crate) fn message(body: &Body, host: &str) -> Span {
    let name = match body {
        Body::Notice(_) => "notice",
        Body::Spare(_) => "spare",
        Body::Release(_) => "release",
        _ => "message",
    };
    let mut span = Span::part(name, SpanKind::Producer, current());
    span.set("ebbtide.host", || host.to_owned());
    of_server(span, body)
}

fn of_server(mut span: Span, body: &Body) -> Span {
    if let Some(server) = body.server_id() {
        span.set("ebbtide.server_id", || server.to_string());
    }
    span
}
