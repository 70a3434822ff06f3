//! `select_destinations`: which hosts the instances of a request get.

mod claim;
mod claim_fault;
mod decide;
mod members;
mod overfull;
mod placement_snapshot;
mod preempt;
mod prefetch;
mod read_ahead;
mod request;
mod reservations;
mod trial;
mod without_writes;

pub(crate) use self::members::Members;
use self::preempt::{PreemptAttempt, plan_options};
pub(crate) use self::read_ahead::ReadAhead;
pub(crate) use self::request::SelectRequest;
pub(crate) use self::reservations::VictimReservations;
use crate::decisions::Decisions;
use crate::evacuate::{LedgerUnavailable, PreemptionDriver, PreemptionResult};
use crate::facts::Facts;
use crate::market::Market;
use crate::metrics::Metrics;
use crate::notices::Notices;
use crate::quota::{Quota, QuotaRequest};
use crate::release::CloudRelease;
use crate::settings::SelectSettings;
use crate::traces;
use ebbtide_keystone::ProjectLimits;
use ebbtide_nova::fault::NovaException;
use ebbtide_nova::schedule::ScheduleCall;
use ebbtide_nova_cloud::SelectedHost;
use ebbtide_nova_objects::{
    ExceptionPayload, ObjectError, RpcContext, SelectDestinations, Value as Wire,
};
use ebbtide_runtime::clock::Stopwatch;
use oslo_messaging::{CallEnd, IncomingCall, RemoteError};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
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
    /// What Placement says of the next probable victims.
    pub(crate) read_ahead: ReadAhead,
    /// Members of server groups whose placement is under way.
    pub(crate) members: Members,
    /// The driver of preemptions, if the operator enabled it and there is a ledger.
    pub(crate) preempting: PreemptionDriver,
    /// What projects may have of preemptible servers.
    pub(crate) quota: Quota,
    /// What preemptible servers cost.
    pub(crate) market: Market,
    /// What records decisions after their answers.
    pub(crate) decisions: Decisions,
    /// The Nova release whose decisions this scheduler makes.
    pub(crate) release: CloudRelease,
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
        let mut trace = traces::request(&call);
        let within = trace.context();
        let answered = Box::pin(self.answered(call, context)).instrument(span);
        let answer = ebbtide_telemetry::within(within, answered).await;
        if let Err(error) = &answer {
            trace.fail(|| format!("{}: {}", error.class, error.message));
        }
        answer
    }

    async fn answered(
        &self,
        call: IncomingCall,
        context: Result<RpcContext, ObjectError>,
    ) -> Result<Value, RemoteError> {
        let caller = call.state.clone();
        let request_id = context.as_ref().ok().and_then(|c| c.request_id.clone());
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
        self.metrics.answered(kind, watch.elapsed(), request_id);
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
        let whole = Stopwatch::start();
        let (mut request, rebuild) = read_request(call, context)?;
        let answer = self.answer_request(&mut request, rebuild).await;
        if answer.is_err() {
            self.quota.forget(&request.servers());
        }
        // Otherwise another scheduler answers, and records.
        if request.caller.ending().is_none() {
            let elapsed = whole.elapsed();
            self.decisions.record(|| request.answered(&answer, elapsed));
        }
        answer
    }

    async fn answer_request(
        &self,
        request: &mut SelectRequest,
        rebuild: bool,
    ) -> Result<Value, RemoteError> {
        let _busy = self.read_ahead.busy();
        if request.trial.is_none() {
            self.release.look_if_unknown().await;
        }
        if request.redelivered {
            tracing::info!(request = %request.id, "the request was delivered before; going on with it");
            if let Some(result) = self.resume(request).await? {
                request.trace().resumed();
                return Ok(result);
            }
        }
        // The scheduler reads everything that was written before the request arrived before it
        // decides. In parallel it sends the queries to Placement that are most likely needed.
        let watch = Stopwatch::start();
        let wanted = request.quota_request(rebuild);
        let ((), (), (), limits) = tokio::join!(
            self.facts.database.freshen(),
            self.look_ahead(request),
            self.know_what_runs(),
            self.limits(wanted.as_ref())
        );
        self.metrics.took("rows", watch.elapsed());
        request.trace().took("rows", watch.elapsed());
        if !rebuild {
            let asked = self
                .facts
                .read(|cloud| cloud.ask(&mut request.schedule.spec))
                .map_err(|fault| raised(&refused_by_prefilter(fault)))?;
            request.asked = Some(asked);
        }
        if let (Some(wanted), Some(limits)) = (&wanted, limits) {
            let trial = request.trial.is_some();
            let checked = limits.and_then(|of| self.quota.reserve(&self.facts, wanted, &of, trial));
            checked.map_err(|why| raised(&NovaException::new("NoValidHost", why)))?;
        }
        if !rebuild && self.is_new(request) {
            let checked = self.market.check_maximum_price(&request.schedule.spec);
            checked.map_err(|why| raised(&NovaException::new("NoValidHost", why)))?;
        }
        let watch = Stopwatch::start();
        self.enter_group(request).await;
        let mut options = plan_options(request);
        let (fault, attempt) = match self.make_room_beside(request, &mut options).await {
            Some(attempt) => (NovaException::new("NoValidHost", ""), attempt),
            None => {
                let decision = traces::part("decision");
                let decided =
                    ebbtide_telemetry::within(decision.context(), Box::pin(self.decide(request)))
                        .await;
                drop(decision);
                self.metrics.took("decided", watch.elapsed());
                request.trace().took("decided", watch.elapsed());
                match decided {
                    Ok(selected) => return Ok(self.selected(request, selected)),
                    Err(fault) if fault.class == "NoValidHost" => {
                        (fault, self.make_room(request, options).await)
                    }
                    Err(fault) => return Err(raised(&fault)),
                }
            }
        };
        match attempt {
            PreemptAttempt::Room(result, hosts) => {
                self.leave_group(request, &hosts);
                self.metrics.took("room", watch.elapsed());
                request.trace().took("room", watch.elapsed());
                request.say_end(&self.notices, hosts);
                Ok(result)
            }
            // A request that was left to another scheduler is not answered here, whatever this
            // returns.
            PreemptAttempt::Nothing | PreemptAttempt::Left => Err(raised(&fault)),
        }
    }

    /// The answer of a request that found room.
    fn selected(&self, request: &mut SelectRequest, selected: Vec<Vec<SelectedHost>>) -> Value {
        let first = selected.iter().filter_map(|hosts| hosts.first());
        let hosts: Vec<String> = first.map(|selected| selected.host.host.clone()).collect();
        self.leave_group(request, &hosts);
        request.say_end(&self.notices, hosts);
        let result = request.result(&selected);
        request.trace().selected(selected);
        result
    }

    /// Whether none of the servers runs yet. The price of one that moves was checked before.
    fn is_new(&self, request: &SelectRequest) -> bool {
        let known = |server: Uuid| self.facts.read(|cloud| cloud.server(server));
        let mut servers = request.servers().into_iter();
        !servers.any(|server| known(server).is_some_and(|known| known.host.is_some()))
    }

    async fn limits(
        &self,
        wanted: Option<&QuotaRequest>,
    ) -> Option<Result<Arc<ProjectLimits>, String>> {
        self.quota.limits(&wanted?.project).await
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

/// The request of a call, and whether it is a rebuild.
fn read_request(
    call: IncomingCall,
    context: Result<RpcContext, ObjectError>,
) -> Result<(SelectRequest, bool), RemoteError> {
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
    let request = SelectRequest {
        unique_id: call.unique_id.unwrap_or_default(),
        fields: call.context,
        return_objects: wanted.return_objects,
        redelivered: call.redelivered,
        is_call: call.message_id.is_some(),
        ..SelectRequest::new(id, wanted.request, context, call_of, call.state)
    };
    Ok((request, rebuild))
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
