//! The decision of a request on what is known when it arrives, and what Placement says of it. Both
//! happen while the databases report their changes; this costs no extra time. If nothing has
//! changed, the decision counts and is not made again.
//!
//! All queries are sent after the request arrived, so their data are no older than those on which
//! Nova would decide. Unneeded data are dropped.

use super::decide::put_question;
use super::placement_snapshot::PlacementSnapshot;
use super::read_ahead::SecondReading;
use super::{SelectRequest, Selector};
use crate::evacuate::Evacuations;
use ebbtide_nova::model::RequestSpec;
use ebbtide_nova_cloud::{
    CandidateHosts, OnePass, PlacementQuery, PreemptionPlan, Scheduling, SchedulingAction,
};
use ebbtide_runtime::clock::Stopwatch;
use ebbtide_runtime::task::{self, AbortOnDropHandle};
use serde_json::Value;
use uuid::Uuid;

/// The prefetched data.
#[derive(Default)]
pub(super) struct Prefetch {
    /// The decision on what was known.
    decision: Option<FirstDecision>,
    /// The plan, if no host had room.
    plan: Option<FirstPlan>,
    /// The provider of the host that the request gets if nothing has changed, and whether its known
    /// state is current.
    pub(super) host: Option<(Uuid, bool)>,
    /// Placement's candidates, if memory had none.
    pub(super) answer: Option<(PlacementQuery, Value)>,
    /// The question for them, if a plan need not wait for its answer.
    pub(super) question: Option<PendingQuestion>,
    /// Placement's data for the probable preemption.
    pub(super) snapshot: Option<PlacementSnapshot>,
    /// If they were kept, their second reading.
    pub(super) second: Option<SecondReading>,
}

/// A decision, and the number of changes of the cloud on which it was made.
struct FirstDecision {
    changes: u64,
    asked: PlacementQuery,
    candidates: CandidateHosts,
    scheduling: Scheduling,
}

/// The same for a plan. The request has reserved its victims.
struct FirstPlan {
    changes: u64,
    plan: PreemptionPlan,
}

impl Prefetch {
    /// The decision, if it is one on the cloud as it is. Only the first call returns it: afterwards
    /// something has changed that the counter does not show, for example a refusal.
    pub(super) fn current_decision(
        &mut self,
        asked: &PlacementQuery,
        changes: u64,
    ) -> Option<(CandidateHosts, Scheduling)> {
        let first = self.decision.take()?;
        (first.changes == changes && first.asked == *asked)
            .then_some((first.candidates, first.scheduling))
    }

    /// The plan, if it is one on the cloud as it is; once, as the decision.
    pub(super) fn current_plan(&mut self, changes: u64) -> Option<PreemptionPlan> {
        let first = self.plan.take()?;
        (first.changes == changes).then_some(first.plan)
    }
}

/// The probable outcome, by what is known now.
enum Likely {
    Host(Uuid),
    /// Nothing fits according to memory.
    NoHost {
        /// The request as the query was made for it.
        spec: Box<RequestSpec>,
        asked: PlacementQuery,
        /// Placement offers no host, so its answer is expected to be empty. Otherwise the filters
        /// drop what it offers.
        is_full: bool,
    },
    /// Only Placement can answer.
    Question(PlacementQuery),
}

impl Selector {
    /// Decides on what is known, and asks Placement what the outcome needs.
    pub(super) async fn look_ahead(&self, request: &SelectRequest) {
        // The group's members that are on their way are not known yet, and other members may be
        // decided meanwhile.
        if request.call.no_placement || request.schedule.spec.instance_group.is_some() {
            return;
        }
        match self.likely(request) {
            None => {}
            Some(Likely::Host(host)) => {
                if !request.redelivered && self.facts.providers.look_after_suffices(host) {
                    return;
                }
                if let Some(as_known) = self.looks_as_known(request, host).await {
                    request.ahead().host = Some((host, as_known));
                }
            }
            Some(Likely::Question(asked)) => self.ask_ahead(request, asked).await,
            Some(Likely::NoHost {
                spec,
                asked,
                is_full,
            }) => {
                let question = PendingQuestion::put(self, request, asked.clone());
                let is_full = is_full && self.facts.providers.sees_releases();
                let is_full = is_full && request.trial.is_none();
                self.look_for_room(request, &spec, &asked, is_full).await;
                let has_plan = request.ahead().snapshot.is_some();
                if is_full && has_plan {
                    request.ahead().question = Some(question);
                } else {
                    request.ahead().answer = question.answer().await;
                }
            }
        }
    }

    fn likely(&self, request: &SelectRequest) -> Option<Likely> {
        let now = ebbtide_runtime::clock::unix_micros();
        let watch = Stopwatch::start();
        let (decided, changes) = self.facts.read_versioned(|cloud| {
            let mut spec = request.schedule.spec.clone();
            let asked = cloud.ask(&mut spec).ok()?;
            let (call, seed) = (&request.call, Some(request.seed));
            let pass = cloud.decide_once(&spec, call, &asked, now, seed, None);
            Some((spec, asked, pass))
        });
        request.trace().took("hosts", watch.elapsed());
        let (spec, asked, pass) = decided?;
        let Ok(OnePass {
            candidates,
            scheduling,
            has_room,
            ..
        }) = pass
        else {
            return Some(Likely::Question(asked));
        };
        let Some(mut scheduling) = scheduling else {
            return Some(Likely::NoHost {
                spec: Box::new(spec),
                asked,
                is_full: true,
            });
        };
        let host = match scheduling.next() {
            SchedulingAction::Claim(claim) => Some(claim.host.uuid),
            _ => None,
        };
        request.ahead().decision = Some(FirstDecision {
            changes,
            asked: asked.clone(),
            candidates,
            scheduling,
        });
        match host {
            Some(host) => Some(Likely::Host(host)),
            None if has_room => None,
            None => Some(Likely::NoHost {
                spec: Box::new(spec),
                asked,
                is_full: false,
            }),
        }
    }

    async fn ask_ahead(&self, request: &SelectRequest, asked: PlacementQuery) {
        // A failed query is repeated when it is needed, and its error is reported then.
        let placement = self.facts.providers.placement(&request.id);
        if let Ok(answer) = put_question(&placement, &asked).await {
            request.ahead().answer = Some((asked, answer));
        }
    }

    /// `is_full`: the plan may begin before Placement has answered.
    async fn look_for_room(
        &self,
        request: &SelectRequest,
        spec: &RequestSpec,
        asked: &PlacementQuery,
        is_full: bool,
    ) {
        // What budgets allow is counted when the plan is made.
        let evacuations = self.preempting.get();
        if !self.may_make_room(request) || evacuations.is_some_and(Evacuations::has_budgets) {
            return;
        }
        let options = super::preempt::plan_options(request);
        let Some((plan, changes)) = self.plan_if_full(request, spec, asked, &options) else {
            return;
        };
        let kept = self.read_before(request, &plan).filter(|_| is_full);
        let read = match kept {
            Some((snapshot, second)) => Ok((snapshot, Some(second))),
            None => self.snapshot(request, &plan).await.map(|read| (read, None)),
        };
        if let Ok((snapshot, second)) = read {
            let mut ahead = request.ahead();
            ahead.second = second;
            ahead.snapshot = Some(snapshot);
            ahead.plan = Some(FirstPlan { changes, plan });
        }
    }
}

/// A question for Placement's candidates that is on its way. Dropping it gives it up.
pub(super) struct PendingQuestion {
    asked: PlacementQuery,
    answer: AbortOnDropHandle<Option<Value>>,
}

impl PendingQuestion {
    fn put(selector: &Selector, request: &SelectRequest, asked: PlacementQuery) -> Self {
        let placement = selector.facts.providers.placement(&request.id);
        let text = asked.clone();
        let answer = task::spawn_for_result("candidates", async move {
            // A failed query is repeated when it is needed, and its error is reported then.
            put_question(&placement, &text).await.ok()
        });
        Self { asked, answer }
    }

    pub(super) fn asked(&self) -> &PlacementQuery {
        &self.asked
    }

    /// Waits for the answer. `None`: Placement did not answer.
    pub(super) async fn answer(self) -> Option<(PlacementQuery, Value)> {
        let answer = self.answer.await.ok()??;
        Some((self.asked, answer))
    }
}
