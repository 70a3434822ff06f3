//! From notice to gone, and unexpected changes from outside, on real virtual machines.

use crate::kit::{ANSWER, BOOT, Scene, domain, notice};
use ebbtide_agent::driver::{Driver, DriverError, NoticeOutcome, Occupancy};
use ebbtide_model::InterruptionBehaviour;
use ebbtide_model::message::HostedState;

#[tokio::test]
async fn a_guest_hears_its_notice_and_that_it_may_stay_and_is_terminated_by_its_power_button() {
    let scene = Scene::new("").await;
    let id = scene.guest(1, "web").await;
    let notice = notice(1, InterruptionBehaviour::Terminate);
    let told = scene.driver.give_notice(id, &notice).await.unwrap();
    assert_eq!(told, NoticeOutcome::Delivered);
    for way in ["NOTICE channel {", "NOTICE agent {"] {
        let line = scene.says(id, way, ANSWER).await;
        for part in [
            &format!("\"evacuation_id\":\"{}\"", notice.evacuation_id),
            "\"action\":\"terminate\"",
            "\"grace_seconds\":120",
            "\"not_before\":\"2027-01-15T08:02:00Z\"",
        ] {
            assert!(line.contains(part), "{line}");
        }
    }
    // Only told, not touched.
    assert_eq!(scene.view(id).await.unwrap().released, None);
    scene.counts_beyond(id, scene.count(id)).await;

    scene
        .driver
        .withdraw_notice(id, notice.evacuation_id)
        .await
        .unwrap();
    scene.says(id, "WITHDRAWN channel", ANSWER).await;
    scene.counts_beyond(id, scene.count(id)).await;

    let stopped = scene.driver.stop(id).await;
    stopped.unwrap();
    assert!(scene.disk(id).starts_with("SAVED n="), "{}", scene.disk(id));
    scene.driver.terminate(id).await.unwrap();
    assert_eq!(scene.state(id).await, None);
    assert!(
        !scene.console(id).contains("OFF"),
        "its files are still there"
    );
}

#[tokio::test]
async fn a_guest_that_needs_no_more_time_says_so_also_to_an_agent_that_was_restarted() {
    let mut scene = Scene::new("").await;
    let id = scene.guest(1, "releases").await;
    let notice = notice(2, InterruptionBehaviour::Stop);
    scene.driver.give_notice(id, &notice).await.unwrap();
    ebbtide_harness::eventually(ANSWER, async || {
        let view = scene.view(id).await.unwrap();
        if view.released == Some(notice.evacuation_id) {
            Ok(())
        } else {
            Err(format!("{view:?}"))
        }
    })
    .await;
    scene.restart_agent();
    assert_eq!(
        scene.view(id).await.unwrap().released,
        Some(notice.evacuation_id)
    );
    // The word ends with its notice.
    scene
        .driver
        .withdraw_notice(id, notice.evacuation_id)
        .await
        .unwrap();
    assert_eq!(scene.view(id).await.unwrap().released, None);
}

#[tokio::test]
async fn a_hibernated_guest_gives_its_room_back_and_goes_on_counting_where_it_was() {
    let scene = Scene::new("").await;
    let order = scene.order(1, "batch");
    let id = scene.guest(1, "batch").await;
    let before = scene.counts_beyond(id, 2).await;
    let process = scene.node.process_of(&domain(id)).await.unwrap();
    let given = notice(3, InterruptionBehaviour::Hibernate);
    scene.driver.give_notice(id, &given).await.unwrap();
    scene.says(id, "NOTICE channel", ANSWER).await;
    scene.driver.hibernate(id).await.unwrap();
    let saved_at = scene.count(id);
    assert!(saved_at >= before);
    assert!(
        !std::path::Path::new(&format!("/proc/{process}")).exists(),
        "QEMU still runs"
    );
    let occupancy = scene.driver.occupancy(id).await.unwrap();
    assert!(
        occupancy.is_free_after(InterruptionBehaviour::Hibernate),
        "{occupancy:?}"
    );
    // Other servers use its capacity meanwhile.
    for n in [2, 3] {
        let other = scene.order(n, "normal");
        match scene.driver.start(&other).await {
            // The saved guest holds its disk.
            Err(DriverError::NoRoom { detail }) => {
                assert!(n == 3 && detail.contains("DISK_GB"), "{n}: {detail}")
            }
            other => drop(other.unwrap()),
        }
    }
    scene
        .driver
        .delete(scene.order(2, "").server_id)
        .await
        .unwrap();
    assert_eq!(scene.state(id).await, Some(HostedState::Hibernated));

    scene.driver.start(&order).await.unwrap();
    let after = scene.counts_beyond(id, saved_at).await;
    assert!(after < saved_at + 60, "{saved_at} → {after}");
    // It would still believe in its notice.
    let told = scene.says(id, "WITHDRAWN channel", ANSWER).await;
    assert!(told.contains(&given.evacuation_id.to_string()), "{told}");
    let boots = scene.console(id).matches("READY").count();
    assert_eq!(boots, 1, "it has booted anew: {}", scene.console(id));
}

#[tokio::test]
async fn a_guest_that_does_not_obey_its_power_button_is_ended_at_the_deadline() {
    let scene = Scene::new("shutdown_seconds = 2.0").await;
    let id = scene.guest(1, "deaf").await;
    scene.driver.stop(id).await.unwrap();
    assert_eq!(scene.state(id).await, Some(HostedState::Stopped));
    assert!(!scene.console(id).contains("OFF"), "{}", scene.console(id));
    assert_eq!(scene.disk(id), "");
}

#[tokio::test]
async fn what_runs_is_what_the_hypervisor_says_whatever_happened_behind_the_agents_back() {
    let mut scene = Scene::new("").await;
    let (one, two) = (scene.guest(1, "one").await, scene.guest(2, "two").await);
    // A guest is killed.
    let process = scene.node.process_of(&domain(one)).await.unwrap();
    let killed = std::process::Command::new("kill")
        .args(["-KILL", &process.to_string()])
        .status();
    assert!(killed.unwrap().success());
    scene.becomes(one, HostedState::Stopped).await;
    // A guest powers itself off.
    scene
        .node
        .virsh(&["shutdown", &domain(two), "--mode", "acpi"])
        .await
        .unwrap();
    scene.becomes(two, HostedState::Stopped).await;
    assert!(scene.disk(two).starts_with("SAVED"));

    // An operator starts one of them, and a machine of his own; the agent is started anew.
    scene.node.virsh(&["start", &domain(one)]).await.unwrap();
    scene.restart_agent();
    scene.becomes(one, HostedState::Running).await;
    let before = scene.driver.inventory().await.unwrap();
    let foreign = scene.node.dir().join("foreign.xml");
    let xml = "<domain type='qemu'><name>foreign-domain</name><memory unit='MiB'>64</memory><vcpu>1</vcpu>\
               <os><type arch='x86_64' machine='pc'>hvm</type></os></domain>";
    std::fs::write(&foreign, xml).unwrap();
    scene
        .node
        .virsh(&["create", &foreign.display().to_string()])
        .await
        .unwrap();
    let after = scene.driver.inventory().await.unwrap();
    let reserved = |facts: &ebbtide_agent::driver::HostFacts, class: &str| {
        facts
            .inventory
            .iter()
            .find(|(c, _)| c.as_str() == class)
            .unwrap()
            .1
            .reserved
    };
    assert_eq!(
        reserved(&after, "MEMORY_MB"),
        reserved(&before, "MEMORY_MB") + 64
    );
    assert_eq!(reserved(&after, "VCPU"), reserved(&before, "VCPU") + 1);
    assert_eq!(
        scene.driver.list().await.unwrap().len(),
        2,
        "a domain of another owner is listed"
    );
    scene
        .node
        .virsh(&["destroy", "foreign-domain"])
        .await
        .unwrap();

    // libvirtd is restarted: nothing changes. The host is: nothing runs any more.
    scene.node.restart_libvirtd().await.unwrap();
    assert_eq!(scene.state(one).await, Some(HostedState::Running));
    scene.node.reboot().await.unwrap();
    for id in [one, two] {
        assert_eq!(scene.state(id).await, Some(HostedState::Stopped));
        let occupancy = scene.driver.occupancy(id).await.unwrap();
        assert!(
            matches!(occupancy, Occupancy::Present { .. }),
            "{occupancy:?}"
        );
    }
    scene.driver.start(&scene.order(1, "one")).await.unwrap();
    let boots = async || {
        let boots = scene.console(one).matches("READY").count();
        if boots >= 2 {
            Ok(())
        } else {
            Err(format!("{boots} boots"))
        }
    };
    ebbtide_harness::eventually(BOOT, boots).await;
}
