//! Prices of preemptible capacity, owners' maximum prices, and servers whose owners do not pay the
//! price. `prices` sets the prices.

use crate::evacuate::EvacuationReason;
use crate::transition::Transition;
use crate::{Region, RegionError};
use ebbtide_market::{FlavorPrice, PriceRule};
use ebbtide_model::{
    EvacuationCause, Flavor, FlavorId, Money, PricePoint, Server, ServerId, ServerStatus, Timestamp,
};
use std::collections::{BTreeMap, BTreeSet};

/// The state of the market.
#[derive(Debug, Default)]
pub(crate) struct Market {
    /// `None` without a market.
    pub(crate) rule: Option<PriceRule>,
    /// The last price of each flavor.
    pub(crate) prices: BTreeMap<FlavorId, PricePoint>,
    /// The last interval for which this scheduler set prices.
    pub(crate) made_at: Timestamp,
    /// The generation counters (improvements, catalog) at the last search for flavors without a
    /// price.
    pub(crate) opened_at: Option<(u64, u64)>,
    /// Servers whose owners pay less than the price and that have no notice yet.
    outbid: BTreeSet<ServerId>,
}

impl Market {
    pub(crate) fn new(rule: Option<PriceRule>, prices: Vec<PricePoint>) -> Self {
        Self {
            rule,
            prices: prices.into_iter().map(|p| (p.flavor_id, p)).collect(),
            ..Self::default()
        }
    }

    pub(crate) fn put(&mut self, point: PricePoint) {
        self.prices.insert(point.flavor_id, point);
    }
}

impl Region {
    /// Whether prices follow supply and demand.
    #[must_use]
    pub fn has_market(&self) -> bool {
        self.market.rule.is_some()
    }

    /// The price of each flavor that has one, by flavor name.
    #[must_use]
    pub fn flavor_prices(&self) -> Vec<FlavorPrice> {
        let priced = self
            .flavors
            .values()
            .filter(|f| base_of(f) > Money::default());
        let mut all: Vec<FlavorPrice> = priced.map(|flavor| self.flavor_price(flavor)).collect();
        all.sort_by(|a, b| a.flavor.cmp(&b.flavor));
        all
    }

    /// The price of a flavor and its limits.
    #[must_use]
    pub fn flavor_price(&self, flavor: &Flavor) -> FlavorPrice {
        let rule = self.market.rule.as_ref();
        let last = self.market.prices.get(&flavor.id);
        FlavorPrice::new(flavor, base_of(flavor), self.price_of(flavor), rule, last)
    }

    /// The present price of a flavor for an hour. Before its first price was set: the price that it
    /// would start with.
    #[must_use]
    pub fn price_of(&self, flavor: &Flavor) -> Money {
        let published = self.published_price(flavor);
        let price = published.or_else(|| self.opening_price(flavor));
        price.unwrap_or_else(|| base_of(flavor))
    }

    /// The last price that the market has set for a flavor.
    fn published_price(&self, flavor: &Flavor) -> Option<Money> {
        let published = self.market.prices.get(&flavor.id);
        let published = published.filter(|_| self.market.rule.is_some());
        published.map(|point| point.price)
    }

    /// The maximum price of a server's owner; without one, the highest price that the market can
    /// ask.
    pub(crate) fn bid_of(&self, server: &Server) -> Money {
        let base = base_of(&server.flavor);
        let most = || {
            let rule = self.market.rule.as_ref();
            rule.map_or(base, |rule| rule.ceiling(base))
        };
        server.max_price.unwrap_or_else(most)
    }

    /// True if a server's owner pays the present price, or if there is no price yet.
    pub(crate) fn pays(&self, server: &Server) -> bool {
        let price = || match self.market.rule {
            Some(_) => self.published_price(&server.flavor).unwrap_or_default(),
            None => base_of(&server.flavor),
        };
        server.max_price.is_none_or(|most| price() <= most)
    }

    /// Why a maximum price has no effect, because no price can rise above it; `None` if it has one.
    #[must_use]
    pub fn idle_bid(&self, flavor: &Flavor, most: Money) -> Option<String> {
        let base = base_of(flavor);
        let why = if base == Money::default() {
            format!("flavor {:?} has no price", flavor.name)
        } else if self.market.rule.is_none() {
            format!(
                "this region has no market: an hour of flavor {:?} costs {base}, whatever is wanted",
                flavor.name
            )
        } else {
            return None;
        };
        // The cost module may still select the server with the lowest maximum price first.
        let chosen_by = match self.engine.config().cost_module.as_str() {
            "lowest_bid" => " but for the choice of victims (cost module lowest_bid)",
            _ => "",
        };
        Some(format!(
            "the maximum price {most} has no effect{chosen_by}: {why}"
        ))
    }

    /// Refuses a request whose maximum price is below the present price.
    pub(crate) fn check_bid(
        &self,
        flavor: &Flavor,
        max_price: Option<Money>,
    ) -> Result<(), RegionError> {
        let Some(most) = max_price else {
            return Ok(());
        };
        if !flavor.is_preemptible() {
            let problem = format!(
                "flavor {:?} is not preemptible, so its price does not change: leave the maximum price out",
                flavor.name
            );
            return Err(RegionError::Conflict(problem));
        }
        let price = self.price_of(flavor);
        if price <= most {
            return Ok(());
        }
        Err(RegionError::Conflict(format!(
            "flavor {:?} costs {price} per hour now, above your maximum of {most}: raise the maximum, or wait until it costs less (`ebbtide price history {}`)",
            flavor.name, flavor.name
        )))
    }

    pub(crate) fn find_outbid(&mut self) {
        let bids = self.servers.values().filter(|s| s.max_price.is_some());
        let outbid = bids.filter(|s| s.status == ServerStatus::Active && !s.external);
        self.market.outbid = outbid
            .filter(|s| s.is_preemptible() && !self.pays(s))
            .map(|s| s.id)
            .collect();
    }

    /// Evicts the servers in `outbid`. A server on a silent host gets its notice when the host is
    /// heard again, and one whose evacuation failed gets it after its rest.
    pub(crate) fn evict_outbid(&mut self, transition: &mut Transition<'_>) {
        for id in std::mem::take(&mut self.market.outbid) {
            let Some(server) = self.servers.get(&id).cloned() else {
                continue;
            };
            if server.status != ServerStatus::Active || self.pays(&server) {
                continue;
            }
            let host = server.host.as_ref().and_then(|host| self.hosts.get(host));
            // Hosts that are disabled are included: disabling only keeps new servers away.
            let down_after = self.config.host_down_seconds.as_millis();
            let is_reachable =
                host.is_some_and(|host| host.is_reachable(transition.now, down_after));
            let rests = self.servers.rests(id, transition.now);
            if !is_reachable || rests {
                self.market.outbid.insert(id);
                continue;
            }
            let why = EvacuationReason::alone(EvacuationCause::OutOfBid);
            self.begin_evacuation(transition, server, why);
        }
    }
}

/// The price for an hour in a flavor's extra specs, which were readable when the flavor was
/// created.
pub(crate) fn base_of(flavor: &Flavor) -> Money {
    flavor
        .properties()
        .map(|p| p.price_per_hour)
        .unwrap_or_default()
}
