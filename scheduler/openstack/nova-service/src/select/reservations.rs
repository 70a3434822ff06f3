//! Reservation of victims between planning and the write to the ledger.
//!
//! Requests that arrive at the same moment would all plan with the cheapest victim, and all but one
//! would query Placement for nothing, because the ledger gives a victim to only one of them.
//! Therefore other plans of this scheduler exclude a plan's victims until the outcome of that plan
//! is known.

use super::{SelectRequest, Selector};
use crate::evacuate::CountedBudgets;
use ebbtide_nova::model::RequestSpec;
use ebbtide_nova_cloud::{
    Cloud, NoPlan, NoPlanReason, PlacementQuery, PlanOptions, PreemptionPlan,
};
use ebbtide_runtime::clock;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use uuid::Uuid;

/// A request without other victims waits for the plans of other requests to end, in intervals of
/// this length. Those plans end when Placement answers.
const PATIENCE: Duration = Duration::from_millis(250);
/// The number of these intervals.
const TRIES: u32 = 40;

/// The victims of all plans of this scheduler that are not in the ledger yet.
#[derive(Clone, Default)]
pub(crate) struct VictimReservations {
    all: Arc<All>,
}

#[derive(Default)]
struct All {
    victims: Mutex<HashSet<Uuid>>,
    /// Notified when a plan releases its victims.
    freed: Notify,
}

/// The victims of one plan. When it is dropped, other plans may use them again.
#[derive(Default)]
pub(super) struct VictimReservation {
    victims: Vec<Uuid>,
    all: Arc<All>,
}

impl All {
    fn victims(&self) -> MutexGuard<'_, HashSet<Uuid>> {
        self.victims.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for VictimReservation {
    fn drop(&mut self) {
        if self.victims.is_empty() {
            return;
        }
        let mut reserved = self.all.victims();
        for victim in &self.victims {
            reserved.remove(victim);
        }
        drop(reserved);
        self.all.freed.notify_waiters();
    }
}

impl VictimReservations {
    /// Replaces this reservation with the result of `plan`, which gets the victims that other plans
    /// have reserved. `Err` also says whether other plans have reserved any.
    fn plan(
        &self,
        reservation: &mut Option<VictimReservation>,
        plan: impl FnOnce(&HashSet<Uuid>) -> Result<PreemptionPlan, NoPlan>,
    ) -> Result<PreemptionPlan, (NoPlan, bool)> {
        let mut reserved = self.all.victims();
        let before = reservation
            .as_mut()
            .map(|reservation| std::mem::take(&mut reservation.victims))
            .unwrap_or_default();
        for victim in &before {
            reserved.remove(victim);
        }
        let planned = plan(&reserved);
        let found = planned.map_err(|none| (none, !reserved.is_empty()));
        if let Ok(plan) = &found {
            let victims: Vec<Uuid> = plan.victims.iter().map(|victim| victim.uuid).collect();
            reserved.extend(&victims);
            *reservation = Some(VictimReservation {
                victims,
                all: Arc::clone(&self.all),
            });
        }
        drop(reserved);
        if !before.is_empty() {
            self.all.freed.notify_waiters();
        }
        found
    }

    /// As [`Self::plan`], but nothing is reserved.
    pub(super) fn plan_without(
        &self,
        plan: impl FnOnce(&HashSet<Uuid>) -> Result<PreemptionPlan, NoPlan>,
    ) -> Result<PreemptionPlan, (NoPlan, bool)> {
        // A copy: real requests do not wait for a question's plan.
        let reserved = self.all.victims().clone();
        plan(&reserved).map_err(|none| (none, !reserved.is_empty()))
    }
}

impl Selector {
    /// The cheapest plan that uses no victim reserved by another request.
    ///
    /// # Errors
    /// There is no plan; the flag says whether other requests have reserved victims that may become
    /// available again.
    fn plan_once(
        &self,
        request: &SelectRequest,
        asked: &PlacementQuery,
        options: &PlanOptions,
        budgets: &CountedBudgets,
    ) -> Result<PreemptionPlan, (NoPlan, bool)> {
        let (spec, now) = (&request.schedule.spec, clock::unix_micros());
        let plan = |cloud: &Cloud, options: &PlanOptions| {
            cloud.plan(spec, &request.call, asked, now, options)
        };
        self.reserve(request, options, budgets, plan)
            .map(|(plan, _)| plan)
    }

    /// The cheapest plan on a state in which no host has room, and how many changes the cloud had
    /// had by then. `None`: there is room, or there is no plan.
    pub(super) fn plan_if_full(
        &self,
        request: &SelectRequest,
        spec: &RequestSpec,
        asked: &PlacementQuery,
        options: &PlanOptions,
    ) -> Option<(PreemptionPlan, u64)> {
        let (call, now) = (&request.call, clock::unix_micros());
        let plan = |cloud: &Cloud, options: &PlanOptions| {
            let seed = Some(request.seed);
            let pass = cloud.decide_once(spec, call, asked, now, seed, Some(options));
            let victims = pass.ok().and_then(|pass| pass.victims);
            victims.unwrap_or_else(|| {
                Err(NoPlan {
                    reason: NoPlanReason::NoHost,
                    text: "a host has room by now".to_owned(),
                    explanation: None,
                })
            })
        };
        let budgets = CountedBudgets::default();
        self.reserve(request, options, &budgets, plan).ok()
    }

    fn reserve(
        &self,
        request: &SelectRequest,
        options: &PlanOptions,
        budgets: &CountedBudgets,
        plan: impl FnOnce(&Cloud, &PlanOptions) -> Result<PreemptionPlan, NoPlan>,
    ) -> Result<(PreemptionPlan, u64), (NoPlan, bool)> {
        let mut at = 0;
        let plan = |reserved: &HashSet<Uuid>| {
            let mut options = options.clone();
            options.spared.extend(reserved);
            options.expected = request.group().expected.clone();
            let (plan, changes) = self.facts.read_versioned(|cloud| {
                let reserved = reserved.iter().filter_map(|uuid| {
                    let server = cloud.instance(*uuid)?;
                    Some(((*uuid).into(), server.project_id.as_str()))
                });
                options.budgets = budgets.left(reserved);
                plan(cloud, &options)
            });
            at = changes;
            plan
        };
        let plan = match request.trial {
            Some(_) => self.reservations.plan_without(plan),
            None => self.reservations.plan(&mut request.reservation(), plan),
        }?;
        Ok((plan, at))
    }

    /// As [`Self::plan_once`], but waits if only victims of other requests' plans are left: some of
    /// those plans fail and release their victims.
    ///
    /// # Errors
    /// There is no plan.
    pub(super) async fn plan(
        &self,
        request: &SelectRequest,
        asked: &PlacementQuery,
        options: &PlanOptions,
        budgets: &CountedBudgets,
    ) -> Result<PreemptionPlan, NoPlan> {
        let mut left = TRIES;
        loop {
            let freed = self.reservations.all.freed.notified();
            match self.plan_once(request, asked, options, budgets) {
                Ok(plan) => return Ok(plan),
                Err((none, true))
                    if none.reason == NoPlanReason::NotEnoughVictims
                        && left > 0
                        && !request.stop.is_cancelled() =>
                {
                    left -= 1;
                    let _ = tokio::time::timeout(PATIENCE, freed).await;
                }
                Err((none, _)) => return Err(none),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn no_plan(text: &str) -> NoPlan {
        NoPlan {
            reason: NoPlanReason::NoHost,
            text: text.to_owned(),
            explanation: None,
        }
    }

    fn reservation(reserved: &VictimReservations, victims: &[Uuid]) -> VictimReservation {
        reserved.all.victims().extend(victims);
        VictimReservation {
            victims: victims.to_vec(),
            all: Arc::clone(&reserved.all),
        }
    }

    #[test]
    fn a_plan_hears_of_the_victims_of_others_and_not_of_its_own() {
        let (reserved, mine, theirs) = (
            VictimReservations::default(),
            Uuid::from_u128(1),
            Uuid::from_u128(2),
        );
        let mut own = Some(reservation(&reserved, &[mine]));
        let other = reservation(&reserved, &[theirs]);
        let heard = reserved.plan(&mut own, |others| {
            assert_eq!(others, &HashSet::from([theirs]));
            Err(no_plan("all others are reserved"))
        });
        assert!(matches!(heard, Err((_, true))));
        drop(other);
        let heard = reserved.plan(&mut own, |others| {
            assert!(others.is_empty());
            Err(no_plan("there is no victim"))
        });
        assert!(matches!(heard, Err((_, false))));
    }

    #[test]
    fn victims_of_a_request_that_has_ended_can_be_planned_with_again() {
        let (reserved, victim) = (VictimReservations::default(), Uuid::from_u128(1));
        let one = reservation(&reserved, &[victim]);
        assert!(reserved.all.victims().contains(&victim));
        drop(one);
        assert!(reserved.all.victims().is_empty());
    }
}
