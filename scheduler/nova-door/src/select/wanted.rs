//! Who is about to be asked to leave.
//!
//! Requests that come at the same moment would all plan with the cheapest victim, and all but one would have asked Placement in vain: the
//! ledger gives a victim to one of them only. So a plan's victims are left out of the other plans of this scheduler until it is
//! known what became of it.

use super::{Request, Selector};
use ebbtide_nova_cloud::{Asked, NoPlan, NoPlanReason, Plan, PlanOptions};
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
pub(crate) struct Wanted {
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
pub(super) struct Wish {
    victims: Vec<Uuid>,
    all: Arc<All>,
}

impl All {
    fn victims(&self) -> MutexGuard<'_, HashSet<Uuid>> {
        self.victims.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Wish {
    fn drop(&mut self) {
        if self.victims.is_empty() {
            return;
        }
        let mut wanted = self.all.victims();
        for victim in &self.victims {
            wanted.remove(victim);
        }
        drop(wanted);
        self.all.freed.notify_waiters();
    }
}

impl Wanted {
    /// Replaces a wish by what `plan` finds, which is told whom others want. `Err` says whether others want anybody.
    fn plan(
        &self,
        wish: &mut Option<Wish>,
        plan: impl FnOnce(&HashSet<Uuid>) -> Result<Plan, NoPlan>,
    ) -> Result<Plan, (NoPlan, bool)> {
        let mut wanted = self.all.victims();
        let before = wish
            .as_mut()
            .map(|wish| std::mem::take(&mut wish.victims))
            .unwrap_or_default();
        for victim in &before {
            wanted.remove(victim);
        }
        let planned = plan(&wanted);
        let found = planned.map_err(|none| (none, !wanted.is_empty()));
        if let Ok(plan) = &found {
            let victims: Vec<Uuid> = plan.victims.iter().map(|victim| victim.uuid).collect();
            wanted.extend(&victims);
            *wish = Some(Wish {
                victims,
                all: Arc::clone(&self.all),
            });
        }
        drop(wanted);
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
        asked: &Asked,
        options: &PlanOptions,
    ) -> Result<Plan, (NoPlan, bool)> {
        self.wanted.plan(&mut request.wish(), |wanted| {
            let mut options = options.clone();
            options.spared.extend(wanted);
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
        asked: &Asked,
        options: &PlanOptions,
    ) -> Result<Plan, NoPlan> {
        let mut left = TRIES;
        loop {
            let freed = self.wanted.all.freed.notified();
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

    fn wish(wanted: &Wanted, victims: &[Uuid]) -> Wish {
        wanted.all.victims().extend(victims);
        Wish {
            victims: victims.to_vec(),
            all: Arc::clone(&wanted.all),
        }
    }

    #[test]
    fn a_plan_hears_of_the_victims_of_others_and_not_of_its_own() {
        let (wanted, mine, theirs) = (Wanted::default(), Uuid::from_u128(1), Uuid::from_u128(2));
        let mut own = Some(wish(&wanted, &[mine]));
        let other = wish(&wanted, &[theirs]);
        let heard = wanted.plan(&mut own, |others| {
            assert_eq!(others, &HashSet::from([theirs]));
            Err(nobody("nobody else"))
        });
        assert!(matches!(heard, Err((_, true))));
        drop(other);
        let heard = wanted.plan(&mut own, |others| {
            assert!(others.is_empty());
            Err(nobody("nobody at all"))
        });
        assert!(matches!(heard, Err((_, false))));
    }

    #[test]
    fn victims_of_a_request_that_has_ended_can_be_planned_with_again() {
        let (wanted, victim) = (Wanted::default(), Uuid::from_u128(1));
        let one = wish(&wanted, &[victim]);
        assert!(wanted.all.victims().contains(&victim));
        drop(one);
        assert!(wanted.all.victims().is_empty());
    }
}
