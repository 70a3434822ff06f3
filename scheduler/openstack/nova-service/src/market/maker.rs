//! Makes the prices of each interval, and ends servers whose owners do not pay them.

use super::bids::KnownBids;
use super::{Market, base_of};
use crate::Tasks;
use crate::decisions::Decisions;
use crate::error::NovaServiceError;
use crate::evacuate::{PreemptionDriver, RestingServers};
use crate::facts::Facts;
use crate::settings::LIVES_KEPT;
use ebbtide_engine::HostSummary;
use ebbtide_market::{PriceRule, SupplyDemand, next_points};
use ebbtide_model::{Flavor, HostHealth, Money, PricePoint, Seconds, Timestamp};
use ebbtide_nova_cloud::{PricedServer, flavor_view};
use ebbtide_runtime::clock;
use ebbtide_runtime::task::pause;
use ebbtide_store::PriceStore;
use ebbtide_store::ledger::LedgerError;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// Pause before prices that could not be made are tried again.
const RETRY: Duration = Duration::from_secs(5);
/// How often servers are looked for whose owners do not pay the price: new ones, and those that
/// could not have their notice before.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// How long after the beginning of an interval its prices may be made.
const LATEST: Seconds = Seconds(20);
/// Most prices that are deleted in one interval.
const MOST_PURGED: u64 = 1000;

/// What makes prices.
pub(crate) struct MarketMaker {
    market: Market,
    facts: Facts,
    decisions: Decisions,
    preempting: PreemptionDriver,
    bids: KnownBids,
    resting: RestingServers,
    /// The interval whose prices are made.
    made: Option<Timestamp>,
    /// The flavors that have prices, as of that interval.
    traded: Vec<Flavor>,
}

/// Makes prices for as long as the scheduler runs. Without a market it ends one that an earlier
/// configuration had.
pub(crate) fn start(
    market: &Market,
    facts: &Facts,
    decisions: &Decisions,
    preempting: &PreemptionDriver,
    tasks: &Tasks,
) {
    let mut maker = MarketMaker::new(market, facts, decisions, preempting);
    let stop = tasks.stop().clone();
    tasks.spawn("market", async move {
        loop {
            let wait = match maker.look().await {
                Ok(true) => LOOK_EVERY,
                Ok(false) => return,
                Err(error) => {
                    tracing::warn!(code = error.code(), "prices could not be made: {error}");
                    RETRY
                }
            };
            if !pause(&stop, wait).await {
                return;
            }
        }
    });
}

/// The beginning of the interval in which a time is.
fn interval_of(now: Timestamp, every: Seconds) -> Timestamp {
    let every = every.as_millis().max(1);
    Timestamp::from_millis(now.as_millis() - now.as_millis().rem_euclid(every))
}

/// Supply and demand of a flavor on the hosts that are up, by amounts; `None` if none is up.
fn places(hosts: &[HostSummary], flavor: &Flavor) -> Option<SupplyDemand> {
    let resources = flavor.properties().ok()?.resources;
    let up = hosts.iter().filter(|host| host.health == HostHealth::Up);
    let up: Vec<&HostSummary> = up.collect();
    if up.is_empty() {
        return None;
    }
    let all = |free: fn(&ebbtide_engine::ClassUsage) -> i64| -> u64 {
        let hosts = up.iter();
        hosts.map(|host| host.usage.places(&resources, free)).sum()
    };
    let supply = all(|class| class.free_normal);
    let demand = supply.saturating_sub(all(|class| class.free_full));
    Some(SupplyDemand { supply, demand })
}

impl MarketMaker {
    pub(crate) fn new(
        market: &Market,
        facts: &Facts,
        decisions: &Decisions,
        preempting: &PreemptionDriver,
    ) -> Self {
        Self {
            market: market.clone(),
            facts: facts.clone(),
            decisions: decisions.clone(),
            preempting: preempting.clone(),
            bids: KnownBids::default(),
            resting: RestingServers::default(),
            made: None,
            traded: Vec::new(),
        }
    }

    /// Makes or reads the prices of the present interval, and ends servers whose owners do not pay
    /// them. False: there is no market, and nothing is left to do.
    ///
    /// # Errors
    /// Those of the databases, the ledger, Placement, and the bus to the agents.
    pub(crate) async fn look(&mut self) -> Result<bool, NovaServiceError> {
        let Some(store) = self.decisions.store().map(|store| store.prices()) else {
            // Without a database there was no market either.
            return match self.market.is_open() || self.decisions.are_recorded() {
                true => Err(NovaServiceError::LedgerAway(
                    "the database of prices is not open yet".to_owned(),
                )),
                false => Ok(false),
            };
        };
        let Some(rule) = self.market.rule.clone() else {
            self.end_market(&store, clock::now()).await?;
            return Ok(false);
        };
        let now = clock::now();
        let interval = interval_of(now, rule.interval());
        if self.made != Some(interval) {
            self.traded = self.traded().await?;
            self.make_prices(&store, &rule, interval, now).await?;
            self.made = Some(interval);
            // As long as the lives that are billed by them.
            let purged = store.purge(now.minus(LIVES_KEPT), MOST_PURGED).await;
            purged.map_err(LedgerError::Store)?;
        }
        self.read_prices(&store).await?;
        self.end_outbid(&rule).await?;
        Ok(true)
    }

    /// The preemptible flavors that say what they cost.
    async fn traded(&self) -> Result<Vec<Flavor>, NovaServiceError> {
        let offered = self.facts.database.nova().flavors_for_sale().await?;
        let flavors = offered.iter().map(|offered| flavor_view(&offered.flavor));
        let mut all: Vec<Flavor> = flavors.collect();
        all.retain(|flavor| flavor.is_preemptible() && base_of(flavor) > Money::default());
        Ok(all)
    }

    /// Writes the prices of an interval near its beginning: later they would count for hours that
    /// have begun already. The first price of a flavor counts from now on.
    async fn make_prices(
        &self,
        store: &PriceStore,
        rule: &Arc<PriceRule>,
        interval: Timestamp,
        now: Timestamp,
    ) -> Result<(), NovaServiceError> {
        self.facts.database.freshen().await;
        let micros = now.as_millis().saturating_mul(1000);
        let hosts = self.facts.read(|cloud| cloud.host_summaries(micros));
        let is_late = interval.plus(LATEST) < now;
        let mut made = Vec::new();
        for flavor in &self.traded {
            let last = store.last(&flavor.name).await.map_err(LedgerError::Store)?;
            let at = match &last {
                Some(last) if is_late || last.at >= interval => continue,
                Some(_) => interval,
                None => now,
            };
            if let Some(places) = places(&hosts, flavor) {
                let base = base_of(flavor);
                made.extend(next_points(rule, flavor, base, last.as_ref(), places, at));
            }
        }
        Ok(store.publish(&made).await.map_err(LedgerError::Store)?)
    }

    /// Reads what counts: the prices in the database, whichever scheduler wrote them.
    async fn read_prices(&self, store: &PriceStore) -> Result<(), NovaServiceError> {
        for flavor in &self.traded {
            let last = store.last(&flavor.name).await.map_err(LedgerError::Store)?;
            if let Some(last) = last {
                self.market.put(PricePoint {
                    flavor_id: flavor.id,
                    ..last
                });
            }
        }
        Ok(())
    }

    /// Ends a market that was switched off: prices return to what the flavors say.
    async fn end_market(&self, store: &PriceStore, now: Timestamp) -> Result<(), NovaServiceError> {
        let mut made = Vec::new();
        for flavor in self.traded().await? {
            let last = store.last(&flavor.name).await.map_err(LedgerError::Store)?;
            let base = base_of(&flavor);
            made.extend(
                last.filter(|last| last.price != base)
                    .map(|last| PricePoint {
                        at: now,
                        price: base,
                        ..last
                    }),
            );
        }
        Ok(store.publish(&made).await.map_err(LedgerError::Store)?)
    }

    /// Tells cost modules what owners pay at most: without a maximum price, as much as the market
    /// can ask.
    fn tell_bids(&self, rule: &PriceRule, servers: &[PricedServer]) {
        let bid = |server: &PricedServer| {
            let own = self.bids.of(server);
            own.unwrap_or_else(|| rule.ceiling(server.price_per_hour))
        };
        let bids = servers.iter().map(|server| (server.uuid, bid(server)));
        let bids: HashMap<Uuid, Money> = bids.collect();
        if !self.facts.read(|cloud| cloud.has_bids(&bids)) {
            self.facts.write(|cloud| cloud.set_bids(bids));
        }
    }

    /// Begins the evacuation of the servers whose owners do not pay the present price. The rest
    /// waits for the next look if the scheduler stops or an interval begins, which may lower it.
    async fn end_outbid(&mut self, rule: &PriceRule) -> Result<(), NovaServiceError> {
        let Some(evacuations) = self.preempting.get() else {
            return Ok(());
        };
        self.facts.database.freshen().await;
        let servers: Vec<PricedServer> = self.facts.read(|cloud| cloud.priced_servers().collect());
        let nova = self.facts.database.nova();
        self.bids.follow(nova, &servers).await?;
        self.tell_bids(rule, &servers);
        self.resting.forget_old(clock::now());
        let outbid = servers.iter().filter(|server| {
            let published = self.market.last(server.flavor);
            let price = published.map(|last| last.price).unwrap_or_default();
            self.bids.of(server).is_some_and(|most| price > most)
        });
        for PricedServer { uuid: server, .. } in outbid {
            if self.resting.is_resting(*server) {
                continue;
            }
            match evacuations.end_outbid(*server).await {
                Ok(true) => {}
                Ok(false) => self.resting.begin(*server, clock::now()),
                Err(error) => {
                    self.resting.begin(*server, clock::now());
                    tracing::warn!(
                        code = error.code(),
                        %server,
                        "its owner does not pay the price, and its evacuation could not begin: {error}; it is tried again"
                    );
                }
            }
            let present = interval_of(clock::now(), rule.interval());
            if evacuations.is_stopping() || self.made != Some(present) {
                break;
            }
        }
        Ok(())
    }
}
