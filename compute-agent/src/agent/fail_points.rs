//! Where this agent can be asked to die; see `ebbtide-fail-points`. In release builds nothing of
//! this is left.

use crate::driver::DriverError;
use crate::protocol::{Done, EvacuationRecord, Phase, Record, Verdict};
use ebbtide_bus::Delivery;
use ebbtide_fail_points::{Point, is_armed, reach_if};
use ebbtide_model::message::{Body, Message};

/// A command has arrived, and nothing of it is written.
pub(super) fn read(body: &Body) {
    reach_if(Point::NoticeRead, || matches!(body, Body::Notice(_)));
    reach_if(Point::StartRead, || matches!(body, Body::Start(_)));
    reach_if(Point::SpareRead, || matches!(body, Body::Spare(_)));
}

/// Records are durable, and their effects have not begun.
pub(super) fn journaled(records: &[Record]) {
    let has = |is: fn(&EvacuationRecord) -> bool| {
        records
            .iter()
            .any(|record| matches!(record, Record::Evacuation(e) if is(e)))
    };
    reach_if(Point::NoticeJournaled, || {
        has(|e| matches!(e.phase, Phase::Accepted { .. }))
    });
    reach_if(Point::DrainingJournaled, || {
        has(|e| matches!(e.phase, Phase::Draining(_)))
    });
    reach_if(Point::EndingJournaled, || {
        has(|e| matches!(e.phase, Phase::Acting { .. }))
    });
    reach_if(Point::EvacuatedJournaled, || has(|e| gone(e) && !e.settled));
    reach_if(Point::EvacuatedSettled, || has(|e| gone(e) && e.settled));
}

fn gone(e: &EvacuationRecord) -> bool {
    matches!(&e.phase, Phase::Done { verdict: v } if matches!(v, Verdict::Evacuated { .. }))
}

/// The hypervisor has answered, and the answer is not written.
pub(super) fn answered(result: &Result<Done, DriverError>) {
    reach_if(Point::GuestTold, || matches!(result, Ok(Done::Noticed(_))));
    reach_if(Point::GuestSpared, || matches!(result, Ok(Done::Withdrawn)));
    reach_if(Point::VictimEnded, || {
        matches!(result, Ok(Done::Interrupted))
    });
    reach_if(Point::PreemptorStarted, || {
        matches!(result, Ok(Done::Started(_)))
    });
}

/// The broker has a report, and that is not recorded.
pub(super) fn reported(body: &Body) {
    reach_if(Point::DrainingReported, || {
        matches!(body, Body::Draining(_))
    });
    reach_if(Point::EvacuatedReported, || {
        matches!(body, Body::Evacuated(_))
    });
    reach_if(Point::StartedReported, || matches!(body, Body::Started(_)));
    reach_if(Point::SparedReported, || matches!(body, Body::Spared(_)));
}

/// Acknowledges a command.
pub(super) async fn acknowledge(delivery: Delivery) {
    let notice = is_armed(Point::NoticeAcknowledged)
        && Message::from_bytes(&delivery.body).is_ok_and(|m| matches!(m.body, Body::Notice(_)));
    delivery.ack().await;
    reach_if(Point::NoticeAcknowledged, || notice);
}
