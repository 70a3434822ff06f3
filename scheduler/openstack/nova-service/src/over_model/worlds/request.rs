//! Requests that need room, and their callers.

use super::super::full_host::{VICTIM, on_host, victim, write};
use super::super::newcomer;
use super::SeededWorld;
use super::guests::Guests;
use crate::evacuate::{Confirmation, CountedBudgets, PreemptionResult, end_of_lifetime};
use crate::preemption::Preemption;
use ebbtide_model::Timestamp;
use oslo_messaging::CallState;
use rand::{Rng, RngExt};
use std::time::Duration;
use uuid::Uuid;

/// What the first guest that can leave has as its row's number; newcomers come behind them.
const ROWS: i64 = 10;

impl SeededWorld {
    /// A request comes, its caller waits or leaves, and its instance starts if there is room.
    pub(super) async fn request(&self, n: u32) {
        let mut chance = self.chance(100 + u64::from(n));
        let wait = Duration::from_millis(chance.random_range(0..900));
        tokio::time::sleep(wait).await;
        let instance = newcomer(u128::from(n));
        let Some(plan) = self.plan(instance, &mut chance).await else {
            return;
        };
        let vcpus = plan.victims.len() as u64 * 2;
        let who = chance.random_range(0..2);
        let leaves = chance.random_range(0..10) < 3;
        let stays_for = Duration::from_millis(chance.random_range(0..1500));
        let leaving = async {
            if leaves {
                tokio::time::sleep(stays_for).await;
                self.deletes(instance).await;
            }
        };
        let (outcome, ()) = tokio::join!(self.asks(plan, who), leaving);
        self.tell(format!("{instance} is answered: {outcome:?}"));
        if matches!(outcome, Some(PreemptionResult::Room(_))) {
            self.is_written(instance).await;
        }
        match outcome {
            Some(PreemptionResult::Room(_)) if leaves => self.lets_go(instance),
            Some(PreemptionResult::Room(_)) => {
                let runs = self.guests().start(instance, vcpus);
                self.promise(Guests::fits(runs), || {
                    format!("{runs} VCPUs run where {instance} starts")
                });
                self.full.comes(instance, ROWS + i64::from(n)).await;
            }
            _ => {}
        }
    }

    /// The lifetime of a guest is over. Every scheduler sees that; one that is killed meanwhile
    /// leaves a row that another one adopts, or nothing.
    pub(super) async fn lifetime_ends(&self, n: u32) {
        let mut chance = self.chance(200 + u64::from(n));
        let wait = Duration::from_millis(chance.random_range(0..900));
        tokio::time::sleep(wait).await;
        let server = victim(chance.random_range(1..=4));
        if self.full.has(server) != on_host(&VICTIM) {
            return;
        }
        self.tell(format!("the lifetime of {server} is over"));
        for who in [0, 1] {
            // A scheduler reads what the server holds just before.
            if self.full.has(server) != on_host(&VICTIM) {
                return;
            }
            let planned = self.full.planned(server);
            let record = end_of_lifetime(planned, Timestamp::default());
            let work = match &*self.life(who) {
                None => continue,
                Some(life) => {
                    let all = life.evacuations.clone();
                    life.does(
                        async move { all.begin_alone(record, &CountedBudgets::default()).await },
                    )
                }
            };
            let begun = work.await;
            self.tell(format!("scheduler {who} ends {server}: {begun:?}"));
        }
    }

    /// One or two guests that hold all that they had leave for a request. `None`: there are none.
    async fn plan(&self, instance: Uuid, chance: &mut impl Rng) -> Option<Preemption> {
        let mut plan = self.full.plan(instance, &[], 0).await;
        let whole = (1..=4).filter(|n| self.full.has(victim(*n)) == on_host(&VICTIM));
        let mut whole: Vec<i64> = whole.collect();
        let most = whole.len().min(2);
        if most == 0 {
            return None;
        }
        for _ in 0..chance.random_range(1..=most) {
            let server = whole.remove(chance.random_range(0..whole.len()));
            plan.victims.push(self.full.planned(victim(server)));
        }
        let claim = [
            ("VCPU", plan.victims.len() as u64 * 2),
            ("MEMORY_MB", 512),
            ("DISK_GB", 1),
        ];
        plan.unconfirmed = chance.random_range(0..2) == 0;
        plan.newcomers[0].claim = super::super::full_host::holding(&claim, None);
        self.tell(format!(
            "{instance} needs room of {:?}",
            plan.victims.iter().map(|v| v.server).collect::<Vec<_>>()
        ));
        Some(plan)
    }

    /// A scheduler has the request; if it dies the other one gets it.
    async fn asks(&self, plan: Preemption, mut who: usize) -> Option<PreemptionResult> {
        let (instance, key) = (plan.newcomers[0].instance, plan.unique_id.clone());
        let mut first = Some(plan);
        let answer = self.chance(6).random_range(0..200);
        loop {
            let work = match &*self.life(who) {
                None => None,
                Some(life) => {
                    let all = life.evacuations.clone();
                    let (plan, key) = (first.take(), key.clone());
                    let asked = plan.as_ref().is_some_and(|plan| plan.unconfirmed);
                    let confirmation = asked.then(|| confirmation(answer));
                    Some(life.does(async move {
                        let caller = CallState::detached();
                        match plan {
                            Some(plan) => all
                                .begin(
                                    plan,
                                    &CountedBudgets::default(),
                                    caller,
                                    confirmation,
                                    || {},
                                )
                                .await
                                .map(Some),
                            None => all.resume(instance, &key, caller).await,
                        }
                    }))
                }
            };
            if let Some(work) = work {
                match work.await {
                    Ok(Ok(Some(PreemptionResult::Elsewhere | PreemptionResult::Unanswered)))
                    | Err(_) => {}
                    Ok(Ok(outcome)) => return outcome,
                    Ok(Err(error)) => {
                        self.tell(format!("{instance}: {error}"));
                        return None;
                    }
                }
                self.tell(format!("{instance} is asked for again"));
            }
            who = 1 - who;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// An answer is in the ledger before the caller has it: a scheduler that goes on with the
    /// record would call it off.
    async fn is_written(&self, instance: Uuid) {
        let rows = self.full.ledger.by_instance(instance).await.unwrap();
        let mut records = rows
            .into_iter()
            .filter_map(|row| serde_json::from_value::<Preemption>(row.document).ok());
        let answered = records.any(|record| record.answered);
        self.promise(answered, || {
            format!("{instance} has an answer that no row tells of")
        });
    }

    /// The tenant deletes what it asked for: Nova's API deletes its allocations at once.
    async fn deletes(&self, instance: Uuid) {
        self.tell(format!("{instance} is deleted by its owner"));
        self.full.caller_leaves(instance).await;
        self.lets_go(instance);
    }

    fn lets_go(&self, instance: Uuid) {
        let placement = &self.full.bench.placement;
        placement.model(|model| {
            if model.consumer(instance).is_some() {
                assert_eq!(write(model, instance, &[]), 204);
            }
        });
    }
}

/// Placement's answer whether the victims are needed, some milliseconds later. Every fifth time
/// they are not.
fn confirmation(answer: u64) -> Confirmation {
    Confirmation::of(async move {
        tokio::time::sleep(Duration::from_millis(answer)).await;
        match answer.is_multiple_of(5) {
            true => Err("a host has room".to_owned()),
            false => Ok(()),
        }
    })
}
