//! Evicts servers before a normal server needs their capacity. The ledger decides which scheduler
//! does.

use super::{Evacuations, read};
use crate::error::NovaServiceError;
use crate::preemption::{HEADROOM_KEY, Preemption, VictimState, next_headroom_turn};
use ebbtide_model::{EvacuationCause, Seconds};
use ebbtide_nova_cloud::PlannedVictim;
use ebbtide_runtime::{clock, ids};

/// What became of victims that were planned ahead of demand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AheadResult {
    /// The evacuations of so many have begun.
    Begun(usize),
    /// None has begun: no agent reads from the queue of this host.
    NoAgent(String),
    /// None has begun: the cloud has changed since the plan, or another scheduler was faster.
    Overtaken,
}

/// Whether a victim of headroom is on its way. One that has ended in an open record is: its room
/// may not be given back yet. One that failed is not: nothing says when it goes.
fn is_leaving(state: &VictimState) -> bool {
    !matches!(state, VictimState::Failed { .. } | VictimState::Spared)
}

/// How long after the end of an evacuation Nova may still delete what the server held. The agent
/// reports a server as gone when Nova has deleted it, and its compute tells Placement after that.
const GIVING_UP: Seconds = Seconds(60);

impl Evacuations {
    /// The next turn of headroom. `None`: victims of an earlier turn are leaving, on whatever
    /// scheduler, or Placement still has what one of them held.
    ///
    /// # Errors
    /// Those of the ledger and of Placement.
    pub(crate) async fn headroom_turn(&self) -> Result<Option<u64>, NovaServiceError> {
        let ledger = &self.shared.ledger;
        // Before the rows: what another scheduler writes in between has this turn.
        let last = ledger.last_request_key(HEADROOM_KEY).await?;
        let rows = ledger.rows_of_late(GIVING_UP.as_millis()).await?;
        let records = rows.iter().filter_map(read);
        let ahead = records.filter(|record| record.cause == EvacuationCause::Headroom);
        let (open, ended): (Vec<_>, Vec<_>) = ahead.partition(|record| !record.state.is_final());
        let mut leaving = open.iter().flat_map(|record| &record.victims);
        if leaving.any(|victim| is_leaving(&victim.state)) || self.any_still_holds(&ended).await? {
            return Ok(None);
        }
        Ok(Some(next_headroom_turn(last.as_deref())))
    }

    /// Whether Placement has something of a victim that Nova has deleted.
    async fn any_still_holds(&self, ended: &[Preemption]) -> Result<bool, NovaServiceError> {
        if ended.is_empty() {
            return Ok(false);
        }
        let facts = &self.shared.facts;
        facts.database.freshen().await;
        let placement = facts
            .providers
            .placement(EvacuationCause::Headroom.as_str());
        for victim in ended.iter().flat_map(|record| &record.victims) {
            let uuid = victim.server.0;
            if facts.read(|cloud| cloud.instance(uuid).is_none())
                && !placement.allocations(uuid).await?.allocations.is_empty()
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Begins the evacuation of victims that were planned after `turn` was read.
    ///
    /// # Errors
    /// Those of the ledger, of Placement, and of the bus to the agents.
    pub(crate) async fn evict_ahead(
        &self,
        planned: &[PlannedVictim],
        turn: u64,
    ) -> Result<AheadResult, NovaServiceError> {
        let facts = &self.shared.facts;
        let placement = facts
            .providers
            .placement(EvacuationCause::Headroom.as_str());
        let mut victims = Vec::with_capacity(planned.len());
        for planned in planned {
            let host = &planned.host.host;
            let queue = self.shared.prefix.agent(host)?;
            // The room of one victim may be worth nothing without that of the others.
            if !self.shared.bus.is_read(&queue).await? {
                return Ok(AheadResult::NoAgent(host.clone()));
            }
            let held = placement.allocations(planned.uuid).await?;
            let Some(victim) = super::victim(planned, &held) else {
                return Ok(AheadResult::Overtaken);
            };
            victims.push(victim);
        }
        // Reading all of them took its time.
        facts.database.freshen().await;
        let may_leave = facts.read(|cloud| {
            let mut planned = planned.iter();
            planned.all(|victim| cloud.may_leave(victim.uuid, &victim.host.host))
        });
        if !may_leave {
            return Ok(AheadResult::Overtaken);
        }
        let budgets = self.budgets().await?;
        let mut begun = 0;
        for (victim, turn) in victims.into_iter().zip(turn..) {
            let record = Preemption::ahead_of_demand(ids::new(), turn, victim, clock::now());
            let allowed = budgets.allow(&record);
            if !allowed || !self.begin_alone(record, &budgets).await? {
                break;
            }
            begun += 1;
        }
        Ok(match begun {
            0 => AheadResult::Overtaken,
            begun => AheadResult::Begun(begun),
        })
    }
}
