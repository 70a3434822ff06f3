//! How many placements a scheduler makes in a second, through gRPC with durable claims, at N hosts.
//!
//! The hosts are heartbeats without agents behind them: what is measured is the scheduler, its database and its broker. Run it inside
//! `ebbtide-harness run --rabbitmq --mariadb -- cargo run --release -p ebbtide-integration-tests --example region_load -- mariadb 1000 64 20000`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::disallowed_methods
)] // A measuring tool.

use ebbtide_bus::{AmqpBus, AmqpConfig, Bus, Outgoing, QueuePrefix};
use ebbtide_harness::eventually;
use ebbtide_integration_tests::region::PATIENCE;
use ebbtide_integration_tests::{Database, Region, RegionOptions};
use ebbtide_model::message::{Body, Heartbeat, Message};
use ebbtide_model::{Inventory, MessageId, ResourceClass, Timestamp};
use ebbtide_proto::v1;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::task::JoinSet;
use uuid::Uuid;

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap())
}

async fn register(region: &Region, hosts: u32) {
    let url = region.broker_url().parse().unwrap();
    let bus = AmqpBus::connect(AmqpConfig::new(vec![url], "region_load"), PATIENCE)
        .await
        .unwrap();
    let prefix = QueuePrefix::new(region.prefix()).unwrap();
    for n in 0..hosts {
        let inventory = BTreeMap::from([
            (ResourceClass::vcpu(), Inventory::of(1000)),
            (ResourceClass::memory_mb(), Inventory::of(4_000_000)),
            (ResourceClass::disk_gb(), Inventory::of(100_000)),
        ]);
        let beat = Heartbeat {
            host: format!("host-{n:05}"),
            session: Uuid::from_u128(u128::from(n) + 1),
            sequence: 1,
            inventory,
            traits: BTreeSet::new(),
            servers: Vec::new(),
        };
        let id = MessageId(Uuid::from_u128(1 << 100 | u128::from(n)));
        let message = Message {
            id,
            source: "/load".to_owned(),
            time: now(),
            body: Body::Heartbeat(beat),
        };
        let sent = Outgoing::cloud_event(id.0, message.to_bytes().unwrap());
        bus.publish(&prefix.scheduler(), &sent).await.unwrap();
    }
    bus.close().await;
    let mut admin = region.admin().await.unwrap();
    eventually(PATIENCE, async || {
        let up = admin
            .list_hosts(v1::ListHostsRequest {})
            .await
            .unwrap()
            .into_inner()
            .hosts
            .len();
        if up == hosts as usize {
            Ok(())
        } else {
            Err(format!("{up} of {hosts} hosts are registered"))
        }
    })
    .await;
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |at: usize, default: u32| arguments.get(at).map_or(default, |n| n.parse().unwrap());
    let database = match arguments.first().map_or("sqlite", String::as_str) {
        "mariadb" => Database::MariaDb,
        "postgres" => Database::Postgres,
        _ => Database::Sqlite,
    };
    let (hosts, clients, placements) = (number(1, 1000), number(2, 64), number(3, 10_000));
    // Nobody renews these hosts, so they have to be up for the whole run.
    let options = RegionOptions {
        database,
        hosts: Vec::new(),
        region: "host_down_seconds = 86400\nstart_timeout_seconds = 86400".to_owned(),
        ..RegionOptions::default()
    };
    let mut region = Region::prepare(options).await.unwrap();
    region.start_scheduler().await.unwrap();
    register(&region, hosts).await;
    let flavor = v1::Flavor {
        name: "small".to_owned(),
        vcpus: 1,
        ram_mb: 1000,
        disk_gb: 10,
        ..Default::default()
    };
    region
        .admin()
        .await
        .unwrap()
        .create_flavor(v1::CreateFlavorRequest {
            flavor: Some(flavor),
        })
        .await
        .unwrap();
    let left = Arc::new(AtomicU32::new(placements));
    let began = Instant::now();
    let mut work = JoinSet::new();
    for _ in 0..clients {
        let (left, mut servers) = (Arc::clone(&left), region.servers().await.unwrap());
        work.spawn(async move {
            let mut took = Vec::new();
            while left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1))
                .is_ok()
            {
                let request = v1::PlacementRequest {
                    count: 1,
                    flavor: "small".to_owned(),
                    ..Default::default()
                };
                let create = v1::CreateServersRequest {
                    name: "load".to_owned(),
                    request: Some(request),
                };
                let began = Instant::now();
                let answer = servers.create_servers(create).await.unwrap().into_inner();
                assert!(answer.decision.unwrap().no_valid_host.is_none());
                took.push(began.elapsed());
            }
            took
        });
    }
    let mut took: Vec<Duration> = work.join_all().await.into_iter().flatten().collect();
    let whole = began.elapsed();
    took.sort_unstable();
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize];
    println!(
        "{database:?}: {hosts} hosts, {clients} clients, {} placements in {whole:.1?}: {:.0}/s, p50 {:.1?}, p99 {:.1?}",
        took.len(),
        took.len() as f64 / whole.as_secs_f64(),
        at(0.5),
        at(0.99)
    );
}
