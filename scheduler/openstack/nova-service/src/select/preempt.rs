//! Preemption for a normal request that found no capacity: the cheapest preemptible instances
//! leave.

use super::claim::RetryBudget;
use super::decide::{is_empty, put_question};
use super::placement_snapshot::PlacementSnapshot;
use super::prefetch::PendingQuestion;
use super::{SelectRequest, Selector};
use crate::evacuate::{Confirmation, CountedBudgets, Evacuations, PreemptionResult};
use crate::preemption::{Holding, Preemption, PreemptionState, ReplyWhen, WithdrawalReason};
use ebbtide_fail_points::{FailPoint, reach};
use ebbtide_model::EvacuationCause;
use ebbtide_nova_cloud::{
    Cloud, NoPlanReason, PlacementQuery, PlanOptions, PreemptionPlan, VerifyResult,
};
use ebbtide_runtime::clock;
use ebbtide_store::ledger::LedgerError;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use uuid::Uuid;

/// Providers of trees that one request reads at most, about: some seconds. The rest is read in the
/// background; until then its hosts are not considered.
const MOST_OF_TREES: usize = 500;

/// The outcome of an attempt to free capacity.
pub(super) enum PreemptAttempt {
    /// The reply's result, and the hosts in it.
    Room(Value, Vec<String>),
    /// No capacity can be freed: Nova's own answer stands.
    Nothing,
    /// This scheduler does not answer the caller; another scheduler does, or this one later. See
    /// [`SelectRequest::leave`].
    Left,
}

/// The outcome of one round of planning.
enum Round {
    /// The final outcome.
    Made(PreemptAttempt),
    /// The cloud has changed since the plan was made; plan again.
    Again,
}

/// A plan with what its begin needs.
struct PreparedPlan {
    plan: PreemptionPlan,
    snapshot: PlacementSnapshot,
    budgets: CountedBudgets,
    /// `None`: Placement has said before that no host has capacity.
    confirmation: Option<Confirmation>,
}

/// No capacity can be freed.
const NOTHING: Round = Round::Made(PreemptAttempt::Nothing);

impl Selector {
    /// Frees capacity by the plan that was made when the request arrived, while Placement still
    /// answers whether a host has capacity after all. `None`: nothing has begun, or Placement has
    /// not confirmed the plan; the request is decided step by step.
    pub(super) async fn make_room_beside(
        &self,
        request: &SelectRequest,
        options: &mut PlanOptions,
    ) -> Option<PreemptAttempt> {
        let question = request.ahead().question.take()?;
        let watch = clock::Stopwatch::start();
        let asked = question.asked().clone();
        let evacuations = self.preempting.get();
        let evacuations = evacuations.filter(|evacuations| {
            self.may_make_room(request)
                && request.trial.is_none()
                && request.asked.as_ref() == Some(&asked)
                && !evacuations.has_budgets()
        });
        let plan = evacuations.and_then(|_| {
            let first = request.ahead().current_plan(self.facts.changes());
            first.or_else(|| {
                let spec = &request.schedule.spec;
                let plan = self.plan_if_full(request, spec, &asked, options);
                plan.map(|(plan, _)| plan)
            })
        });
        let snapshot = plan.as_ref();
        let snapshot = snapshot.and_then(|plan| self.prefetched(request, plan));
        let (Some(evacuations), Some(plan), Some(snapshot)) = (evacuations, plan, snapshot) else {
            request.ahead().answer = question.answer().await;
            return None;
        };
        self.metrics.question();
        request.trace().took("plan", watch.elapsed());
        let second = request.ahead().second.take();
        let second = second.map(|second| (second, plan.clone(), snapshot.providers.clone()));
        if snapshot.is_kept && second.is_none() {
            request.ahead().answer = question.answer().await;
            return None;
        }
        let no_room = self.no_room(request, question);
        let facts = self.facts.clone();
        let confirmation = Confirmation::of(async move {
            no_room.await?;
            let Some((second, plan, kept)) = second else {
                return Ok(());
            };
            let confirmed = second.confirms(&facts, plan, &kept).await;
            if confirmed.is_err() {
                facts.providers.note_missed_release();
            }
            confirmed
        });
        let prepared = PreparedPlan {
            plan,
            snapshot,
            budgets: CountedBudgets::default(),
            confirmation: Some(confirmation),
        };
        let round = self.carry_out(request, &asked, evacuations, options, prepared);
        match Box::pin(round).await {
            Round::Made(made) => {
                // This is the answer that has confirmed the plan.
                let offered = json!({"allocation_requests": [], "provider_summaries": {}});
                let offered = self
                    .facts
                    .read(|cloud| cloud.candidates_from_answer(&offered));
                offered
                    .into_iter()
                    .for_each(|offered| request.trace().nothing_offered(offered));
                Some(made)
            }
            Round::Again => None,
        }
    }

    /// Placement confirms that no host has capacity for a request.
    fn no_room(
        &self,
        request: &SelectRequest,
        question: PendingQuestion,
    ) -> impl Future<Output = Result<(), String>> + Send + 'static {
        let (facts, stop) = (self.facts.clone(), request.stop.clone());
        let patience = self.settings.placement_patience;
        let placement = facts.providers.placement(&request.id);
        let asked = question.asked().clone();
        async move {
            let mut patience = RetryBudget::new(patience, &stop);
            let mut answer = question.answer().await.map(|(_, answer)| answer);
            let answer = loop {
                if let Some(answer) = answer {
                    break answer;
                }
                answer = match put_question(&placement, &asked).await {
                    Ok(answer) => Some(answer),
                    Err(error) if patience.wait(&error).await => None,
                    Err(error) => return Err(error.to_string()),
                };
            };
            if is_empty(&answer) {
                return Ok(());
            }
            let put = facts.write(|cloud| cloud.put_summaries(&answer));
            let offered = put.and_then(|_| facts.read(|c| c.candidates_from_answer(&answer)));
            match offered {
                Ok(offered) if offered.is_empty() => Ok(()),
                Ok(_) => {
                    facts.providers.note_missed_release();
                    Err("Placement offers a host without victims".to_owned())
                }
                Err(error) => Err(error.to_string()),
            }
        }
    }

    /// Frees capacity for a normal request, if evicting preemptible instances can.
    pub(super) async fn make_room(
        &self,
        request: &SelectRequest,
        mut options: PlanOptions,
    ) -> PreemptAttempt {
        let (Some(evacuations), Some(asked)) = (self.preempting.get(), &request.asked) else {
            return PreemptAttempt::Nothing;
        };
        if !self.may_make_room(request) {
            return PreemptAttempt::Nothing;
        }
        if request.is_placement_silent() {
            tracing::warn!(
                code = "EB-DOOR-032",
                request = %request.id,
                "Placement did not say whether there is free capacity, so no server is evicted; the request gets NoValidHost, as from Nova"
            );
            return PreemptAttempt::Nothing;
        }
        for _ in 0..self.settings.plan_rounds {
            if request.stop.is_cancelled() {
                return PreemptAttempt::Left;
            }
            // A round that made a plan and then failed has let other requests of its server group
            // go first.
            self.enter_group(request).await;
            match self.round(request, asked, evacuations, &mut options).await {
                Round::Made(made) => return made,
                Round::Again => {}
            }
        }
        tracing::warn!(
            code = "EB-DOOR-031",
            request = %request.id,
            "the cloud has changed under {} plans in a row; the request gets no room this time",
            self.settings.plan_rounds
        );
        PreemptAttempt::Nothing
    }

    /// Whether preemptible instances may be evicted for this request.
    pub(super) fn may_make_room(&self, request: &SelectRequest) -> bool {
        let instances = request.call.instance_uuids.as_deref().unwrap_or_default();
        self.preempting.get().is_some()
            && self.settings.preemption
            && request.is_call
            && !instances.is_empty()
            && !request.schedule.spec.flavor.is_preemptible()
    }

    async fn round(
        &self,
        request: &SelectRequest,
        asked: &PlacementQuery,
        evacuations: &Evacuations,
        options: &mut PlanOptions,
    ) -> Round {
        let watch = clock::Stopwatch::start();
        let budgets = match evacuations.budgets().await {
            Ok(budgets) => budgets,
            Err(error) => {
                tracing::error!(
                    code = error.code(),
                    "{error}; no server is evicted without knowing what disruption budgets allow"
                );
                return NOTHING;
            }
        };
        let foreseen = request.ahead().current_plan(self.facts.changes());
        // A request has reserved the victims of its first plan; a question plans again. The first
        // plan knows of no budgets.
        let foreseen = foreseen.filter(|_| request.trial.is_none() && budgets.is_empty());
        let planned = match foreseen {
            Some(plan) => Ok(plan),
            None => {
                self.read_trees(request, asked).await;
                self.plan(request, asked, options, &budgets).await
            }
        };
        request.trace().took("plan", watch.elapsed());
        let plan = match planned {
            Ok(plan) => plan,
            Err(none) => {
                if none.reason != NoPlanReason::Preemptible {
                    tracing::info!(request = %request.id, reason = ?none.reason, "no room can be made: {}", none.text);
                    request.trace().not_planned(none);
                }
                return NOTHING;
            }
        };
        let mut patience = RetryBudget::new(self.settings.placement_patience, &request.stop);
        let snapshot = loop {
            match self.snapshot(request, &plan).await {
                Ok(snapshot) => break snapshot,
                Err(error) => {
                    if !patience.wait(&error).await {
                        tracing::warn!(
                            code = error.code(),
                            "{error}; no server is evicted without Placement's answer"
                        );
                        return NOTHING;
                    }
                }
            }
        };
        let prepared = PreparedPlan {
            plan,
            snapshot,
            budgets,
            confirmation: None,
        };
        self.carry_out(request, asked, evacuations, options, prepared)
            .await
    }

    /// Reads what a plan in trees of providers needs, as far as it is not known.
    async fn read_trees(&self, request: &SelectRequest, asked: &PlacementQuery) {
        let spec = &request.schedule.spec;
        if !self.facts.read(|cloud| cloud.needs_trees(asked)) {
            return;
        }
        // A host that was read can name sharing providers that were not.
        for _ in 0..2 {
            let unread = |cloud: &Cloud| cloud.unread_of_trees(spec, asked, MOST_OF_TREES);
            let unread = self.facts.read(unread);
            if unread.is_empty() {
                return;
            }
            let watch = clock::Stopwatch::start();
            tracing::debug!(request = %request.id, providers = unread.len(), "reading trees");
            self.facts.providers.read_trees(unread).await;
            request.trace().took("trees", watch.elapsed());
        }
    }

    /// Begins a plan, if it is still right by Placement's data, and follows it until the caller can
    /// be answered.
    async fn carry_out(
        &self,
        request: &SelectRequest,
        asked: &PlacementQuery,
        evacuations: &Evacuations,
        options: &mut PlanOptions,
        prepared: PreparedPlan,
    ) -> Round {
        let PreparedPlan {
            mut plan,
            snapshot,
            budgets,
            confirmation,
        } = prepared;
        for provider in &snapshot.providers {
            self.read_ahead.forget(provider.provider);
        }
        let verdict = self.facts.write(|cloud| {
            // What was kept is in memory since it was read.
            let read = snapshot.providers.iter().filter(|_| !snapshot.is_kept);
            for provider in read {
                cloud.consumers_of(provider.provider, provider.generation, &provider.consumers);
            }
            cloud.verify(&mut plan, &snapshot.providers)
        });
        if let VerifyResult::Changed(why) = verdict {
            tracing::debug!(request = %request.id, "planning again: {why}");
            return Round::Again;
        }
        let record = match self.record(request, &plan, &snapshot) {
            Ok(record) => Preemption {
                unconfirmed: confirmation.is_some(),
                ..record
            },
            Err(gone) => {
                options.spared.push(gone);
                return Round::Again;
            }
        };
        let names = plan.instances.iter().map(|i| i.host.host.clone()).collect();
        if request.trial.is_some() {
            request.trace().planned(plan);
            return Round::Made(PreemptAttempt::Room(record.result, names));
        }
        tracing::info!(
            request = %request.id,
            hosts = ?plan.instances.iter().map(|i| &i.host.host).collect::<BTreeSet<_>>(),
            victims = ?plan.victims.iter().map(|v| v.uuid.to_string()).collect::<Vec<_>>(),
            cost = plan.cost,
            unit = %plan.cost_unit,
            optimal = plan.optimal,
            "making room"
        );
        reach(FailPoint::NovaPlanned);
        let hosts: Vec<Uuid> = plan.instances.iter().map(|i| i.host.uuid).collect();
        // From here on the ledger has the newcomers and their victims.
        let written = || {
            drop(request.reservation().take());
            drop(request.group().turn.take());
        };
        match evacuations
            .begin(
                record,
                &budgets,
                request.caller.clone(),
                confirmation,
                written,
            )
            .await
        {
            Ok(PreemptionResult::Room(result)) => {
                let result = self
                    .with_alternates(request, asked, &plan, &result)
                    .await
                    .unwrap_or(result);
                request.trace().planned(plan);
                self.read_for_the_next(request, asked, evacuations);
                Round::Made(PreemptAttempt::Room(result, names))
            }
            Ok(PreemptionResult::Refused(why)) => {
                tracing::info!(request = %request.id, "planning again: {why}");
                request.note_refusal();
                for host in hosts {
                    self.facts.providers.mark(host);
                }
                Round::Again
            }
            Ok(PreemptionResult::Withdrawn(withdrawal, why)) => {
                tracing::info!(request = %request.id, "the preemption was withdrawn: {why}");
                if withdrawal.is_some_and(|withdrawal| !withdrawal.room_is_wanted()) {
                    return NOTHING;
                }
                // This request does not plan again with the hosts whose victims did not leave.
                if withdrawal != Some(WithdrawalReason::VictimsUnconfirmed) {
                    options.avoided.extend(hosts);
                }
                Round::Again
            }
            Ok(outcome @ (PreemptionResult::Elsewhere | PreemptionResult::Unanswered)) => {
                request.leave(&outcome);
                Round::Made(PreemptAttempt::Left)
            }
            Err(LedgerError::VictimTaken { victim, .. }) => {
                options.spared.push(victim);
                Round::Again
            }
            Err(error @ LedgerError::BudgetMoved { .. }) => {
                tracing::info!(request = %request.id, code = error.code(), "planning again: {error}");
                Round::Again
            }
            Err(error) => {
                tracing::error!(
                    code = error.code(),
                    "{error}; no server is evicted without the ledger"
                );
                NOTHING
            }
        }
    }

    /// The reply's result with alternates from the current state. When the plan was made, every
    /// host that passes was full; while the victims left, other hosts may have gained free
    /// capacity. `None`: there are no alternates, or the result comes from another scheduler's
    /// plan.
    async fn with_alternates(
        &self,
        request: &SelectRequest,
        asked: &PlacementQuery,
        plan: &PreemptionPlan,
        result: &Value,
    ) -> Option<Value> {
        let planned: Vec<Vec<_>> = plan
            .instances
            .iter()
            .map(|i| i.selections.clone())
            .collect();
        if request.result(&planned) != *result {
            return None;
        }
        let last = plan.instances.last()?;
        let group = request.schedule.spec.instance_group.as_ref();
        let together = group.is_some_and(|group| group.policy == "affinity");
        if !request.call.return_alternates || (together && plan.instances.len() > 1) {
            return None;
        }
        // A request that is answered at once has read the rows just before.
        if self.settings.reply_when != ReplyWhen::AtOnce {
            self.facts.database.freshen().await;
        }
        let others = plan.instances.iter().filter(|i| i.uuid != last.uuid);
        let others = others.map(|instance| (instance.uuid, instance.host.host.clone()));
        let expected = request.group().expected.clone().and(others);
        let seed = Some(request.seed);
        let (most, found) = self.facts.read(|cloud| {
            let (spec, now) = (&request.schedule.spec, clock::unix_micros());
            let found = cloud.alternates(spec, last.uuid, asked, now, seed, &expected);
            (cloud.options().max_attempts - 1, found)
        });
        let taken: BTreeSet<&str> = plan
            .instances
            .iter()
            .map(|i| i.host.host.as_str())
            .collect();
        let others: Vec<_> = found
            .into_iter()
            .filter(|selected| !taken.contains(selected.host.host.as_str()))
            .collect();
        if others.is_empty() {
            return None;
        }
        let selected: Vec<Vec<_>> = plan
            .instances
            .iter()
            .map(|instance| {
                let chosen = instance.selections.iter().take(1).cloned();
                let same_cell = others
                    .iter()
                    .filter(|other| other.host.cell_uuid == instance.host.cell_uuid);
                let most = usize::try_from(most).unwrap_or(0);
                chosen.chain(same_cell.take(most).cloned()).collect()
            })
            .collect();
        Some(request.result(&selected))
    }

    /// The record of a plan.
    ///
    /// # Errors
    /// A victim holds nothing any more: a swap must not name it.
    fn record(
        &self,
        request: &SelectRequest,
        plan: &PreemptionPlan,
        snapshot: &PlacementSnapshot,
    ) -> Result<Preemption, Uuid> {
        let victims = plan
            .victims
            .iter()
            .map(|victim| snapshot.victim(victim))
            .collect::<Result<Vec<_>, _>>()?;
        let selected: Vec<Vec<_>> = plan
            .instances
            .iter()
            .map(|instance| instance.selections.clone())
            .collect();
        let (project_id, user_id) = request.owner();
        Ok(Preemption {
            id: ebbtide_runtime::ids::new(),
            cause: EvacuationCause::Preemption,
            reclaim_owner: None,
            decision_id: self.decisions.are_recorded().then_some(request.decision_id),
            request_id: request.id.clone(),
            unique_id: request.unique_id.clone(),
            planned_at: clock::now(),
            state: PreemptionState::Planned,
            answerer: None,
            reply_when: self.settings.reply_when,
            answered: false,
            in_doubt: false,
            unconfirmed: false,
            caller_seen: None,
            newcomers: plan
                .instances
                .iter()
                .map(|instance| {
                    let candidate = &instance.candidate;
                    let claim = Holding {
                        allocations: candidate.allocations.clone(),
                        mappings: Some(candidate.mappings.clone()).filter(|m| !m.is_null()),
                        project_id: project_id.clone(),
                        user_id: user_id.clone(),
                        generation: None,
                    };
                    snapshot.newcomer(instance.uuid, instance.host.host.clone(), claim)
                })
                .collect(),
            victims,
            result: request.result(&selected),
            reason: None,
            withdrawal: None,
            returned: false,
            give_back_at: None,
            give_back_refusals: 0,
        })
    }
}

/// The planning options of a request. They are the same as long as the cloud is the same.
pub(super) fn plan_options(request: &SelectRequest) -> PlanOptions {
    PlanOptions {
        seed: request.seed,
        compared: request.trial.is_none(),
        ..PlanOptions::default()
    }
}
