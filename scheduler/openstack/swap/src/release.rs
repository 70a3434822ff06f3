//! Takes from a server that was stopped what it held: no newcomer's swap has done it, and Nova
//! leaves its allocations to a stopped server.

use crate::give_back::said;
use crate::holding::{amounts, claim, emptied, same};
use crate::{PlacementSwap, SwapEnvironment};
use ebbtide_preemption::Victim;

impl<A: SwapEnvironment> PlacementSwap<'_, A> {
    /// Leaves to a stopped victim what it keeps. A victim that its owner has started or deleted
    /// meanwhile, or that holds anything else than when it was chosen, is not changed. Safe to
    /// repeat.
    ///
    /// # Errors
    /// Why it was not done, in words; or the outcome is unknown. The caller can retry.
    pub async fn release(&self, victim: &Victim) -> Result<(), String> {
        let server = victim.server.0;
        let holds = self.placement.allocations(server).await.map_err(said)?;
        let Some(generation) = holds.consumer_generation else {
            self.around.released(server);
            return Ok(());
        };
        if !same(&holds, &victim.had) {
            return Ok(());
        }
        let row = self.row_on(server, &victim.host).await?;
        let is_stopped = row.is_some_and(|row| {
            let ended = matches!(row.vm_state.as_deref(), Some("stopped" | "suspended"));
            row.task_state.is_none() && ended
        });
        if !is_stopped {
            return Ok(());
        }
        let (leave, claims) = match &victim.keeps {
            None => (vec![emptied(server, &victim.had, generation)], Vec::new()),
            Some(keeps) => {
                let kept = claim(server, keeps, Some(generation)).map_err(said)?;
                (Vec::new(), vec![kept])
            }
        };
        let turn = self.around.lock_for_write(&claims).await;
        let written = self.placement.post_allocations(&leave, &claims).await;
        if written.is_ok() {
            self.around.wrote(&turn);
        }
        drop(turn);
        written.map_err(said)?;
        match &victim.keeps {
            None => self.around.released(server),
            Some(keeps) => self.around.claimed(server, &amounts(&keeps.allocations)),
        }
        Ok(())
    }
}
