//! Claims whose requests got no host, and that Placement may still write.
//!
//! A client that gets no answer in time does not stop Placement, which may wait for a lock of its
//! database and write the claim afterwards: after the scheduler has found that the instance holds
//! nothing, and has answered NoValidHost. So such instances are looked at for a while.

use super::Facts;
use crate::Tasks;
use ebbtide_openstack::{NewClaim, OpenStackError};
use ebbtide_runtime::clock::Stopwatch;
use ebbtide_runtime::task::pause;
use ebbtide_swap::{SwapEnvironment, take_back, taken_by};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use uuid::Uuid;

/// Interval between two looks.
const EVERY: Duration = Duration::from_secs(10);
/// For how long Placement may still write a claim. A transaction waits for a lock for 50 s at most
/// (MariaDB's default `innodb_lock_wait_timeout`), and Placement tries a write ten times.
const WATCHED: Duration = Duration::from_secs(600);

/// The claims that are looked for.
#[derive(Default)]
pub(crate) struct LateClaims(Mutex<Vec<LateClaim>>);

/// The claims of one instance.
#[derive(Clone)]
struct LateClaim {
    claims: Vec<NewClaim>,
    since: Stopwatch,
}

impl LateClaims {
    /// Records claims of one instance that Placement did not answer. Its request has no host.
    pub(crate) fn note(&self, claims: Vec<NewClaim>) {
        let since = Stopwatch::start();
        self.lock().push(LateClaim { claims, since });
    }

    fn watched(&self) -> Vec<LateClaim> {
        let mut all = self.lock();
        all.retain(|late| late.since.elapsed() < WATCHED);
        all.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<LateClaim>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Facts {
    /// Takes back the claims that Placement has written since their requests got no host.
    pub(crate) async fn take_back_late_claims(&self) {
        for late in self.late_claims.watched() {
            let Some(consumer) = late.claims.first().map(|claim| claim.consumer) else {
                continue;
            };
            match self.take_back_late(consumer, &late.claims).await {
                Ok(false) => {}
                Ok(true) => {
                    tracing::info!(instance = %consumer, "took back a claim that Placement had written after its request got no host");
                }
                // The next look takes it back.
                Err(error) => tracing::debug!(instance = %consumer, "{error}"),
            }
        }
    }

    /// Whether there was a late claim.
    async fn take_back_late(&self, consumer: Uuid, claims: &[NewClaim]) -> Result<bool, String> {
        let said = |error: OpenStackError| error.to_string();
        let placement = self.providers.placement(&format!("late claim {consumer}"));
        let held = placement.allocations(consumer).await.map_err(said)?;
        let claimed = claims.iter().flat_map(|claim| taken_by(claim).into_keys());
        let claimed: Vec<Uuid> = claimed.collect();
        if !claimed.iter().any(|at| held.allocations.contains_key(at)) {
            return Ok(false);
        }
        // A later request for the instance may have claimed the same host. Its claim is older than
        // this reading of Nova's databases, which then show that request, or the host.
        let nova = self.database.nova();
        let waits = nova.caller_waits(&consumer.to_string()).await;
        let waits = waits.map_err(|error| error.to_string())?.waits();
        let row = self.instance(consumer).await?;
        let in_task = row.is_some_and(|row| row.task_state.is_some());
        let home = self.database.home(consumer).await;
        let home = home.map_err(|error| error.to_string())?;
        let at_home = home.is_some_and(|home| claimed.contains(&home));
        if waits || in_task || at_home {
            return Ok(false);
        }
        take_back(&placement, claims).await.map_err(said)?;
        self.providers.released(consumer);
        Ok(true)
    }
}

/// Looks regularly until the scheduler stops.
pub(crate) fn follow(facts: &Facts, tasks: &Tasks) {
    let (facts, stop) = (facts.clone(), tasks.stop().clone());
    tasks.spawn("late-claims", async move {
        while pause(&stop, EVERY).await {
            facts.take_back_late_claims().await;
        }
    });
}
