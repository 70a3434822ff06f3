//! What the queue of servers that come back knows of a server. It follows from the server alone.

use ebbtide_evacuation::{ResumeEntry, ResumeState};
use ebbtide_model::{Server, ServerStatus};

/// The entry of a server; `None` if it has none.
pub(super) fn entry(server: &Server) -> Option<ResumeEntry> {
    let (comeback, host) = (server.comeback.as_ref()?, server.host.clone()?);
    if server.status.is_gone() {
        return None;
    }
    Some(ResumeEntry {
        place: host,
        project: server.project_id.clone(),
        state: match server.status {
            _ if server.waits_to_come_back() => ResumeState::Waiting,
            ServerStatus::Building => ResumeState::Returning,
            _ => ResumeState::Other,
        },
        since: comeback.since,
        not_before: comeback.not_before,
        resumed_at: comeback.resumed_at,
    })
}
