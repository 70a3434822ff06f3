//! Gives back what a withdrawn preemption took.

use crate::holding::{amounts, claim, emptied, same};
use crate::{InstanceRow, PlacementSwap, SwapEnvironment};
use ebbtide_openstack::placement::Generation;
use ebbtide_openstack::{NewClaim, OpenStackError, ReleasedConsumer};
use ebbtide_preemption::{Holding, Preemption};
use futures::future::try_join_all;
use uuid::Uuid;

/// Maximum number of writes that [`PlacementSwap::renew`] makes. Generations of instances are small
/// numbers.
const MOST_WRITES: u32 = 16;

impl<A: SwapEnvironment> PlacementSwap<'_, A> {
    /// Gives back in one transaction of Placement: newcomers lose what they claimed, victims that
    /// live get back what they had. A consumer that differs from what the swap left is not changed:
    /// another process has dealt with it.
    ///
    /// This may run while agents act. If a victim leaves afterwards, Nova deletes its allocations.
    /// If Nova had deleted them just before, the victim holds them for nothing; the check after its
    /// agent's report finds that.
    ///
    /// # Errors
    /// Why it was not done, in words; or the outcome is unknown. The caller can retry.
    pub async fn return_all(&self, record: &Preemption) -> Result<(), String> {
        if !record.has_swap() {
            return Ok(());
        }
        let mut leave = Vec::new();
        let mut moved_back = Vec::new();
        let mut claims: Vec<NewClaim> = Vec::new();
        let mut restored: Vec<(Uuid, &Holding)> = Vec::new();
        for newcomer in &record.newcomers {
            let holds = self.placement.allocations(newcomer.instance).await;
            let holds = holds.map_err(said)?;
            let Some(generation) = holds.consumer_generation else {
                self.around.released(newcomer.instance);
                continue;
            };
            if !same(&holds, &newcomer.claim) {
                continue;
            }
            match &newcomer.before {
                Some(before) => {
                    claims.push(claim(newcomer.instance, before, Some(generation)).map_err(said)?);
                    moved_back.push((newcomer.instance, before));
                }
                // Another request for this instance was answered meanwhile with the same host; the
                // claim belongs to that request.
                None if self.has_come(newcomer.instance, &newcomer.host).await? => {}
                None => leave.push(emptied(newcomer.instance, &newcomer.claim, generation)),
            }
        }
        let survivors: Vec<_> = record.survivors().collect();
        let looks = survivors.iter().map(|victim| {
            let server = victim.server.0;
            self.generation_to_restore(server, &victim.host, victim.keeps.as_ref())
        });
        let restorable = try_join_all(looks).await?;
        if record.returned {
            leave.extend(self.held_for_nothing(record).await?);
        }
        for (victim, generation) in survivors.into_iter().zip(restorable) {
            let server = victim.server.0;
            let Some(generation) = generation else {
                continue;
            };
            claims.push(claim(server, &victim.had, generation.0).map_err(said)?);
            restored.push((server, &victim.had));
        }
        if !leave.is_empty() || !claims.is_empty() {
            let turn = self.around.lock_for_write(&claims).await;
            let written = self.placement.post_allocations(&leave, &claims).await;
            written.map_err(said)?;
            self.around.wrote(&turn);
        }
        // Consumers that were not changed still hold it.
        for instance in leave.iter().map(|v| v.consumer) {
            self.around.released(instance);
        }
        for (instance, before) in moved_back {
            self.around.claimed(instance, &amounts(&before.allocations));
        }
        for (server, had) in restored {
            self.around.claimed(server, &amounts(&had.allocations));
        }
        // Includes victims that already have their allocations: the answer to an earlier return may
        // have been lost.
        for victim in record.survivors() {
            let renewed = self.renew(victim.server.0, &victim.had, victim.generation);
            renewed.await.map_err(said)?;
        }
        Ok(())
    }

    /// Victims that are gone and hold what was given back to them: the return came after Nova had
    /// deleted their allocations.
    async fn held_for_nothing(&self, record: &Preemption) -> Result<Vec<ReleasedConsumer>, String> {
        let mut all = Vec::new();
        for victim in &record.victims {
            let holds = self.placement.allocations(victim.server.0).await;
            let holds = holds.map_err(said)?;
            let Some(generation) = holds.consumer_generation else {
                continue;
            };
            // A victim that was stopped, or has come back since, holds it rightly.
            let there = self.around.instance(victim.server.0);
            if !same(&holds, &victim.had) || there.await?.is_some() {
                continue;
            }
            all.push(emptied(victim.server.0, &victim.had, generation));
        }
        Ok(all)
    }

    /// Rewrites returned allocations until the consumer's generation differs from the one before
    /// the swap. Placement forgets a consumer that holds nothing and restarts its generation when
    /// it comes back. A scheduler that was suspended before it sent this swap would find the
    /// generation that it knows, and Placement would take the withdrawn swap.
    async fn renew(&self, server: Uuid, had: &Holding, before: u64) -> Result<(), OpenStackError> {
        for _ in 0..MOST_WRITES {
            let holds = self.placement.allocations(server).await?;
            let Some(generation) = holds.consumer_generation.filter(|now| now.0 <= before) else {
                break;
            };
            if !same(&holds, had) {
                break;
            }
            let again = claim(server, had, Some(generation))?;
            self.placement.post_allocations(&[], &[again]).await?;
        }
        Ok(())
    }

    /// The generation with which a survivor gets back what it had; `None`: it needs nothing, or
    /// must not get anything because it does not exist any more.
    pub(crate) async fn generation_to_restore(
        &self,
        server: Uuid,
        host: &str,
        keeps: Option<&Holding>,
    ) -> Result<Option<RestoreGeneration>, String> {
        let holds = self.placement.allocations(server).await.map_err(said)?;
        let as_we_left_it = match keeps {
            None => holds.allocations.is_empty(),
            Some(keeps) => same(&holds, keeps),
        };
        if !as_we_left_it {
            return Ok(None);
        }
        let row = self.row_on(server, host).await?;
        let lives = row.is_some_and(|row| {
            row.task_state.as_deref() != Some("deleting")
                && row.vm_state.as_deref() != Some("deleted")
        });
        Ok(lives.then_some(RestoreGeneration(holds.consumer_generation)))
    }

    /// Whether Nova has brought a newcomer to its host, or is about to. An instance that waits for
    /// its resize may be there as well: on its old host, where its migration holds what it had,
    /// while the claim is for the new one.
    async fn has_come(&self, instance: Uuid, host: &str) -> Result<bool, String> {
        let row = self.row_on(instance, host).await?;
        Ok(row.is_some_and(|row| {
            matches!(
                row.task_state.as_deref(),
                None | Some("networking" | "block_device_mapping" | "spawning")
            )
        }))
    }

    /// What Nova has about an instance, if that is alive on a host.
    pub(crate) async fn row_on(
        &self,
        server: Uuid,
        host: &str,
    ) -> Result<Option<InstanceRow>, String> {
        let row = self.around.instance(server).await?;
        Ok(row.filter(|row| row.host.as_deref() == Some(host)))
    }
}

/// With which generation something is restored; `None` inside for a consumer that Placement does
/// not know any more.
pub(crate) struct RestoreGeneration(Option<Generation>);

pub(crate) fn said(error: OpenStackError) -> String {
    error.to_string()
}
