//! Evacuations for the owner of a reclaimed host, and their withdrawal when the host is returned.

use super::{CountedBudgets, Evacuations};
use crate::error::NovaServiceError;
use crate::preemption::Preemption;
use crate::reclaims::ReclaimRecord;
use ebbtide_model::{EvacuationCause, Reclaim, ServerId};
use ebbtide_runtime::task::pause;
use ebbtide_runtime::{clock, ids};
use ebbtide_store::ledger::{Ledger, LedgerError, ReclaimRow};
use std::collections::BTreeSet;
use std::time::Duration;

/// Interval of checking whether the hosts of evacuations under way are still reclaimed: one query
/// for all of them, and only while there are any.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Evacuations {
    /// The ledger, where reclaims are.
    pub(crate) fn ledger(&self) -> &Ledger {
        &self.shared.ledger
    }

    /// The reclaims that are in force or about to end, by host. One that cannot be read is left
    /// out, with a log entry.
    ///
    /// # Errors
    /// Those of the ledger.
    pub(crate) async fn reclaim_rows(
        &self,
    ) -> Result<Vec<(ReclaimRow, ReclaimRecord)>, LedgerError> {
        let rows = self.shared.ledger.reclaims().await?.into_iter();
        let read = |row: ReclaimRow| Some((ReclaimRecord::read(&row)?, row));
        Ok(rows
            .filter_map(read)
            .map(|(record, row)| (row, record))
            .collect())
    }

    /// Whether an agent reads from the queue of a host.
    ///
    /// # Errors
    /// Those of the bus.
    pub(crate) async fn is_heard(&self, host: &str) -> Result<bool, NovaServiceError> {
        let queue = self.shared.prefix.agent(host)?;
        Ok(self.shared.bus.is_read(&queue).await?)
    }

    /// Begins the evacuation of a server for the owner of its host. False: not now.
    ///
    /// # Errors
    /// Those of Nova's databases, the ledger, Placement, and the bus to the agents.
    pub(crate) async fn end_for_owner(
        &self,
        server: ServerId,
        cost: f64,
        host: &str,
        reclaim: &Reclaim,
        budgets: &CountedBudgets,
    ) -> Result<bool, NovaServiceError> {
        self.look_for_start(server.0).await?;
        let known = self.shared.facts.read(|cloud| {
            let may = cloud.may_be_reclaimed(server.0, host);
            let since = cloud.lives_since(server.0).filter(|_| may)?;
            Some((since, cloud.victim(server.0, cost)?))
        });
        let Some((lives_since, mut planned)) = known else {
            return Ok(false);
        };
        planned.grace = reclaim.grace(planned.grace, clock::now());
        // A server that was spared may leave again for a later reclaim, in the same life.
        let since = lives_since.max(reclaim.since);
        let owner = reclaim.terms.owner.clone();
        let cause = EvacuationCause::Reclaim;
        self.end(Some(planned), cause, budgets, |victim| {
            Preemption::of_reclaim(ids::new(), owner, victim, since, clock::now())
        })
        .await
    }

    /// Spares the victims of hosts that were returned, whichever scheduler returned them.
    pub(super) fn watch_reclaims(&self) {
        let all = self.clone();
        let stop = self.shared.tasks.stop().clone();
        self.shared.tasks.spawn("reclaims", async move {
            while pause(&stop, LOOK_EVERY).await {
                if let Err(error) = all.look_at_reclaims().await {
                    tracing::warn!(code = error.code(), "{error}");
                }
            }
        });
    }

    /// Tells the drivers of evacuations whose hosts are not reclaimed any more.
    pub(crate) async fn look_at_reclaims(&self) -> Result<(), LedgerError> {
        let any = self.driven(|driven| {
            let mut open = driven.values();
            open.any(|driven| driven.reclaimed.is_some() && !driven.gone_sent)
        });
        if !any {
            return Ok(());
        }
        let rows = self.reclaim_rows().await?;
        let in_force = rows.into_iter().filter(|(_, record)| !record.is_ending());
        let in_force: BTreeSet<String> = in_force.map(|(row, _)| row.host).collect();
        self.driven(|driven| {
            for driven in driven.values_mut().filter(|driven| !driven.gone_sent) {
                if let Some(host) = &driven.reclaimed
                    && !in_force.contains(host)
                {
                    driven.gone_sent = driven.gone.send(()).is_ok();
                }
            }
        });
        Ok(())
    }
}
