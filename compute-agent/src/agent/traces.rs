//! The spans of the commands in hand.
//!
//! A command is in hand from its arrival until it is acknowledged, which is after its last report.
//! So the span of a notice lasts until its victim is gone. What the hypervisor is asked meanwhile,
//! the grace period and the reports are children of it.

use crate::protocol::{ActionId, DeliveryTag, DriverCall, DriverResult};
use ebbtide_bus::Delivery;
use ebbtide_model::ServerId;
use ebbtide_model::message::{Body, Message};
use ebbtide_telemetry::{Span, SpanKind, TraceContext};
use std::collections::HashMap;

/// The spans of commands that belong to a trace; empty while traces are off.
#[derive(Debug, Default)]
pub(super) struct Traces {
    commands: HashMap<ServerId, CommandSpans>,
    calls: HashMap<ActionId, Span>,
}

#[derive(Debug)]
struct CommandSpans {
    token: DeliveryTag,
    whole: Span,
    /// Between the guest's notice and its end.
    grace: Span,
}

impl Traces {
    pub(super) fn received(
        &mut self,
        token: DeliveryTag,
        delivery: &Delivery,
        message: &Message,
        host: &str,
    ) {
        let Some(context) = TraceContext::received(delivery.traceparent.as_deref()) else {
            return;
        };
        let Some(server) = message.body.server_id() else {
            return;
        };
        let name = match &message.body {
            Body::Notice(_) => "evacuation",
            Body::Start(_) => "start server",
            Body::Delete(_) => "delete server",
            Body::Spare(_) => return self.note(server, "spare"),
            Body::Release(_) => return self.note(server, "release"),
            _ => return,
        };
        let mut whole = Span::part(name, SpanKind::Consumer, Some(context));
        whole.set("ebbtide.host", || host.to_owned());
        whole.set("ebbtide.server_id", || server.to_string());
        if let Body::Notice(notice) = &message.body {
            whole.set("ebbtide.evacuation_id", || notice.evacuation_id.to_string());
            whole.set("ebbtide.attempt", || i64::from(notice.attempt));
        }
        let spans = CommandSpans {
            token,
            whole,
            grace: Span::default(),
        };
        self.commands.insert(server, spans);
    }

    fn note(&mut self, server: ServerId, event: &'static str) {
        if let Some(command) = self.commands.get_mut(&server) {
            command.whole.event(event);
        }
    }

    /// The hypervisor is asked.
    pub(super) fn calls(&mut self, action: ActionId, server: ServerId, what: &DriverCall) {
        let Some(command) = self.commands.get_mut(&server) else {
            return;
        };
        let name = match what {
            DriverCall::GiveNotice(_) => "guest notice",
            DriverCall::WithdrawNotice(_) => "withdraw notice",
            DriverCall::Interrupt(behaviour) => {
                command.grace = Span::default();
                behaviour.as_str()
            }
            DriverCall::Fence => "fence",
            DriverCall::Look => "look",
            DriverCall::Start(_) => "start",
            DriverCall::Delete(_) => "delete",
        };
        let span = Span::part(name, SpanKind::Internal, command.whole.context());
        self.calls.insert(action, span);
    }

    /// The hypervisor has answered.
    pub(super) fn answered<E: ToString>(
        &mut self,
        action: ActionId,
        server: ServerId,
        result: &Result<DriverResult, E>,
    ) {
        let Some(mut span) = self.calls.remove(&action) else {
            return;
        };
        match result {
            Ok(DriverResult::Noticed(_)) => {
                drop(span);
                if let Some(command) = self.commands.get_mut(&server) {
                    let parent = command.whole.context();
                    command.grace = Span::part("grace period", SpanKind::Internal, parent);
                }
            }
            Ok(_) => {}
            Err(error) => span.fail(|| error.to_string()),
        }
    }

    /// The span from now until a report is confirmed.
    pub(super) fn report(&mut self, body: &Body) -> Span {
        let server = body.server_id();
        let Some(command) = server.and_then(|server| self.commands.get_mut(&server)) else {
            return Span::default();
        };
        let name = match body {
            Body::Draining(_) => "report draining",
            Body::Evacuated(_) => "report gone",
            Body::EvacuationFailed(_) | Body::StartFailed(_) => "report failed",
            Body::Spared(_) => "report spared",
            Body::Started(_) => "report started",
            _ => "report",
        };
        if let Body::EvacuationFailed(failed) = body {
            command.whole.fail(|| failed.reason.clone());
        }
        if let Body::StartFailed(failed) = body {
            command.whole.fail(|| failed.reason.clone());
        }
        Span::part(name, SpanKind::Producer, command.whole.context())
    }

    /// The command is settled.
    pub(super) fn settled(&mut self, token: DeliveryTag) {
        self.commands.retain(|_, command| command.token != token);
    }
}
