//! Prices that follow supply and demand, requests below them, and servers whose owners do not pay
//! them.

use super::full_host::{victim, write};
use super::newcomer;
use super::preemptions::Stage;
use super::reader;
use super::what_if::{Clouds, Flavor, ServerRequest};
use crate::Tasks;
use crate::decisions::{DecisionOptions, Decisions};
use crate::evacuate::PreemptionDriver;
use crate::market::{MAX_PRICE_HINT, Market, MarketMaker};
use crate::preemption::{Preemption, PreemptionState};
use crate::select::Selector;
use ebbtide_harness::eventually;
use ebbtide_market::{MarketConfig, PriceRule};
use ebbtide_model::{EvacuationCause, Money, Seconds};
use ebbtide_nova_cloud::DecisionPlugins;
use ebbtide_nova_databases::{instance_uuid, quote};
use ebbtide_store::{DecisionStore, PriceFilter, StoreConfig};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// The price follows at once, and is made anew each second.
fn rule() -> PriceRule {
    let config = MarketConfig {
        enabled: true,
        interval_seconds: Seconds(1),
        step_percent: 100,
        ..MarketConfig::default()
    };
    PriceRule::new(config).unwrap()
}

fn money(text: &str) -> Money {
    text.parse().unwrap()
}

/// A scheduler's market over the database of the ledger.
struct Trader {
    market: Market,
    maker: MarketMaker,
    store: DecisionStore,
    tasks: Tasks,
}

impl Trader {
    async fn of(bench: &super::Bench, ledger: &str, preempting: &PreemptionDriver) -> Self {
        Self::with(bench, ledger, preempting, Some(rule())).await
    }

    async fn with(
        bench: &super::Bench,
        ledger: &str,
        preempting: &PreemptionDriver,
        rule: Option<PriceRule>,
    ) -> Self {
        let config = StoreConfig::new(ledger).unwrap();
        let store = DecisionStore::open(&config).await.unwrap();
        let options = DecisionOptions {
            store: config,
            scheduler: "scheduler-1".to_owned(),
            keep: None,
            queue: 10,
        };
        let tasks = Tasks::new(CancellationToken::new());
        let (facts, metrics) = (&bench.selector.facts, &bench.selector.metrics);
        let decisions = Decisions::start(Some(options), facts, &tasks, metrics);
        let market = Market::new(rule);
        let maker = MarketMaker::new(&market, facts, &decisions, preempting);
        eventually(super::LONG, async || {
            decisions
                .store()
                .map(drop)
                .ok_or("the database is not open")
        })
        .await;
        Self {
            market,
            maker,
            store,
            tasks,
        }
    }

    async fn prices(&self) -> Vec<(i64, Money)> {
        let all = self.store.prices().prices(&PriceFilter::default()).await;
        let all = all.unwrap().into_iter();
        all.map(|point| (point.at.as_millis(), point.price))
            .collect()
    }
}

impl Drop for Trader {
    fn drop(&mut self) {
        self.tasks.stop().cancel();
    }
}

/// A flavor of two VCPUs that costs 0.1.
async fn sells(bench: &super::Bench, more: &[(&str, &str)]) {
    let flavor = Flavor {
        preemptible: true,
        ..ServerRequest::normal(newcomer(1), 2).flavor()
    };
    bench.sells(&flavor).await;
    let all = [("ebbtide:price_per_hour", "0.1")];
    for (n, (key, value)) in all.iter().chain(more).enumerate() {
        let api = &bench.nova.api;
        let (id, key, value) = (format!("{}", n + 10), quote(api, key), quote(api, value));
        let row = [
            ("id", id.as_str()),
            ("flavor_id", "1"),
            ("key", &key),
            ("value", &value),
        ];
        api.insert("flavor_extra_specs", &row).await;
    }
}

fn ledger_url(bench: &super::Bench) -> String {
    format!("sqlite:{}", bench.file("ledger.db").display())
}

#[tokio::test]
async fn the_price_follows_demand_and_schedulers_agree_on_it() {
    let cloud = Clouds::of_hosts(1).await;
    sells(&cloud.bench, &[]).await;
    let url = ledger_url(&cloud.bench);
    let none = PreemptionDriver::default();
    let mut one = Trader::of(&cloud.bench, &url, &none).await;
    let mut two = Trader::of(&cloud.bench, &url, &none).await;
    assert!(one.maker.look().await.unwrap());
    assert!(two.maker.look().await.unwrap());
    // Before the market the flavor's own price, then the floor: nothing is taken.
    let prices = one.prices().await;
    assert_eq!(prices.last(), Some(&(0, money("0.1"))));
    assert_eq!(prices[0].1, money("0.01"));
    let reader = reader(&Selector {
        market: two.market.clone(),
        ..cloud.bench.selector.clone()
    });
    let shown = reader.prices(None).await.unwrap();
    assert_eq!(shown.len(), 1);
    let shown = &shown[0];
    assert_eq!(
        (shown.price, shown.base, shown.floor, shown.ceiling),
        (money("0.01"), money("0.1"), money("0.01"), money("0.1"))
    );
    for n in 1..=4 {
        cloud.runs(n, 1, 2, true, 1).await;
    }
    cloud.bench.look().await;
    let full = async || {
        one.maker.look().await.unwrap();
        let latest = one.prices().await[0].1;
        (latest == money("0.1")).then_some(()).ok_or(latest)
    };
    let mut full = full;
    eventually(super::LONG, async || full().await).await;
    // It reads the price at the beginning of its next interval at the latest.
    let flavor = flavor_of(&cloud).await;
    let mut agrees = async || {
        two.maker.look().await.unwrap();
        let price = two.market.flavor_price(&flavor).price;
        (price == money("0.1")).then_some(()).ok_or(price)
    };
    eventually(super::LONG, async || agrees().await).await;
    let mut times: Vec<i64> = two.prices().await.iter().map(|(at, _)| *at).collect();
    let all = times.len();
    times.dedup();
    assert_eq!(times.len(), all, "one price for each interval");
}

#[tokio::test]
async fn a_market_that_is_switched_off_leaves_the_price_of_the_flavor() {
    let cloud = Clouds::of_hosts(1).await;
    sells(&cloud.bench, &[]).await;
    let (url, none) = (ledger_url(&cloud.bench), PreemptionDriver::default());
    let mut on = Trader::of(&cloud.bench, &url, &none).await;
    assert!(on.maker.look().await.unwrap());
    let before = on.prices().await;
    assert_eq!(before[0].1, money("0.01"));
    let mut off = Trader::with(&cloud.bench, &url, &none, None).await;
    for _ in 0..2 {
        assert!(!off.maker.look().await.unwrap());
        let after = off.prices().await;
        assert_eq!((after.len(), after[0].1), (before.len() + 1, money("0.1")));
    }
}

async fn flavor_of(cloud: &Clouds) -> ebbtide_model::Flavor {
    let reader = reader(&cloud.bench.selector);
    reader.flavor("small", None).await.unwrap()
}

/// A request for a preemptible server with these values of the hint.
fn bid(values: Value) -> impl FnOnce(&mut Value) {
    move |spec: &mut Value| {
        let flavor = &mut spec["flavor"]["nova_object.data"];
        flavor["vcpus"] = json!(2);
        flavor["extra_specs"] = json!({
            "ebbtide:preemptible": "true",
            "ebbtide:price_per_hour": "0.1",
        });
        spec["scheduler_hints"] = json!({ MAX_PRICE_HINT: values });
    }
}

#[tokio::test]
async fn a_request_below_the_price_is_refused_with_the_reason_and_one_above_gets_its_host() {
    let mut cloud = Clouds::of_hosts(1).await;
    sells(&cloud.bench, &[]).await;
    let url = ledger_url(&cloud.bench);
    let mut trader = Trader::of(&cloud.bench, &url, &PreemptionDriver::default()).await;
    trader.maker.look().await.unwrap();
    cloud.bench.selector.market = trader.market.clone();
    for (n, values, why) in [
        (
            1,
            json!(["0.009"]),
            "costs 0.01 per hour now, above your maximum of 0.009",
        ),
        (2, json!(["cheap"]), MAX_PRICE_HINT),
        (3, json!(["0.1", "0.2"]), "give one price"),
    ] {
        let refused = cloud.bench.ask_for(newcomer(n), bid(values), false).await;
        let refused = refused.unwrap_err();
        assert_eq!(refused.class, "NoValidHost");
        assert!(
            refused.message.contains("EB-DOOR-066"),
            "{}",
            refused.message
        );
        assert!(refused.message.contains(why), "{}", refused.message);
    }
    let placed = cloud
        .bench
        .ask_for(newcomer(4), bid(json!(["0.01"])), false)
        .await;
    placed.expect("it pays the price");
    // The hint means nothing for a server whose price does not change.
    let normal = |spec: &mut Value| {
        spec["scheduler_hints"] = json!({ MAX_PRICE_HINT: ["0.2"] });
    };
    let refused = cloud.bench.ask_for(newcomer(5), normal, false).await;
    assert!(refused.unwrap_err().message.contains("is not preemptible"));
}

/// The conductor keeps the request of a server with its hints.
async fn asked_with(stage: &Stage, n: i64, most: &str) {
    let api = &stage.bench.nova.api;
    let spec = json!({
        "nova_object.name": "RequestSpec",
        "nova_object.data": {"scheduler_hints": {MAX_PRICE_HINT: [most]}},
    });
    let (id, uuid) = (n.to_string(), quote(api, &instance_uuid(n)));
    let spec = quote(api, &spec.to_string());
    let row = [
        ("id", id.as_str()),
        ("instance_uuid", &uuid),
        ("spec", &spec),
    ];
    api.insert("request_specs", &row).await;
}

/// The four servers of the host are of the flavor that is sold.
async fn priced(stage: &Stage) {
    let flavor = reader(&stage.bench.selector)
        .flavor("small", None)
        .await
        .unwrap();
    for n in 1..=4 {
        let nova = &stage.bench.nova;
        let text = ebbtide_nova_databases::flavor_json("true");
        let mut known: Value = serde_json::from_str(&text).unwrap();
        named(&mut known, &flavor.name, &flavor.id.to_string());
        let text = quote(&nova.cell, &known.to_string());
        let uuid = victim(n);
        let sql =
            format!("UPDATE instance_extra SET flavor = {text} WHERE instance_uuid = '{uuid}'");
        nova.cell.sql(&sql).await;
    }
}

#[tokio::test]
async fn a_server_whose_owner_does_not_pay_the_price_leaves_with_notice_and_once() {
    let mut stage = Stage::new().await;
    sells(&stage.bench, &[]).await;
    // The host is full, so an hour costs what the flavor says.
    asked_with(&stage, 1, "0.05").await;
    asked_with(&stage, 2, "0.1").await;
    asked_with(&stage, 3, "no price").await;
    priced(&stage).await;
    stage.bench.look().await;
    let url = ledger_url(&stage.bench);
    let preempting = stage.bench.selector.preempting.clone();
    let mut trader = Trader::of(&stage.bench, &url, &preempting).await;
    trader.maker.look().await.unwrap();
    let mut agent = stage.take_agent();
    let notice = agent.notice().await;
    assert_eq!(notice.server_id.0, victim(1));
    trader.maker.look().await.unwrap();
    let rows = stage.ledger.rows_of_late(3_600_000).await.unwrap();
    let records: Vec<Preemption> = rows
        .into_iter()
        .map(|row| serde_json::from_value(row.document).unwrap())
        .collect();
    assert_eq!(records.len(), 1, "{records:?}");
    assert_eq!(records[0].cause, EvacuationCause::OutOfBid);
    let sql = format!(
        "UPDATE instances SET deleted = id, host = NULL WHERE uuid = '{}'",
        victim(1)
    );
    stage.bench.nova.cell.sql(&sql).await;
    let freed = stage.bench.placement.model(|m| write(m, victim(1), &[]));
    assert_eq!(freed, 204);
    agent.gone(&notice).await;
    let end = stage.end_of(records[0].id).await;
    assert_eq!(end.state, PreemptionState::Done);
}

/// A flavor in Nova's words gets a name and an id.
fn named(flavor: &mut Value, name: &str, id: &str) {
    match flavor {
        Value::Object(fields) => {
            if fields.contains_key("flavorid") {
                fields.insert("flavorid".to_owned(), json!(id));
                fields.insert("name".to_owned(), json!(name));
            }
            fields.values_mut().for_each(|field| named(field, name, id));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| named(item, name, id)),
        _ => {}
    }
}

#[tokio::test]
async fn the_cost_module_of_lowest_bids_knows_what_owners_pay() {
    let mut stage = Stage::new().await;
    sells(&stage.bench, &[]).await;
    // All pay the price, which is at most 0.1, so the market ends none of them.
    for (n, most) in [(1, "0.3"), (2, "0.2"), (3, "0.12"), (4, "0.4")] {
        asked_with(&stage, n, most).await;
    }
    priced(&stage).await;
    stage.bench.look().await;
    let url = ledger_url(&stage.bench);
    let preempting = stage.bench.selector.preempting.clone();
    let mut trader = Trader::of(&stage.bench, &url, &preempting).await;
    trader.maker.look().await.unwrap();
    let lowest = DecisionPlugins {
        cost_module: "lowest_bid".to_owned(),
        ..DecisionPlugins::default()
    };
    let facts = stage.bench.selector.facts.clone();
    let done = facts.write(|cloud| cloud.set_plugins(lowest, None));
    done.unwrap();
    let mut agent = stage.take_agent();
    let notice = tokio::select! {
        notice = agent.notice() => notice,
        answer = stage.bench.ask(newcomer(1), 2) => panic!("the victim has no end: {answer:?}"),
    };
    assert_eq!(notice.server_id.0, victim(3));
}
