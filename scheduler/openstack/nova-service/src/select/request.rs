//! A request that is being processed.

use super::members::GroupState;
use super::prefetch::Prefetch;
use super::reservations::VictimReservation;
use super::trial::Trial;
use crate::decisions::{Answer, AnsweredRequest, DecisionTrace};
use crate::evacuate::PreemptionResult;
use crate::notices::Notices;
use crate::quota::QuotaRequest;
use ebbtide_model::DecisionId;
use ebbtide_nova::schedule::ScheduleCall;
use ebbtide_nova_cloud::{PlacementQuery, PreemptibleUsage, SelectedHost};
use ebbtide_nova_objects::{NumaLimits, RpcContext, ScheduleRequest, Selection, reply};
use ebbtide_openstack::NewClaim;
use ebbtide_runtime::clock;
use oslo_messaging::{CallEnd, CallState, RemoteError};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// One request that is being processed.
pub(crate) struct SelectRequest {
    /// Nova's request id (`req-…`).
    pub(crate) id: String,
    /// The id of the decision.
    pub(crate) decision_id: DecisionId,
    /// The unique id of the message.
    pub(crate) unique_id: String,
    /// The request. The scheduler changes it as Nova does, because notifications contain it.
    pub(crate) schedule: ScheduleRequest,
    pub(crate) context: RpcContext,
    /// The context as received.
    pub(crate) fields: oslo_messaging::Map,
    pub(crate) call: ScheduleCall,
    pub(crate) return_objects: bool,
    /// Nova's query to Placement; `None` for a rebuild, which makes no query.
    pub(crate) asked: Option<PlacementQuery>,
    /// True if a scheduler may have begun this request before.
    pub(crate) redelivered: bool,
    /// For redelivered requests: the provider of the host where each instance is.
    pub(crate) home: HashMap<Uuid, Uuid>,
    /// True if the caller waits for the result.
    pub(crate) is_call: bool,
    pub(crate) caller: CallState,
    /// Cancelled when the scheduler stops. Another scheduler processes what has not begun.
    pub(crate) stop: CancellationToken,
    /// The start notification was sent.
    pub(super) said_start: AtomicBool,
    /// Placement did not answer a query for this request.
    pub(super) placement_silent: AtomicBool,
    /// Placement has refused a swap for this request.
    pub(super) was_refused: AtomicBool,
    /// Claims for which it is unknown whether Placement has taken them.
    pub(super) doubtful: Mutex<BTreeMap<Uuid, Vec<NewClaim>>>,
    /// What explains the decision later.
    pub(super) trace: Mutex<DecisionTrace>,
    /// Seed of random choices, so that each decision of this request makes the same ones.
    pub(crate) seed: u64,
    /// Queries sent to Placement since the request arrived, before it was certain that they would
    /// be needed.
    pub(super) ahead: Mutex<Prefetch>,
    /// The victims that the request has reserved, until they are in the ledger.
    pub(super) reservation: Mutex<Option<VictimReservation>>,
    /// What is known of the request's server group.
    pub(super) of_group: Mutex<GroupState>,
    /// Set for a what-if, which writes nothing.
    pub(super) trial: Option<Trial>,
}

impl SelectRequest {
    /// A new request that was not delivered before and whose caller waits.
    pub(super) fn new(
        id: String,
        schedule: ScheduleRequest,
        context: RpcContext,
        call: ScheduleCall,
        caller: CallState,
    ) -> Self {
        Self {
            id,
            decision_id: DecisionId(ebbtide_runtime::ids::new()),
            unique_id: String::new(),
            schedule,
            context,
            fields: oslo_messaging::Map::new(),
            call,
            return_objects: true,
            asked: None,
            redelivered: false,
            home: HashMap::new(),
            is_call: true,
            stop: caller.stopping().clone(),
            caller,
            said_start: AtomicBool::new(false),
            placement_silent: AtomicBool::new(false),
            was_refused: AtomicBool::new(false),
            doubtful: Mutex::default(),
            trace: Mutex::default(),
            seed: ebbtide_runtime::ids::seed(),
            ahead: Mutex::default(),
            reservation: Mutex::default(),
            of_group: Mutex::default(),
            trial: None,
        }
    }

    /// Records that Placement did not answer. Then the scheduler knows only that it found no
    /// capacity, not that there is none.
    pub(super) fn note_silence(&self) {
        self.placement_silent.store(true, Ordering::Relaxed);
    }

    pub(super) fn trace(&self) -> MutexGuard<'_, DecisionTrace> {
        self.trace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What explains the decision, once it is made.
    pub(crate) fn take_trace(&self) -> DecisionTrace {
        std::mem::take(&mut *self.trace())
    }

    pub(super) fn ahead(&self) -> MutexGuard<'_, Prefetch> {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn reservation(&self) -> MutexGuard<'_, Option<VictimReservation>> {
        self.reservation
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn group(&self) -> MutexGuard<'_, GroupState> {
        self.of_group.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_placement_silent(&self) -> bool {
        self.placement_silent.load(Ordering::Relaxed)
    }

    pub(super) fn doubts(&self) -> MutexGuard<'_, BTreeMap<Uuid, Vec<NewClaim>>> {
        self.doubtful.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a claim that Placement did not answer and may have taken.
    pub(super) fn note_doubtful(&self, claim: &NewClaim) {
        let mut doubts = self.doubts();
        doubts
            .entry(claim.consumer)
            .or_default()
            .push(claim.clone());
    }

    pub(super) fn is_doubtful(&self, consumer: Uuid) -> bool {
        self.doubts().contains_key(&consumer)
    }

    /// Records that a consumer's holdings are known again.
    pub(super) fn forget_doubt(&self, consumer: Uuid) {
        self.doubts().remove(&consumer);
    }

    pub(super) fn doubtful(&self) -> Vec<Vec<NewClaim>> {
        self.doubts().values().cloned().collect()
    }

    /// Records that Placement refused a swap, perhaps because a newcomer already holds something.
    pub(super) fn note_refusal(&self) {
        self.was_refused.store(true, Ordering::Relaxed);
    }

    /// Whether an instance of the request may hold allocations that the cloud in memory does not
    /// know.
    pub(super) fn newcomers_may_hold(&self) -> bool {
        self.redelivered || self.was_refused.load(Ordering::Relaxed)
    }

    /// Ends the request without an answer: another scheduler, which has or will get the message,
    /// answers it.
    pub(super) fn leave(&self, outcome: &PreemptionResult) {
        self.caller.end(match outcome {
            PreemptionResult::Unanswered => CallEnd::Unanswered,
            _ => CallEnd::GivenBack,
        });
    }

    /// Notifies that the request has candidates. Only the first call does.
    pub(super) fn say_start(&self, notices: &Notices) {
        if !self.said_start.swap(true, Ordering::Relaxed) {
            notices.start(&self.schedule, &self.context, &self.fields);
        }
    }

    /// Notifies that the request has its hosts. As in Nova, the spec then names the instance that
    /// was placed last and the hosts of the group.
    pub(super) fn say_end(&mut self, notices: &Notices, hosts: Vec<String>) {
        self.say_start(notices);
        if let Some(last) = self.call.instance_uuids.iter().flatten().last() {
            self.schedule.spec.instance_uuid.clone_from(last);
        }
        if let Some(group) = &mut self.schedule.spec.instance_group {
            group.hosts.extend(hosts);
        }
        notices.end(&self.schedule, &self.context, &self.fields);
    }

    /// The servers that are to be placed.
    pub(super) fn servers(&self) -> BTreeSet<Uuid> {
        let uuids = self.call.instance_uuids.iter().flatten();
        uuids.filter_map(|uuid| uuid.parse().ok()).collect()
    }

    /// What the request takes of a quota; `None` for normal servers, and for a rebuild, which
    /// takes nothing.
    pub(super) fn quota_request(&self, rebuild: bool) -> Option<QuotaRequest> {
        let flavor = &self.schedule.spec.flavor;
        (flavor.is_preemptible() && !rebuild).then(|| QuotaRequest {
            project: self.owner().0,
            servers: self.servers(),
            each: PreemptibleUsage::of(flavor),
        })
    }

    /// The project and the user that own the claims.
    pub(crate) fn owner(&self) -> (String, String) {
        let spec = &self.schedule.spec;
        let user = spec.user_id.as_ref().or(self.context.user_id.as_ref());
        (
            spec.project_id.clone().unwrap_or_default(),
            user.cloned().unwrap_or_default(),
        )
    }

    /// What the request leaves behind for its record, when it has its answer.
    pub(super) fn answered(
        self,
        answer: &Result<Value, RemoteError>,
        whole: Duration,
    ) -> AnsweredRequest {
        let answer = match answer {
            Ok(_) => Answer::Selected,
            Err(error) => Answer::Raised {
                class: error.class.clone(),
                message: error.message.clone(),
            },
        };
        let mut trace = self.take_trace();
        trace.took("whole", whole);
        AnsweredRequest {
            decision_id: self.decision_id,
            at: clock::now(),
            placement_silent: self.is_placement_silent(),
            request_id: self.id,
            user_id: self.context.user_id.unwrap_or_default(),
            spec: self.schedule.spec,
            call: self.call,
            asked: self.asked,
            seed: self.seed,
            answer,
            trace,
        }
    }

    /// The reply's result.
    pub(crate) fn result(&self, selected: &[Vec<SelectedHost>]) -> Value {
        let selections: Vec<Vec<Selection>> = selected
            .iter()
            .map(|hosts| hosts.iter().map(selection).collect())
            .collect();
        reply(&selections, self.return_objects)
    }
}

fn selection(selected: &SelectedHost) -> Selection {
    Selection {
        compute_node_uuid: Some(selected.host.uuid.to_string()),
        service_host: selected.host.host.clone(),
        nodename: selected.host.nodename.clone(),
        cell_uuid: selected.host.cell_uuid.clone(),
        numa_limits: selected.limits.map(|(cpu, ram)| NumaLimits {
            cpu_allocation_ratio: cpu,
            ram_allocation_ratio: ram,
            network_metadata: None,
        }),
        allocation_request: selected.candidate.clone(),
        availability_zone: selected.availability_zone.clone(),
    }
}
