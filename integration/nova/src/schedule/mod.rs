//! Hosts for all instances of a request, all or nothing (`SchedulerManager._schedule`).
//!
//! [`ScheduleRun`] is the schedule itself; [`schedule`] drives it where claims can be made at once.
//!
//! Unless a seed is given, what Nova leaves to `random` is decided here: of the hosts that it might
//! put first, the best is taken, and hosts with the same weight stay in the order of the input.
//! [`ScheduleResult::by_chance`] says whether Nova might have chosen otherwise.

mod alternates;
mod random;
mod record;
mod steps;

use crate::fault::NovaException;
use crate::filters::Context;
use crate::model::{AllocationCandidate, HostState, RequestSpec};
use crate::states::HostStateList;

pub use alternates::{Selection, availability_zone, availability_zones};
pub use random::SelectionRng;
pub use record::{
    FilterRecord, HostWeight, HostWeights, InstanceRecord, OrderRecord, RECORDED_DROPPED,
    RECORDED_HOSTS, RECORDED_INSTANCES, SortRecord, WeigherScale, WeighingRecord,
};
pub use steps::{Field, ScheduleRun, ScheduleStep, SortedHosts, sorted};

/// Where allocations are claimed: Placement.
pub trait Claims {
    /// Claims a candidate on a host (its place in the list of states) for an instance. False:
    /// refused, try the next host.
    ///
    /// # Errors
    /// What fails the whole request: AllocationUpdateFailed. Allocations of earlier instances are
    /// left behind, as Nova leaves them.
    fn claim(
        &mut self,
        instance_uuid: &str,
        host: usize,
        candidate: &AllocationCandidate,
    ) -> Result<bool, NovaException>;

    /// Gives back what an instance claimed.
    fn delete(&mut self, instance_uuid: &str);
}

/// How a request is to be scheduled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScheduleCall {
    /// Instances in order; `None`: a legacy caller, which gets hosts for `num_instances` and claims
    /// nothing.
    pub instance_uuids: Option<Vec<String>>,
    /// Whether hosts to fall back on are wanted.
    pub return_alternates: bool,
    /// Without Placement's data (a rebuild, or an old caller): nothing is claimed.
    pub no_placement: bool,
    /// True if an instance of a group that was just placed has no metadata that
    /// ImagePropertiesWeigher could read. In a whole Nova the database answers for it; the oracle
    /// has none.
    pub orphans: bool,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ScheduleResult {
    /// For each instance the chosen host and its alternates, or what is raised.
    pub selections: Result<Vec<Vec<Selection>>, NovaException>,
    /// True if somewhere `random` had more than one host to choose from.
    pub by_chance: bool,
    /// True if somewhere a total was NaN, so that the order of hosts is whatever Python's sort
    /// makes of it.
    pub unordered: bool,
}

/// Chooses hosts, claims, and uses up what was chosen. States and request are left as Nova leaves
/// them.
pub fn schedule(
    states: &mut [HostState],
    spec: &mut RequestSpec,
    context: &Context<'_>,
    call: &ScheduleCall,
    claims: &mut dyn Claims,
) -> ScheduleResult {
    let request = std::mem::take(spec);
    let (outcome, _, request) = drive(BorrowedHosts(states), request, context, call, claims);
    *spec = request;
    outcome
}

/// The same on any hosts, which are given back with the request.
pub fn drive<S: Field>(
    states: S,
    spec: RequestSpec,
    context: &Context<'_>,
    call: &ScheduleCall,
    claims: &mut dyn Claims,
) -> (ScheduleResult, S, RequestSpec) {
    let mut steps = ScheduleRun::new(states, spec, call.clone(), None);
    let selections = loop {
        match steps.next(context) {
            ScheduleStep::Claim {
                instance_uuid,
                host,
                candidate,
            } => steps.claimed(claims.claim(&instance_uuid, host, &candidate), context),
            ScheduleStep::Done(selections) => break Ok(selections),
            ScheduleStep::Failed { fault, release } => {
                release.iter().for_each(|uuid| claims.delete(uuid));
                break Err(fault);
            }
        }
    };
    let outcome = ScheduleResult {
        selections,
        by_chance: steps.by_chance(),
        unordered: steps.unordered(),
    };
    let (states, spec) = steps.into_parts();
    (outcome, states, spec)
}

/// Host states borrowed from the caller.
struct BorrowedHosts<'a>(&'a mut [HostState]);

impl HostStateList for BorrowedHosts<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, at: usize) -> &HostState {
        &self.0[at]
    }

    fn edit(&mut self, at: usize) -> &mut HostState {
        &mut self.0[at]
    }
}

impl Field for BorrowedHosts<'_> {}

/// A host that was chosen, with the candidate that was claimed there.
#[derive(Debug)]
struct Chosen {
    host: usize,
    candidate: Option<AllocationCandidate>,
}

/// Tells each request group by which providers the claim serves it.
fn provide(spec: &mut RequestSpec, mappings: &serde_json::Value) -> Result<(), NovaException> {
    if spec.requested_resources.is_empty() {
        return Ok(());
    }
    let missing =
        |what: &str| NovaException::new("KeyError", format!("the candidate has no {what}"));
    let mappings = mappings.as_object().ok_or_else(|| missing("mappings"))?;
    for group in &mut spec.requested_resources {
        let name = group.requester_id.as_deref();
        let providers = name
            .and_then(|name| mappings.get(name))
            .ok_or_else(|| missing("mapping of a request group"))?;
        group.provider_uuids = match providers {
            serde_json::Value::Array(uuids) => uuids
                .iter()
                .map(|uuid| {
                    uuid.as_str()
                        .map_or_else(|| uuid.to_string(), str::to_owned)
                })
                .collect(),
            // The field takes its default for null. Only a reader that needs a provider then fails.
            serde_json::Value::Null => Vec::new(),
            _ => return Err(NovaException::new("ValueError", "a mapping is no list")),
        };
    }
    Ok(())
}

fn not_enough() -> NovaException {
    NovaException::new("NoValidHost", "There are not enough hosts available.")
}
