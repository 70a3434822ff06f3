//! Decisions, and what lay idle: what OpenStack mode uses of the tables of a [`Store`].
//!
//! Placement and Nova's databases hold the truth there, so no decision is the reason for a claim,
//! and none is read before another one is made. Writing them needs neither the lease nor a write
//! transaction: several schedulers write into one database at the same time, each its own rows.

use crate::batch::Batch;
use crate::store::Store;
use crate::{
    Backend, DecisionFilter, LifeStore, MAX_PAGE, PluginStore, PriceStore, PurgeKind, StoreConfig,
    StoreError,
};
use ebbtide_model::{Decision, DecisionId, IdleHour, ServerId, Timestamp};

/// The decisions in a database. Cheap to clone; all clones share the connections.
#[derive(Debug, Clone)]
pub struct DecisionStore {
    store: Store,
}

impl DecisionStore {
    /// Connects, and brings the database to this program's schema, as [`Store::open`] does.
    ///
    /// # Errors
    /// Those of [`Store::open`].
    pub async fn open(config: &StoreConfig) -> Result<Self, StoreError> {
        let store = Store::open(config).await?;
        Ok(Self { store })
    }

    /// Writes decisions in one transaction. Writing one again changes nothing. Those that no
    /// database would give back as they are, are left out and returned as errors.
    ///
    /// # Errors
    /// Those of the database, for all of the decisions. After `Unavailable` they may have been
    /// written: write them again.
    pub async fn put(&self, decisions: &[Decision]) -> Result<Vec<StoreError>, StoreError> {
        let (batch, refused) = Batch::of_decisions(decisions, &self.store.inner.encoder);
        self.store.put_batch("decisions", batch).await?;
        Ok(refused)
    }

    /// The past lives in the same database.
    #[must_use]
    pub fn lives(&self) -> LifeStore {
        LifeStore::new(self.store.clone())
    }

    /// The changes of plugins in the same database.
    #[must_use]
    pub fn plugins(&self) -> PluginStore {
        self.store.plugins()
    }

    /// The prices in the same database.
    #[must_use]
    pub fn prices(&self) -> PriceStore {
        PriceStore::new(self.store.clone())
    }

    /// One decision: [`Store::decision`].
    ///
    /// # Errors
    /// As [`Store::decision`].
    pub async fn decision(&self, id: DecisionId) -> Result<Option<Decision>, StoreError> {
        self.store.decision(id).await
    }

    /// The latest decision about a server: [`Store::decision_for_server`].
    ///
    /// # Errors
    /// As [`Store::decision_for_server`].
    pub async fn decision_for_server(&self, id: ServerId) -> Result<Option<Decision>, StoreError> {
        self.store.decision_for_server(id).await
    }

    /// Decisions, newest first: [`Store::decisions`].
    ///
    /// # Errors
    /// As [`Store::decisions`].
    pub async fn decisions(&self, filter: &DecisionFilter) -> Result<Vec<Decision>, StoreError> {
        self.store.decisions(filter).await
    }

    /// Writes what lay idle. Writing an hour again replaces it.
    ///
    /// # Errors
    /// Those of the database; `Unstorable` for a flavor's name that no database gives back.
    pub async fn put_idle_hours(&self, hours: &[IdleHour]) -> Result<(), StoreError> {
        let batch = Batch::of_idle_hours(hours, &self.store.inner.encoder)?;
        self.store.put_batch("idle hours", batch).await
    }

    /// What lay idle in the hours from `from` to `before`, oldest first.
    ///
    /// # Errors
    /// Those of the database, and `Corrupt`.
    pub async fn idle_hours(
        &self,
        from: Timestamp,
        before: Timestamp,
    ) -> Result<Vec<IdleHour>, StoreError> {
        let mut all: Vec<IdleHour> = Vec::new();
        loop {
            let marker = all.last().map(IdleHour::key);
            let page = self.store.idle_hours(from, before, marker).await?;
            let is_last = page.len() < MAX_PAGE as usize;
            all.extend(page);
            if is_last {
                all.reverse();
                return Ok(all);
            }
        }
    }

    /// Deletes decisions, and hours of idle capacity, from before a time, at most `limit` of each,
    /// oldest first, in small transactions. Several schedulers may do so at the same time. Returns
    /// how many decisions were deleted.
    ///
    /// # Errors
    /// Those of the database; what was deleted until then stays deleted.
    pub async fn purge(&self, before: Timestamp, limit: u64) -> Result<u64, StoreError> {
        self.store
            .purge_some(PurgeKind::IdleHours, before, limit)
            .await?;
        self.store
            .purge_some(PurgeKind::Decisions, before, limit)
            .await
    }

    /// Which kind of database it is.
    #[must_use]
    pub fn backend(&self) -> Backend {
        self.store.backend()
    }

    /// Closes all connections, for every clone.
    pub async fn close(&self) {
        self.store.close().await;
    }
}
