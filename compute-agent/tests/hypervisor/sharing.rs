//! Two hosts with hypervisors of their own and one storage: a guest that was kept goes on on the
//! other one.

use crate::kit::{ANSWER, BOOT, Scene, domain, notice, settings};
use ebbtide_agent::clock::SystemClock;
use ebbtide_agent::driver::libvirt::LibvirtDriver;
use ebbtide_agent::driver::{Driver, DriverError};
use ebbtide_harness::Hypervisor;
use ebbtide_model::message::{HostedState, Start};
use ebbtide_model::{InterruptionBehaviour, ServerId};
use std::path::Path;
use std::sync::Arc;

fn storage(dir: &Path) -> String {
    format!(
        "storage = {{ name = 'nfs-1', dir = '{}' }}\n",
        dir.display()
    )
}

/// Two hosts on one storage.
struct Both {
    here: Scene,
    there: LibvirtDriver,
    other: Hypervisor,
    _dir: tempfile::TempDir,
}

impl Both {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        // QEMU may run as a user of its own.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(dir.path(), open).unwrap();
        let more = storage(dir.path());
        let here = Scene::new(&more).await;
        let other = Hypervisor::start().await.unwrap();
        let there = settings(&other, &more);
        let there = LibvirtDriver::open(there, "host-b", Arc::new(SystemClock)).unwrap();
        Self {
            here,
            there,
            other,
            _dir: dir,
        }
    }

    fn goes_on(&self, id: ServerId) -> Start {
        Start {
            resume: true,
            storage: Some("nfs-1".to_owned()),
            ..self.here.order(id.0.as_u128(), "mover")
        }
    }

    async fn runs_there(&self, id: ServerId) -> bool {
        let views = self.there.list().await.unwrap();
        views
            .iter()
            .any(|v| v.server_id == id && v.state == HostedState::Running)
    }
}

#[tokio::test]
async fn a_hibernated_guest_goes_on_counting_on_another_host_and_nowhere_else() {
    let both = Both::new().await;
    let id = both.here.guest(1, "mover").await;
    let given = notice(1, InterruptionBehaviour::Hibernate);
    both.here.driver.give_notice(id, &given).await.unwrap();
    both.here.says(id, "NOTICE channel", ANSWER).await;
    both.here.driver.hibernate(id).await.unwrap();
    assert_eq!(both.here.state(id).await, Some(HostedState::Hibernated));
    let left = both.here.node.virsh(&["list", "--all", "--name"]).await;
    assert_eq!(left.unwrap().trim(), "", "its definition is dropped");
    let before = both.here.count(id);

    both.there.start(&both.goes_on(id)).await.unwrap();
    assert!(both.runs_there(id).await);
    both.here.counts_beyond(id, before).await;
    let console = both.here.console(id);
    assert_eq!(console.matches("READY").count(), 1, "it has booted anew");
    assert!(console.contains("HB 1\n") || console.contains("HB 1\r\n"));
    // Its notice is taken back by the host on which it goes on.
    both.here.says(id, "WITHDRAWN channel", ANSWER).await;

    match both.here.driver.start(&both.goes_on(id)).await {
        Err(DriverError::HeldElsewhere { host, .. }) => assert_eq!(host, "host-b"),
        other => panic!("{other:?}"),
    }
    assert_eq!(both.here.state(id).await, None);

    // And back again, once it is kept there.
    both.there.hibernate(id).await.unwrap();
    let before = both.here.count(id);
    both.here.driver.start(&both.goes_on(id)).await.unwrap();
    both.here.counts_beyond(id, before).await;
    assert!(!both.runs_there(id).await);
    both.here.driver.delete_saved(id, "nfs-1").await.unwrap();
    assert!(
        both.here.console(id).is_empty(),
        "its files are still there"
    );
}

#[tokio::test]
async fn a_host_that_could_not_start_it_gives_it_back_and_a_stopped_one_boots_elsewhere() {
    let both = Both::new().await;
    let id = both.here.guest(1, "mover").await;
    both.here.driver.hibernate(id).await.unwrap();
    let before = both.here.count(id);
    // A foreign domain with its name exists on the other host: libvirt refuses to define it.
    let xml = format!(
        "<domain type='{}'><name>{}</name><memory>1024</memory><os><type>hvm</type></os></domain>",
        both.other.guest().accelerator(),
        domain(id)
    );
    let file = both.other.dir().join("foreign.xml");
    std::fs::write(&file, xml).unwrap();
    let file = file.display().to_string();
    both.other.virsh(&["define", &file]).await.unwrap();
    both.there.start(&both.goes_on(id)).await.unwrap_err();
    both.other.virsh(&["undefine", &domain(id)]).await.unwrap();

    both.here.driver.start(&both.goes_on(id)).await.unwrap();
    both.here.counts_beyond(id, before).await;
    both.here.driver.stop(id).await.unwrap();
    both.there.start(&both.goes_on(id)).await.unwrap();
    ebbtide_harness::eventually(BOOT, async || {
        let console = both.here.console(id);
        match console.matches("READY").count() {
            2 => Ok(()),
            _ => Err(console),
        }
    })
    .await;
    both.there.terminate(id).await.unwrap();
    assert_eq!(both.here.state(id).await, None);
}
