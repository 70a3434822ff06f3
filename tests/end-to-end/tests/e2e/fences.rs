//! Hypervisors that do not end their victims, and the operator's fence, which is a program of its
//! own.

use super::kit::{
    create, evacuations, flavor, nothing_is_overcommitted, preemptible, request, server, until,
    until_evacuation,
};
use ebbtide_integration_tests::region::bin;
use ebbtide_integration_tests::{Region, RegionOptions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// One host whose terminations fail, with a fence that does what `script` says, after writing down
/// what it was told.
async fn region(dir: &Path, script: &str) -> Region {
    let path = dir.join("fence");
    let heard = dir.join("heard");
    let text = format!("#!/bin/sh\ncat >>{}\n{script}\n", heard.display());
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let driver = format!(
        "[driver]\nkind = \"simulated\"\n[driver.simulated]\ninventory = {{ VCPU = 8, MEMORY_MB = 16000, DISK_GB = 160 }}\n\
         start_seconds = 0.05\nterminate_seconds = 0.05\n\
         [evacuation]\nact_tries = 2\nbackoff_first_ms = 50\nverify_tries = 3\n\
         [fence]\ncommand = [\"{}\"]\ntries = 2\n",
        path.display()
    );
    let options = RegionOptions {
        hosts: vec!["host-A".to_owned()],
        drivers: [("host-A".to_owned(), driver)].into(),
        ..RegionOptions::default()
    };
    let region = Region::start(options).await.unwrap();
    region
        .simulate("host-A", &["fail", "--action", "terminate", "--times", "2"])
        .await
        .unwrap();
    region
}

/// Two preemptible servers fill the host.
async fn fill(region: &Region) {
    preemptible(region, "p.half", 4, 0).await;
    flavor(region, "half", 4, &[]).await;
    for cattle in create(region, "cattle", request("p.half", 2)).await.0 {
        until(region, &cattle.id, "active").await;
    }
}

#[tokio::test]
async fn a_victim_that_its_hypervisor_does_not_end_is_ended_by_the_operators_fence() {
    let dir = tempfile::tempdir().unwrap();
    // The hypervisor of the test loses the guest, as libvirt does when its QEMU is killed.
    let agent = bin("ebbtide-agent");
    let script = format!(
        "exec {} simulate --state-dir \"$(cat {})\" lose \"$EBBTIDE_SERVER_ID\"",
        agent.display(),
        dir.path().join("state_dir").display()
    );
    let region = region(dir.path(), &script).await;
    let state = region.agent_dir("host-A");
    std::fs::write(dir.path().join("state_dir"), state.display().to_string()).unwrap();
    fill(&region).await;
    let (servers, decision) = create(&region, "urgent", request("half", 1)).await;
    let victim = decision.placements[0].victims[0].server_id.clone();
    until(&region, &servers[0].id, "active").await;
    let evacuation = until_evacuation(&region, &victim, "evacuated").await;
    assert!(evacuation.reason.contains("fenced"), "{evacuation:?}");
    assert_eq!(server(&region, &victim).await.status, "preempted");
    let heard = std::fs::read_to_string(dir.path().join("heard")).unwrap();
    assert_eq!(
        heard,
        format!("action=off\nplug={victim}\nnodename={victim}\n")
    );
    nothing_is_overcommitted(&region).await;
}

#[tokio::test]
async fn a_fence_that_fails_frees_no_room_and_the_next_victim_leaves_instead() {
    let dir = tempfile::tempdir().unwrap();
    let region = region(dir.path(), "echo no such plug >&2; exit 1").await;
    fill(&region).await;
    let (servers, decision) = create(&region, "urgent", request("half", 1)).await;
    let stubborn = decision.placements[0].victims[0].server_id.clone();
    let failed = until_evacuation(&region, &stubborn, "failed").await;
    assert!(failed.reason.contains("no such plug"), "{failed:?}");
    until(&region, &servers[0].id, "active").await;
    assert_eq!(server(&region, &stubborn).await.status, "active");
    assert_eq!(evacuations(&region).await.len(), 2);
    nothing_is_overcommitted(&region).await;
}
