//! Agent and broker stand still for longer than anybody waits for them, and go on.

use super::kit::{
    LIMITS, audited, flavors, insist, one_host, only_evacuation, runs_exactly, the_host,
};
use crate::kit::{create, request, until, until_evacuation};
use ebbtide_harness::{RabbitMq, Signal, eventually};
use ebbtide_integration_tests::region::PATIENCE;
use ebbtide_integration_tests::{Region, RegionOptions};
use uuid::Uuid;

/// The victim has a second, the scheduler gives its agent two more; then the preemptor goes to
/// another host. The agent wakes up long after that, with a victim whose time is over and a spare
/// in its queue.
#[tokio::test]
async fn a_suspended_agent_ends_no_victim_for_a_preemptor_that_went_elsewhere() {
    let options = RegionOptions {
        hosts: ["host-A", "host-B"].map(str::to_owned).to_vec(),
        region: LIMITS.replace("act_timeout_seconds = 10", "act_timeout_seconds = 2"),
        heartbeat_seconds: Some(1),
        ..one_host()
    };
    let region = Region::start(options).await.unwrap();
    flavors(&region).await;
    let (victims, _) = create(&region, "victim", request("victim", 2)).await;
    for victim in &victims {
        until(&region, &victim.id, "active").await;
    }
    let pet = insist(&region, "pet", "pet", Uuid::from_u128(1)).await;
    let host = pet.host.clone();
    let first = victims.iter().find(|v| v.host == host).unwrap();
    let second = victims.iter().find(|v| v.host != host).unwrap();
    until_evacuation(&region, &first.id, "draining").await;
    region.signal_agent(&host, Signal::Stop).unwrap();
    until_evacuation(&region, &first.id, "failed").await;
    let elsewhere = until(&region, &pet.id, "active").await;
    assert_eq!(elsewhere.host, second.host);
    region.signal_agent(&host, Signal::Cont).unwrap();
    region.wait_for_hosts_up().await.unwrap();
    runs_exactly(&region, &host, &[&first.id]).await;
    // It has heard that the victim stays, and will not act any more.
    eventually(PATIENCE, async || {
        let log = region.agent_log(&host);
        let spared = log
            .lines()
            .any(|line| line.contains("reported") && line.contains("spared"));
        if spared { Ok(()) } else { Err(log) }
    })
    .await;
    runs_exactly(&region, &host, &[&first.id]).await;
    runs_exactly(&region, &second.host, &[&pet.id]).await;
    let ended = only_evacuation(&region, &second.id).await;
    assert_eq!(ended.state, "evacuated", "{ended:?}");
    let spared = only_evacuation(&region, &first.id).await;
    assert_eq!(spared.state, "failed", "{spared:?}");
    until(&region, &first.id, "active").await;
    audited(&region).await;
}

/// Connections stay open, and nothing comes through them; heartbeats are what tells.
#[tokio::test]
async fn a_broker_that_stood_still_delays_a_preemption_and_nothing_else() {
    let broker = RabbitMq::start().await.unwrap();
    let options = RegionOptions {
        broker_url: Some(broker.url()),
        heartbeat_seconds: Some(1),
        ..one_host()
    };
    let region = Region::start(options).await.unwrap();
    flavors(&region).await;
    let victim = insist(&region, "victim", "victim", Uuid::from_u128(1)).await;
    until(&region, &victim.id, "active").await;
    broker.freeze().unwrap();
    let pet = insist(&region, "pet", "pet", Uuid::from_u128(2)).await;
    assert_eq!(pet.status, "waiting");
    // Scheduler and agent have seen that it is away.
    eventually(PATIENCE, async || {
        let said = "lost the connection to the broker";
        match (
            region.scheduler_log().contains(said),
            region.agent_log("host-A").contains(said),
        ) {
            (true, true) => Ok(()),
            seen => Err(format!("scheduler and agent: {seen:?}")),
        }
    })
    .await;
    // Longer than a host may be silent.
    eventually(PATIENCE, async || match the_host(&region).await.health {
        health if health == "down" => Ok(()),
        health => Err(health),
    })
    .await;
    runs_exactly(&region, "host-A", &[&victim.id]).await;
    broker.thaw().unwrap();
    until(&region, &pet.id, "active").await;
    let ended = only_evacuation(&region, &victim.id).await;
    assert_eq!(ended.state, "evacuated", "{ended:?}");
    runs_exactly(&region, "host-A", &[&pet.id]).await;
    audited(&region).await;
}
