//! Packets are dropped between network namespaces, in one direction or in both, for longer than
//! every heartbeat and timeout.

use super::kit::{
    LIMITS, audited, delete, flavors, hypervisor, insist, one_host, only_evacuation, runs_exactly,
};
use crate::kit::{create, request, until, until_evacuation};
use crate::scheduler_calls::{create_at, until_at};
use ebbtide_harness::hypervisor::in_private_network;
use ebbtide_harness::{Direction, Network, Postgres, RabbitMq, Signal, eventually};
use ebbtide_integration_tests::region::PATIENCE;
use ebbtide_integration_tests::{Peer, ProcessEnvironment, Region, RegionOptions};
use ebbtide_proto::v1;
use futures::future::join_all;
use std::net::Ipv4Addr;
use std::path::Path;
use uuid::Uuid;

const HOSTS: [&str; 2] = ["host-A", "host-B"];
const DIRECTIONS: [Direction; 3] = [Direction::Out, Direction::In, Direction::Both];

/// A broker that is not on loopback requires TLS unless this option allows plain text.
const BUS: &str = "insecure = true";

/// The URL of a server as it is reached from a network beside this one.
fn through(url: &str, gateway: Ipv4Addr) -> String {
    url.replace("127.0.0.1", &gateway.to_string())
}

/// A region whose two agents have a network each.
async fn two_hosts(broker: &RabbitMq, networks: &[Network; 2]) -> Region {
    let mut options = RegionOptions {
        hosts: HOSTS.map(str::to_owned).to_vec(),
        broker_url: Some(broker.url()),
        bus: BUS.to_owned(),
        // Given up after two seconds; limits for notices are over after nine.
        heartbeat_seconds: Some(1),
        ..one_host()
    };
    for (host, network) in HOSTS.iter().zip(networks) {
        let url = through(&broker.url(), network.gateway());
        options.agent_urls.insert((*host).to_owned(), url);
        let within = ProcessEnvironment::within(network);
        options.agents_in.insert((*host).to_owned(), within);
    }
    Region::start(options).await.unwrap()
}

/// Where a preemptor would go now.
async fn where_to(region: &Region) -> String {
    let what_if = v1::WhatIfRequest {
        request: Some(request("pet", 1)),
        ..Default::default()
    };
    let mut scheduler = region.scheduler().await.unwrap();
    let answer = scheduler.what_if(what_if).await.unwrap().into_inner();
    answer.decision.unwrap().placements[0].host.clone()
}

async fn an_agent_is_cut_off(broker: &RabbitMq, first: u8, direction: Direction) {
    let port = broker.port();
    let log = Path::new("/dev/null");
    let make = |n| Network::beside(n, &[port], log).unwrap();
    let networks = [make(first), make(first + 1)];
    let network = |host: &str| &networks[HOSTS.iter().position(|h| *h == host).unwrap()];
    let region = two_hosts(broker, &networks).await;
    flavors(&region).await;
    let (victims, _) = create(&region, "victim", request("victim", 2)).await;
    for victim in &victims {
        until(&region, &victim.id, "active").await;
    }
    let on = |host: &str| victims.iter().find(|v| v.host == host).unwrap().id.clone();

    // The test cuts the network before the claim and until the scheduler gives the notice up. The
    // preemptor goes to another host, and the victim stays.
    let refused = where_to(&region).await;
    network(&refused).cut(port, direction).unwrap();
    let pet = insist(&region, "pet", "pet", Uuid::from_u128(1)).await;
    assert_eq!(pet.host, refused, "{direction:?}");
    until_evacuation(&region, &on(&refused), "failed").await;
    let pet = until(&region, &pet.id, "active").await;
    assert_ne!(pet.host, refused, "{direction:?}");
    network(&refused).heal().unwrap();
    region.wait_for_hosts_up().await.unwrap();
    runs_exactly(&region, &refused, &[&on(&refused)]).await;
    runs_exactly(&region, &pet.host, &[&pet.id]).await;

    // In the grace period, and for less than anybody waits: the preemption goes on where it was.
    eventually(PATIENCE, async || {
        // A victim whose evacuation has failed rests for a second.
        match region_has_room_for_a_pet(&region).await {
            true => Ok(()),
            false => Err("no server can be preempted yet"),
        }
    })
    .await;
    let again = insist(&region, "again", "pet", Uuid::from_u128(2)).await;
    assert_eq!(again.host, refused, "{direction:?}");
    let notices = async || {
        let all = crate::kit::evacuations(&region).await;
        let its = all.into_iter().filter(|e| e.victim_id == on(&refused));
        its.map(|e| e.state).collect::<Vec<String>>()
    };
    eventually(PATIENCE, async || {
        let states = notices().await;
        match states.iter().any(|state| state == "draining") {
            true => Ok(()),
            false => Err(format!("{states:?}")),
        }
    })
    .await;
    let lost = || lost_connections(&region, &refused);
    let before = lost();
    network(&refused).cut(port, direction).unwrap();
    // Its agent has noticed, and has ended the victim all the same.
    eventually(PATIENCE, async || {
        let there = hypervisor(&region, &refused);
        match there.iter().any(|(id, _)| *id == on(&refused)) || lost() == before {
            true => Err(format!("{there:?}, lost {} connections", lost() - before)),
            false => Ok(()),
        }
    })
    .await;
    network(&refused).heal().unwrap();
    let again = until(&region, &again.id, "active").await;
    assert_eq!(again.host, refused, "{direction:?}");
    runs_exactly(&region, &refused, &[&again.id]).await;
    region.wait_for_hosts_up().await.unwrap();
    audited(&region).await;
}

/// How often an agent has said that its broker is away.
fn lost_connections(region: &Region, host: &str) -> usize {
    let log = region.agent_log(host);
    log.matches("lost the connection to the broker").count()
}

async fn region_has_room_for_a_pet(region: &Region) -> bool {
    let what_if = v1::WhatIfRequest {
        request: Some(request("pet", 1)),
        ..Default::default()
    };
    let mut scheduler = region.scheduler().await.unwrap();
    let answer = scheduler.what_if(what_if).await.unwrap().into_inner();
    answer.decision.unwrap().no_valid_host.is_none()
}

#[tokio::test]
async fn an_agent_that_is_cut_off_from_the_broker_in_any_direction_ends_no_victim_for_nothing() {
    let name = "killed::networks::an_agent_that_is_cut_off_from_the_broker_in_any_direction_ends_no_victim_for_nothing";
    if !in_private_network(name).unwrap() {
        return;
    }
    let broker = RabbitMq::start().await.unwrap();
    let lanes = (0u8..).zip(DIRECTIONS);
    join_all(lanes.map(|(n, direction)| an_agent_is_cut_off(&broker, 10 + 2 * n, direction))).await;
}

/// The one that is on duty is cut off; the other one is asked, and has to take over.
async fn a_scheduler_is_cut_off(broker: &RabbitMq, server: &Postgres, n: u8, direction: Direction) {
    let ports = [broker.port(), server.port()];
    let database = server.create_database(&format!("lane{n}")).await.unwrap();
    let network = Network::beside(20 + n, &ports, Path::new("/dev/null")).unwrap();
    let options = RegionOptions {
        broker_url: Some(broker.url()),
        scheduler_broker_url: Some(through(&broker.url(), network.gateway())),
        database_url: Some(through(&database, network.gateway())),
        database_options: "lease_seconds = 2\ntimeout_seconds = 3".to_owned(),
        bus: BUS.to_owned(),
        // Given up after two seconds; limits for notices are over after nine.
        heartbeat_seconds: Some(1),
        listen: network.address().to_string(),
        scheduler_in: ProcessEnvironment::within(&network),
        // Not on loopback only, and still for this test alone.
        sections: "[auth]\nallow_unauthenticated = true".to_owned(),
        region: LIMITS.to_owned(),
        ..one_host()
    };
    let region = Region::start(options).await.unwrap();
    flavors(&region).await;
    let config = std::fs::read_to_string(region.scheduler_config().unwrap()).unwrap();
    let beside = config
        .replace(&network.gateway().to_string(), "127.0.0.1")
        .replace(&network.address().to_string(), "127.0.0.1");
    let file = region.dir().join("second.toml");
    std::fs::write(&file, beside).unwrap();
    let second = Peer::start(region.dir(), &file, "second").await.unwrap();
    for (round, port) in (0u128..).zip(ports) {
        // The first scheduler must be on duty, because its network is cut off below.
        the_first_one_is_on_duty(&region, &second).await;
        let (victim, pet) = (Uuid::from_u128(10 + round), Uuid::from_u128(20 + round));
        let victim = insist(&region, "victim", "victim", victim).await.id;
        until(&region, &victim, "active").await;
        network.cut(port, direction).unwrap();
        let pet = create_at(&second, "pet", "pet", pet).await.id;
        until_at(&second, &pet, "active").await;
        runs_exactly(&region, "host-A", &[&pet]).await;
        network.heal().unwrap();
        until(&region, &pet, "active").await;
        let ended = only_evacuation(&region, &victim).await;
        assert_eq!(ended.state, "evacuated", "{direction:?}: {ended:?}");
        delete(&region, &pet).await;
        runs_exactly(&region, "host-A", &[]).await;
    }
    audited(&region).await;
}

/// The first one comes on duty while the second one stands still.
async fn the_first_one_is_on_duty(region: &Region, second: &Peer) {
    second.signal(Signal::Stop).unwrap();
    eventually(PATIENCE, async || {
        let mut admin = region.admin().await.map_err(|e| e.to_string())?;
        let audit = admin.audit(v1::AuditRequest {}).await;
        match audit.map_err(|e| e.to_string())?.into_inner().on_duty {
            true => Ok(()),
            false => Err("it is not on duty".to_owned()),
        }
    })
    .await;
    second.signal(Signal::Cont).unwrap();
}

#[tokio::test]
async fn a_scheduler_that_is_cut_off_from_broker_or_database_in_any_direction_is_replaced() {
    let name = "killed::networks::a_scheduler_that_is_cut_off_from_broker_or_database_in_any_direction_is_replaced";
    if !in_private_network(name).unwrap() {
        return;
    }
    let (broker, server) = tokio::join!(RabbitMq::start(), Postgres::start());
    let (broker, server) = (broker.unwrap(), server.unwrap());
    let lanes = (0u8..).zip(DIRECTIONS);
    join_all(lanes.map(|(n, direction)| a_scheduler_is_cut_off(&broker, &server, n, direction)))
        .await;
}
