//! Hosts that an operator removes for good.

use super::command::{ebbtide, json};
use super::kit::{create, flavor, request, until};
use ebbtide_bus::{AmqpBus, AmqpConfig, QueuePrefix};
use ebbtide_harness::eventually;
use ebbtide_integration_tests::region::PATIENCE;
use ebbtide_integration_tests::{Region, RegionOptions};

/// The names and healths of all hosts.
async fn hosts(region: &Region) -> Vec<(String, String)> {
    let said = ebbtide(region, &["host", "list", "--output", "json"]).await;
    let listed = json(&said);
    let text = |host: &serde_json::Value, key: &str| host[key].as_str().unwrap().to_owned();
    let all = listed.as_array().unwrap().iter();
    all.map(|host| (text(host, "name"), text(host, "health")))
        .collect()
}

async fn until_health(region: &Region, host: &str, wanted: &str) {
    eventually(PATIENCE, async || {
        let all = hosts(region).await;
        let found = all.iter().any(|(name, is)| name == host && is == wanted);
        if found {
            Ok(())
        } else {
            Err(format!("{all:?}"))
        }
    })
    .await;
}

#[tokio::test]
async fn a_lost_host_is_removed_with_its_queue_and_its_agent_is_refused_afterwards() {
    let mut region = Region::start(RegionOptions {
        hosts: ["host-A", "host-B"].map(str::to_owned).to_vec(),
        region: "host_down_seconds = 4".to_owned(),
        ..RegionOptions::default()
    })
    .await
    .unwrap();
    flavor(&region, "whole", 8, &[]).await;
    let (pets, _) = create(&region, "pet", request("whole", 2)).await;
    let mut lost = None;
    for pet in &pets {
        let active = until(&region, &pet.id, "active").await;
        if active.host == "host-A" {
            lost = Some(active.id);
        }
    }
    let lost = lost.unwrap();
    let remove = ["host", "remove", "host-A"];

    let busy = ebbtide(&region, &remove).await;
    assert_ne!(busy.code, Some(0), "{}", busy.text);
    assert!(busy.text.contains("EB-REGION-009"), "{}", busy.text);
    assert!(busy.text.contains("servers on it: 1"), "{}", busy.text);

    // The machine is lost; the tenant deletes the server that was on it.
    region.kill_agent("host-A");
    until_health(&region, "host-A", "down").await;
    let deleted = ebbtide(&region, &["server", "delete", &lost]).await;
    assert_eq!(deleted.code, Some(0), "{}", deleted.text);
    let removed = ebbtide(&region, &remove).await;
    assert_eq!(removed.code, Some(0), "{}", removed.text);
    assert!(
        removed.text.contains("removed host host-A"),
        "{}",
        removed.text
    );
    assert_eq!(hosts(&region).await.len(), 1);
    let listed = ebbtide(&region, &["server", "list", "--output", "json"]).await;
    assert!(!listed.text.contains(&lost), "{}", listed.text);

    let url = region.broker_url().parse().unwrap();
    let config = AmqpConfig::new(vec![url], "an operator");
    let bus = AmqpBus::connect(config, PATIENCE).await.unwrap();
    let prefix = QueuePrefix::new(region.prefix()).unwrap();
    let queue = prefix.agent("host-A").unwrap();
    assert_eq!(bus.queue_use(queue.as_str()).await.unwrap(), None);
    let other = prefix.agent("host-B").unwrap();
    assert!(bus.queue_use(other.as_str()).await.unwrap().is_some());

    // The scheduler remembers it, also after a restart.
    region.stop_scheduler().await.unwrap();
    region.start_scheduler().await.unwrap();
    region.start_agent("host-A").unwrap();
    eventually(PATIENCE, async || {
        let log = region.scheduler_log();
        if log.contains("EB-REGION-010") {
            Ok(())
        } else {
            Err(log)
        }
    })
    .await;
    assert_eq!(hosts(&region).await.len(), 1);
    let again = ebbtide(&region, &remove).await;
    assert_eq!(again.code, Some(0), "{}", again.text);

    let readmitted = ebbtide(&region, &["host", "readmit", "host-A"]).await;
    assert_eq!(readmitted.code, Some(0), "{}", readmitted.text);
    until_health(&region, "host-A", "up").await;
}
