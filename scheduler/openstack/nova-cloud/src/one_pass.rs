//! One pass: a request is decided on one state of the cloud.
//!
//! Hosts that have room on h_f come first, in Nova's order: then the answer is Nova's to the bit.
//! Only if no host has room, a normal request gets the hosts that pass on h_n with the cheapest
//! victims. Both come from the same state, so no other request can take what the first look found
//! before the second look finds victims for it.

use crate::candidates::{CandidateHosts, PlacementOnly, PlacementQuery};
use crate::cloud::Cloud;
use crate::plan::{NoPlan, PlanOptions, PreemptionPlan};
use crate::scheduling::{Scheduling, SchedulingAction};
use ebbtide_nova::model::RequestSpec;
use ebbtide_nova::schedule::ScheduleCall;

/// A decision on one state of the cloud.
#[derive(Debug)]
pub struct OnePass {
    /// The hosts that Placement would offer.
    pub candidates: CandidateHosts,
    /// Nova's decision on them, before its first claim. `None`: there are no candidates.
    pub scheduling: Option<Scheduling>,
    /// Whether a host has room for the first instance, as far as this state says. If one has not,
    /// Nova raises NoValidHost.
    pub has_room: bool,
    /// Which victims make room. `None`: a host has room, or no victims were asked for.
    pub victims: Option<Result<PreemptionPlan, NoPlan>>,
}

impl Cloud {
    /// Decides a request once. `now` in microseconds since 1970, UTC. `seed`: as for
    /// [`Cloud::decide`]. `victims`: the limits of a plan, if preemptible instances may be evicted
    /// for the request.
    ///
    /// # Errors
    /// [`PlacementOnly`]: only Placement itself can say which hosts have room.
    pub fn decide_once(
        &self,
        spec: &RequestSpec,
        call: &ScheduleCall,
        asked: &PlacementQuery,
        now: i64,
        seed: Option<u64>,
        victims: Option<&PlanOptions>,
    ) -> Result<OnePass, PlacementOnly> {
        let candidates = self.candidates(asked)?;
        let mut scheduling = None;
        if !candidates.is_empty() {
            // The candidates are of this very state.
            scheduling = self
                .decide(spec.clone(), call.clone(), &candidates, now, seed)
                .ok();
        }
        let has_room = scheduling
            .as_mut()
            .is_some_and(|scheduling| !is_full(&scheduling.next()));
        let victims = victims.filter(|_| !has_room);
        let victims = victims.map(|options| self.plan(spec, call, asked, now, options));
        Ok(OnePass {
            candidates,
            scheduling,
            has_room,
            victims,
        })
    }
}

/// Other faults are the request's own, and no victim mends them.
fn is_full(action: &SchedulingAction) -> bool {
    matches!(action, SchedulingAction::Failed { fault, .. } if fault.class == "NoValidHost")
}
