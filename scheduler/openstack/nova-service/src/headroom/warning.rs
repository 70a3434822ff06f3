//! Early warnings: servers that would have to leave next learn of it before their notice.
//!
//! A warning is a key in the metadata of a server, as the agents' notices are. Nova's databases say
//! which servers have one, so that all schedulers know the same.

use crate::error::NovaServiceError;
use crate::nova_api::{ActionResult, ServerActions};
use ebbtide_model::{Seconds, Timestamp};
use ebbtide_nova_db::NovaDb;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use uuid::Uuid;

/// The key; its value is when the server was warned, RFC 3339.
pub(crate) const REBALANCE: &str = "ebbtide:rebalance";
/// A warning stays for so long after the server was last among the next: plans change with every
/// request.
const KEEP: Seconds = Seconds(300);
/// How often it is read anew which servers have a warning: no index of Nova's has the keys.
const READ_EVERY: Seconds = Seconds(600);
/// Most changes of one look.
const MOST_CHANGES: usize = 50;

/// The warnings of a cloud.
pub(super) struct EarlyWarnings {
    actions: Arc<dyn ServerActions>,
    /// Servers with a warning, and when they were last among the next.
    warned: BTreeMap<Uuid, Timestamp>,
    read_at: Option<Timestamp>,
}

impl EarlyWarnings {
    pub(super) fn new(actions: Arc<dyn ServerActions>) -> Self {
        Self {
            actions,
            warned: BTreeMap::new(),
            read_at: None,
        }
    }

    /// Warns the servers that would be next, and takes back warnings of those that have not been
    /// so for a while.
    ///
    /// # Errors
    /// Those of Nova's databases.
    pub(super) async fn tell(
        &mut self,
        nova: &NovaDb,
        next: &BTreeSet<Uuid>,
        now: Timestamp,
    ) -> Result<(), NovaServiceError> {
        self.read(nova, now).await?;
        let mut left = MOST_CHANGES;
        for server in next {
            if let Some(seen) = self.warned.get_mut(server) {
                *seen = now;
            } else if left > 0 {
                left -= 1;
                self.set(*server, Some(now)).await;
            }
        }
        let old = self
            .warned
            .iter()
            .filter(|(_, seen)| seen.plus(KEEP) <= now);
        let old: Vec<Uuid> = old.map(|(server, _)| *server).take(left).collect();
        for server in old {
            self.set(server, None).await;
        }
        Ok(())
    }

    async fn read(&mut self, nova: &NovaDb, now: Timestamp) -> Result<(), NovaServiceError> {
        if self.read_at.is_some_and(|at| at.plus(READ_EVERY) > now) {
            return Ok(());
        }
        let mut known = Vec::new();
        for cell in nova.enabled_cells() {
            known.extend(cell.servers_with_metadata(REBALANCE).await?);
        }
        let known = known.iter().filter_map(|uuid| uuid.parse().ok());
        let before = std::mem::take(&mut self.warned);
        let seen = |uuid: Uuid| (uuid, before.get(&uuid).copied().unwrap_or(now));
        self.warned = known.map(seen).collect();
        self.read_at = Some(now);
        Ok(())
    }

    /// Sets or takes back a warning. One that Nova refuses is tried again after the databases were
    /// read anew.
    async fn set(&mut self, server: Uuid, at: Option<Timestamp>) {
        let value = at.map(|at| at.to_string());
        let done = self
            .actions
            .set_metadata(server, REBALANCE, value.as_deref());
        match (done.await, at) {
            (ActionResult::Taken, Some(at)) => {
                self.warned.insert(server, at);
                tracing::info!(%server, "headroom: it would have to leave next, and is warned");
            }
            (ActionResult::Taken, None) => {
                self.warned.remove(&server);
            }
            (ActionResult::Refused(why), Some(at)) => {
                // Counts as warned until the databases say otherwise: its owner may have no room
                // left in the metadata.
                self.warned.insert(server, at);
                tracing::debug!(%server, "headroom: it cannot be warned: {why}");
            }
            (ActionResult::Refused(why), None) => {
                self.warned.remove(&server);
                tracing::debug!(%server, "headroom: its warning stays: {why}");
            }
        }
    }
}
