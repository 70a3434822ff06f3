//! A host as a request sees it (`nova/scheduler/host_manager.py`, `HostState`).

use super::{Aggregate, InstanceNumaTopology, NumaTopology, PciPool};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The nova-compute service of a host.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Service {
    /// Disabled by an operator.
    pub disabled: bool,
    pub disabled_reason: Option<String>,
    /// Forced down by an operator.
    pub forced_down: bool,
    /// Microseconds since 1970, UTC.
    pub last_seen_up: Option<i64>,
    /// Microseconds since 1970, UTC.
    pub created_at: Option<i64>,
}

/// A monitored metric of a host.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// Name, for example `cpu.percent`.
    pub name: String,
    /// Value as `MonitorMetric` keeps it: a whole number, percentages times 100. `None` if the
    /// metric came without one, which MetricsWeigher stumbles over (NotImplementedError).
    pub value: Option<f64>,
}

/// What weighers read of an instance on a host.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InstanceFacts {
    /// Image properties (`system_metadata` keys `image_*`), as stored.
    pub image_properties: BTreeMap<String, serde_json::Value>,
    /// An instance that was just placed and whose metadata cannot be loaded: ImagePropertiesWeigher
    /// fails on it (OrphanedObjectError).
    pub orphan: bool,
}

/// What Placement offers for a host: allocations by provider, and which provider serves which
/// request group.
#[derive(Debug, Clone, PartialEq)]
pub struct AllocationCandidate {
    /// The JSON under `allocations`, in its order.
    pub allocations: serde_json::Value,
    /// Request group suffix to providers. A list may be `null` in bad answers.
    pub mappings: serde_json::Value,
}

/// A host. Numbers that Nova's database may hold as NULL are options: some weighers and filters
/// fail on them, as in Nova.
#[derive(Debug, Clone)]
pub struct HostState {
    /// Name of the service's host.
    pub host: String,
    /// Hypervisor's host name.
    pub nodename: String,
    /// UUID of the compute node; `None` if the node was never updated (`free_disk_gb` is NULL):
    /// then all numbers are 0 and `stats` and `metrics` do not exist.
    pub uuid: Option<String>,
    pub cell_uuid: String,
    /// Free memory in MiB, without allocation ratio.
    pub free_ram_mb: Option<i64>,
    /// Memory in MiB.
    pub total_usable_ram_mb: i64,
    /// Free disk in MiB.
    pub free_disk_mb: i64,
    /// Disk in GiB.
    pub total_usable_disk_gb: i64,
    /// Disk in use, MiB.
    pub disk_mb_used: i64,
    /// CPUs.
    pub vcpus_total: i64,
    /// CPUs in use.
    pub vcpus_used: i64,
    /// Allocation ratios, `None` only where a node was never updated.
    pub cpu_allocation_ratio: Option<f64>,
    /// See [`Self::cpu_allocation_ratio`].
    pub ram_allocation_ratio: Option<f64>,
    /// See [`Self::cpu_allocation_ratio`].
    pub disk_allocation_ratio: Option<f64>,
    /// For example `QEMU`.
    pub hypervisor_type: Option<String>,
    /// As a number, for example 8002000.
    pub hypervisor_version: Option<i64>,
    /// JSON, as a string.
    pub cpu_info: Option<String>,
    /// Address.
    pub host_ip: Option<String>,
    /// Triples of architecture, hypervisor type and VM mode; `None` where a node was never updated.
    pub supported_instances: Option<Vec<Vec<Option<String>>>>,
    /// The compute node's `stats`; values may be null. `None` where a node was never updated: the
    /// attribute does not exist.
    pub stats: Option<BTreeMap<String, Option<String>>>,
    /// From `stats`.
    pub num_instances: i64,
    /// `io_workload` from `stats`.
    pub num_io_ops: i64,
    /// From `stats`.
    pub failed_builds: i64,
    /// `None` where a node was never updated.
    pub metrics: Option<Vec<Metric>>,
    pub numa_topology: Option<NumaTopology>,
    /// PCI device pools, by ascending number of tags (`PciDeviceStats`), tags as strings or null.
    /// `None` only where a node was never updated (`pci_stats` is None); a node that reports none
    /// has an empty list.
    pub pci_pools: Option<Vec<PciPool>>,
    /// Microseconds since 1970, UTC.
    pub updated_at: Option<i64>,
    /// Aggregates of the host, by ascending place in the input.
    pub aggregates: Vec<Arc<Aggregate>>,
    /// Service record. Hosts without one are never built.
    pub service: Service,
    /// Instances on the host, by UUID.
    pub instances: Arc<BTreeMap<String, InstanceFacts>>,
    /// Allocation candidates that are left; filters remove some. Empty for a rebuild.
    pub allocation_candidates: Vec<AllocationCandidate>,
    /// `limits['numa_topology']`: CPU and memory allocation ratio, set by NUMATopologyFilter.
    pub numa_limits: Option<(f64, f64)>,
    /// What the last consumption fitted, for tests.
    pub fitted: Option<InstanceNumaTopology>,
}
