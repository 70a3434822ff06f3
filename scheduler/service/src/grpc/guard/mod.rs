//! Ownership checks: tenants see and change only their own objects; those of other tenants do not
//! exist for them.
//!
//! A [`Guard`] stands in front of [`ApiHandlers`] and implements every call of the services that
//! tenants use. A new call therefore does not compile until its access rule is written. Whether the
//! role may make the call at all has been decided before, at the gate.

mod market;
mod scheduler;
mod servers;
mod tenant_names;

use super::{ApiHandlers, convert, servers as front};
use crate::error::ServiceError;
use ebbtide_access::Caller;
use ebbtide_model::{CloudEvent, Decision};
use ebbtide_proto::v1;
use tonic::{Request, Status};

/// The API with the ownership checks of each caller.
#[derive(Clone)]
pub(crate) struct Guard {
    pub(crate) handlers: ApiHandlers,
}

/// The caller, as the gate has identified it. A request that has bypassed the gate is refused.
pub(super) fn caller<T>(request: &Request<T>) -> Result<Caller, Status> {
    let caller = request.extensions().get::<Caller>().cloned();
    caller.ok_or_else(|| ServiceError::Access(ebbtide_access::AccessError::Unauthenticated).into())
}

/// A decision as the caller may see it: without anything about other tenants.
pub(super) fn visible_to(decision: Decision, who: &Caller) -> Decision {
    if who.is_tenant() {
        // A tenant with several projects sees only the part of the request's project, which is
        // always allowed.
        let project = decision.request.project_id.clone();
        decision.for_tenant(&project)
    } else {
        decision
    }
}

/// An event as the caller may see it.
pub(super) fn event(event: &CloudEvent, who: &Caller) -> Option<v1::watch_event::Event> {
    if !who.is_tenant() {
        return convert::event(event);
    }
    match event {
        CloudEvent::Decision(decision) => {
            let seen = decision.for_tenant(&decision.request.project_id);
            Some(v1::watch_event::Event::Decision(convert::decision_short(
                &seen,
            )))
        }
        CloudEvent::Evacuation(evacuation) => Some(v1::watch_event::Event::Evacuation(
            front::without_preemptor(convert::evacuation(evacuation)),
        )),
        other => convert::event(other),
    }
}
