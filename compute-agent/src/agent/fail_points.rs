//! Where this agent can be asked to die; see `ebbtide-fail-points`. In release builds nothing of
//! this is left.

use crate::driver::DriverError;
use crate::protocol::{
    DriverResult, EvacuationPhase, EvacuationRecord, EvacuationResult, JournalRecord,
};
use ebbtide_bus::Delivery;
use ebbtide_fail_points::{FailPoint, is_armed, reach_if};
use ebbtide_model::message::{Body, Message};

/// A command has arrived, and nothing of it is written.
pub(super) fn read(body: &Body) {
    reach_if(FailPoint::NoticeRead, || matches!(body, Body::Notice(_)));
    reach_if(FailPoint::StartRead, || matches!(body, Body::Start(_)));
    reach_if(FailPoint::SpareRead, || matches!(body, Body::Spare(_)));
}

/// Records are durable, and their effects have not begun.
pub(super) fn after_journal(records: &[JournalRecord]) {
    let has = |is: fn(&EvacuationRecord) -> bool| {
        records
            .iter()
            .any(|record| matches!(record, JournalRecord::Evacuation(e) if is(e)))
    };
    reach_if(FailPoint::NoticeJournaled, || {
        has(|e| matches!(e.phase, EvacuationPhase::Notified { .. }))
    });
    reach_if(FailPoint::DrainingJournaled, || {
        has(|e| matches!(e.phase, EvacuationPhase::Draining(_)))
    });
    reach_if(FailPoint::EndingJournaled, || {
        has(|e| matches!(e.phase, EvacuationPhase::Acting { .. }))
    });
    reach_if(FailPoint::EvacuatedJournaled, || {
        has(|e| is_evacuated(e) && !e.settled)
    });
    reach_if(FailPoint::EvacuatedSettled, || {
        has(|e| is_evacuated(e) && e.settled)
    });
}

fn is_evacuated(e: &EvacuationRecord) -> bool {
    matches!(&e.phase, EvacuationPhase::Done { verdict: v } if matches!(v, EvacuationResult::Evacuated { .. }))
}

/// The hypervisor has answered, and the answer is not written.
pub(super) fn after_result(result: &Result<DriverResult, DriverError>) {
    reach_if(FailPoint::GuestTold, || {
        matches!(result, Ok(DriverResult::Noticed(_)))
    });
    reach_if(FailPoint::GuestSpared, || {
        matches!(result, Ok(DriverResult::Withdrawn))
    });
    reach_if(FailPoint::VictimEnded, || {
        matches!(result, Ok(DriverResult::Interrupted))
    });
    reach_if(FailPoint::PreemptorStarted, || {
        matches!(result, Ok(DriverResult::Started(_)))
    });
}

/// The broker has a report, and that is not recorded.
pub(super) fn after_report(body: &Body) {
    reach_if(FailPoint::DrainingReported, || {
        matches!(body, Body::Draining(_))
    });
    reach_if(FailPoint::EvacuatedReported, || {
        matches!(body, Body::Evacuated(_))
    });
    reach_if(FailPoint::StartedReported, || {
        matches!(body, Body::Started(_))
    });
    reach_if(FailPoint::SparedReported, || {
        matches!(body, Body::Spared(_))
    });
}

/// Acknowledges a command.
pub(super) async fn acknowledge(delivery: Delivery) {
    let notice = is_armed(FailPoint::NoticeAcknowledged)
        && Message::from_bytes(&delivery.body).is_ok_and(|m| matches!(m.body, Body::Notice(_)));
    delivery.ack().await;
    reach_if(FailPoint::NoticeAcknowledged, || notice);
}
