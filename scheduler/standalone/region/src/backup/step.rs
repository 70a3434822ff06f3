//! One step of a reconciliation: what an operator sees of it, and what it does.

use super::{ReconcileAction, ReconcileStep};
use ebbtide_model::message::{HostedFacts, HostedServer, HostedState, Message};
use ebbtide_model::record::OutboxMessage;
use ebbtide_model::{EvacuationId, Flavor, MessageId, ServerId, ServerStatus};
use std::collections::BTreeMap;

/// What a step does to the region.
#[derive(Debug, Clone)]
pub(super) enum Work {
    Adopt(Box<Adoption>),
    /// The server runs on the host.
    Run(ReportedServer),
    /// The server is stopped or hibernated on the host.
    Keep(ReportedServer),
    Close(ServerId),
    /// The owner's deletion: sent again to the host that has the server, or done if none has it.
    Delete(ServerId, Option<String>),
    /// The evacuation is over: its victim lives, on this host, or unknown where.
    Spared(EvacuationId, Option<ReportedServer>),
    /// The evacuation is over: its victim is gone, or is kept in this place.
    Evacuated(EvacuationId, Option<ReportedServer>),
    /// The agent withdraws a notice that no record knows.
    Withdraw(ReportedServer, EvacuationId),
    Discard(MessageId),
    Disable(String),
    Look,
}

/// A server on a host, as its agent says.
#[derive(Debug, Clone)]
pub(super) struct ReportedServer {
    pub(super) server: ServerId,
    pub(super) host: String,
    pub(super) state: HostedState,
    pub(super) facts: Option<HostedFacts>,
}

/// A server that gets a record.
#[derive(Debug, Clone)]
pub(super) struct Adoption {
    pub(super) place: ReportedServer,
    pub(super) facts: HostedFacts,
    pub(super) flavor: Flavor,
}

/// A step, and what it does.
#[derive(Debug, Clone)]
pub(super) struct PlannedStep {
    pub(super) shown: ReconcileStep,
    pub(super) work: Work,
}

impl PlannedStep {
    pub(super) fn new(
        action: ReconcileAction,
        subject: String,
        host: &str,
        why: impl Into<String>,
        work: Work,
    ) -> Self {
        Self {
            shown: ReconcileStep {
                action,
                subject,
                host: host.to_owned(),
                why: why.into(),
                next: String::new(),
            },
            work,
        }
    }

    pub(super) fn next(mut self, next: impl Into<String>) -> Self {
        self.shown.next = next.into();
        self
    }
}

/// Everything that the hosts have, by server.
pub(super) type ReportedServers = BTreeMap<ServerId, Vec<ReportedServer>>;

pub(super) fn discard_step(message: &OutboxMessage) -> PlannedStep {
    let kind = Message::from_bytes(&message.body)
        .map_or("unreadable", |message| message.body.event_type());
    PlannedStep::new(
        ReconcileAction::Discard,
        format!("message {}", message.id),
        &message.host,
        format!(
            "{kind} of {}: sent since, or for nothing",
            message.created_at
        ),
        Work::Discard(message.id),
    )
}

pub(super) fn place_of(host: &str, server: &HostedServer) -> ReportedServer {
    ReportedServer {
        server: server.server_id,
        host: host.to_owned(),
        state: server.state,
        facts: server.facts.as_deref().cloned(),
    }
}

pub(super) fn word(state: HostedState) -> &'static str {
    match state {
        HostedState::Running => "running",
        HostedState::Stopped => "stopped",
        HostedState::Hibernated => "hibernated",
    }
}

/// The status of a server that its host keeps.
pub(super) fn retained_status(state: HostedState) -> ServerStatus {
    match state {
        HostedState::Running => ServerStatus::Active,
        HostedState::Stopped => ServerStatus::Stopped,
        HostedState::Hibernated => ServerStatus::Hibernated,
    }
}
