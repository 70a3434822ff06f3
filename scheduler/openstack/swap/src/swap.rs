//! The swap, and the check of its outcome.

use crate::holding::{amounts, claim, emptied, same};
use crate::{PlacementSwap, SwapEnvironment};
use ebbtide_openstack::placement::Generation;
use ebbtide_openstack::{NewClaim, OpenStackError, ReleasedConsumer, RequestEffect};
use ebbtide_preemption::Preemption;

/// Placement's answer to a swap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SwapResult {
    /// Placement has taken it.
    Taken,
    /// Placement has refused it, with this text: nothing has changed.
    Refused(String),
    /// No answer: Placement may have taken it or not.
    Unknown,
}

/// The outcome of a swap whose answer was lost, as read from Placement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SwapState {
    /// Placement has taken it, and a newcomer holds its claim.
    Done,
    /// Placement has not taken it.
    NotDone,
    /// Placement has taken it, and no newcomer holds its claim any more.
    Abandoned,
}

impl<A: SwapEnvironment> PlacementSwap<'_, A> {
    /// Sends the swap in one transaction: victims that keep nothing are emptied, those that keep
    /// something get just that, newcomers get their claims. `sent_before`: the swap may have been
    /// sent before, so a refusal does not prove that Placement did not take it.
    pub async fn swap(&self, record: &Preemption, sent_before: bool) -> SwapResult {
        let (victims, claims) = match swap_of(record) {
            Ok(swap) => swap,
            Err(error) => return SwapResult::Refused(error.to_string()),
        };
        let turn = self.around.lock_for_write(&claims).await;
        let swapped = self.placement.post_allocations(&victims, &claims).await;
        if swapped.is_ok() {
            self.around.wrote(&turn);
        }
        drop(turn);
        let error = match swapped {
            Ok(()) => {
                self.believe_swap(record);
                return SwapResult::Taken;
            }
            Err(error) => error,
        };
        tracing::info!(code = error.code(), preemption = %record.id, "the swap: {error}");
        if error.effect() == RequestEffect::Unknown {
            return SwapResult::Unknown;
        }
        // The swap may have been sent before and its answer lost: then the victims have changed. If
        // this swap was never sent and the newcomer is there all the same, it got its host from
        // another scheduler, which has its message, too.
        let held = match sent_before {
            true => self.newcomers_hold(record).await,
            false => Ok(false),
        };
        match held {
            Ok(true) => {
                self.believe_swap(record);
                SwapResult::Taken
            }
            Ok(false) => SwapResult::Refused(error.to_string()),
            Err(_) => SwapResult::Unknown,
        }
    }

    /// Reads whether Placement has taken a swap.
    ///
    /// # Errors
    /// In words: it could not be read.
    pub async fn read_swap(&self, record: &Preemption) -> Result<SwapState, String> {
        let found = match self.newcomers_hold(record).await {
            Ok(true) => SwapState::Done,
            Ok(false) => self.swap_without_newcomers(record).await?,
            Err(error) => return Err(error.to_string()),
        };
        if found == SwapState::Done {
            self.believe_swap(record);
        }
        Ok(found)
    }

    /// Nova's API deletes the allocations of a newcomer that its owner deletes, also while its swap
    /// is in doubt. Then the victims show the outcome: a living victim that holds only what the
    /// swap leaves to it was part of the swap.
    async fn swap_without_newcomers(&self, record: &Preemption) -> Result<SwapState, String> {
        let mut left = false;
        for victim in &record.victims {
            let keeps = victim.keeps.as_ref();
            let restorable = self
                .generation_to_restore(victim.server.0, &victim.host, keeps)
                .await?;
            left |= restorable.is_some();
        }
        if !left {
            return Ok(SwapState::NotDone);
        }
        for newcomer in &record.newcomers {
            let holds = self.placement.allocations(newcomer.instance).await;
            let holds = holds.map_err(|error| error.to_string())?;
            if same(&holds, &newcomer.claim) {
                return Ok(SwapState::Done);
            }
        }
        Ok(SwapState::Abandoned)
    }

    /// Whether Placement has taken the swap: the newcomers are where it puts them, and victims hold
    /// nothing but what it leaves to them. It is one transaction, so one newcomer stands for all.
    /// The newcomer alone is no proof: another preemption for the same request could have placed
    /// it.
    async fn newcomers_hold(&self, record: &Preemption) -> Result<bool, OpenStackError> {
        let Some(newcomer) = record.newcomers.first() else {
            return Ok(false);
        };
        let holds = self.placement.allocations(newcomer.instance).await?;
        if !same(&holds, &newcomer.claim) {
            return Ok(false);
        }
        for victim in &record.victims {
            let holds = self.placement.allocations(victim.server.0).await?;
            // A victim that its owner has deleted since holds nothing at all.
            let as_left = victim
                .keeps
                .as_ref()
                .is_some_and(|keeps| same(&holds, keeps));
            if !as_left && !holds.allocations.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Applies the swap to the cloud in memory.
    fn believe_swap(&self, record: &Preemption) {
        for victim in &record.victims {
            match &victim.keeps {
                Some(keeps) => {
                    let kept = amounts(&keeps.allocations);
                    self.around.claimed(victim.server.0, &kept);
                }
                None => self.around.released(victim.server.0),
            }
        }
        for newcomer in &record.newcomers {
            let amounts = amounts(&newcomer.claim.allocations);
            self.around.claimed(newcomer.instance, &amounts);
        }
    }
}

fn swap_of(record: &Preemption) -> Result<(Vec<ReleasedConsumer>, Vec<NewClaim>), OpenStackError> {
    let mut leave = Vec::new();
    let mut claims = Vec::new();
    for victim in &record.victims {
        let generation = Generation(victim.generation);
        match &victim.keeps {
            None => leave.push(emptied(victim.server.0, &victim.had, generation)),
            Some(keeps) => claims.push(claim(victim.server.0, keeps, Some(generation))?),
        }
    }
    for newcomer in &record.newcomers {
        let generation = newcomer.claim.generation.map(Generation);
        claims.push(claim(newcomer.instance, &newcomer.claim, generation)?);
    }
    Ok((leave, claims))
}
