//! The last resort for a victim that does not end: the operator's fence (`fence.command` of the
//! agent), if there is one.
//!
//! The agent fences only victims that were to be terminated. A victim that the driver could not
//! hibernate or stop contains the tenant's work, and stays. The fence's success is not enough to
//! call the capacity free: the hypervisor has to confirm it, as after any other end.

use super::core::Transition;
use super::dispatch::{is_final, wrong_answer};
use super::evacuation::{Evacuation, PhaseStep};
use super::{AgentCore, DriverResult, EvacuationPhase};
use crate::DriverError;
use ebbtide_model::InterruptionBehaviour;
use ebbtide_model::message::EvacuationEnd;

impl AgentCore {
    /// Handles a victim that the driver could not end, or whose capacity does not become free.
    pub(super) fn not_ended(
        &mut self,
        transition: &mut Transition,
        e: &mut Evacuation,
        failure: String,
    ) {
        let terminates = matches!(
            e.record.phase,
            EvacuationPhase::Acting {
                behaviour: InterruptionBehaviour::Terminate,
                ..
            }
        );
        match e.driver_failure.take() {
            Some(before) => self.fail(
                transition,
                e,
                format!("{before}; it was fenced, and then: {failure}"),
            ),
            None if terminates && self.policy.fence_tries > 0 => e.go(PhaseStep::Fence { failure }),
            None => self.fail(transition, e, failure),
        }
    }

    /// Handles the result of fencing.
    pub(super) fn handle_fence_result(
        &mut self,
        transition: &mut Transition,
        e: &mut Evacuation,
        failure: String,
        answer: Result<DriverResult, DriverError>,
    ) {
        let error = match answer {
            Ok(DriverResult::Fenced) => {
                e.driver_failure = Some(failure);
                let how = EvacuationEnd::Fenced;
                return e.go(PhaseStep::Look { how, failure: None });
            }
            Ok(other) => wrong_answer(&other),
            Err(error) => error,
        };
        e.tries += 1;
        if e.tries < self.policy.fence_tries && !is_final(&error) {
            return self.retry_later(transition, e);
        }
        let reason = format!("{failure}; after that, fencing it: {error}");
        self.fail(transition, e, reason);
    }
}
