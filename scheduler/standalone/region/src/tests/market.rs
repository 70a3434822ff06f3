//! Prices follow supply and demand. Servers whose owners do not pay them are evacuated with the
//! same protocol as any victim.

use super::world::{SimulatedRegion, normal, spot, with};
use crate::{CreateFlavor, CreateServers, CreatedServers, DisableHost, PutAggregate, RegionConfig};
use ebbtide_market::MarketConfig;
use ebbtide_model::{
    Aggregate, AggregateId, EvacuationCause, Flavor, LifeEnd, Money, Seconds, ServerId,
    ServerStatus,
};

const EVERY: u32 = 60;

fn money(text: &str) -> Money {
    text.parse().expect("money")
}

/// A linear price from 0.10 to 1.00 that moves half of the difference every minute.
fn world(hosts: &[(&str, u64)]) -> SimulatedRegion {
    let market = MarketConfig {
        enabled: true,
        interval_seconds: Seconds(EVERY),
        steepness: 1,
        step_percent: 50,
        ..MarketConfig::default()
    };
    SimulatedRegion::with_config(
        hosts,
        RegionConfig {
            market,
            ..RegionConfig::default()
        },
    )
}

fn priced(world: &mut SimulatedRegion, vcpus: u32, specs: &[(&str, &str)]) -> Flavor {
    let mut all = vec![("ebbtide:price_per_hour", "1")];
    all.extend(specs);
    let flavor = with(&spot(vcpus), &all);
    world
        .command(CreateFlavor(flavor.clone()))
        .expect("a new flavor");
    flavor
}

fn buy(
    world: &mut SimulatedRegion,
    flavor: &Flavor,
    most: Option<&str>,
) -> Result<ServerId, String> {
    let create = CreateServers {
        quota: None,
        name: "bid".to_owned(),
        request: world.request(flavor, 1),
        external: false,
        max_price: most.map(money),
    };
    let reply = world.command(create);
    let reply = reply.map_err(|error| error.to_string())?;
    world.flush();
    match reply {
        CreatedServers::New { servers, .. } => Ok(servers[0].id),
        CreatedServers::Repeated(servers) => Err(format!("made before: {servers:?}")),
    }
}

fn price(world: &SimulatedRegion, flavor: &Flavor) -> String {
    world.region.price_of(flavor).to_string()
}

#[test]
fn a_price_rises_and_falls_with_what_is_taken_and_is_the_same_after_a_restart() {
    let mut world = world(&[("host-a", 4)]);
    let flavor = priced(&mut world, 1, &[]);
    world.run(EVERY);
    assert_eq!(price(&world, &flavor), "0.10");
    let all: Vec<ServerId> = (0..4)
        .map(|_| buy(&mut world, &flavor, None).expect("there is room"))
        .collect();
    world.run(EVERY);
    assert_eq!(price(&world, &flavor), "0.55");
    world.run(EVERY);
    assert_eq!(price(&world, &flavor), "0.775");
    world.restart_scheduler();
    assert_eq!(price(&world, &flavor), "0.775");
    for id in all {
        world.delete(id);
    }
    world.run(EVERY);
    assert_eq!(price(&world, &flavor), "0.4375");
    let last = world.region.flavor_prices()[0].last.clone();
    let point = last.expect("it was published");
    assert_eq!((point.supply, point.demand), (4, 0));
}

#[test]
fn the_first_price_follows_from_supply_and_demand_before_any_interval_is_over() {
    // Without hosts the price is the floor, and a low bid fails only because there is no host.
    let mut empty = world(&[]);
    let flavor = priced(&mut empty, 1, &[]);
    assert_eq!(price(&empty, &flavor), "0.10");
    buy(&mut empty, &flavor, Some("0.10")).expect("it is not the price that refuses it");
    empty.run(2 * EVERY);
    assert!(empty.database.prices.is_empty(), "nothing is known");
    let mut world = world(&[("host-a", 4)]);
    let flavor = priced(&mut world, 1, &[]);
    assert_eq!(price(&world, &flavor), "0.10");
    world.run(1);
    let last = |world: &SimulatedRegion, flavor: &Flavor| {
        let all = world.region.flavor_prices();
        let of = all.into_iter().find(|price| price.flavor == flavor.name);
        of.and_then(|price| price.last)
    };
    let first = last(&world, &flavor).expect("its host is there");
    assert_eq!((first.supply, first.demand), (4, 0));
    assert_eq!(first.price, money("0.10"));
    // Half of the places are taken when this flavor is created; its price does not wait for the
    // interval.
    for _ in 0..2 {
        buy(&mut world, &flavor, Some("0.10")).expect("it costs 0.10");
    }
    let late = priced(&mut world, 2, &[]);
    assert_eq!(price(&world, &late), "0.55");
    let refused = buy(&mut world, &late, Some("0.54")).expect_err("too little");
    assert!(refused.contains("costs 0.55 per hour now"), "{refused}");
    assert!(last(&world, &late).is_none());
    buy(&mut world, &late, Some("0.55")).expect("exactly the price");
    // The server is billed by that price, not by the flavor's base price.
    let point = last(&world, &late).expect("with its first server");
    assert_eq!((point.price, point.at), (money("0.55"), world.now));
    world.restart_scheduler();
    assert_eq!(price(&world, &late), "0.55", "not that of a full host");
}

#[test]
fn a_price_stays_while_no_host_is_heard_that_takes_the_flavor() {
    let mut world = world(&[("host-a", 4)]);
    let flavor = priced(&mut world, 1, &[("ebbtide:interruption", "stop")]);
    world.run(EVERY);
    let poor = buy(&mut world, &flavor, Some("0.50")).expect("it costs 0.10");
    world.run(40 * EVERY);
    let before = price(&world, &flavor);
    assert_eq!(before, "0.325", "a quarter is taken");
    world.broker_up = false;
    world.run(10 * EVERY);
    assert_eq!(price(&world, &flavor), before);
    world.broker_up = true;
    world.run(EVERY);
    assert_eq!(price(&world, &flavor), before);
    assert_eq!(world.status(poor), ServerStatus::Active);
}

#[test]
fn a_maximum_price_that_nothing_can_rise_above_is_said_to_have_no_effect() {
    let said =
        |world: &SimulatedRegion, flavor: &Flavor| world.region.idle_bid(flavor, money("0.05"));
    let mut market = world(&[]);
    let flavor = priced(&mut market, 1, &[]);
    assert_eq!(said(&market, &flavor), None);
    let unpriced = said(&market, &spot(1)).expect("it has no price");
    assert!(
        unpriced.contains("0.05 has no effect") && unpriced.contains("has no price"),
        "{unpriced}"
    );
    let none = SimulatedRegion::new(&[]);
    let words = said(&none, &flavor).expect("its price stays");
    assert!(
        words.contains("no market") && words.contains("costs 1.00"),
        "{words}"
    );
    assert!(said(&none, &spot(1)).is_some());
}

#[test]
fn normal_servers_take_supply_and_make_it_dearer() {
    let mut world = world(&[("host-a", 4)]);
    let flavor = priced(&mut world, 1, &[]);
    buy(&mut world, &flavor, None).expect("there is room");
    world.run(3 * EVERY);
    let before = money(&price(&world, &flavor));
    world.create(&normal(3));
    world.run(30 * EVERY);
    assert!(money(&price(&world, &flavor)) > before);
    assert_eq!(price(&world, &flavor), "1.00", "all that is left is taken");
}

#[test]
fn a_server_below_the_price_leaves_with_notice_and_resumes_when_the_price_falls() {
    let mut world = world(&[("host-a", 4)]);
    let flavor = priced(&mut world, 1, &[("ebbtide:interruption", "stop")]);
    world.run(EVERY);
    let poor = buy(&mut world, &flavor, Some("0.50")).expect("it costs 0.10");
    let rich: Vec<ServerId> = (0..3)
        .map(|_| buy(&mut world, &flavor, None).expect("there is room"))
        .collect();
    world.run(EVERY + 5);
    assert_eq!(price(&world, &flavor), "0.55");
    assert_eq!(world.status(poor), ServerStatus::Evacuating);
    let evacuation = world.evacuation(poor);
    assert_eq!(evacuation.cause, EvacuationCause::OutOfBid);
    assert_eq!(evacuation.grace, Seconds(30), "as any victim");
    world.run(40);
    assert_eq!(world.status(poor), ServerStatus::Stopped);
    let fault = world.server(poor).fault.as_ref().expect("it says why");
    assert!(fault.message.contains("costs more now"), "{fault:?}");
    let end = world.database.lives.values().map(|life| life.end).next();
    assert_eq!(end, Some(LifeEnd::OutOfBid));
    // There is capacity, but its owner does not pay the price.
    world.run(4 * EVERY);
    assert_eq!(world.status(poor), ServerStatus::Stopped);
    for id in rich {
        world.delete(id);
    }
    world.run(4 * EVERY);
    assert_eq!(world.status(poor), ServerStatus::Active);
}

#[test]
fn a_bid_below_the_price_is_refused_with_both_and_so_is_one_for_a_normal_flavor() {
    let mut world = world(&[("host-a", 4)]);
    let flavor = priced(&mut world, 1, &[]);
    world.run(EVERY);
    let refused = buy(&mut world, &flavor, Some("0.05")).expect_err("too little");
    assert!(
        refused.contains("costs 0.10 per hour now, above your maximum of 0.05"),
        "{refused}"
    );
    assert!(world.database.servers.is_empty());
    let refused = buy(&mut world, &normal(1), Some("9")).expect_err("not preemptible");
    assert!(refused.contains("not preemptible"), "{refused}");
    buy(&mut world, &flavor, Some("0.10")).expect("exactly the price");
}

#[test]
fn without_a_market_prices_are_those_of_the_flavors() {
    let mut world = SimulatedRegion::new(&[("host-a", 4)]);
    let flavor = priced(&mut world, 1, &[]);
    world.run(600);
    assert_eq!(price(&world, &flavor), "1.00");
    assert!(world.database.prices.is_empty());
    buy(&mut world, &flavor, Some("0.99")).expect_err("it costs 1.00");
}

#[test]
fn the_engine_is_told_what_owners_pay_at_most() {
    let mut world = world(&[("host-a", 4)]);
    let flavor = priced(&mut world, 1, &[]);
    world.run(EVERY);
    let id = buy(&mut world, &flavor, Some("0.42")).expect("it costs less");
    let other = buy(&mut world, &flavor, None).expect("there is room");
    let bid = |id| world.region.bid_of(world.server(id)).to_string();
    assert_eq!(
        (bid(id), bid(other)),
        ("0.42".to_owned(), "1.00".to_owned())
    );
}

#[test]
fn a_repeated_request_with_another_maximum_price_is_refused_and_the_same_is_answered() {
    let mut world = world(&[("host-a", 4)]);
    let flavor = priced(&mut world, 1, &[]);
    world.run(EVERY);
    let mut create = CreateServers {
        quota: None,
        name: "bid".to_owned(),
        request: world.request(&flavor, 1),
        external: false,
        max_price: Some(money("0.50")),
    };
    let ask = |world: &mut SimulatedRegion, create: &CreateServers| world.command(create.clone());
    assert!(matches!(
        ask(&mut world, &create),
        Ok(CreatedServers::New { .. })
    ));
    match ask(&mut world, &create) {
        Ok(CreatedServers::Repeated(servers)) => assert_eq!(servers[0].max_price, create.max_price),
        other => panic!("{other:?}"),
    }
    create.max_price = Some(money("0.60"));
    let error = ask(&mut world, &create).expect_err("another price is another request");
    assert!(error.to_string().contains("must be the same"), "{error}");
}

#[test]
fn places_are_counted_on_hosts_that_the_flavor_may_be_on() {
    let mut world = world(&[("host-a", 4), ("host-b", 4)]);
    let fast = Aggregate {
        id: AggregateId(uuid::Uuid::from_u128(1)),
        name: "fast".to_owned(),
        hosts: ["host-a".to_owned()].into(),
        metadata: [("disk".to_owned(), "ssd".to_owned())].into(),
    };
    let put = PutAggregate(fast);
    world.command(put).expect("an aggregate");
    let everywhere = priced(&mut world, 1, &[]);
    let demand = ("aggregate_instance_extra_specs:disk", "ssd");
    let picky = priced(&mut world, 2, &[demand]);
    for _ in 0..2 {
        buy(&mut world, &picky, None).expect("there is room");
    }
    world.run(EVERY);
    let points = world.region.flavor_prices();
    let of = |flavor: &Flavor| {
        let point = points.iter().find(|p| p.flavor == flavor.name);
        let last = point.and_then(|p| p.last.as_ref()).expect("it has a price");
        (last.supply, last.demand)
    };
    assert_eq!(of(&everywhere), (8, 4));
    assert_eq!(of(&picky), (2, 2), "all places that it can have are taken");
}

#[test]
fn an_outbid_server_leaves_a_disabled_host_too() {
    let mut world = world(&[("host-a", 4), ("host-b", 4)]);
    let flavor = priced(&mut world, 4, &[]);
    world.run(EVERY);
    let poor = buy(&mut world, &flavor, Some("0.12")).expect("it costs 0.10");
    world.run(5);
    let name = world.server(poor).host.clone().expect("it has one");
    let disabled = world.command(DisableHost {
        name,
        reason: "its fan is to be changed".to_owned(),
    });
    disabled.expect("it is there");
    buy(&mut world, &flavor, None).expect("there is room on the other");
    world.run(3 * EVERY);
    assert_eq!(world.status(poor), ServerStatus::Preempted);
    assert_eq!(world.evacuation(poor).cause, EvacuationCause::OutOfBid);
}
