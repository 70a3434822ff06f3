//! Adoption of rows from schedulers that died and from earlier processes of this scheduler.

use super::{Evacuations, OwnedRow, document, read};
use crate::error::NovaServiceError;
use crate::preemption::RowOwnership;
use ebbtide_store::ledger::{LedgerError, LedgerHead, LedgerRow, UpdateResult};
use std::collections::HashMap;
use std::time::Duration;
use uuid::Uuid;

/// Interval of this scheduler's heartbeat and of its check of the other schedulers.
const BEAT_EVERY: Duration = Duration::from_secs(2);
/// Interval of the check for reports that other schedulers have written into this scheduler's
/// records.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Evacuations {
    /// Continues the records of an earlier process of this scheduler.
    pub(super) async fn adopt_own(&self) -> Result<(), NovaServiceError> {
        // Plans must not use victims of other schedulers' rows, either.
        self.freshen().await?;
        for row in self.shared.ledger.open_rows().await? {
            // The start may be retried. Rows that the first try has begun stay with it.
            if row.owner.name == self.shared.owner.name && !self.shared.begun.contains(row.id) {
                self.adopt(row).await?;
            }
        }
        Ok(())
    }

    pub(super) fn look_after_others(&self) {
        let all = self.clone();
        self.shared
            .tasks
            .repeat("ledger-look", LOOK_EVERY, move || {
                let all = all.clone();
                async move {
                    if let Err(error) = all.look().await {
                        tracing::warn!(code = error.code(), "{error}");
                    }
                }
            });
        let all = self.clone();
        self.shared
            .tasks
            .repeat("ledger-beat", BEAT_EVERY, move || {
                let all = all.clone();
                async move {
                    match all.beat().await {
                        Ok(()) => {}
                        // Another process with the same name owns the rows now. Two processes with
                        // one name would take each other's rows.
                        Err(error @ LedgerError::Superseded { .. }) => {
                            crate::fail(&all.shared.tasks, error);
                        }
                        Err(error) => tracing::warn!(code = error.code(), "{error}"),
                    }
                }
            });
    }

    /// Writes a heartbeat and adopts rows whose scheduler died.
    pub(crate) async fn beat(&self) -> Result<(), LedgerError> {
        self.shared.ledger.beat(&self.shared.owner).await?;
        let owners = self.shared.ledger.owners().await?;
        let standing = |head: &LedgerHead| {
            if head.owner == self.shared.owner {
                let has_driver = self.shared.begun.contains(head.id);
                return RowOwnership::Mine { has_driver };
            }
            let seen = owners
                .iter()
                .find(|seen| seen.owner.name == head.owner.name);
            RowOwnership::Of {
                lives: seen.is_some_and(|seen| seen.owner.epoch == head.owner.epoch),
                silent_millis: seen.map_or(i64::MAX, |seen| seen.silent_millis),
            }
        };
        self.freshen().await?;
        for head in self.heads().await?.open {
            if self.shared.tasks.stop().is_cancelled() {
                break;
            }
            if standing(&head).is_orphan()
                && let Some(row) = self.shared.ledger.row(head.id).await?
                && !row.finished
            {
                self.adopt(row).await?;
            }
        }
        Ok(())
    }

    /// Tells the drivers the versions of their rows, with one query for all of them.
    async fn look(&self) -> Result<(), LedgerError> {
        let driven: Vec<Uuid> = self.driven(|driven| driven.keys().copied().collect());
        if driven.is_empty() {
            return Ok(());
        }
        let heads = self.heads().await?.open;
        let versions: HashMap<Uuid, i64> = heads
            .into_iter()
            .filter(|head| head.owner == self.shared.owner)
            .map(|head| (head.id, head.version))
            .collect();
        self.driven(|all| {
            for id in driven {
                if let Some(driven) = all.get(&id) {
                    // A row that is not among this scheduler's rows belongs to another scheduler or
                    // is finished. Both count as newer than any version.
                    let version = versions.get(&id).copied().unwrap_or(i64::MAX);
                    driven.version.send_replace(version);
                }
            }
        });
        Ok(())
    }

    /// Takes a row over and drives it, unless another scheduler was faster.
    pub(crate) async fn adopt(&self, row: LedgerRow) -> Result<(), LedgerError> {
        let (id, owner) = (row.id, row.owner.clone());
        if let Some(held) = self.take_over(row, None).await? {
            tracing::warn!(
                code = "EB-DOOR-025",
                preemption = %id,
                state = held.record.state.as_str(),
                "going on with what {} left behind", owner.name
            );
            self.spawn_driver(held, None, None);
        }
        Ok(())
    }

    /// Makes this scheduler the owner of a row, and `answerer` the one that answers its caller if
    /// that changes. `None`: another scheduler was faster, or the row is unreadable.
    pub(super) async fn take_over(
        &self,
        row: LedgerRow,
        answerer: Option<&String>,
    ) -> Result<Option<OwnedRow>, LedgerError> {
        let owner = &self.shared.owner;
        if owner.is_superseded_by(&row.owner) {
            // The row shows this before the next heartbeat does. Two processes with one name would
            // take the row from each other as fast as they can write.
            let error = LedgerError::Superseded {
                name: owner.name.clone(),
                epoch: owner.epoch,
            };
            crate::fail(&self.shared.tasks, error);
            return Ok(None);
        }
        let Some(mut record) = read(&row) else {
            return Ok(None);
        };
        record.adopt(answerer.map(String::as_str));
        let beginning = self.shared.begun.with(row.id);
        let adopted = self
            .shared
            .ledger
            .adopt(row.id, row.version, owner, &document(&record))
            .await?;
        Ok(match adopted {
            UpdateResult::Updated(version) => Some(OwnedRow {
                id: row.id,
                version,
                record,
                _beginning: beginning,
            }),
            UpdateResult::Lost => None,
        })
    }
}
