//! Prices alone: what OpenStack mode uses of the tables of a [`Store`] for its market.
//!
//! Every scheduler makes the price of an interval. The first one's is the price: the key of a price
//! names its flavor and its time.

use crate::batch::Batch;
use crate::store::Store;
use crate::{PriceFilter, PurgeKind, StoreError};
use ebbtide_model::{PricePoint, Timestamp};
use std::collections::BTreeSet;

/// Most keys in one list of a statement.
const CHUNK: usize = 200;

/// The prices in a database. Cheap to clone; all clones share the connections.
#[derive(Debug, Clone)]
pub struct PriceStore {
    store: Store,
}

impl PriceStore {
    pub(crate) fn new(store: Store) -> Self {
        Self { store }
    }

    /// Writes prices in one transaction. A price whose flavor and time are there already stays as
    /// it is, except in the moment in which two schedulers look: then one of both is there.
    ///
    /// # Errors
    /// Those of the database; `Unstorable` for a flavor's name that no database gives back.
    pub async fn publish(&self, points: &[PricePoint]) -> Result<(), StoreError> {
        let known = self.known(points).await?;
        let news = points.iter().filter(|point| !known.contains(&point.key()));
        let batch = Batch::of_prices(news, &self.store.inner.encoder)?;
        self.store.put_batch("prices", batch).await
    }

    /// Deletes prices that another one had taken the place of before a time, at most `limit`,
    /// oldest first, in small transactions. Returns how many.
    ///
    /// # Errors
    /// Those of the database; what was deleted until then stays deleted.
    pub async fn purge(&self, before: Timestamp, limit: u64) -> Result<u64, StoreError> {
        self.store
            .purge_some(PurgeKind::Prices, before, limit)
            .await
    }

    /// Prices, the latest first: [`Store::prices`].
    ///
    /// # Errors
    /// As [`Store::prices`].
    pub async fn prices(&self, filter: &PriceFilter) -> Result<Vec<PricePoint>, StoreError> {
        self.store.prices(filter).await
    }

    /// The last price of a flavor, by its name.
    ///
    /// # Errors
    /// As [`Store::prices`].
    pub async fn last(&self, flavor: &str) -> Result<Option<PricePoint>, StoreError> {
        let filter = PriceFilter {
            flavor: Some(flavor.to_owned()),
            limit: 1,
            ..PriceFilter::default()
        };
        Ok(self.prices(&filter).await?.pop())
    }

    /// The keys of those that are in the database.
    async fn known(&self, points: &[PricePoint]) -> Result<BTreeSet<String>, StoreError> {
        let mut known = BTreeSet::new();
        for points in points.chunks(CHUNK) {
            let places = vec!["?"; points.len()].join(", ");
            let sql = format!("SELECT id FROM prices WHERE id IN ({places})");
            let keys: Vec<sea_orm::Value> = points.iter().map(|p| p.key().into()).collect();
            for row in self.store.query("prices", &sql, keys).await? {
                let key = row.try_get_by_index(0);
                known.insert(key.map_err(|error| self.store.classify("prices", error))?);
            }
        }
        Ok(known)
    }
}
