//! Giving back what a preemption took that was called off.

use super::act::claim;
use super::drive::{Driver, Lost};
use crate::preemption::{Holding, Input, Preemption};
use ebbtide_nova_db::Instance;
use ebbtide_openstack::placement::{ConsumerAllocations, Generation};
use ebbtide_openstack::{NewClaim, OpenStackError, Placement, Victim};
use futures::future::try_join_all;
use std::collections::BTreeMap;
use uuid::Uuid;

/// How often what was given back is written at most: generations of instances are small numbers.
const MOST_WRITES: u32 = 16;

/// Whether a consumer holds exactly what a holding says.
pub(super) fn same(holds: &ConsumerAllocations, holding: &Holding) -> bool {
    let held: BTreeMap<Uuid, &BTreeMap<String, u64>> = holds
        .allocations
        .iter()
        .map(|(provider, of)| (*provider, &of.resources))
        .collect();
    let wanted = crate::facts::amounts(&holding.allocations);
    held.len() == wanted.len()
        && wanted
            .iter()
            .all(|(provider, amounts)| held.get(provider).is_some_and(|of| *of == amounts))
}

impl Driver {
    pub(super) async fn give_back(&mut self) -> Result<(), Lost> {
        let record = self.held.record.clone();
        match self.return_all(&record).await {
            Ok(()) => {
                self.mark_hosts();
                self.feed(&Input::GivenBack).await
            }
            Err(reason) => {
                tracing::warn!(
                    code = "EB-DOOR-023",
                    preemption = %self.held.id,
                    "allocations could not be given back yet: {reason}; it is tried again"
                );
                self.feed(&Input::GiveBackFailed { reason: &reason }).await
            }
        }
    }

    /// One transaction of Placement: newcomers lose what they claimed, victims that live have again what they had. Who is not as we left
    /// it is left alone: somebody else has dealt with it.
    ///
    /// It may come while agents act. A victim that leaves afterwards has its allocations deleted by
    /// Nova; one whose allocations Nova had deleted just before holds them for nothing, which the
    /// look after its agent's word finds.
    async fn return_all(&self, record: &Preemption) -> Result<(), String> {
        let facts = &self.all.shared.facts;
        let placement = facts.providers.placement(&record.request_id);
        let said = |error: OpenStackError| error.to_string();
        let mut emptied = Vec::new();
        let mut moved_back = Vec::new();
        let mut claims: Vec<NewClaim> = Vec::new();
        let mut restored: Vec<(Uuid, &Holding, u64)> = Vec::new();
        for newcomer in &record.newcomers {
            let holds = placement
                .allocations(newcomer.instance)
                .await
                .map_err(said)?;
            let Some(generation) = holds.consumer_generation else {
                facts.providers.released(newcomer.instance);
                continue;
            };
            if !same(&holds, &newcomer.claim) {
                continue;
            }
            match &newcomer.before {
                Some(before) => {
                    claims.push(claim(newcomer.instance, before, Some(generation)).map_err(said)?);
                    moved_back.push(newcomer.instance);
                }
                // Another request for it was answered meanwhile, with the same place: the claim is that one's.
                None if self.has_come(newcomer.instance, &newcomer.host).await? => {}
                None => emptied.push(Victim {
                    consumer: newcomer.instance,
                    generation,
                    project_id: newcomer.claim.project_id.clone(),
                    user_id: newcomer.claim.user_id.clone(),
                }),
            }
        }
        let survivors: Vec<_> = record.survivors().collect();
        let looks = survivors.iter().map(|victim| {
            let server = victim.server.0;
            self.generation_to_restore(&placement, server, &victim.host, victim.keeps.as_ref())
        });
        let restorable = try_join_all(looks).await?;
        if record.returned {
            emptied.extend(self.held_for_nothing(&placement, record).await?);
        }
        for (victim, generation) in survivors.into_iter().zip(restorable) {
            let server = victim.server.0;
            let Some(generation) = generation else {
                continue;
            };
            claims.push(claim(server, &victim.had, generation.0).map_err(said)?);
            restored.push((server, &victim.had, victim.generation));
        }
        if !emptied.is_empty() || !claims.is_empty() {
            let _turn = facts.providers.turn_to_write(&claims).await;
            placement
                .post_allocations(&emptied, &claims)
                .await
                .map_err(said)?;
        }
        // Who was left alone still holds it.
        for instance in emptied.iter().map(|v| v.consumer) {
            facts.providers.released(instance);
        }
        for newcomer in &record.newcomers {
            if let (Some(before), true) =
                (&newcomer.before, moved_back.contains(&newcomer.instance))
            {
                let amounts = crate::facts::amounts(&before.allocations);
                facts.providers.claimed(newcomer.instance, &amounts, None);
            }
        }
        for (server, had, before) in restored {
            let amounts = crate::facts::amounts(&had.allocations);
            facts.providers.claimed(server, &amounts, None);
            if let Err(error) = self.renew(&placement, server, had, before).await {
                tracing::warn!(
                    code = "EB-DOOR-023",
                    preemption = %self.held.id,
                    "{server} has its allocations again, but they could not be written once more: {error}"
                );
            }
        }
        Ok(())
    }

    /// Victims that are not there any more and hold what was given back to them: it came after Nova
    /// had taken it from them.
    async fn held_for_nothing(
        &self,
        placement: &Placement,
        record: &Preemption,
    ) -> Result<Vec<Victim>, String> {
        let mut all = Vec::new();
        for victim in &record.victims {
            let holds = placement
                .allocations(victim.server.0)
                .await
                .map_err(|error| error.to_string())?;
            let Some(generation) = holds.consumer_generation else {
                continue;
            };
            // One that was stopped, or has come back since, has it rightly.
            if !same(&holds, &victim.had) || self.row(victim.server.0).await?.is_some() {
                continue;
            }
            all.push(Victim {
                consumer: victim.server.0,
                generation,
                project_id: victim.had.project_id.clone(),
                user_id: victim.had.user_id.clone(),
            });
        }
        Ok(all)
    }

    /// Placement forgets a consumer that holds nothing and begins to count anew when it comes back. A scheduler that stood still with this
    /// swap in its hands would find the generation that it knows, and the swap would be taken although it was called off. So
    /// what was given back is written until it has another one.
    async fn renew(
        &self,
        placement: &Placement,
        server: Uuid,
        had: &Holding,
        before: u64,
    ) -> Result<(), OpenStackError> {
        for _ in 0..MOST_WRITES {
            let holds = placement.allocations(server).await?;
            let Some(generation) = holds.consumer_generation.filter(|now| now.0 <= before) else {
                break;
            };
            if !same(&holds, had) {
                break;
            }
            let again = claim(server, had, Some(generation))?;
            placement.post_allocations(&[], &[again]).await?;
        }
        Ok(())
    }

    /// The generation with which a survivor gets back what it had; `None`: it needs nothing, or must not get anything, because it is
    /// not there any more.
    pub(super) async fn generation_to_restore(
        &self,
        placement: &Placement,
        server: Uuid,
        host: &str,
        keeps: Option<&Holding>,
    ) -> Result<Option<Restorable>, String> {
        let holds = placement
            .allocations(server)
            .await
            .map_err(|error| error.to_string())?;
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
        Ok(lives.then_some(Restorable(holds.consumer_generation)))
    }

    /// Whether Nova has brought a newcomer to its host, or is about to. One that waits for its resize may be there as well: on its old
    /// place, for which its migration holds what it had, and what we claimed is for the new one.
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
    async fn row_on(&self, server: Uuid, host: &str) -> Result<Option<Instance>, String> {
        let row = self.row(server).await?;
        Ok(row.filter(|row| row.host.as_deref() == Some(host)))
    }

    /// What Nova has about an instance, if that is not deleted, nor off all hosts at rest.
    async fn row(&self, server: Uuid) -> Result<Option<Instance>, String> {
        let nova = self.all.shared.facts.database.nova();
        let uuid = server.to_string();
        let cell = nova
            .instance_cell(&uuid)
            .await
            .map_err(|error| error.to_string())?;
        let Some(cell) = cell else { return Ok(None) };
        let cell = nova.cell(&cell).map_err(|error| error.to_string())?;
        let row = cell
            .instance(&uuid)
            .await
            .map_err(|error| error.to_string())?;
        let holds = |row: &Instance| row.host.is_some() || row.task_state.is_some();
        Ok(row.filter(|row| !row.deleted && holds(row)))
    }
}

/// With which generation something is restored; `None` inside for a consumer that Placement does not know any more.
pub(super) struct Restorable(Option<Generation>);
