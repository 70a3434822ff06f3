//! Prices of preemptible capacity, and servers whose owners do not pay them.
//!
//! Supply and demand are counted in places for a flavor on hosts that may take servers: supply is how many there are beside the normal instances
//! (state `h_n`), demand how many of them preemptible instances of any flavor take, and how many servers of this one wait to come back. Which
//! hosts a flavor's traits or aggregates allow is not looked at.

use crate::evacuate::Why;
use crate::step::Step;
use crate::{Region, RegionError};
use ebbtide_engine::{ClassUsage, HostUsage};
use ebbtide_market::Rule;
use ebbtide_model::record::Change;
use ebbtide_model::{
    EvacuationCause, Flavor, FlavorId, HostHealth, Money, PricePoint, Resources, Server, ServerId,
    ServerStatus, Timestamp,
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
    rule: Option<Rule>,
    /// The last price of each flavor.
    prices: BTreeMap<FlavorId, PricePoint>,
    /// The last interval for which prices were made here.
    made_at: Timestamp,
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

    /// What an hour of a flavor costs now.
    #[must_use]
    pub fn price_of(&self, flavor: &Flavor) -> Money {
        let published = self.market.prices.get(&flavor.id);
        match published.filter(|_| self.market.rule.is_some()) {
            Some(point) => point.price,
            None => base_of(flavor),
        }
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

    /// Whether a server's owner pays the present price.
    pub(crate) fn pays(&self, server: &Server) -> bool {
        let price = || self.price_of(&server.flavor);
        server.max_price.is_none_or(|most| price() <= most)
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

    /// Makes prices at each interval, and sends those away whose owners do not pay them.
    pub(crate) fn look_after_market(&mut self, step: &mut Step<'_>) {
        let Some(rule) = self.market.rule.clone() else {
            self.end_market(step);
            return;
        };
        let every = rule.interval().as_millis().max(1);
        let now = step.now.as_millis();
        let interval = Timestamp::from_millis(now - now.rem_euclid(every));
        if self.market.made_at < interval {
            self.market.made_at = interval;
            self.make_prices(step, &rule, interval);
            self.find_outbid();
        }
        self.send_outbid_away(step);
    }

    fn make_prices(&mut self, step: &mut Step<'_>, rule: &Rule, interval: Timestamp) {
        let up = self.hosts.iter();
        let up = up.filter(|(_, entry)| entry.health == HostHealth::Up);
        let usages: BTreeMap<&str, HostUsage> = up
            .filter_map(|(name, _)| Some((name.as_str(), self.table.usage(name)?)))
            .collect();
        let waiting = self.waiting_by_flavor();
        let mut made = Vec::new();
        for flavor in self.flavors.values() {
            let base = base_of(flavor);
            let before = self.market.prices.get(&flavor.id);
            // Another scheduler was on duty when this interval began.
            let is_made = before.is_some_and(|point| point.at >= interval);
            if is_made || base == Money::default() || !flavor.is_preemptible() {
                continue;
            }
            let Ok(properties) = flavor.properties() else {
                continue;
            };
            // Its extra specs were read when it was created.
            let Ok(hosts) = self.table.hosts_that_take(flavor) else {
                continue;
            };
            let places = |free: fn(&ClassUsage) -> i64| -> u64 {
                let all = hosts.iter().filter_map(|host| usages.get(host));
                all.map(|usage| places_on(usage, &properties.resources, free))
                    .sum()
            };
            let supply = places(|class| class.free_normal);
            let taken = supply.saturating_sub(places(|class| class.free_full));
            let demand = taken + waiting.get(&flavor.id).copied().unwrap_or(0);
            let price = rule.next(before.map(|point| point.price), base, supply, demand);
            let point = |at, price| PricePoint {
                flavor_id: flavor.id,
                flavor: flavor.name.clone(),
                at,
                price,
                supply,
                demand,
            };
            if before.is_none() {
                // What it cost while there was no market, for bills.
                made.push(point(Timestamp::default(), base));
            }
            if before.is_none_or(|point| point.price != price) {
                made.push(point(step.now, price));
            }
        }
        self.publish(step, made);
    }

    fn publish(&mut self, step: &mut Step<'_>, made: Vec<PricePoint>) {
        for point in made {
            step.effects.changes.push(Change::PutPrice(point.clone()));
            self.market.put(point);
        }
    }

    /// A market that was switched off leaves prices behind: they are what flavors say again.
    fn end_market(&mut self, step: &mut Step<'_>) {
        let published = self.market.prices.values();
        let changed = published.filter_map(|point| {
            let base = base_of(self.flavors.get(&point.flavor_id)?);
            (point.price != base).then(|| PricePoint {
                at: step.now,
                price: base,
                ..point.clone()
            })
        });
        let changed = changed.collect();
        self.publish(step, changed);
    }

    fn waiting_by_flavor(&self) -> BTreeMap<FlavorId, u64> {
        let mut waiting = BTreeMap::new();
        for server in self.servers.values().filter(|s| s.waits_to_come_back()) {
            *waiting.entry(server.flavor.id).or_default() += 1;
        }
        waiting
    }

    fn find_outbid(&mut self) {
        let bids = self.servers.values().filter(|s| s.max_price.is_some());
        let outbid = bids.filter(|s| s.status == ServerStatus::Active && !s.external);
        self.market.outbid = outbid
            .filter(|s| s.is_preemptible() && !self.pays(s))
            .map(|s| s.id)
            .collect();
    }

    /// Whose host is silent is told when it is heard again, and whose notice has failed after its rest.
    fn send_outbid_away(&mut self, step: &mut Step<'_>) {
        for id in std::mem::take(&mut self.market.outbid) {
            let Some(server) = self.servers.get(&id).cloned() else {
                continue;
            };
            if server.status != ServerStatus::Active || self.pays(&server) {
                continue;
            }
            let host = server.host.as_ref().and_then(|host| self.hosts.get(host));
            let is_up = host.is_some_and(|host| host.health == HostHealth::Up);
            let rests = self.resting.get(&id).is_some_and(|until| *until > step.now);
            if !is_up || rests {
                self.market.outbid.insert(id);
                continue;
            }
            let why = Why {
                cause: EvacuationCause::OutOfBid,
                preemptor_id: None,
                decision_id: None,
                cost: 0.0,
            };
            self.begin_evacuation(step, server, why);
        }
    }
}

/// What a flavor says that an hour costs. It was read when the flavor was created.
fn base_of(flavor: &Flavor) -> Money {
    flavor
        .properties()
        .map(|p| p.price_per_hour)
        .unwrap_or_default()
}

/// How many instances that take this fit into what is free on a host.
fn places_on(usage: &HostUsage, takes: &Resources, free: fn(&ClassUsage) -> i64) -> u64 {
    let of_class = takes.iter().filter(|(_, amount)| *amount > 0);
    let places = of_class.map(|(class, amount)| {
        let known = usage.classes.iter().find(|known| known.class == *class);
        let free = known.map_or(0, |known| u64::try_from(free(known)).unwrap_or(0));
        free / amount
    });
    places.min().unwrap_or(0)
}
