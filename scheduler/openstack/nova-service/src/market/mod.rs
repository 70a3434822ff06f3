//! Prices of preemptible flavors that follow supply and demand (`[ebbtide] market`, ADR 52), and
//! owners' maximum prices.
//!
//! The rule, the counting of places and the bills are those of a standalone region
//! (`ebbtide-market`). Prices are rows of the ledger's database: every scheduler makes those of an
//! interval, and the first one's count.

mod bids;
mod maker;

use self::bids::bid_of_server;
pub(crate) use self::bids::{MAX_PRICE_HINT, bid_of_request};
#[cfg(test)]
pub(crate) use self::maker::MarketMaker;
pub(crate) use self::maker::start;

use crate::error::NovaServiceError;
use ebbtide_market::{FlavorPrice, PriceRule};
use ebbtide_model::{Flavor, FlavorId, Money, PricePoint};
use ebbtide_nova::model::RequestSpec;
use ebbtide_nova_cloud::flavor_view;
use ebbtide_nova_db::NovaDb;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use uuid::Uuid;

/// The market as requests and the API see it. Cheap to clone. Without a rule prices are what
/// flavors say.
#[derive(Clone, Default)]
pub(crate) struct Market {
    rule: Option<Arc<PriceRule>>,
    /// The last price of each flavor, as this scheduler last read it.
    prices: Arc<RwLock<BTreeMap<FlavorId, PricePoint>>>,
}

/// What an hour of a flavor costs by its extra specs; 0 for one that says nothing or is wrong.
fn base_of(flavor: &Flavor) -> Money {
    let price = flavor
        .properties()
        .map(|properties| properties.price_per_hour);
    price.unwrap_or_default()
}

impl Market {
    pub(crate) fn new(rule: Option<PriceRule>) -> Self {
        Self {
            rule: rule.map(Arc::new),
            prices: Arc::default(),
        }
    }

    /// Whether prices follow supply and demand.
    pub(crate) fn is_open(&self) -> bool {
        self.rule.is_some()
    }

    fn last(&self, flavor: FlavorId) -> Option<PricePoint> {
        let prices = self.prices.read().unwrap_or_else(PoisonError::into_inner);
        prices.get(&flavor).cloned()
    }

    fn put(&self, point: PricePoint) {
        let mut prices = self.prices.write().unwrap_or_else(PoisonError::into_inner);
        prices.insert(point.flavor_id, point);
    }

    /// The price of a flavor and its limits. Before its first price it is what the flavor says.
    pub(crate) fn flavor_price(&self, flavor: &Flavor) -> FlavorPrice {
        let base = base_of(flavor);
        let rule = self.rule.as_deref().filter(|_| flavor.is_preemptible());
        let last = rule.and_then(|_| self.last(flavor.id));
        let price = last.as_ref().map_or(base, |last| last.price);
        FlavorPrice::new(flavor, base, price, rule, last.as_ref())
    }

    /// The present price of a preemptible flavor whose extra specs say `base`.
    pub(crate) fn price_now(&self, flavor: FlavorId, base: Money) -> Money {
        let last = self.rule.as_ref().and_then(|_| self.last(flavor));
        last.map_or(base, |last| last.price)
    }

    /// Whether a server's owner pays the present price.
    ///
    /// # Errors
    /// Those of Nova's databases.
    pub(crate) async fn pays(
        &self,
        nova: &NovaDb,
        server: Uuid,
        flavor: &Flavor,
    ) -> Result<bool, NovaServiceError> {
        if !self.is_open() {
            return Ok(true);
        }
        let most = bid_of_server(nova, server, flavor).await?;
        let price = self.flavor_price(flavor).price;
        Ok(most.is_none_or(|most| price <= most))
    }

    /// Refuses a request for new servers whose maximum price is below the present one.
    ///
    /// # Errors
    /// Why, for the request's owner.
    pub(crate) fn check_maximum_price(&self, spec: &RequestSpec) -> Result<(), String> {
        let flavor = flavor_view(&spec.flavor);
        let Some(most) = bid_of_request(spec, &flavor)? else {
            return Ok(());
        };
        let name = &flavor.name;
        if !flavor.is_preemptible() {
            return Err(format!(
                "EB-DOOR-066: flavor {name} is not preemptible, so its price does not change: leave \
                 the hint {MAX_PRICE_HINT} out"
            ));
        }
        let price = self.flavor_price(&flavor).price;
        if !self.is_open() || price <= most {
            return Ok(());
        }
        Err(format!(
            "EB-DOOR-066: flavor {name} costs {price} per hour now, above your maximum of {most}: \
             raise the maximum, or wait until it costs less"
        ))
    }
}
