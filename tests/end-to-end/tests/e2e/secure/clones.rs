//! Two agents with one host name, as after an image was cloned.

use super::kit::soon;
use crate::kit::{create, flavor, preemptible, request, server, until};
use ebbtide_harness::ProcessCommand;
use ebbtide_integration_tests::region::{PATIENCE, bin};
use ebbtide_integration_tests::{Region, RegionOptions};
use std::path::PathBuf;

const HOST: &str = "host-A";

/// The configuration of the agent, with another machine's state.
fn clone_of(region: &Region) -> PathBuf {
    let config = region.dir().join(format!("agent-{HOST}.toml"));
    let text = std::fs::read_to_string(config).unwrap();
    let own = region.agent_dir(HOST).display().to_string();
    let state = region.dir().join("clone");
    std::fs::create_dir_all(&state).unwrap();
    assert!(text.contains(&own), "{text}");
    let path = region.dir().join("clone.toml");
    std::fs::write(&path, text.replace(&own, &state.display().to_string())).unwrap();
    path
}

#[tokio::test]
async fn the_agent_of_a_cloned_machine_refuses_to_start_and_disturbs_nothing() {
    let mut region = Region::start(RegionOptions {
        hosts: vec![HOST.to_owned()],
        heartbeat_seconds: Some(1),
        ..RegionOptions::default()
    })
    .await
    .unwrap();
    preemptible(&region, "spot", 8, 0).await;
    flavor(&region, "pet", 8, &[]).await;
    let (cattle, _) = create(&region, "cattle", request("spot", 1)).await;
    until(&region, &cattle[0].id, "active").await;

    let config = clone_of(&region);
    let log = region.dir().join("clone.log");
    let start = || {
        ProcessCommand::new("the clone", bin("ebbtide-agent"))
            .args(["run", "--config"])
            .arg(&config)
            .spawn(&log)
            .unwrap()
    };
    let clone = start();
    let status = clone.wait_exit(PATIENCE).await.unwrap();
    let told = clone.log_tail();
    assert_eq!(status.code(), Some(3), "{told}");
    assert!(
        told.contains("EB-BUS-014") && told.contains("same host name"),
        "{told}"
    );
    // It has tried for longer than several heartbeats of its own take, and has said nothing of the
    // empty machine that it is on.
    let cattle = server(&region, &cattle[0].id).await;
    assert_eq!(cattle.status, "active", "{cattle:?}");

    // While it tries once more, the true one does what it is told.
    let clone = start();
    let (pets, _) = create(&region, "pet", request("pet", 1)).await;
    until(&region, &pets[0].id, "active").await;
    until(&region, &cattle.id, "preempted").await;
    let status = clone.wait_exit(PATIENCE).await.unwrap();
    assert_eq!(status.code(), Some(3));

    // The host's own agent may start again, however it ended.
    region.kill_agent(HOST);
    region.start_agent(HOST).unwrap();
    let log = region.dir().join(format!("agent-{HOST}.log"));
    soon(async || {
        let log = std::fs::read_to_string(&log).unwrap();
        match log.contains("taking commands") {
            true => Ok(()),
            false => Err(log),
        }
    })
    .await;
    assert!(
        !std::fs::read_to_string(&log)
            .unwrap()
            .contains("EB-BUS-014")
    );
    assert_eq!(server(&region, &pets[0].id).await.status, "active");
}
