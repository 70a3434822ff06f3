//! Claims once more what a server that was stopped held, before it is started: Nova asks for
//! nothing when it starts a server.

use crate::give_back::said;
use crate::holding::{amounts, claim, same};
use crate::{PlacementSwap, SwapEnvironment};
use ebbtide_openstack::OpenStackError;
use ebbtide_preemption::Victim;

/// Whether a server holds again what it held before its evacuation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RetakeResult {
    /// It does.
    Held,
    /// Placement has refused the claim: why.
    Full(String),
    /// It holds something else than it was left, or is not on its host any more: another process
    /// has dealt with it.
    Changed,
}

impl<A: SwapEnvironment> PlacementSwap<'_, A> {
    /// Claims for a victim that was stopped what it held before. Safe to repeat.
    ///
    /// # Errors
    /// In words: the outcome is unknown. The caller can retry.
    pub async fn retake(&self, victim: &Victim) -> Result<RetakeResult, String> {
        let server = victim.server.0;
        let holds = self.placement.allocations(server).await.map_err(said)?;
        if same(&holds, &victim.had) {
            return Ok(RetakeResult::Held);
        }
        let as_it_was_left = match &victim.keeps {
            None => holds.allocations.is_empty(),
            Some(keeps) => same(&holds, keeps),
        };
        let there = self.row_on(server, &victim.host).await?;
        if !as_it_was_left || there.is_none() {
            return Ok(RetakeResult::Changed);
        }
        let whole = claim(server, &victim.had, holds.consumer_generation).map_err(said)?;
        let claims = [whole];
        let turn = self.around.lock_for_write(&claims).await;
        let written = self.placement.post_allocations(&[], &claims).await;
        if written.is_ok() {
            self.around.wrote(&turn);
        }
        drop(turn);
        match written {
            Ok(_) => {
                self.around
                    .claimed(server, &amounts(&victim.had.allocations));
                Ok(RetakeResult::Held)
            }
            Err(OpenStackError::Conflict { text, .. }) => Ok(RetakeResult::Full(text)),
            Err(error) => Err(said(error)),
        }
    }
}
