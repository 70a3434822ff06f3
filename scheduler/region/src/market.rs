//! What preemptible capacity costs, what owners pay at most, and servers whose owners do not pay the price. How prices are made
//! is in `prices`.

use crate::evacuate::Why;
use crate::transition::Transition;
use crate::{Region, RegionError};
use ebbtide_market::Rule;
use ebbtide_model::{
    EvacuationCause, Flavor, FlavorId, Money, PricePoint, Server, ServerId, ServerStatus, Timestamp,
};
use std::collections::{BTreeMap, BTreeSet};

/// What an hour of a flavor costs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlavorPrice {
    /// The flavor's name.
    pub flavor: String,
    /// Whether the market may change its price.
    pub preemptible: bool,
    /// The price now.
    pub price: Money,
    /// What the flavor says.
    pub base: Money,
    /// The lowest that it can be.
    pub floor: Money,
    /// The highest.
    pub ceiling: Money,
    /// The last change, if there was one.
    pub last: Option<PricePoint>,
}

/// What the region knows of its market.
#[derive(Debug, Default)]
pub(crate) struct Market {
    /// None without a market.
    pub(crate) rule: Option<Rule>,
    /// The last price of each flavor.
    pub(crate) prices: BTreeMap<FlavorId, PricePoint>,
    /// The last interval for which prices were made here.
    pub(crate) made_at: Timestamp,
    /// What the region was like (its improvements, its catalog) when flavors without a price were looked at last.
    pub(crate) opened_at: Option<(u64, u64)>,
    /// Who pays less than the price, and has not been told to go.
    outbid: BTreeSet<ServerId>,
}

impl Market {
    pub(crate) fn new(rule: Option<Rule>, prices: Vec<PricePoint>) -> Self {
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
    /// What an hour costs of each flavor that says what it costs, by name.
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

    /// What an hour of a flavor costs, and between which bounds.
    #[must_use]
    pub fn flavor_price(&self, flavor: &Flavor) -> FlavorPrice {
        let (base, price) = (base_of(flavor), self.price_of(flavor));
        let preemptible = flavor.is_preemptible();
        let rule = self.market.rule.as_ref().filter(|_| preemptible);
        FlavorPrice {
            flavor: flavor.name.clone(),
            preemptible,
            price,
            base,
            floor: rule.map_or(price, |rule| rule.floor(base)),
            ceiling: rule.map_or(price, |rule| rule.ceiling(base)),
            last: rule.and_then(|_| self.market.prices.get(&flavor.id).cloned()),
        }
    }

    /// What an hour of a flavor costs now. Before its first price was made: the one that it would begin with.
    #[must_use]
    pub fn price_of(&self, flavor: &Flavor) -> Money {
        let published = self.published_price(flavor);
        let price = published.or_else(|| self.opening_price(flavor));
        price.unwrap_or_else(|| base_of(flavor))
    }

    /// The market's last price of a flavor, if it has made one.
    fn published_price(&self, flavor: &Flavor) -> Option<Money> {
        let published = self.market.prices.get(&flavor.id);
        let published = published.filter(|_| self.market.rule.is_some());
        published.map(|point| point.price)
    }

    /// What a server's owner pays for an hour at most; for those who did not say so what the market takes at most.
    pub(crate) fn bid_of(&self, server: &Server) -> Money {
        let base = base_of(&server.flavor);
        let most = || {
            let rule = self.market.rule.as_ref();
            rule.map_or(base, |rule| rule.ceiling(base))
        };
        server.max_price.unwrap_or_else(most)
    }

    /// Whether a server's owner pays the present price. Before there is one everybody does.
    pub(crate) fn pays(&self, server: &Server) -> bool {
        let price = || match self.market.rule {
            Some(_) => self.published_price(&server.flavor).unwrap_or_default(),
            None => base_of(&server.flavor),
        };
        server.max_price.is_none_or(|most| price() <= most)
    }

    /// Why a maximum price has no effect, for those who name one: no price can rise above it.
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
        // Who pays least may be chosen first all the same.
        let chosen_by = match self.engine.config().cost_module.as_str() {
            "lowest_bid" => " but for the choice of victims (cost module lowest_bid)",
            _ => "",
        };
        Some(format!(
            "the maximum price {most} has no effect{chosen_by}: {why}"
        ))
    }

    /// Refuses a request whose owner does not pay the present price.
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
            "an hour of flavor {:?} costs {price} now, and {most} was to be the most; pay more, or wait until it costs less (`ebbtide price history {}`)",
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

    /// Whose host is silent is told when it is heard again, and whose notice has failed after its rest.
    pub(crate) fn send_outbid_away(&mut self, transition: &mut Transition<'_>) {
        for id in std::mem::take(&mut self.market.outbid) {
            let Some(server) = self.servers.get(&id).cloned() else {
                continue;
            };
            if server.status != ServerStatus::Active || self.pays(&server) {
                continue;
            }
            let host = server.host.as_ref().and_then(|host| self.hosts.get(host));
            // On a host that is disabled, too: it only gets nobody new.
            let down_after = self.config.host_down_seconds.as_millis();
            let is_heard = host.is_some_and(|host| host.is_heard(transition.now, down_after));
            let rests = self
                .resting
                .get(&id)
                .is_some_and(|until| *until > transition.now);
            if !is_heard || rests {
                self.market.outbid.insert(id);
                continue;
            }
            let why = Why {
                cause: EvacuationCause::OutOfBid,
                preemptor_id: None,
                decision_id: None,
                cost: 0.0,
            };
            self.begin_evacuation(transition, server, why);
        }
    }
}

/// What a flavor says that an hour costs. It was read when the flavor was created.
pub(crate) fn base_of(flavor: &Flavor) -> Money {
    flavor
        .properties()
        .map(|p| p.price_per_hour)
        .unwrap_or_default()
}
