//! Points at which a test can make this service die; see `ebbtide-fail-points`. Release builds do
//! not contain them.

use ebbtide_fail_points::{FailPoint, reach_if};
use ebbtide_model::message::{Body, Message};
use ebbtide_model::record::{Change, OutboxMessage};
use ebbtide_model::{Evacuation, EvacuationState, ServerStatus};

/// The region has handled a batch, and nothing of it is written.
pub(crate) fn decided(changes: &[Change]) {
    reach_if(FailPoint::ClaimDecided, || {
        is(changes, EvacuationState::Claimed)
    });
    reach_if(FailPoint::SpareDecided, || spares(changes));
    reach_if(FailPoint::DrainingHeard, || {
        is(changes, EvacuationState::Draining)
    });
    reach_if(FailPoint::EvacuatedHeard, || {
        is(changes, EvacuationState::Evacuated)
    });
    reach_if(FailPoint::SparedHeard, || {
        is(changes, EvacuationState::Spared)
    });
    reach_if(FailPoint::StartedHeard, || starts(changes));
}

/// A batch is durable, and no answer, event or message about it has been sent.
pub(crate) fn committed(changes: &[Change]) {
    reach_if(FailPoint::ClaimCommitted, || {
        is(changes, EvacuationState::Claimed)
    });
    reach_if(FailPoint::SpareCommitted, || spares(changes));
    reach_if(FailPoint::NoticeNoted, || {
        is(changes, EvacuationState::Notified)
    });
    reach_if(FailPoint::DrainingCommitted, || {
        is(changes, EvacuationState::Draining)
    });
    reach_if(FailPoint::EvacuatedCommitted, || {
        is(changes, EvacuationState::Evacuated)
    });
    reach_if(FailPoint::StartedCommitted, || starts(changes));
}

/// The effect of a report is durable and the report is acknowledged. `what`: [`acknowledges`] of
/// the report.
pub(crate) fn acknowledged(what: Option<FailPoint>) {
    if let Some(point) = what {
        reach_if(point, || true);
    }
}

/// The fail point after the acknowledgement of a report, if there is one.
pub(crate) fn acknowledges(message: &Message) -> Option<FailPoint> {
    match message.body {
        Body::Draining(_) => Some(FailPoint::DrainingAcknowledged),
        Body::Evacuated(_) => Some(FailPoint::EvacuatedAcknowledged),
        _ => None,
    }
}

/// The publisher is about to send a message to the broker.
pub(crate) fn sending(message: &OutboxMessage) {
    reach_if(FailPoint::NoticeSending, || {
        matches!(body(message), Some(Body::Notice(_)))
    });
}

/// The broker has confirmed a message, and the confirmation is not written.
pub(crate) fn confirmed(message: &OutboxMessage) {
    reach_if(FailPoint::NoticeConfirmed, || {
        matches!(body(message), Some(Body::Notice(_)))
    });
    reach_if(FailPoint::SpareConfirmed, || {
        matches!(body(message), Some(Body::Spare(_)))
    });
    reach_if(FailPoint::StartConfirmed, || {
        matches!(body(message), Some(Body::Start(_)))
    });
}

fn body(message: &OutboxMessage) -> Option<Body> {
    Message::from_bytes(&message.body).ok().map(|m| m.body)
}

fn evacuations(changes: &[Change]) -> impl Iterator<Item = &Evacuation> {
    changes.iter().filter_map(|change| match change {
        Change::PutEvacuation(evacuation) => Some(&**evacuation),
        _ => None,
    })
}

fn is(changes: &[Change], state: EvacuationState) -> bool {
    evacuations(changes).any(|e| e.state == state && (state.is_final() || !e.spare_requested))
}

fn spares(changes: &[Change]) -> bool {
    evacuations(changes).any(|e| e.spare_requested && !e.state.is_final())
}

fn starts(changes: &[Change]) -> bool {
    changes
        .iter()
        .any(|change| matches!(change, Change::PutServer(s) if s.status == ServerStatus::Active))
}
