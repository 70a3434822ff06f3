//! Past lives alone: what OpenStack mode uses of the tables of a [`Store`] for advice.
//!
//! Several schedulers find the same lives in Nova's databases and in the ledger, and each writes
//! what it finds. A life has the same key wherever it is found, so that it is there once.

use crate::batch::Batch;
use crate::store::Store;
use crate::{LifeFilter, PurgeKind, StoreError};
use ebbtide_model::{LifeEnd, PastLife, Timestamp};
use std::collections::BTreeSet;

/// Most keys in one list of a statement.
const CHUNK: usize = 200;

/// The past lives in a database. Cheap to clone; all clones share the connections.
#[derive(Debug, Clone)]
pub struct LifeStore {
    store: Store,
}

impl LifeStore {
    pub(crate) fn new(store: Store) -> Self {
        Self { store }
    }

    /// Writes lives in one transaction. An end by the provider replaces the known end of the same
    /// life; any other end is written only if the life is new, because Nova shows a victim as
    /// stopped or deleted like any other server. Lives that no database would give back as they
    /// are, are left out and returned as errors.
    ///
    /// # Errors
    /// Those of the database, for all of the lives. After `Unavailable` they may have been written:
    /// write them again.
    pub async fn record(&self, lives: &[PastLife]) -> Result<Vec<StoreError>, StoreError> {
        let (by_provider, others): (Vec<&PastLife>, Vec<&PastLife>) =
            lives.iter().partition(|life| is_by_provider(life.end));
        let mut known = self.known(&others).await?;
        known.extend(by_provider.iter().map(|life| life.key()));
        let news = others.into_iter().filter(|life| known.insert(life.key()));
        let written: Vec<&PastLife> = news.chain(by_provider).collect();
        let (batch, refused) = Batch::of_lives(&written, &self.store.inner.encoder);
        self.store.put_batch("past lives", batch).await?;
        Ok(refused)
    }

    /// The keys of those that are in the database.
    async fn known(&self, lives: &[&PastLife]) -> Result<BTreeSet<String>, StoreError> {
        let mut known = BTreeSet::new();
        for lives in lives.chunks(CHUNK) {
            let places = vec!["?"; lives.len()].join(", ");
            let sql = format!("SELECT id FROM lives WHERE id IN ({places})");
            let keys: Vec<sea_orm::Value> = lives.iter().map(|life| life.key().into()).collect();
            for row in self.store.query("past lives", &sql, keys).await? {
                let key = row.try_get_by_index(0);
                known.insert(key.map_err(|error| self.store.classify("past lives", error))?);
            }
        }
        Ok(known)
    }

    /// Lives, the latest launch first: [`Store::lives`].
    ///
    /// # Errors
    /// As [`Store::lives`].
    pub async fn lives(&self, filter: &LifeFilter) -> Result<Vec<PastLife>, StoreError> {
        self.store.lives(filter).await
    }

    /// Deletes lives that ended before a time, at most `limit`, oldest first, in small
    /// transactions. Several schedulers may do so at the same time. Returns how many were deleted.
    ///
    /// # Errors
    /// Those of the database; what was deleted until then stays deleted.
    pub async fn purge(&self, before: Timestamp, limit: u64) -> Result<u64, StoreError> {
        self.store.purge_some(PurgeKind::Lives, before, limit).await
    }
}

fn is_by_provider(end: LifeEnd) -> bool {
    match end {
        LifeEnd::Preempted | LifeEnd::MaxLifetime | LifeEnd::OutOfBid => true,
        LifeEnd::Deleted | LifeEnd::Stopped | LifeEnd::Lost => false,
    }
}
