//! Several schedulers over quorum queues, with a broker and a scheduler that are killed meanwhile.

use super::kit::{LIMITS, audited};
use crate::kit::{evacuations, fill, nothing_is_overcommitted, until};
use crate::scheduler_calls;
use ebbtide_harness::{RabbitMq, eventually};
use ebbtide_integration_tests::region::PATIENCE;
use ebbtide_integration_tests::{Database, Peer, Region, RegionOptions};
use ebbtide_proto::v1;
use std::collections::BTreeSet;
use std::path::Path;
use uuid::Uuid;

async fn create_at(peer: &Peer, n: u128) -> v1::Server {
    scheduler_calls::create_at(
        peer,
        &format!("pet-{n}"),
        "half",
        Uuid::from_u128(0xbee0 + n),
    )
    .await
}

/// Waits until every queue would survive that its broker is killed.
///
/// Of a quorum queue that was declared within the last moment a RabbitMQ of one node that is killed
/// knows nothing afterwards but its name: it neither takes nor gives messages until it is deleted
/// (seen with 3.10, 0.4 s after the declaration). Its directory of such queues is a file that is
/// written with a delay, and there the names are seen.
async fn queues_are_durable(broker: &RabbitMq) {
    let queues = broker.control(&["list_queues", "name", "type"]).await;
    let queues = queues.unwrap();
    let quorum = queues.lines().filter_map(|line| line.split_once('\t'));
    let quorum: Vec<&str> = quorum
        .filter(|(_, kind)| *kind == "quorum")
        .map(|(name, _)| name)
        .collect();
    assert!(!quorum.is_empty(), "{queues}");
    eventually(PATIENCE, async || {
        let written = files_named(&broker.directory().join("quorum"), "names.dets");
        let missing = quorum.iter().filter(|name| !written.contains(*name));
        match missing.copied().collect::<Vec<&str>>().as_slice() {
            [] => Ok(()),
            missing => Err(format!("not written yet: {missing:?}")),
        }
    })
    .await;
}

/// The text of all files of a name below a directory.
fn files_named(directory: &Path, name: &str) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            text.push_str(&files_named(&path, name));
        } else if path.ends_with(name) {
            text.push_str(&String::from_utf8_lossy(&std::fs::read(&path).unwrap()));
        }
    }
    text
}

#[tokio::test]
async fn three_schedulers_over_quorum_queues_lose_nothing_when_broker_and_scheduler_are_killed() {
    let mut broker = RabbitMq::start().await.unwrap();
    let options = RegionOptions {
        database: Database::Postgres,
        database_options: "lease_seconds = 2".to_owned(),
        broker_url: Some(broker.url()),
        bus: "queue_type = \"quorum\"".to_owned(),
        heartbeat_seconds: Some(1),
        region: LIMITS.replace("notice_timeout_seconds = 3", "notice_timeout_seconds = 20"),
        ..RegionOptions::default()
    };
    let mut region = Region::start(options).await.unwrap();
    let second = region.start_peer("second").await.unwrap();
    let third = region.start_peer("third").await.unwrap();
    fill(&region, 2).await;
    queues_are_durable(&broker).await;
    // Half of them while everything is there, half of them while the broker is not, decided by two
    // schedulers; the one on duty dies as well.
    let mut pets = Vec::new();
    for n in 0..2 {
        pets.push(create_at(&second, n).await.id);
    }
    broker.kill();
    region.kill_scheduler();
    for n in 2..4 {
        pets.push(create_at(&third, n).await.id);
    }
    broker.restart().await.unwrap();
    region.start_scheduler().await.unwrap();
    for pet in &pets {
        until(&region, pet, "active").await;
    }
    let ended = evacuations(&region).await;
    assert!(ended.iter().all(|e| e.state == "evacuated"), "{ended:?}");
    let victims: BTreeSet<&str> = ended.iter().map(|e| e.victim_id.as_str()).collect();
    assert_eq!((ended.len(), victims.len()), (4, 4), "{ended:?}");
    nothing_is_overcommitted(&region).await;
    audited(&region).await;
    let queues = broker
        .control(&["list_queues", "name", "type"])
        .await
        .unwrap();
    let ours: Vec<&str> = queues
        .lines()
        .filter(|line| line.contains(region.prefix()))
        .collect();
    assert!(
        ours.len() >= 5,
        "one for each agent and one for schedulers: {queues}"
    );
    assert!(ours.iter().all(|line| line.ends_with("quorum")), "{queues}");
}
