//! Host states: what Nova's scheduler knows of each host while it decides
//! (`nova/scheduler/host_manager.py`).

mod consume;
pub mod from_dict;
mod row;
mod update;

pub use consume::consume;
pub use row::{ComputeRow, Ratios, ServiceRow};
pub use update::update;

use crate::model::{HostState, Service};
use std::sync::Arc;

/// A host state of which nothing is known yet (`HostState.__init__`). A node that was never updated
/// stays like this.
#[must_use]
pub fn new_state(host: &str, nodename: &str, cell_uuid: &str) -> HostState {
    HostState {
        host: host.to_owned(),
        nodename: nodename.to_owned(),
        uuid: None,
        cell_uuid: cell_uuid.to_owned(),
        free_ram_mb: Some(0),
        total_usable_ram_mb: 0,
        free_disk_mb: 0,
        total_usable_disk_gb: 0,
        disk_mb_used: 0,
        vcpus_total: 0,
        vcpus_used: 0,
        cpu_allocation_ratio: None,
        ram_allocation_ratio: None,
        disk_allocation_ratio: None,
        hypervisor_type: None,
        hypervisor_version: None,
        cpu_info: None,
        host_ip: None,
        supported_instances: None,
        stats: None,
        num_instances: 0,
        num_io_ops: 0,
        failed_builds: 0,
        metrics: None,
        numa_topology: None,
        pci_pools: None,
        updated_at: None,
        aggregates: Vec::new(),
        service: Service::default(),
        instances: Arc::default(),
        allocation_candidates: Vec::new(),
        numa_limits: None,
        fitted: None,
    }
}
