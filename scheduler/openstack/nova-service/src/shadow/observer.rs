//! The endpoint of a shadow: it gets copies of what nova-scheduler gets.

use super::answers::Answers;
use crate::endpoint::{METHODS, follow};
use crate::select::{Selector, raised};
use ebbtide_nova_objects::Value as Wire;
use oslo_messaging::{Endpoint, EndpointTarget, HandlerFuture, IncomingCall};
use serde_json::Value;

/// Topic `scheduler`, version 4.5, as [`SchedulerApi`](crate::endpoint::SchedulerApi).
pub(super) struct ShadowApi {
    pub(super) selector: Selector,
    pub(super) answers: Answers,
}

impl Endpoint for ShadowApi {
    fn target(&self) -> EndpointTarget {
        EndpointTarget::version(4, 5)
    }

    fn methods(&self) -> &[&str] {
        METHODS
    }

    fn handle(&self, call: IncomingCall) -> HandlerFuture<'_> {
        Box::pin(async move {
            if call.method == "select_destinations" {
                let open = self.answers.arrived();
                let observed = Box::pin(self.selector.observe(call)).await?;
                self.answers.follow(observed, open);
                return Ok(Value::Null);
            }
            let method = call.method;
            let args = Wire::from(&Value::Object(call.args));
            let followed = follow(&self.selector.facts, &method, &args).await;
            followed.map_err(|error| raised(&error.fault()))?;
            Ok(Value::Null)
        })
    }
}
