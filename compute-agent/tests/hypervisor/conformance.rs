//! The libvirt driver keeps the contract of drivers, on real virtual machines.

use crate::kit;
use async_trait::async_trait;
use ebbtide_agent::clock::SystemClock;
use ebbtide_agent::driver::Driver;
use ebbtide_agent::driver::conformance::{self, Bench};
use ebbtide_agent::driver::libvirt::LibvirtDriver;
use ebbtide_harness::Hypervisor;
use ebbtide_model::Resources;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// One hypervisor, emptied for each check.
struct Real {
    node: Hypervisor,
    /// Another host, for what is shared.
    other: Hypervisor,
    shared: tempfile::TempDir,
    storages: AtomicU32,
}

impl Real {
    fn open(&self) -> Arc<dyn Driver> {
        // No guest gets time to shut down: most of these guests have not even booted.
        let settings = kit::settings(&self.node, "shutdown_seconds = 0.0");
        Arc::new(LibvirtDriver::open(settings, "host-a", Arc::new(SystemClock)).unwrap())
    }
}

#[async_trait]
impl Bench for Real {
    async fn fresh(&self) -> Arc<dyn Driver> {
        let driver = self.open();
        for view in driver.list().await.unwrap() {
            driver.delete(view.server_id).await.unwrap();
        }
        driver
    }

    async fn reopened(&self, old: Arc<dyn Driver>) -> Arc<dyn Driver> {
        drop(old);
        self.open()
    }

    async fn sharing(&self) -> Option<(Arc<dyn Driver>, Arc<dyn Driver>)> {
        let number = self.storages.fetch_add(1, Ordering::Relaxed);
        let dir = self.shared.path().join(number.to_string());
        let more = format!(
            "shutdown_seconds = 0.0\nstorage = {{ name = 'nfs-1', dir = '{}' }}",
            dir.display()
        );
        let mut both = Vec::new();
        for (node, host) in [(&self.node, "host-a"), (&self.other, "host-b")] {
            let settings = kit::settings(node, &more);
            let driver = LibvirtDriver::open(settings, host, Arc::new(SystemClock)).unwrap();
            for view in driver.list().await.unwrap() {
                driver.delete(view.server_id).await.unwrap();
            }
            both.push(Arc::new(driver) as Arc<dyn Driver>);
        }
        let there = both.pop()?;
        Some((both.pop()?, there))
    }

    fn half_of_everything(&self) -> Resources {
        kit::half()
    }
}

#[tokio::test]
async fn the_libvirt_driver_keeps_the_contract_of_drivers() {
    let real = Real {
        node: Hypervisor::start().await.unwrap(),
        other: Hypervisor::start().await.unwrap(),
        shared: tempfile::tempdir().unwrap(),
        storages: AtomicU32::new(0),
    };
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(real.shared.path(), open).unwrap();
    let results = conformance::run(&real).await;
    assert!(results.len() >= 20, "{results:?}");
    let broken: Vec<_> = results.iter().filter(|r| r.broken.is_some()).collect();
    assert!(broken.is_empty(), "{broken:#?}");
    let left = real.fresh().await.list().await.unwrap();
    assert!(left.is_empty(), "{left:?}");
}
