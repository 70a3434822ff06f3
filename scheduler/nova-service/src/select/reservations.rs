//! Who is about to be asked to leave.
//!
//! Requests that come at the same moment would all plan with the cheapest victim, and all but one would have asked Placement in vain: the
//! ledger gives a victim to one of them only. So a plan's victims are left out of the other plans of this scheduler until it is
//! known what became of it.

use super::{Request, Selector};
use ebbtide_nova_cloud::{NoPlan, NoPlanReason, PlacementQuery, Plan, PlanOptions};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use uuid::Uuid;

/// How long a request that finds nobody else waits for the plans of others to end, in pieces: they end by Placement's answers.
const PATIENCE: Duration = Duration::from_millis(250);
/// How many of these pieces.
const TRIES: u32 = 40;

/// The victims of all plans of this scheduler that are not in the ledger yet.
#[derive(Clone, Default)]
pub(crate) struct VictimReservations {
    all: Arc<All>,
}

#[derive(Default)]
struct All {
    victims: Mutex<HashSet<Uuid>>,
    /// Somebody is not wanted any more.
    freed: Notify,
}

/// The victims of one plan. Dropped, they can be planned with again.
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
    /// Replaces a wish by what `plan` finds, which is told whom others want. `Err` says whether others want anybody.
    fn plan(
        &self,
        reservation: &mut Option<VictimReservation>,
        plan: impl FnOnce(&HashSet<Uuid>) -> Result<Plan, NoPlan>,
    ) -> Result<Plan, (NoPlan, bool)> {
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
}

impl Selector {
    /// The cheapest way to room that no other request is about to take.
    ///
    /// # Errors
    /// There is none, and whether others want somebody who might stay after all.
    pub(super) fn plan_once(
        &self,
        request: &Request,
        asked: &PlacementQuery,
        options: &PlanOptions,
    ) -> Result<Plan, (NoPlan, bool)> {
        self.reservations
            .plan(&mut request.reservation(), |reserved| {
                let mut options = options.clone();
                options.spared.extend(reserved);
                options.expected = request.group().expected.clone();
                let (spec, now) = (&request.schedule.spec, crate::clock::micros());
                self.facts
                    .read(|cloud| cloud.plan(spec, &request.call, asked, now, &options))
            })
    }

    /// The same; where others want somebody, and nobody else is left, their plans are waited for: not all of them come to something.
    ///
    /// # Errors
    /// There is none.
    pub(super) async fn plan(
        &self,
        request: &Request,
        asked: &PlacementQuery,
        options: &PlanOptions,
    ) -> Result<Plan, NoPlan> {
        let mut left = TRIES;
        loop {
            let freed = self.reservations.all.freed.notified();
            match self.plan_once(request, asked, options) {
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

    fn nobody(text: &str) -> NoPlan {
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
            Err(nobody("nobody else"))
        });
        assert!(matches!(heard, Err((_, true))));
        drop(other);
        let heard = reserved.plan(&mut own, |others| {
            assert!(others.is_empty());
            Err(nobody("nobody at all"))
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
