//! Whose things a request names: tenants see and change their own, and nobody else's exist for them.
//!
//! A [`Guard`] stands in front of [`ApiHandlers`] and has every call of the services that tenants use, so that a new call does not compile
//! before somebody has thought about it. Whether the role may make the call at all was decided before, at the gate.

mod market;
mod own;
mod scheduler;
mod servers;

use super::{ApiHandlers, convert, servers as front};
use crate::error::ServiceError;
use ebbtide_access::Caller;
use ebbtide_model::Decision;
use ebbtide_proto::v1;
use ebbtide_region::Event;
use tonic::{Request, Status};

/// The API, as each caller may see it.
#[derive(Clone)]
pub(crate) struct Guard {
    pub(crate) handlers: ApiHandlers,
}

/// Who asks. The gate has said so; a request that did not come through it is refused.
pub(super) fn caller<T>(request: &Request<T>) -> Result<Caller, Status> {
    let caller = request.extensions().get::<Caller>().cloned();
    caller.ok_or_else(|| ServiceError::Access(ebbtide_access::AccessError::NobodyKnown).into())
}

/// A decision as the caller may see it: tenants hear nothing about other tenants.
pub(super) fn seen(decision: Decision, who: &Caller) -> Decision {
    if who.is_tenant() {
        // Of a tenant with several projects: only the project's own is told, which is never too much.
        let project = decision.request.project_id.clone();
        decision.for_tenant(&project)
    } else {
        decision
    }
}

/// An event as the caller may see it.
pub(super) fn event(event: &Event, who: &Caller) -> Option<v1::watch_event::Event> {
    if !who.is_tenant() {
        return convert::event(event);
    }
    match event {
        Event::Decision(decision) => {
            let seen = decision.for_tenant(&decision.request.project_id);
            Some(v1::watch_event::Event::Decision(convert::decision_short(
                &seen,
            )))
        }
        Event::Evacuation(evacuation) => Some(v1::watch_event::Event::Evacuation(
            front::without_preemptor(convert::evacuation(evacuation)),
        )),
        other => convert::event(other),
    }
}
