//! The tables beside the ledger's own: decisions, past lives, prices, idle hours and plugins.
//!
//! They hold no claim, so nothing of Nova or Placement contradicts them. What can be wrong with a
//! row is that no scheduler can read it.

use super::compare::UnreadableRow;
use crate::error::NovaServiceError;
use ebbtide_live_plugins::stored_overrides;
use ebbtide_model::{PastLife, PricePoint, Timestamp};
use ebbtide_store::ledger::LedgerError;
use ebbtide_store::{
    DecisionFilter, DecisionStore, LifeFilter, MAX_PAGE, PriceFilter, StoreConfig, StoreError,
};

/// Decisions that are read, the newest: each is large, and there may be millions.
const MOST_DECISIONS: usize = 10_000;

/// The first row of each table that cannot be read.
///
/// # Errors
/// The database is unavailable or refuses access.
pub(super) async fn unreadable(
    config: &StoreConfig,
) -> Result<Vec<UnreadableRow>, NovaServiceError> {
    let store = DecisionStore::open(config).await;
    let store = store.map_err(LedgerError::Store)?;
    let found = read(&store).await;
    store.close().await;
    Ok(found.map_err(LedgerError::Store)?)
}

async fn read(store: &DecisionStore) -> Result<Vec<UnreadableRow>, StoreError> {
    let always = (Timestamp::from_millis(0), ebbtide_runtime::clock::now());
    let reads = [
        decisions(store).await,
        lives(store).await,
        prices(store).await,
        store.idle_hours(always.0, always.1).await.map(drop),
        stored_overrides(&store.plugins()).await.map(drop),
    ];
    let mut found = Vec::new();
    for read in reads {
        match read {
            Ok(()) => {}
            Err(StoreError::Corrupt { table, key, reason }) => {
                found.push(UnreadableRow { table, key, reason });
            }
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

async fn decisions(store: &DecisionStore) -> Result<(), StoreError> {
    let (mut filter, mut seen) = (DecisionFilter::default(), 0);
    loop {
        let page = store.decisions(&filter).await?;
        seen += page.len();
        filter.marker = page.last().map(|decision| decision.id);
        if page.len() < MAX_PAGE as usize || seen >= MOST_DECISIONS {
            return Ok(());
        }
    }
}

async fn lives(store: &DecisionStore) -> Result<(), StoreError> {
    let (lives, mut filter) = (store.lives(), LifeFilter::default());
    loop {
        let page = lives.lives(&filter).await?;
        filter.marker = page.last().map(PastLife::key);
        if page.len() < MAX_PAGE as usize {
            return Ok(());
        }
    }
}

async fn prices(store: &DecisionStore) -> Result<(), StoreError> {
    let (prices, mut filter) = (store.prices(), PriceFilter::default());
    loop {
        let page = prices.prices(&filter).await?;
        filter.marker = page.last().map(PricePoint::key);
        if page.len() < MAX_PAGE as usize {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ebbtide_model::{FlavorId, Money};
    use ebbtide_store::{PluginRow, PluginStore};

    #[tokio::test]
    async fn rows_in_order_are_read_and_the_first_wrong_one_of_a_table_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}/ledger", folder.path().display());
        let config = StoreConfig::new(&url).unwrap();
        let plugins = PluginStore::open(&config).await.unwrap();
        let put = async |name: &str, record: &str| {
            let row = PluginRow {
                name: name.to_owned(),
                record: record.to_owned(),
                digest: String::new(),
            };
            plugins.put(&row, None).await.unwrap();
        };
        put("racks", r#"{"multiplier":2.0}"#).await;
        let prices = DecisionStore::open(&config).await.unwrap().prices();
        let price = |at| PricePoint {
            flavor_id: FlavorId(uuid::Uuid::nil()),
            flavor: "small".to_owned(),
            at: Timestamp::from_millis(at),
            price: Money::default(),
            supply: 0,
            demand: 0,
        };
        // More than one page.
        let many: Vec<PricePoint> = (0..i64::from(MAX_PAGE) + 1).map(price).collect();
        prices.publish(&many).await.unwrap();
        assert_eq!(unreadable(&config).await.unwrap().len(), 0);
        put("wrong", "{").await;
        let found = unreadable(&config).await.unwrap();
        let found: Vec<(&str, &str)> = found
            .iter()
            .map(|row| (row.table.as_str(), row.key.as_str()))
            .collect();
        assert_eq!(found, [("plugins", "wrong")]);
    }
}
