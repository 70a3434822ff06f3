//! Servers that were stopped or shelved come back when there is room ([ADR 54]).
//!
//! The rules are those of a standalone region ([`ebbtide_evacuation::ResumeQueue`]). What is kept
//! is a row of the ledger: every scheduler looks, and the one that writes first resumes a server.
//!
//! - **A stopped server** returns on its host. The scheduler claims in Placement what the server
//!   held before, because Nova asks for nothing at a start, and then starts it.
//! - **A shelved server** returns on any host. The scheduler asks itself what a request for it
//!   would get. If that is a host with room to spare, it unshelves the server, and Nova's own
//!   request decides.
//! - **No server leaves for it**, and no headroom shrinks for it.
//!
//! [ADR 54]: ../../../../../docs/development/adr/0054-servers-come-back-through-novas-api.md

mod record;
mod resume;
mod unshelving;

pub(crate) use self::record::RetainedServer;
#[cfg(test)]
pub(crate) use self::record::RetainedState;

use self::record::RetainedChange;
use crate::Tasks;
use crate::error::NovaServiceError;
use crate::evacuate::Evacuations;
use crate::headroom::ReservedHeadroom;
use crate::metrics::Metrics;
use crate::nova_api::ServerActions;
use crate::select::Selector;
use ebbtide_evacuation::{ComebackConfig, ResumeQueue};
use ebbtide_model::ServerId;
use ebbtide_nova_cloud::RetainedServerState;
use ebbtide_runtime::clock;
use ebbtide_runtime::task::pause;
use ebbtide_store::ledger::{ComebackRow, LedgerError};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// Pause between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// A server that was kept, and the version of its row.
#[derive(Debug, Clone)]
struct RetainedRow {
    version: i64,
    server: RetainedServer,
}

/// Resumes servers.
pub(crate) struct ResumeController {
    selector: Selector,
    actions: Arc<dyn ServerActions>,
    config: ComebackConfig,
    headroom: ReservedHeadroom,
    metrics: Metrics,
    queue: ResumeQueue,
    rows: BTreeMap<ServerId, RetainedRow>,
}

/// Looks regularly for servers that can come back.
pub(crate) fn start(mut comebacks: ResumeController, tasks: &Tasks) {
    let stop = tasks.stop().clone();
    tasks.spawn("comebacks", async move {
        while pause(&stop, LOOK_EVERY).await {
            if let Err(error) = comebacks.look().await {
                tracing::warn!(code = error.code(), "no server comes back now: {error}");
            }
        }
    });
}

impl ResumeController {
    pub(crate) fn new(
        selector: &Selector,
        actions: Arc<dyn ServerActions>,
        config: ComebackConfig,
        headroom: ReservedHeadroom,
        metrics: &Metrics,
    ) -> Self {
        Self {
            selector: selector.for_what_ifs(),
            actions,
            config,
            headroom,
            metrics: metrics.clone(),
            queue: ResumeQueue::default(),
            rows: BTreeMap::new(),
        }
    }

    /// Looks at every server that was kept, and resumes those that are due and fit.
    ///
    /// # Errors
    /// Those of the ledger and of Nova's databases.
    pub(crate) async fn look(&mut self) -> Result<(), NovaServiceError> {
        // Without its ledger the scheduler knows of none.
        let Some(evacuations) = self.selector.preempting.get().cloned() else {
            return Ok(());
        };
        self.read(&evacuations).await?;
        if self.rows.is_empty() {
            self.metrics.waiting_servers(0);
            return Ok(());
        }
        self.selector.facts.database.freshen().await;
        for id in self.rows.keys().copied().collect::<Vec<_>>() {
            self.follow(&evacuations, id).await?;
        }
        self.resume_all(&evacuations).await?;
        let waiting = self.rows.values().filter(|row| row.server.waits()).count();
        self.metrics.waiting_servers(waiting);
        Ok(())
    }

    /// Reads the rows of all schedulers.
    async fn read(&mut self, evacuations: &Evacuations) -> Result<(), LedgerError> {
        let found = evacuations.retained_servers().await?;
        let before = std::mem::take(&mut self.rows);
        for row in found {
            if let Some((id, row)) = readable(row) {
                self.rows.insert(id, row);
            }
        }
        for id in before.keys().filter(|id| !self.rows.contains_key(id)) {
            self.queue.put(*id, None);
        }
        for (id, row) in &self.rows {
            // A server whose row is as it was keeps its pause.
            let known = before.get(id).map(|known| known.version);
            if known != Some(row.version) {
                self.queue.put(*id, Some(row.server.entry()));
            }
        }
        Ok(())
    }

    /// Takes in what Nova shows of a server.
    async fn follow(
        &mut self,
        evacuations: &Evacuations,
        id: ServerId,
    ) -> Result<(), NovaServiceError> {
        let Some(mut row) = self.rows.get(&id).cloned() else {
            return Ok(());
        };
        let seen = self.seen(id.0).await?;
        let (now, server) = (clock::now(), &mut row.server);
        let change = server.observe(seen, now, &self.config);
        match change {
            RetainedChange::Unchanged => return Ok(()),
            RetainedChange::Over => {
                evacuations.forget_retained(id.0, row.version).await?;
                self.forget(id);
                return Ok(());
            }
            RetainedChange::Resumed => {
                self.metrics.comeback("resumed");
                let facts = &self.selector.facts;
                let host = facts.read(|cloud| cloud.retained_server(id.0)?.host.map(str::to_owned));
                tracing::info!(server = %id, host, "the server runs again");
            }
            RetainedChange::StartedByOwner => {
                self.metrics.comeback("started_by_owner");
                self.claim_for_owner(server).await;
            }
            RetainedChange::Failed => {
                self.metrics.comeback("failed");
                tracing::warn!(
                    code = "EB-DOOR-067",
                    server = %id,
                    not_before = %server.comeback.not_before,
                    "Nova did not start the server; it is tried again"
                );
                self.give_back(server).await;
            }
        }
        self.write(evacuations, id, row).await?;
        Ok(())
    }

    /// What Nova shows of a server; `None`: it is deleted. One that is not in memory may be in a
    /// cell that has not answered yet.
    async fn seen(&self, server: Uuid) -> Result<Option<RetainedServerState>, NovaServiceError> {
        let facts = &self.selector.facts;
        let known = facts.read(|cloud| cloud.retained_server(server).map(|view| view.state));
        if known.is_some() {
            return Ok(known);
        }
        let (nova, uuid) = (facts.database.nova(), server.to_string());
        let Some(cell) = nova.instance_cell(&uuid).await? else {
            return Ok(None);
        };
        let row = nova.cell(&cell)?.instance(&uuid).await?;
        Ok(row
            .filter(|row| !row.deleted)
            .map(|_| RetainedServerState::Busy))
    }

    /// Writes the row of a server. False: another scheduler has written it since; then this look
    /// leaves the server alone.
    async fn write(
        &mut self,
        evacuations: &Evacuations,
        id: ServerId,
        row: RetainedRow,
    ) -> Result<bool, LedgerError> {
        let written = evacuations
            .put_retained(id.0, Some(row.version), &row.server)
            .await?;
        if !written {
            self.forget(id);
            return Ok(false);
        }
        self.queue.put(id, Some(row.server.entry()));
        let row = RetainedRow {
            version: row.version + 1,
            ..row
        };
        self.rows.insert(id, row);
        Ok(true)
    }

    fn forget(&mut self, id: ServerId) {
        self.rows.remove(&id);
        self.queue.put(id, None);
    }
}

/// A row; `None`, with a log entry, if it is unreadable.
fn readable(row: ComebackRow) -> Option<(ServerId, RetainedRow)> {
    match serde_json::from_value(row.document) {
        Ok(server) => {
            let version = row.version;
            Some((ServerId(row.server), RetainedRow { version, server }))
        }
        Err(error) => {
            tracing::error!(
                code = "EB-DOOR-068",
                server = %row.server,
                "the ledger's row of a server that was kept cannot be read: {error}; it does not \
                 come back by itself"
            );
            None
        }
    }
}
