//! A part of what happens to a request, with its beginning and its end.

use crate::TraceContext;
use opentelemetry::trace::{
    Span as _, SpanBuilder, SpanKind as Kind, Status, TraceContextExt as _, Tracer as _,
};
use opentelemetry::{Context, KeyValue, Value};
use opentelemetry_sdk::trace::{SdkTracer, Span as SdkSpan};
use std::borrow::Cow;
use std::fmt;
use std::sync::OnceLock;

/// Set once in a process, by [`crate::start`]: a process has one configuration. As with the log,
/// every part of the process can begin a span without a handle.
static TRACER: OnceLock<SdkTracer> = OnceLock::new();

/// True while spans are recorded.
pub(crate) fn is_on() -> bool {
    TRACER.get().is_some()
}

/// False if traces are on already.
pub(crate) fn turn_on(tracer: SdkTracer) -> bool {
    TRACER.set(tracer).is_ok()
}

/// How a span stands to its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// In the same process.
    Internal,
    /// A message is sent.
    Producer,
    /// A message is worked on.
    Consumer,
}

/// A span that ends when it is dropped. Nothing, if the request is not traced.
#[must_use = "a span ends when it is dropped"]
#[derive(Default)]
pub struct Span(Option<Box<SdkSpan>>);

impl Span {
    /// The span of a request that comes from outside; `parent` is what its caller sent.
    pub fn request(name: impl FnOnce() -> String, parent: Option<TraceContext>) -> Self {
        match is_on() {
            true => Self::of(name().into(), Kind::Server, parent),
            false => Self::default(),
        }
    }

    /// A part of what `parent` began; nothing without one.
    pub fn part(name: &'static str, kind: SpanKind, parent: Option<TraceContext>) -> Self {
        if parent.is_none() {
            return Self::default();
        }
        let kind = match kind {
            SpanKind::Internal => Kind::Internal,
            SpanKind::Producer => Kind::Producer,
            SpanKind::Consumer => Kind::Consumer,
        };
        Self::of(name.into(), kind, parent)
    }

    fn of(name: Cow<'static, str>, kind: Kind, parent: Option<TraceContext>) -> Self {
        let Some(tracer) = TRACER.get() else {
            return Self::default();
        };
        let context = match parent {
            Some(parent) => Context::new().with_remote_span_context(parent.as_parent()),
            None => Context::new(),
        };
        let builder = SpanBuilder::from_name(name).with_kind(kind);
        let span = tracer.build_with_context(builder, &context);
        // One that is not sampled is not propagated either: what has no context begins no span.
        Self(span.span_context().is_sampled().then(|| Box::new(span)))
    }

    /// The context for what this span causes.
    #[must_use]
    pub fn context(&self) -> Option<TraceContext> {
        let span = self.0.as_ref()?;
        Some(TraceContext::of_span(span.span_context()))
    }

    /// Sets an attribute. `value` is only computed if the span is recorded.
    pub fn set<V: Into<Value>>(&mut self, key: &'static str, value: impl FnOnce() -> V) {
        if let Some(span) = &mut self.0 {
            span.set_attribute(KeyValue::new(key, value()));
        }
    }

    /// Notes that something happened within the span.
    pub fn event(&mut self, name: &'static str) {
        if let Some(span) = &mut self.0 {
            span.add_event(name, Vec::new());
        }
    }

    /// Marks the span as failed.
    pub fn fail(&mut self, why: impl FnOnce() -> String) {
        if let Some(span) = &mut self.0 {
            span.set_status(Status::error(why()));
        }
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Span").field(&self.context()).finish()
    }
}
