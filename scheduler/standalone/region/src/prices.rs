//! How the market sets prices.
//!
//! Supply and demand are counted in places: how many instances of the flavor fit on the hosts that
//! are up and accept it. Supply is the places beside the normal instances (state `h_n`). Demand is
//! the places that preemptible instances of any flavor occupy, plus the servers of this flavor that
//! wait to be resumed.
//!
//! A flavor's first price follows supply and demand at once. It is set as soon as a host is up that
//! accepts the flavor, or with the flavor's first server. While no such host is up, the supply is
//! unknown and the price does not change.

use crate::Region;
use crate::market::base_of;
use crate::transition::Transition;
use ebbtide_engine::{ClassUsage, HostUsage};
use ebbtide_market::{PriceRule, SupplyDemand, next_points};
use ebbtide_model::record::Change;
use ebbtide_model::{Flavor, FlavorId, HostHealth, Money, PricePoint, Timestamp};
use std::collections::BTreeMap;

/// The inputs of prices: usage of the hosts that are up, and servers that wait to be resumed.
struct PriceInputs<'r> {
    region: &'r Region,
    usages: BTreeMap<&'r str, HostUsage>,
    waiting: BTreeMap<FlavorId, u64>,
}

impl<'r> PriceInputs<'r> {
    fn of(region: &'r Region) -> Self {
        let up = region.hosts.iter();
        let up = up.filter(|(_, entry)| entry.health == HostHealth::Up);
        let usages = up
            .filter_map(|(name, _)| Some((name.as_str(), region.table.usage(name)?)))
            .collect();
        let mut waiting = BTreeMap::new();
        for server in region.servers.values().filter(|s| s.waits_to_come_back()) {
            *waiting.entry(server.flavor.id).or_default() += 1;
        }
        Self {
            region,
            usages,
            waiting,
        }
    }

    /// Supply and demand of a flavor; `None` if no host is up that accepts it.
    fn places(&self, flavor: &Flavor) -> Option<SupplyDemand> {
        // The extra specs were readable when the flavor was created.
        let properties = flavor.properties().ok()?;
        let hosts = self.region.table.hosts_that_take(flavor).ok()?;
        let usages = hosts.iter().filter_map(|host| self.usages.get(host));
        let usages: Vec<&HostUsage> = usages.collect();
        if usages.is_empty() {
            return None;
        }
        let places = |free: fn(&ClassUsage) -> i64| -> u64 {
            let all = usages.iter();
            all.map(|usage| usage.places(&properties.resources, free))
                .sum()
        };
        let supply = places(|class| class.free_normal);
        let taken = supply.saturating_sub(places(|class| class.free_full));
        Some(SupplyDemand {
            supply,
            demand: taken + self.waiting.get(&flavor.id).copied().unwrap_or(0),
        })
    }

    /// Price points to publish for a flavor; empty if its price does not change.
    fn next(&self, flavor: &Flavor, rule: &PriceRule, now: Timestamp) -> Vec<PricePoint> {
        let last = self.region.market.prices.get(&flavor.id);
        let places = self.places(flavor);
        places.map_or_else(Vec::new, |places| {
            next_points(rule, flavor, base_of(flavor), last, places, now)
        })
    }
}

impl Region {
    /// Sets prices at each interval, and evicts servers whose owners do not pay them.
    pub(crate) fn look_after_market(&mut self, transition: &mut Transition<'_>) {
        let Some(rule) = self.market.rule.clone() else {
            self.end_market(transition);
            return;
        };
        self.open_market(transition, &rule);
        let every = rule.interval().as_millis().max(1);
        let now = transition.now.as_millis();
        let interval = Timestamp::from_millis(now - now.rem_euclid(every));
        if self.market.made_at < interval {
            self.market.made_at = interval;
            self.make_prices(transition, &rule, interval);
            self.find_outbid();
        }
        self.evict_outbid(transition);
    }

    /// True if the market sets prices of a flavor.
    fn is_traded(&self, flavor: &Flavor) -> bool {
        flavor.is_preemptible()
            && base_of(flavor) > Money::default()
            && self.flavors.contains_key(&flavor.id)
    }

    /// True if the market has not set the first price of a flavor yet.
    fn is_unopened(&self, flavor: &Flavor) -> bool {
        !self.market.prices.contains_key(&flavor.id) && self.is_traded(flavor)
    }

    /// The first price of a flavor; `None` if it has a price already or is not traded. If no host
    /// that is up accepts the flavor, it has no supply to compare, and the price is the floor.
    pub(crate) fn opening_price(&self, flavor: &Flavor) -> Option<Money> {
        let rule = self.market.rule.as_ref()?;
        if !self.is_unopened(flavor) {
            return None;
        }
        let base = base_of(flavor);
        let places = PriceInputs::of(self).places(flavor);
        let price = |p: SupplyDemand| rule.next(None, base, p.supply, p.demand);
        Some(places.map_or_else(|| rule.floor(base), price))
    }

    /// Publishes the first price of a flavor, if it has none yet, because its first server is
    /// billed by it.
    pub(crate) fn open_price(&mut self, transition: &mut Transition<'_>, flavor: &Flavor) {
        let Some(rule) = self.market.rule.as_ref() else {
            return;
        };
        if self.is_unopened(flavor) {
            let made = PriceInputs::of(self).next(flavor, rule, transition.now);
            self.publish(transition, made);
        }
    }

    /// Publishes first prices. The region checks this again only after an improvement or a change
    /// of the catalog, such as a new host or flavor.
    fn open_market(&mut self, transition: &mut Transition<'_>, rule: &PriceRule) {
        let looked = Some((self.improvements, self.catalog));
        if self.market.opened_at == looked {
            return;
        }
        self.market.opened_at = looked;
        let unopened = self.flavors.values().filter(|f| self.is_unopened(f));
        let unopened: Vec<&Flavor> = unopened.collect();
        if unopened.is_empty() {
            return;
        }
        let known = PriceInputs::of(self);
        let made = unopened.iter();
        let made = made.flat_map(|flavor| known.next(flavor, rule, transition.now));
        let made = made.collect();
        self.publish(transition, made);
    }

    fn make_prices(
        &mut self,
        transition: &mut Transition<'_>,
        rule: &PriceRule,
        interval: Timestamp,
    ) {
        let known = PriceInputs::of(self);
        // Skips prices that another scheduler has set for this interval, and first prices set
        // within it.
        let is_made = |flavor: &Flavor| {
            let last = self.market.prices.get(&flavor.id);
            last.is_some_and(|point| point.at >= interval)
        };
        let due = self.flavors.values();
        let due = due.filter(|flavor| self.is_traded(flavor) && !is_made(flavor));
        let made = due.flat_map(|flavor| known.next(flavor, rule, transition.now));
        let made = made.collect();
        self.publish(transition, made);
    }

    fn publish(&mut self, transition: &mut Transition<'_>, made: Vec<PricePoint>) {
        for point in made {
            transition
                .effects
                .changes
                .push(Change::PutPrice(point.clone()));
            self.market.put(point);
        }
    }

    /// Ends a market that was switched off: prices return to what the flavors say.
    fn end_market(&mut self, transition: &mut Transition<'_>) {
        let published = self.market.prices.values();
        let changed = published.filter_map(|point| {
            let base = base_of(self.flavors.get(&point.flavor_id)?);
            (point.price != base).then(|| PricePoint {
                at: transition.now,
                price: base,
                ..point.clone()
            })
        });
        let changed = changed.collect();
        self.publish(transition, changed);
    }
}
