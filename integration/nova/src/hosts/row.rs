//! A compute node and a service as the database has them (`nova/objects/compute_node.py`,
//! `nova/objects/service.py`).

use crate::model::{NumaTopology, PciPool, Service};
use crate::python::Value;
use std::collections::BTreeMap;

/// A row of `compute_nodes`, taken in by its object's fields; the ratios are those in effect.
#[derive(Debug, Clone, PartialEq)]
pub struct ComputeRow {
    /// Service's host.
    pub host: String,
    /// Hypervisor's host name.
    pub nodename: String,
    pub uuid: String,
    /// CPUs.
    pub vcpus: i64,
    /// CPUs in use.
    pub vcpus_used: i64,
    /// Memory, MiB.
    pub memory_mb: i64,
    /// Free memory, MiB.
    pub free_ram_mb: Option<i64>,
    /// Disk, GiB.
    pub local_gb: i64,
    /// Disk in use, GiB.
    pub local_gb_used: i64,
    /// Free disk, GiB; null: the node was never updated.
    pub free_disk_gb: Option<i64>,
    /// What the hypervisor says that is really free, GiB.
    pub disk_available_least: Option<i64>,
    pub cpu_allocation_ratio: f64,
    pub ram_allocation_ratio: f64,
    pub disk_allocation_ratio: f64,
    /// For example `QEMU`.
    pub hypervisor_type: String,
    /// For example 8002000.
    pub hypervisor_version: i64,
    /// JSON text.
    pub cpu_info: Option<String>,
    /// Address.
    pub host_ip: Option<String>,
    /// Triples of architecture, hypervisor type, VM mode; null breaks every request.
    pub supported_instances: Option<Vec<Vec<Option<String>>>>,
    /// Statistics; null breaks every request.
    pub stats: Option<BTreeMap<String, Option<String>>>,
    /// Metrics as the JSON has them: they are taken in when the host state is made.
    pub metrics: Option<Value>,
    pub numa_topology: Option<NumaTopology>,
    pub pci_pools: Vec<PciPool>,
    /// Microseconds since 1970, UTC.
    pub updated_at: Option<i64>,
}

/// Allocation ratios of nodes that have none of their own: `*_allocation_ratio` if set and not 0,
/// else `initial_*`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratios {
    /// CPUs; 4.0 unless configured.
    pub cpu: f64,
    /// Memory; 1.0 unless configured.
    pub ram: f64,
    /// Disk; 1.0 unless configured.
    pub disk: f64,
}

/// The service of a host, if it has a record.
pub type ServiceRow = Service;
