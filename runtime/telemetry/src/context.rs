//! The context of a trace on its way between processes.

use crate::TRACEPARENT;
use crate::span::is_on;
use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};
use std::fmt;
use std::str::FromStr;

/// The span that caused something, as W3C's Trace Context writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    trace: TraceId,
    span: SpanId,
    sampled: bool,
}

/// A text that is no `traceparent`. The sender's context is then ignored, as W3C demands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoTraceparent;

impl TraceContext {
    pub(crate) fn of_span(span: &SpanContext) -> Self {
        Self {
            trace: span.trace_id(),
            span: span.span_id(),
            sampled: span.is_sampled(),
        }
    }

    pub(crate) fn as_parent(self) -> SpanContext {
        let flags = TraceFlags::default().with_sampled(self.sampled);
        SpanContext::new(self.trace, self.span, flags, true, TraceState::default())
    }

    /// The context of a received header; `None` also while traces are off.
    #[must_use]
    pub fn received(header: Option<&str>) -> Option<Self> {
        header.filter(|_| is_on())?.parse().ok()
    }

    /// The context that osprofiler puts into the context of an RPC as `trace_info`. Identifiers of
    /// spans are the lower half of its UUIDs, as in osprofiler's own driver for OTLP.
    #[must_use]
    pub fn of_osprofiler(base_id: &str, parent_id: &str) -> Option<Self> {
        let number = |id: &str| {
            let digits: String = id.chars().filter(|c| *c != '-').collect();
            u128::from_str_radix(&digits, 16).ok()
        };
        if !is_on() {
            return None;
        }
        let low = number(parent_id)? & u128::from(u64::MAX);
        Self {
            trace: TraceId::from(number(base_id)?),
            span: SpanId::from(u64::try_from(low).ok()?),
            // osprofiler sends it only while it traces.
            sampled: true,
        }
        .valid()
    }

    fn valid(self) -> Option<Self> {
        (self.trace != TraceId::INVALID && self.span != SpanId::INVALID).then_some(self)
    }

    /// The trace, as 32 hexadecimal digits.
    #[must_use]
    pub fn trace_id(&self) -> String {
        self.trace.to_string()
    }

    /// Writes the context into a CloudEvent in structured JSON, as the extension for distributed
    /// tracing says. A message keeps it in the outbox, over the end of the process that wrote it.
    pub fn stamp(&self, event: &mut Vec<u8>) {
        // Every message of ours is an object with attributes and without a `traceparent`.
        if event.first() == Some(&b'{') && event.get(1) == Some(&b'"') {
            let attribute = format!("{{\"{TRACEPARENT}\":\"{self}\",");
            event.splice(..1, attribute.into_bytes());
        }
    }

    /// The context that [`TraceContext::stamp`] has written; `None` also while traces are off.
    #[must_use]
    pub fn of_event(event: &[u8]) -> Option<Self> {
        if !is_on() {
            return None;
        }
        let start = format!("{{\"{TRACEPARENT}\":\"");
        let rest = event.strip_prefix(start.as_bytes())?;
        let end = rest.iter().position(|byte| *byte == b'"')?;
        std::str::from_utf8(rest.get(..end)?).ok()?.parse().ok()
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = u8::from(self.sampled);
        write!(f, "00-{}-{}-{flags:02x}", self.trace, self.span)
    }
}

impl FromStr for TraceContext {
    type Err = NoTraceparent;

    fn from_str(text: &str) -> Result<Self, NoTraceparent> {
        let lower = |text: &str, length| {
            let mut bytes = text.bytes();
            text.len() == length && bytes.all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        };
        let mut parts = text.trim().split('-');
        let mut part = |length| {
            let part = parts.next().filter(|part| lower(part, length));
            part.ok_or(NoTraceparent)
        };
        let (version, trace, span, flags) = (part(2)?, part(32)?, part(16)?, part(2)?);
        // Later versions may add parts behind the flags.
        if version == "ff" || version == "00" && parts.next().is_some() {
            return Err(NoTraceparent);
        }
        let flags = u8::from_str_radix(flags, 16).map_err(|_| NoTraceparent)?;
        Self {
            trace: TraceId::from_hex(trace).map_err(|_| NoTraceparent)?,
            span: SpanId::from_hex(span).map_err(|_| NoTraceparent)?,
            sampled: flags & 1 == 1,
        }
        .valid()
        .ok_or(NoTraceparent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_context_comes_back_from_its_text() {
        let context: TraceContext = KNOWN.parse().unwrap();
        assert_eq!(context.to_string(), KNOWN);
        assert_eq!(context.trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
        let unsampled = KNOWN.replace("-01", "-00");
        let context: TraceContext = unsampled.parse().unwrap();
        assert_eq!(context.to_string(), unsampled);
        // Other flags and later versions are read, and not written.
        for text in [
            KNOWN.replace("-01", "-03"),
            KNOWN.replace("00-4", "01-4") + "-more",
        ] {
            assert_eq!(text.parse::<TraceContext>().unwrap().to_string(), KNOWN);
        }
    }

    #[test]
    fn a_text_that_is_no_context_is_refused() {
        for text in [
            String::new(),
            KNOWN.to_uppercase(),
            KNOWN.replace("00-4", "ff-4"),
            format!("{KNOWN}-more"),
            KNOWN.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            KNOWN.replace("00f067aa0ba902b7", &"0".repeat(16)),
            KNOWN.replace("-01", ""),
            KNOWN.replace("-01", "-+1"),
        ] {
            assert_eq!(text.parse::<TraceContext>(), Err(NoTraceparent), "{text}");
        }
    }

    #[test]
    fn a_stamped_event_is_read_as_before() {
        use ebbtide_model::message::{Body, Message, Spare};
        use ebbtide_model::{EvacuationId, MessageId, ServerId, Timestamp};
        let id = ebbtide_runtime::ids::new();
        let message = Message {
            id: MessageId(id),
            source: "/ebbtide/scheduler".to_owned(),
            time: Timestamp::from_millis(1_800_000_000_000),
            body: Body::Spare(Spare {
                evacuation_id: EvacuationId(id),
                server_id: ServerId(id),
            }),
        };
        let plain = message.to_bytes().unwrap();
        let mut bytes = plain.clone();
        KNOWN.parse::<TraceContext>().unwrap().stamp(&mut bytes);
        assert!(bytes.len() > plain.len() + KNOWN.len());
        assert_eq!(Message::from_bytes(&bytes).unwrap(), message);
    }

    #[test]
    fn nothing_is_read_while_traces_are_off() {
        assert_eq!(TraceContext::received(Some(KNOWN)), None);
        let event = format!("{{\"traceparent\":\"{KNOWN}\",\"id\":\"1\"}}");
        assert_eq!(TraceContext::of_event(event.as_bytes()), None);
    }
}
