//! The spans of a region: what a request, a report and a message are called in traces.

use ebbtide_model::message::Body;
use ebbtide_model::record::Change;
use ebbtide_model::{CloudEvent, DecisionOutcome, ServerId};
use ebbtide_region::{Effects, InputKind};
use ebbtide_telemetry::{Span, SpanKind, TraceContext};

/// The spans of one input.
pub(crate) struct InputTrace {
    trace: Option<TraceContext>,
    /// The decision about a request for servers.
    decision: Span,
    /// The name of what makes the effect durable.
    commit: &'static str,
    /// The server of a report.
    server: Option<ServerId>,
}

impl InputTrace {
    /// Begins before the region handles the input. `decides`: it will decide on the way.
    pub(crate) fn begin(kind: InputKind<'_>, trace: Option<TraceContext>, decides: bool) -> Self {
        let decision = match decides {
            true => decision(trace),
            false => Span::default(),
        };
        let (commit, server) = match kind {
            InputKind::Placement(_) => ("claim", None),
            InputKind::Report(message) => (report_name(&message.body), message.body.server_id()),
            _ => ("commit", None),
        };
        Self {
            trace,
            decision,
            commit,
            server,
        }
    }

    /// The region has handled the input; `effects` are missing if it refused. Returns the span that
    /// ends when the effects are durable. The messages that follow from the input are children of
    /// it, and carry its context through the outbox.
    pub(crate) fn handled(mut self, effects: Option<&mut Effects>) -> Span {
        if self.trace.is_none() {
            return Span::default();
        }
        let Some(effects) = effects else {
            self.decision.fail(|| "the region refused it".to_owned());
            return Span::default();
        };
        set_decision(&mut self.decision, effects);
        drop(self.decision);
        let mut span = Span::part(self.commit, SpanKind::Internal, self.trace);
        if let Some(server) = self.server {
            span.set("ebbtide.server_id", || server.to_string());
        }
        if let Some(context) = span.context() {
            for change in &mut effects.changes {
                if let Change::Enqueue(message) = change {
                    context.stamp(&mut message.body);
                }
            }
        }
        span
    }
}

/// The span of a decision.
pub(crate) fn decision(trace: Option<TraceContext>) -> Span {
    Span::part("decision", SpanKind::Internal, trace)
}

fn set_decision(span: &mut Span, effects: &Effects) {
    for event in &effects.events {
        if let CloudEvent::Decision(decision) = event {
            let victims = decision.victims().count();
            span.set("ebbtide.decision_id", || decision.id.to_string());
            span.set("ebbtide.victims", || {
                i64::try_from(victims).unwrap_or(i64::MAX)
            });
            span.set("ebbtide.outcome", || match &decision.outcome {
                DecisionOutcome::Placed(_) if victims > 0 => "placed-by-preemption",
                DecisionOutcome::Placed(_) => "placed",
                DecisionOutcome::NoValidHost(_) => "no-valid-host",
            });
        }
    }
}

fn report_name(body: &Body) -> &'static str {
    match body {
        Body::Draining(_) => "draining",
        Body::Evacuated(_) => "gone",
        Body::EvacuationFailed(_) => "evacuation failed",
        Body::Spared(_) => "spared",
        Body::Started(_) => "started",
        Body::StartFailed(_) => "start failed",
        Body::Deleted(_) => "deleted",
        _ => "report",
    }
}

/// What the sending of a message to an agent is called.
pub(crate) fn message_name(body: &Body) -> &'static str {
    match body {
        Body::Notice(_) => "notice",
        Body::Spare(_) => "spare",
        Body::Release(_) => "release",
        Body::Start(_) => "start",
        Body::Delete(_) => "delete",
        _ => "message",
    }
}
