//! A collector of traces: the service of OTLP over gRPC, which keeps what it is sent.

use ebbtide_runtime::task::{self, Task};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1::Span;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

/// A span as it arrived.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) service: String,
    pub(super) instance: String,
    pub(super) name: String,
    pub(super) trace: String,
    pub(super) id: String,
    pub(super) parent: String,
    pub(super) kind: i32,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) attributes: BTreeMap<String, String>,
}

/// What the collector does with spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    Takes,
    /// Never answers a call.
    Hangs,
}

#[derive(Clone)]
struct Service {
    seen: Arc<Mutex<Vec<Seen>>>,
    manner: Manner,
}

/// A running collector.
pub(super) struct Collector {
    pub(super) endpoint: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    _serving: Task,
}

impl Collector {
    pub(super) async fn start(manner: Manner) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::default();
        let service = Service {
            seen: Arc::clone(&seen),
            manner,
        };
        let serving = task::spawn("collector", async move {
            let server = tonic::transport::Server::builder();
            let server = { server }.add_service(TraceServiceServer::new(service));
            let incoming = TcpListenerStream::new(listener);
            server.serve_with_incoming(incoming).await.unwrap();
        });
        Self {
            endpoint,
            seen,
            _serving: serving,
        }
    }

    /// All spans of a trace, in the order of their beginnings.
    pub(super) fn trace(&self, id: &str) -> Vec<Seen> {
        let mut spans = self.seen.lock().unwrap().clone();
        spans.retain(|span| span.trace == id);
        spans.sort_by_key(|span| span.start);
        spans
    }

    /// All spans of a name.
    pub(super) fn named(&self, name: &str) -> Vec<Seen> {
        let mut spans = self.seen.lock().unwrap().clone();
        spans.retain(|span| span.name == name);
        spans
    }
}

#[tonic::async_trait]
impl TraceService for Service {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        if self.manner == Manner::Hangs {
            std::future::pending::<()>().await;
        }
        for resource in request.into_inner().resource_spans {
            let of = attributes(&resource.resource.unwrap().attributes);
            let spans = resource.scope_spans.into_iter().flat_map(|s| s.spans);
            let seen = spans.map(|span| read(&of, span));
            self.seen.lock().unwrap().extend(seen);
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

fn read(of: &BTreeMap<String, String>, span: Span) -> Seen {
    Seen {
        service: of["service.name"].clone(),
        instance: of["service.instance.id"].clone(),
        name: span.name,
        trace: hex(&span.trace_id),
        id: hex(&span.span_id),
        parent: hex(&span.parent_span_id),
        kind: span.kind,
        start: span.start_time_unix_nano,
        end: span.end_time_unix_nano,
        attributes: attributes(&span.attributes),
    }
}

fn attributes(all: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |value: &Option<AnyValue>| match value.as_ref().and_then(|v| v.value.as_ref()) {
        Some(any_value::Value::StringValue(text)) => text.clone(),
        Some(any_value::Value::IntValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    };
    all.iter()
        .map(|pair| (pair.key.clone(), text(&pair.value)))
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A trace as a tree, for people: when each span began and how long it took.
pub(super) fn drawn(spans: &[Seen]) -> String {
    let ids: Vec<&str> = spans.iter().map(|span| span.id.as_str()).collect();
    let mut text = String::new();
    let first = spans.first().map_or(0, |span| span.start);
    for root in spans.iter().filter(|s| !ids.contains(&s.parent.as_str())) {
        draw(spans, root, 0, first, &mut text);
    }
    text
}

fn draw(spans: &[Seen], span: &Seen, depth: usize, first: u64, text: &mut String) {
    let millis = |nanos: u64| nanos / 1_000_000;
    let name = format!("{:indent$}{}", "", span.name, indent = 2 * depth);
    let _ = writeln!(
        text,
        "{:>6} ms {:>6} ms  {name:<46} {}",
        millis(span.start.saturating_sub(first)),
        millis(span.end - span.start),
        span.service
    );
    for child in spans.iter().filter(|child| child.parent == span.id) {
        draw(spans, child, depth + 1, first, text);
    }
}
