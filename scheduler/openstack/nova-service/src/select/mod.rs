//! `select_destinations`: which hosts the instances of a request get.

mod claim;
mod decide;
mod members;
mod overfull;
mod placement_snapshot;
mod preempt;
mod prefetch;
mod reservations;

use self::members::GroupState;
pub(crate) use self::members::Members;
use self::preempt::PreemptAttempt;
use self::prefetch::Prefetch;
use self::reservations::VictimReservation;
pub(crate) use self::reservations::VictimReservations;
use crate::evacuate::{LedgerUnavailable, Preempting, PreemptionResult};
use crate::facts::Facts;
use crate::metrics::Metrics;
use crate::notices::Notices;
use crate::release::CloudRelease;
use crate::settings::SelectSettings;
use ebbtide_nova::fault::NovaException;
use ebbtide_nova::schedule::ScheduleCall;
use ebbtide_nova_cloud::{PlacementQuery, Selected};
use ebbtide_nova_objects::{
    ExceptionPayload, NumaLimits, ObjectError, RpcContext, ScheduleRequest, SelectDestinations,
    Selection, Value as Wire, reply,
};
use ebbtide_openstack::NewClaim;
use ebbtide_runtime::clock::Stopwatch;
use oslo_messaging::{CallEnd, CallState, IncomingCall, RemoteError};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Span};
use uuid::Uuid;

/// How long a request that may have been begun before waits for an unavailable ledger.
const LEDGER_PATIENCE: Duration = Duration::from_secs(10);

/// Processes requests. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Selector {
    pub(crate) facts: Facts,
    pub(crate) settings: Arc<SelectSettings>,
    pub(crate) notices: Notices,
    pub(crate) metrics: Metrics,
    /// Victims of plans that are not in the ledger yet.
    pub(crate) reservations: VictimReservations,
    /// Members of server groups whose placement is under way.
    pub(crate) members: Members,
    /// The driver of preemptions, if the operator enabled it and there is a ledger.
    pub(crate) preempting: Preempting,
    /// The Nova release whose decisions this scheduler makes.
    pub(crate) release: CloudRelease,
}

/// One request that is being processed.
pub(crate) struct SelectRequest {
    /// Nova's request id (`req-…`).
    pub(crate) id: String,
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
    said_start: AtomicBool,
    /// Placement did not answer a query for this request.
    in_the_dark: AtomicBool,
    /// Placement has refused a swap for this request.
    was_refused: AtomicBool,
    /// Claims for which it is unknown whether Placement has taken them.
    doubtful: Mutex<BTreeMap<Uuid, Vec<NewClaim>>>,
    /// Seed of random choices, so that each decision of this request makes the same ones.
    seed: u64,
    /// Queries sent to Placement since the request arrived, before it was certain that they would
    /// be needed.
    ahead: Mutex<Prefetch>,
    /// The victims that the request has reserved, until they are in the ledger.
    reservation: Mutex<Option<VictimReservation>>,
    /// What is known of the request's server group.
    of_group: Mutex<GroupState>,
}

impl SelectRequest {
    /// Records that Placement did not answer. Then the scheduler knows only that it found no
    /// capacity, not that there is none.
    fn note_silence(&self) {
        self.in_the_dark.store(true, Ordering::Relaxed);
    }

    fn ahead(&self) -> MutexGuard<'_, Prefetch> {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reservation(&self) -> MutexGuard<'_, Option<VictimReservation>> {
        self.reservation
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn group(&self) -> MutexGuard<'_, GroupState> {
        self.of_group.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_in_the_dark(&self) -> bool {
        self.in_the_dark.load(Ordering::Relaxed)
    }

    fn doubts(&self) -> MutexGuard<'_, BTreeMap<Uuid, Vec<NewClaim>>> {
        self.doubtful.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a claim that Placement did not answer and may have taken.
    fn note_doubtful(&self, claim: &NewClaim) {
        let mut doubts = self.doubts();
        doubts
            .entry(claim.consumer)
            .or_default()
            .push(claim.clone());
    }

    fn is_doubtful(&self, consumer: Uuid) -> bool {
        self.doubts().contains_key(&consumer)
    }

    /// Records that a consumer's holdings are known again.
    fn forget_doubt(&self, consumer: Uuid) {
        self.doubts().remove(&consumer);
    }

    fn doubtful(&self) -> Vec<Vec<NewClaim>> {
        self.doubts().values().cloned().collect()
    }

    /// Records that Placement refused a swap, perhaps because a newcomer already holds something.
    fn note_refusal(&self) {
        self.was_refused.store(true, Ordering::Relaxed);
    }

    /// Whether an instance of the request may hold allocations that the cloud in memory does not
    /// know.
    fn newcomers_may_hold(&self) -> bool {
        self.redelivered || self.was_refused.load(Ordering::Relaxed)
    }

    /// Ends the request without an answer: another scheduler, which has or will get the message,
    /// answers it.
    fn leave(&self, outcome: &PreemptionResult) {
        self.caller.end(match outcome {
            PreemptionResult::Unanswered => CallEnd::Unanswered,
            _ => CallEnd::GivenBack,
        });
    }

    /// Notifies that the request has candidates. Only the first call does.
    fn say_start(&self, notices: &Notices) {
        if !self.said_start.swap(true, Ordering::Relaxed) {
            notices.start(&self.schedule, &self.context, &self.fields);
        }
    }

    /// Notifies that the request has its hosts. As in Nova, the spec then names the instance that
    /// was placed last and the hosts of the group.
    fn say_end(&mut self, notices: &Notices, hosts: Vec<String>) {
        self.say_start(notices);
        if let Some(last) = self.call.instance_uuids.iter().flatten().last() {
            self.schedule.spec.instance_uuid.clone_from(last);
        }
        if let Some(group) = &mut self.schedule.spec.instance_group {
            group.hosts.extend(hosts);
        }
        notices.end(&self.schedule, &self.context, &self.fields);
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
}

/// Names the caller of a request in the log, with the words of oslo.log. The RPC server has named
/// the request.
fn span_of(context: &RpcContext) -> Span {
    tracing::info_span!(
        "caller",
        global_request_id = context.global_request_id.as_deref(),
        user = context.user_id.as_deref(),
        project = context.project_id.as_deref(),
        user_domain = context.user_domain.as_deref(),
        project_domain = context.project_domain.as_deref(),
    )
}

impl Selector {
    /// Answers a request.
    ///
    /// # Errors
    /// Nova's own exceptions, as the conductor knows them.
    pub(crate) async fn select(&self, call: IncomingCall) -> Result<Value, RemoteError> {
        let context = RpcContext::read(&Wire::from(&Value::Object(call.context.clone())));
        // Every line of this request has them.
        let span = context.as_ref().map_or_else(|_| Span::none(), span_of);
        let answered = Box::pin(self.answered(call, context));
        answered.instrument(span).await
    }

    async fn answered(
        &self,
        call: IncomingCall,
        context: Result<RpcContext, ObjectError>,
    ) -> Result<Value, RemoteError> {
        let caller = call.state.clone();
        let watch = Stopwatch::start();
        let answer = Box::pin(self.answer(call, context)).await;
        if answer.is_err() && caller.stopping().is_cancelled() {
            // The error may be caused by this scheduler's stop and says nothing about the cloud
            // then. The next scheduler decides.
            caller.end(CallEnd::GivenBack);
        }
        let kind = match (&answer, caller.ending()) {
            (_, Some(_)) => "left",
            (Ok(_), None) => "answered",
            (Err(error), None) if error.class == "NoValidHost" => "no_valid_host",
            (Err(_), None) => "failed",
        };
        self.metrics.answered(kind, watch.elapsed());
        if let Err(error) = &answer {
            tracing::info!(outcome = kind, class = error.class, "{}", error.message);
        }
        answer
    }

    async fn answer(
        &self,
        call: IncomingCall,
        context: Result<RpcContext, ObjectError>,
    ) -> Result<Value, RemoteError> {
        let args = Wire::from(&Value::Object(call.args));
        let wanted = SelectDestinations::read(&args).map_err(|error| unreadable(&error))?;
        let context = context.map_err(|error| unreadable(&error))?;
        let rebuild = wanted.is_rebuild();
        let call_of = ScheduleCall {
            instance_uuids: wanted.instance_uuids.clone(),
            return_alternates: wanted.return_alternates,
            no_placement: rebuild,
            orphans: false,
        };
        let id = context.request_id.clone().unwrap_or_default();
        let mut request = SelectRequest {
            id,
            unique_id: call.unique_id.unwrap_or_default(),
            schedule: wanted.request,
            context,
            fields: call.context,
            said_start: AtomicBool::new(false),
            in_the_dark: AtomicBool::new(false),
            was_refused: AtomicBool::new(false),
            doubtful: Mutex::default(),
            seed: ebbtide_runtime::ids::seed(),
            ahead: Mutex::default(),
            reservation: Mutex::default(),
            of_group: Mutex::default(),
            call: call_of,
            return_objects: wanted.return_objects,
            asked: None,
            redelivered: call.redelivered,
            home: HashMap::new(),
            is_call: call.message_id.is_some(),
            stop: call.state.stopping().clone(),
            caller: call.state,
        };
        self.release.look_if_unknown().await;
        if request.redelivered {
            tracing::info!(request = %request.id, "the request was delivered before; going on with it");
            if let Some(result) = self.resume(&mut request).await? {
                return Ok(result);
            }
        }
        // The scheduler reads everything that was written before the request arrived before it
        // decides. In parallel it sends the queries to Placement that are most likely needed.
        let watch = Stopwatch::start();
        tokio::join!(
            self.facts.database.freshen(),
            self.look_ahead(&request),
            self.know_what_runs()
        );
        self.metrics.took("rows", watch.elapsed());
        if !rebuild {
            let asked = self
                .facts
                .read(|cloud| cloud.ask(&mut request.schedule.spec))
                .map_err(|fault| raised(&refused_by_prefilter(fault)))?;
            request.asked = Some(asked);
        }
        let watch = Stopwatch::start();
        self.enter_group(&request).await;
        let decided = self.decide(&request).await;
        self.metrics.took("decided", watch.elapsed());
        let selected = match decided {
            Ok(selected) => selected,
            Err(fault) if fault.class == "NoValidHost" => match self.make_room(&request).await {
                PreemptAttempt::Room(result, hosts) => {
                    self.leave_group(&request, &hosts);
                    self.metrics.took("room", watch.elapsed());
                    request.say_end(&self.notices, hosts);
                    return Ok(result);
                }
                // A request that was left to another scheduler is not answered here, whatever this
                // returns.
                PreemptAttempt::Nothing | PreemptAttempt::Left => return Err(raised(&fault)),
            },
            Err(fault) => return Err(raised(&fault)),
        };
        let first = selected.iter().filter_map(|hosts| hosts.first());
        let hosts: Vec<String> = first.map(|selected| selected.host.host.clone()).collect();
        self.leave_group(&request, &hosts);
        request.say_end(&self.notices, hosts);
        Ok(request.result(&selected))
    }

    /// Continues what another scheduler, or an earlier process of this one, has begun. `None`:
    /// nothing of the request is under way.
    async fn resume(&self, request: &mut SelectRequest) -> Result<Option<Value>, RemoteError> {
        let instances: Vec<Uuid> = request
            .call
            .instance_uuids
            .iter()
            .flatten()
            .filter_map(|uuid| Uuid::parse_str(uuid).ok())
            .collect();
        request.home = self.facts.database.homes(&instances).await;
        if let Some(first) = instances.first() {
            let resumed = match self.preempting.wait(LEDGER_PATIENCE).await {
                Ok(None) => Ok(None),
                Ok(Some(evacuations)) => evacuations
                    .resume(*first, &request.unique_id, request.caller.clone())
                    .await
                    .map_err(|error| tracing::error!(code = error.code(), "{error}")),
                Err(LedgerUnavailable) => {
                    tracing::error!(code = "EB-DOOR-005", "the ledger is away");
                    Err(())
                }
            };
            let resumed = match resumed {
                Ok(resumed) => resumed,
                // An instance that holds nothing has received no victim's capacity. Placement
                // refuses what another scheduler may still write for it.
                Err(()) if self.hold_nothing(request, &instances).await => None,
                // Without the ledger this is unknown. The caller gets an error, so that no server
                // is evicted twice.
                Err(()) => {
                    return Err(raised(&NovaException::new(
                        "NoValidHost",
                        "The ledger of preemptions is not available.",
                    )));
                }
            };
            match resumed {
                Some(PreemptionResult::Room(result)) => return Ok(Some(result)),
                Some(outcome @ (PreemptionResult::Elsewhere | PreemptionResult::Unanswered)) => {
                    request.leave(&outcome);
                    return Err(raised(&NovaException::new(
                        "NoValidHost",
                        "Another scheduler goes on with the request.",
                    )));
                }
                Some(PreemptionResult::Refused(_) | PreemptionResult::Withdrawn(..)) | None => {}
            }
        }
        Ok(None)
    }

    /// Whether Placement says that the instances hold nothing but their allocations on their
    /// current hosts.
    async fn hold_nothing(&self, request: &SelectRequest, instances: &[Uuid]) -> bool {
        let placement = self.facts.providers.placement(&request.id);
        for instance in instances {
            let home = request.home.get(instance);
            match placement.allocations(*instance).await {
                Ok(held) if held.allocations.keys().all(|at| Some(at) == home) => {}
                Ok(_) => return false,
                Err(error) => {
                    tracing::warn!(code = error.code(), "{error}");
                    return false;
                }
            }
        }
        true
    }
}

impl SelectRequest {
    /// The reply's result.
    pub(crate) fn result(&self, selected: &[Vec<Selected>]) -> Value {
        let selections: Vec<Vec<Selection>> = selected
            .iter()
            .map(|hosts| hosts.iter().map(selection).collect())
            .collect();
        reply(&selections, self.return_objects)
    }
}

fn selection(selected: &Selected) -> Selection {
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

/// A pre-filter's refusal becomes a NoValidHost with the same text
/// (`SchedulerManager.select_destinations`).
fn refused_by_prefilter(fault: NovaException) -> NovaException {
    if fault.class == "RequestFilterFailed" {
        NovaException::new("NoValidHost", fault.message)
    } else {
        fault
    }
}

fn unreadable(error: &ObjectError) -> RemoteError {
    tracing::warn!(code = error.code(), "a request cannot be read: {error}");
    raised(&error.fault())
}

/// Converts a fault to the exception that the caller knows.
pub(crate) fn raised(fault: &NovaException) -> RemoteError {
    let failure = ExceptionPayload::of(fault);
    let mut error = RemoteError::new(failure.module, failure.class, failure.message);
    error.kwargs = Box::new(failure.kwargs);
    error.expected = fault.class == "NoValidHost";
    error
}
