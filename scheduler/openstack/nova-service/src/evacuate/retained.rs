//! Victims that were kept, in the ledger.

use super::Evacuations;
use crate::comebacks::RetainedServer;
use crate::preemption::Victim;
use ebbtide_model::message::EvacuationEnd;
use ebbtide_model::{SavedState, Timestamp};
use ebbtide_store::ledger::{ComebackRow, LedgerError};
use serde_json::Value;
use uuid::Uuid;

/// How often the row of a victim is written anew that other schedulers write, too. They do when
/// its owner has started it: once.
const TRIES: u32 = 4;

/// The row of a server.
fn document(server: &RetainedServer) -> Value {
    // Plain data with string keys always has a JSON form.
    serde_json::to_value(server).unwrap_or_default()
}

impl Evacuations {
    /// Writes down that a victim was kept and is to come back. Safe to repeat. One that ended
    /// otherwise has no row.
    ///
    /// # Errors
    /// Those of the ledger.
    pub(super) async fn note_retained(
        &self,
        victim: &Victim,
        how: EvacuationEnd,
        at: Timestamp,
    ) -> Result<(), LedgerError> {
        let config = &self.shared.policy.comeback;
        let saved_state = match how {
            EvacuationEnd::Stopped => SavedState::Stopped,
            EvacuationEnd::Hibernated => SavedState::Hibernated,
            _ => return Ok(()),
        };
        if !config.enabled {
            return Ok(());
        }
        let server = victim.server.0;
        for _ in 0..TRIES {
            let row = self.shared.ledger.comeback(server).await?;
            let version = row.as_ref().map(|row| row.version);
            // One that cannot be read is replaced: it is of an earlier evacuation.
            let before: Option<RetainedServer> =
                row.and_then(|row| serde_json::from_value(row.document).ok());
            let is_written = before
                .as_ref()
                .is_some_and(|before| before.victim.evacuation == victim.evacuation);
            if is_written {
                return Ok(());
            }
            let kept = RetainedServer::new(victim.clone(), saved_state, before, at, config);
            if self.put_retained(server, version, &kept).await? {
                return Ok(());
            }
        }
        tracing::warn!(%server, "other schedulers write its row; it does not come back by itself");
        Ok(())
    }

    /// The rows of all servers that were kept.
    ///
    /// # Errors
    /// Those of the ledger.
    pub(crate) async fn retained_servers(&self) -> Result<Vec<ComebackRow>, LedgerError> {
        self.shared.ledger.comebacks().await
    }

    /// Writes the row of a server. `version`: the one that is changed. False: another scheduler has
    /// written it since.
    ///
    /// # Errors
    /// Those of the ledger.
    pub(crate) async fn put_retained(
        &self,
        server: Uuid,
        version: Option<i64>,
        kept: &RetainedServer,
    ) -> Result<bool, LedgerError> {
        let document = document(kept);
        let ledger = &self.shared.ledger;
        ledger.put_comeback(server, version, &document).await
    }

    /// Deletes the row of a server, unless another scheduler has written it since.
    ///
    /// # Errors
    /// Those of the ledger.
    pub(crate) async fn forget_retained(
        &self,
        server: Uuid,
        version: i64,
    ) -> Result<(), LedgerError> {
        self.shared.ledger.delete_comeback(server, version).await?;
        Ok(())
    }
}
