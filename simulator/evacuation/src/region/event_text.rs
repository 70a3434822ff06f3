//! What is told of changes and messages, for people.

use super::world::RegionWorld;
use crate::event_log::EventLog;
use ebbtide_model::EvacuationState;
use ebbtide_model::message::{Body, Message};
use ebbtide_model::record::Change;

/// A message in words.
pub(super) fn body(s: &EventLog, body: &Body) -> String {
    match body {
        Body::Notice(m) => format!(
            "{} has to leave ({}, {} of grace, attempt {}, by {})",
            s.of(m.server_id.0),
            m.behaviour,
            m.grace_seconds,
            m.attempt,
            s.of(m.evacuation_id.0)
        ),
        Body::Spare(m) => format!(
            "{} may stay after all ({})",
            s.of(m.server_id.0),
            s.of(m.evacuation_id.0)
        ),
        Body::Release(m) => format!("{} needs no more time", s.of(m.server_id.0)),
        Body::Start(m) => format!("start {}", s.of(m.server_id.0)),
        Body::Delete(m) => format!("delete {}", s.of(m.server_id.0)),
        Body::Heartbeat(m) => {
            let each = m.servers.iter();
            let each =
                each.map(|h| format!("{} {:?}", s.of(h.server_id.0), h.state).to_lowercase());
            format!(
                "heartbeat of {}: {}",
                m.host,
                each.collect::<Vec<_>>().join(", ")
            )
        }
        Body::Draining(m) => format!("{} knows that it has to leave", s.of(m.server_id.0)),
        Body::Evacuated(m) => format!("{} is gone, its room is free", s.of(m.server_id.0)),
        Body::EvacuationFailed(m) => {
            format!(
                "{} could not be evacuated: {}",
                s.of(m.server_id.0),
                m.reason
            )
        }
        Body::Spared(m) => format!("{} lives on", s.of(m.server_id.0)),
        Body::Started(m) => format!("{} runs", s.of(m.server_id.0)),
        Body::StartFailed(m) => {
            format!("{} could not be started: {}", s.of(m.server_id.0), m.reason)
        }
        Body::Deleted(m) => format!("{} is deleted", s.of(m.server_id.0)),
    }
}

impl RegionWorld {
    /// Tells what a transaction has changed.
    pub(super) fn log_changes(&mut self, changes: &[Change]) {
        for change in changes {
            match change {
                Change::PutServer(server) => {
                    self.event_log.fold_id(server.id.0);
                    self.event_log.fold(server.status as u64);
                    self.event_log.name(server.id.0, "server");
                    self.log(|s| {
                        let host = server.host.as_deref().unwrap_or("no host");
                        let fault = server.fault.as_ref().map(|f| format!(": {}", f.message));
                        format!(
                            "  written: {} is {} on {host}{}",
                            s.of(server.id.0),
                            server.status,
                            fault.unwrap_or_default()
                        )
                    });
                }
                Change::PutEvacuation(e) => {
                    self.event_log.fold_id(e.id.0);
                    self.event_log.fold(e.state as u64);
                    self.event_log.name(e.id.0, "evacuation");
                    self.log(|s| {
                        let spare = if e.spare_requested && e.state != EvacuationState::Spared {
                            ", to be spared"
                        } else {
                            ""
                        };
                        let why = e.reason.as_ref().map(|why| format!(": {why}"));
                        format!(
                            "  written: {} of {} for {} is {}{spare}{}",
                            s.of(e.id.0),
                            s.of(e.victim_id.0),
                            e.preemptor_id
                                .map_or_else(|| "no preemptor".to_owned(), |id| s.of(id.0)),
                            e.state,
                            why.unwrap_or_default()
                        )
                    });
                }
                _ => {}
            }
        }
    }

    pub(super) fn log_report(&mut self, message: &Message) {
        if matches!(message.body, Body::Heartbeat(_)) {
            return;
        }
        let from = message
            .body
            .reporting_host()
            .unwrap_or("an agent")
            .to_owned();
        self.log(|s| format!("from {from}: {}", body(s, &message.body)));
    }
}
