//! Traces: what happens to a request, over all processes, as spans of OpenTelemetry.
//!
//! The context of a trace travels with messages and calls as W3C's `traceparent`
//! ([`TraceContext`]). A span is begun only where a context arrives, or for a request
//! ([`Span::request`]). While traces are off, each function here returns after one load of an
//! atomic. No span waits for the collector: [`start`] has a bounded queue, and a full queue drops
//! spans and counts them ([`span_counts`]).

mod context;
mod export;
mod settings;
mod span;
mod task_context;

pub use context::TraceContext;
pub use export::{SpanCounts, Telemetry, TelemetryError, span_counts, start};
pub use settings::TelemetrySettings;
pub use span::{Span, SpanKind};
pub use task_context::{current, within};

/// Name of the header, the metadata and the attribute of a CloudEvent with the context.
pub const TRACEPARENT: &str = "traceparent";
