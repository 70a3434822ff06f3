//! Requests that write nothing: what-ifs, and copies of requests that nova-scheduler answers.
//!
//! A what-if goes the way of every request. Where that way writes, it looks for a [`Trial`]: claims
//! ([`super::claim`]), reservations ([`super::reservations`]), the ledger ([`super::preempt`]), and
//! answers that are remembered for server groups ([`super::members`]).

use super::trial::Trial;
use super::{Members, ReadAhead, SelectRequest, Selector, VictimReservations, read_request};
use crate::decisions::{self, Decisions};
use crate::evacuate::PreemptionDriver;
use crate::facts::Facts;
use crate::market::Market;
use crate::metrics::Metrics;
use crate::notices::Notices;
use crate::quota::Quota;
use crate::release::CloudRelease;
use crate::shadow::{HostReports, ObservedRequest};
use ebbtide_model::Decision;
use ebbtide_nova::model::RequestSpec;
use ebbtide_nova::schedule::ScheduleCall;
use ebbtide_nova_cloud::PlannedVictim;
use ebbtide_nova_objects::{RpcContext, ScheduleRequest, Value as Wire};
use ebbtide_runtime::clock::Stopwatch;
use oslo_messaging::{CallState, IncomingCall, RemoteError};
use serde_json::Value;
use std::sync::Arc;
use tracing::Instrument;
use uuid::Uuid;

impl Selector {
    /// What decides beside the schedulers of a cloud: it sends and records nothing, knows of no
    /// quota and of no market, and its release does not change.
    pub(crate) fn observer(facts: Facts, preempting: PreemptionDriver) -> Self {
        Self {
            facts,
            settings: Arc::default(),
            notices: Notices::default(),
            metrics: Metrics::default(),
            reservations: VictimReservations::default(),
            read_ahead: ReadAhead::default(),
            members: Members::default(),
            preempting,
            quota: Quota::default(),
            market: Market::default(),
            decisions: Decisions::default(),
            release: CloudRelease::fixed(),
        }
    }

    /// The same without notifications, and with metrics of its own: requests are counted
    /// elsewhere.
    pub(crate) fn for_what_ifs(&self) -> Self {
        Self {
            notices: Notices::default(),
            metrics: Metrics::default(),
            decisions: Decisions::default(),
            ..self.clone()
        }
    }

    /// The decision for a copy of a request that nova-scheduler answers. Writes nothing.
    ///
    /// # Errors
    /// The request cannot be read.
    pub(crate) async fn observe(&self, call: IncomingCall) -> Result<ObservedRequest, RemoteError> {
        let whole = Stopwatch::start();
        let context = RpcContext::read(&Wire::from(&Value::Object(call.context.clone())));
        let (mut request, rebuild) = read_request(call, context)?;
        request.trial = Some(Trial::default());
        // The caller waits, though for another process.
        (request.redelivered, request.is_call) = (false, true);
        let answer = Box::pin(self.answer_request(&mut request, rebuild)).await;
        let decision = decisions::explain(request.answered(&answer, whole.elapsed()), &self.facts);
        Ok(ObservedRequest {
            reports: HostReports::of(&decision, &self.facts),
            decision,
            rebuild,
        })
    }

    /// The decision that a request for new instances would leave now.
    pub(crate) async fn what_if(&self, spec: RequestSpec, instances: Vec<Uuid>) -> Decision {
        let whole = Stopwatch::start();
        let (request, answer) = self.tried(spec, instances).await;
        let mut decision =
            decisions::explain(request.answered(&answer, whole.elapsed()), &self.facts);
        // No request has this id, so nothing can be found by it.
        decision.trace.request_id.clear();
        decision
    }

    /// The servers that would have to leave for a request for new instances now.
    ///
    /// # Errors
    /// The request would get no host: why.
    pub(crate) async fn victims_for(
        &self,
        spec: RequestSpec,
        instances: Vec<Uuid>,
    ) -> Result<Vec<PlannedVictim>, String> {
        let (request, answer) = self.tried(spec, instances).await;
        match answer {
            Ok(_) => Ok(request.take_trace().into_victims()),
            Err(error) => Err(error.message),
        }
    }

    /// A request for new instances that writes nothing, and its answer.
    async fn tried(
        &self,
        spec: RequestSpec,
        instances: Vec<Uuid>,
    ) -> (SelectRequest, Result<Value, RemoteError>) {
        let caller = CallState::detached();
        let uuids = instances.iter().map(Uuid::to_string).collect();
        let id = format!("req-{}", ebbtide_runtime::ids::new());
        let span = tracing::info_span!("what-if", request = %id);
        let mut request = SelectRequest {
            trial: Some(Trial::default()),
            ..SelectRequest::new(
                id,
                ScheduleRequest {
                    spec,
                    ..ScheduleRequest::default()
                },
                RpcContext::default(),
                ScheduleCall {
                    instance_uuids: Some(uuids),
                    return_alternates: true,
                    ..ScheduleCall::default()
                },
                caller,
            )
        };
        let answered = Box::pin(self.answer_request(&mut request, false));
        let answer = answered.instrument(span).await;
        (request, answer)
    }
}
