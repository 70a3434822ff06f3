//! NUMA topologies of hosts and instances.

use super::CpuSet;
use std::collections::BTreeSet;

/// Huge pages of one size on a cell (`NUMAPagesTopology`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PagesTopology {
    /// Page size in KiB.
    pub size_kb: i64,
    pub total: i64,
    /// Pages in use.
    pub used: i64,
    /// Pages kept back.
    pub reserved: i64,
}

/// Networks that are near a cell, or that a request needs (`NetworkMetadata`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NetworkMetadata {
    /// Physical networks.
    pub physnets: BTreeSet<String>,
    pub tunneled: bool,
}

/// A NUMA cell of a host (`NUMACell`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumaCell {
    /// Its number.
    pub id: i64,
    /// CPUs for floating instances.
    pub cpuset: BTreeSet<i64>,
    /// CPUs for pinned instances.
    pub pcpuset: CpuSet,
    /// Memory in MiB.
    pub memory: i64,
    /// Floating CPUs in use.
    pub cpu_usage: i64,
    /// Memory in use, MiB.
    pub memory_usage: i64,
    /// Pinned CPUs.
    pub pinned_cpus: BTreeSet<i64>,
    /// Thread siblings.
    pub siblings: Vec<CpuSet>,
    /// Huge pages.
    pub mempages: Vec<PagesTopology>,
    pub socket: Option<i64>,
    /// `None`: the field is not set, which is not the same as no networks.
    pub network_metadata: Option<NetworkMetadata>,
}

/// NUMA topology of a host.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NumaTopology {
    pub cells: Vec<NumaCell>,
}

/// A NUMA cell that an instance asks for (`InstanceNUMACell`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceNumaCell {
    /// Its number in the guest; after fitting, the host's.
    pub id: i64,
    /// Floating guest CPUs.
    pub cpuset: BTreeSet<i64>,
    /// Pinned guest CPUs.
    pub pcpuset: BTreeSet<i64>,
    /// Memory in MiB.
    pub memory: i64,
    /// Page size in KiB; negative for the symbolic sizes.
    pub pagesize: Option<i64>,
    /// `shared`, `dedicated` or `mixed`.
    pub cpu_policy: Option<String>,
    /// `prefer`, `isolate` or `require`.
    pub cpu_thread_policy: Option<String>,
    /// Host CPUs kept for the emulator, once fitted.
    pub cpuset_reserved: Option<BTreeSet<i64>>,
    /// Guest CPU to host CPU, once fitted.
    pub cpu_pinning: Option<Vec<(i64, i64)>>,
}

/// NUMA topology that an instance asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InstanceNumaTopology {
    pub cells: Vec<InstanceNumaCell>,
    /// `isolate`, `share` or unset.
    pub emulator_threads_policy: Option<String>,
}
