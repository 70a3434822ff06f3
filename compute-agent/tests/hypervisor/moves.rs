//! Servers that move to another host, and servers that cannot begin.

use crate::kit::{ANSWER, Scene, domain, notice, settings};
use ebbtide_agent::clock::SystemClock;
use ebbtide_agent::driver::libvirt::LibvirtDriver;
use ebbtide_agent::driver::{Driver, DriverError};
use ebbtide_harness::Hypervisor;
use ebbtide_model::InterruptionBehaviour;
use ebbtide_model::message::HostedState;
use std::sync::Arc;

#[tokio::test]
async fn a_guest_moves_to_a_host_with_room_and_goes_on_counting_there() {
    let target = Hypervisor::start().await.unwrap();
    let peer = |memory: u64| {
        format!(
            "[[peers]]\nuri = '{}'\nmigrate_uri = 'unix://{dir}/moving'\nrun_dir = '{dir}/r'\n\
             memory_mb = {memory}\noptions = ['--unsafe']\n",
            target.uri(),
            dir = target.dir().display()
        )
    };
    let full = Scene::new(&peer(95)).await;
    let id = full.guest(1, "mover").await;
    match full.driver.live_migrate(id).await {
        Err(DriverError::NoRoom { detail }) => assert!(detail.contains("95 of 96 MiB"), "{detail}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(full.state(id).await, Some(HostedState::Running));

    // The same host, with more room at the other one.
    let scene = full.with(&peer(96));
    let given = notice(1, InterruptionBehaviour::LiveMigrate);
    scene.driver.give_notice(id, &given).await.unwrap();
    scene.says(id, "NOTICE channel", ANSWER).await;
    std::fs::create_dir_all(target.dir().join("r")).unwrap();
    let before = scene.count(id);
    scene.driver.live_migrate(id).await.unwrap();
    assert_eq!(scene.state(id).await, None, "it is still here");
    scene.counts_beyond(id, before).await;
    let boots = scene.console(id).matches("READY").count();
    assert_eq!(boots, 1, "it has booted anew");
    // A repeated call succeeds at once.
    scene.driver.live_migrate(id).await.unwrap();

    // The agent over there finds it, and can reach it.
    let mut there = settings(&target, "");
    there.instances_dir = scene.node.dir().join("i");
    let there = LibvirtDriver::open(there, "host-b", Arc::new(SystemClock)).unwrap();
    let views = there.list().await.unwrap();
    assert_eq!(views.len(), 1, "{views:?}");
    assert_eq!(
        (views[0].server_id, views[0].state),
        (id, HostedState::Running)
    );
    let again = notice(2, InterruptionBehaviour::Terminate);
    there.give_notice(id, &again).await.unwrap();
    let line = format!("\"evacuation_id\":\"{}\"", again.evacuation_id);
    ebbtide_harness::eventually(ANSWER, async || {
        let console = scene.console(id);
        if console.contains(&line) {
            Ok(())
        } else {
            Err(console)
        }
    })
    .await;
    there.terminate(id).await.unwrap();
    assert!(there.list().await.unwrap().is_empty());
    let nowhere = scene.driver.live_migrate(id).await.unwrap_err();
    assert_eq!(nowhere, DriverError::NotFound { server_id: id });
}

#[tokio::test]
async fn a_server_that_cannot_begin_leaves_nothing_behind_and_a_layered_disk_works() {
    let scene = Scene::new("disk_format = 'qcow2'").await;
    let id = scene.guest(1, "layered").await;
    let xml = scene.node.virsh(&["dumpxml", &domain(id)]).await.unwrap();
    assert!(
        xml.contains("type='qcow2'") && xml.contains("preemptible=\"yes\""),
        "{xml}"
    );
    scene.driver.delete(id).await.unwrap();

    let template = scene.node.dir().join("domain.xml");
    let broken = scene
        .node
        .guest()
        .template()
        .replace("/vmlinux<", "/no-kernel<");
    std::fs::write(&template, broken).unwrap();
    let scene = scene.with("");
    let refused = scene.driver.start(&scene.order(2, "x")).await.unwrap_err();
    assert_eq!(refused.code(), "EB-DRIVER-004", "{refused}");
    assert!(scene.driver.list().await.unwrap().is_empty());
    let left: Vec<_> = std::fs::read_dir(scene.node.dir().join("i"))
        .unwrap()
        .collect();
    assert!(left.is_empty(), "{left:?}");
}
