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

/// One hypervisor, emptied for each check.
struct Real {
    node: Hypervisor,
}

impl Real {
    fn open(&self) -> Arc<dyn Driver> {
        // Nobody is asked to shut down: most of these guests have not even booted.
        let settings = kit::settings(&self.node, "shutdown_seconds = 0.0");
        Arc::new(LibvirtDriver::open(settings, Arc::new(SystemClock)).unwrap())
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

    fn half_of_everything(&self) -> Resources {
        kit::half()
    }
}

#[tokio::test]
async fn the_libvirt_driver_keeps_the_contract_of_drivers() {
    let real = Real {
        node: Hypervisor::start().await.unwrap(),
    };
    let results = conformance::run(&real).await;
    assert!(results.len() >= 16, "{results:?}");
    let broken: Vec<_> = results.iter().filter(|r| r.broken.is_some()).collect();
    assert!(broken.is_empty(), "{broken:#?}");
    let left = real.fresh().await.list().await.unwrap();
    assert!(left.is_empty(), "{left:?}");
}
