//! Prices and bids: what some worlds have besides, and what must hold there.
//!
//! Everything comes from chance of its own, so that worlds without a market are as they were.

use super::world::RegionWorld;
use crate::random::WorldRng;
use crate::violation::Invariant;
use ebbtide_market::MarketConfig;
use ebbtide_market::billing::{BillableLife, Charge, hours};
use ebbtide_model::record::Change;
use ebbtide_model::{
    Evacuation, EvacuationCause, FlavorId, LifeEnd, Money, PastLife, PricePoint, Seconds, Server,
    ServerStatus, Timestamp,
};
use ebbtide_region::CreateFlavor;

/// From this seed on some worlds have a market.
pub const MARKETS_FROM: u64 = 20_000_000;
/// How many of them, in percent.
const MARKETS: u32 = 70;
/// What an hour of one VCPU costs by its flavor, in millionths.
const BASE: u64 = 100_000;

/// The market of a world, if it has one.
pub(super) fn market_of(seed: u64) -> Option<MarketConfig> {
    let mut chance = WorldRng::new(seed, 7);
    let has = seed >= MARKETS_FROM && chance.percent(MARKETS);
    has.then(|| MarketConfig {
        enabled: true,
        // Many intervals in a run, so that prices move while victims are on their way.
        interval_seconds: Seconds([3, 7, 20][chance.below(3) as usize]),
        floor_percent: 20,
        ceiling_percent: 200,
        steepness: [1, 2][chance.below(2) as usize],
        step_percent: [40, 100][chance.below(2) as usize],
    })
}

/// What tenants offer.
#[derive(Debug)]
pub(super) struct Bids {
    chance: WorldRng,
}

impl Bids {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            chance: WorldRng::new(seed, 8),
        }
    }

    /// What an hour of a flavor with so many VCPUs costs where the market is left alone.
    pub(super) fn base(vcpus: u32) -> Money {
        Money::from_micros(BASE * u64::from(vcpus))
    }

    /// The maximum price of a tenant: from the floor to the ceiling, in steps, so that prices
    /// sometimes equal bids exactly. `None`: the tenant pays any price.
    pub(super) fn next(&mut self, vcpus: u32) -> Option<Money> {
        let percent = u64::from(20 + 20 * self.chance.below(10));
        let bids = self.chance.percent(80);
        bids.then(|| Money::from_micros(Self::base(vcpus).micros() * percent / 100))
    }
}

impl RegionWorld {
    /// Flavors have prices only where the region knows them.
    pub(super) fn register_flavor(&mut self, flavor: &ebbtide_model::Flavor) {
        if self.config.market.enabled && !self.database.flavors.contains_key(&flavor.id) {
            self.command(CreateFlavor(flavor.clone()));
        }
    }

    /// What an hour of a flavor costs once the first `so_far` changes of a transaction are written.
    fn price_then(&self, flavor: FlavorId, changes: &[Change], so_far: usize) -> Option<Money> {
        let published = changes.iter().take(so_far).rev();
        let mut published = published.filter_map(|change| match change {
            Change::PutPrice(point) if point.flavor_id == flavor => Some(point.price),
            _ => None,
        });
        published.next().or_else(|| self.database.price_of(flavor))
    }

    /// Whether a server's owner pays less than the price at a change of a transaction. Without a
    /// price it is what the flavor says.
    fn is_outbid(&self, server: &Server, changes: &[Change], at: usize) -> bool {
        let price = self.price_then(server.flavor.id, changes, at);
        let price = price.unwrap_or_else(|| Bids::base(server.flavor.vcpus));
        self.config.market.enabled && server.max_price.is_some_and(|most| price > most)
    }

    /// Whether a victim may leave out of bid: only if its maximum is below the price.
    pub(super) fn leaves_out_of_bid(&self, evacuation: &Evacuation, changes: &[Change]) -> bool {
        let here = |c: &Change| matches!(c, Change::PutEvacuation(e) if e.id == evacuation.id);
        let at = changes.iter().position(here).unwrap_or(changes.len());
        let victim = self.database.server(evacuation.victim_id);
        // A preemptor may wait for the capacity by now: an evacuation that is under way serves any
        // server that needs it.
        victim.is_some_and(|victim| self.is_outbid(victim, changes, at))
    }

    /// What must hold of bids, prices and bills before a transaction is written.
    pub(super) fn check_market(&mut self, changes: &[Change]) {
        if !self.config.market.enabled {
            return;
        }
        for (at, change) in changes.iter().enumerate() {
            match change {
                Change::PutServer(server) => self.check_entry(server, changes, at),
                Change::PutPrice(point) => self.check_price(point),
                Change::PutLife(life) => self.check_life(life, changes),
                _ => {}
            }
        }
    }

    /// Checks that no server is admitted or comes back whose maximum price is below the price.
    fn check_entry(&mut self, server: &Server, changes: &[Change], at: usize) {
        let before = self.database.server(server.id);
        let back = server.status == ServerStatus::Building
            && before.is_some_and(Server::waits_to_come_back);
        // One that had been forgotten and is found is as it was when it was taken in; one in error
        // got no place.
        let taken_in = !matches!(server.status, ServerStatus::Active | ServerStatus::Error);
        let new = before.is_none() && taken_in;
        if (back || new) && self.is_outbid(server, changes, at) {
            let what = match back {
                true => "a server comes back that does not pay",
                false => "a server is taken in that does not pay",
            };
            self.fail(Invariant::NoThrashing, what.to_owned());
        }
    }

    /// Prices stay within bounds, and each is later than the one before: what is read anew is what
    /// was known.
    fn check_price(&mut self, point: &PricePoint) {
        let Some(flavor) = self.database.flavors.get(&point.flavor_id) else {
            let what = format!("a price of {}, which is unknown", point.flavor);
            return self.fail(Invariant::MemoryIsDurable, what);
        };
        let base = Bids::base(flavor.vcpus).micros();
        let price = point.price.micros();
        if price * 100 < base * 20 || price > base * 2 {
            let what = format!(
                "{} costs {}, which is out of bounds",
                point.flavor, point.price
            );
            self.fail(Invariant::Deterministic, what);
        }
        let last = self.database.prices.get(&point.flavor_id);
        let last = last.and_then(|line| line.last_key_value());
        if last.is_some_and(|(at, _)| *at >= point.at) {
            let what = format!(
                "a price of {} is not later than the one before",
                point.flavor
            );
            self.fail(Invariant::MemoryIsDurable, what);
        }
    }

    /// A life that ended out of bid is one whose server had to leave for that, and its bill says
    /// so.
    fn check_life(&mut self, life: &PastLife, changes: &[Change]) {
        let of_it =
            |e: &Evacuation| e.victim_id == life.server_id && e.cause == EvacuationCause::OutOfBid;
        let written = changes
            .iter()
            .any(|c| matches!(c, Change::PutEvacuation(e) if of_it(e)));
        let known = self
            .database
            .active
            .values()
            .chain(self.database.ended.values());
        if life.end == LifeEnd::OutOfBid && !written && !known.into_iter().any(of_it) {
            let what = "a life ended outbid without a notice".to_owned();
            self.fail(Invariant::NoEndForNothing, what);
        }
        let Some(flavor) = self
            .database
            .flavors
            .values()
            .find(|f| f.name == life.flavor)
        else {
            return;
        };
        let points = self.database.prices.get(&flavor.id);
        let points: Vec<PricePoint> = points
            .into_iter()
            .flat_map(|line| line.values().cloned())
            .collect();
        if points.is_empty() {
            return;
        }
        let billed = BillableLife {
            launched_at: life.launched_at,
            ended: Some((life.ended_at, life.end)),
            preemptible: life.preemptible,
            price_per_hour: life.price_per_hour,
        };
        let line = ebbtide_market::PriceLine::new(&points);
        let wrong = hours(&billed, Some(&line), life.ended_at).any(|hour| {
            // By their own words: the price at the beginning of the hour, and nothing for one that
            // the provider broke off.
            let begun = |point: &&PricePoint| point.at <= hour.from;
            let price = points.iter().rev().find(begun).map(|point| point.price);
            let whole = life.ended_at.millis_since(hour.from) >= 3_600_000;
            let owner = matches!(life.end, LifeEnd::Deleted | LifeEnd::Stopped);
            let due = match whole || owner {
                true => price.unwrap_or_default(),
                false => Money::default(),
            };
            hour.charged != due || (hour.charge == Charge::EndedByProvider) == (whole || owner)
        });
        if life.preemptible && wrong {
            let what = format!(
                "the bill of a life that ended {} is wrong",
                life.end.as_str()
            );
            self.fail(Invariant::ExactlyOnce, what);
        }
    }

    /// Whether a server's owner pays what it costs now.
    pub(super) fn pays_now(&self, server: &Server) -> bool {
        !self.is_outbid(server, &[], 0)
    }

    /// A server that stays although its maximum price is below the price.
    pub(super) fn stays_unpaid(&self) -> Option<String> {
        let mut servers = self.database.servers.values();
        let stays = servers.find(|s| {
            s.status == ServerStatus::Active
                && !s.external
                && s.is_preemptible()
                && !self.pays_now(s)
        });
        stays.map(|s| {
            format!(
                "{} does not pay and stays for ever",
                self.event_log.of(s.id.0)
            )
        })
    }

    /// The prices in memory are those that are durable.
    pub(super) fn check_prices(&mut self, who: usize) {
        let Some(region) = &self.schedulers[who].region else {
            return;
        };
        let known = region.flavor_prices().into_iter();
        let known = known.filter_map(|price| price.last);
        let mut memory: Vec<(FlavorId, Timestamp, Money)> =
            known.map(|p| (p.flavor_id, p.at, p.price)).collect();
        memory.sort_unstable();
        let durable = self.database.last_prices();
        let durable: Vec<(FlavorId, Timestamp, Money)> = durable
            .iter()
            .map(|p| (p.flavor_id, p.at, p.price))
            .collect();
        if memory != durable {
            let what = format!(
                "{} prices are known in memory, {} are durable, and they differ",
                memory.len(),
                durable.len()
            );
            self.fail(Invariant::MemoryIsDurable, what);
        }
    }
}
