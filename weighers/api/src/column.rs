//! The columns that every scheduler has for every host.

/// What is known about each host, one number a host. Free amounts are those of h_f (all instances
/// count) and may be negative where a host is over-committed or a victim has not left yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(usize)]
pub enum Column {
    /// Free memory in MiB, before the request. Nova's `free_ram_mb`: total − used, no allocation
    /// ratio.
    FreeRamMb,
    /// Virtual CPUs × allocation ratio − used. Nova's CPUWeigher.
    FreeVcpus,
    /// Free local disk in MiB (1024 × GiB). Nova's `free_disk_mb`.
    FreeDiskMb,
    /// Instances on the host, leaving ones and claims included.
    NumInstances,
    /// Instances that are being built or are leaving: each is I/O work. Nova's `num_io_ops`.
    NumIoOps,
    /// Members of the request's server group on the host; 0 without a group.
    GroupMembers,
    /// Preemptible instances on the host that are not leaving.
    NumPreemptible,
    /// 1 if the request fits the host only when instances leave, else 0.
    PreemptionNeeded,
    /// Cost of the host's cheapest sufficient victim set, in the cost module's unit; 0 if no
    /// instance has to leave.
    EvictionCost,
    /// How many victims that set has.
    EvictionVictims,
    /// How many instances of the request's size fit into the normal state h_n: what normal
    /// instances can still claim of the host, whether preemptible ones are there or not. 0 if the
    /// scheduler does not distinguish preemptible from normal instances.
    NormalRoom,
    /// Builds that failed since the last that did not. Nova's `stats.failed_builds`.
    FailedBuilds,
    /// Version of the hypervisor as a number (8.2.0 is 8002000); 0 if unknown.
    HypervisorVersion,
    /// Free PCI devices in all pools of the host.
    FreePciDevices,
    /// 1 in the cell that a move prefers, -1 in another, 0 where no cell is preferred.
    CellPreference,
}

impl Column {
    /// How many columns there are.
    pub const COUNT: usize = 15;

    /// All of them, in the order of their index.
    pub const ALL: [Self; Self::COUNT] = [
        Self::FreeRamMb,
        Self::FreeVcpus,
        Self::FreeDiskMb,
        Self::NumInstances,
        Self::NumIoOps,
        Self::GroupMembers,
        Self::NumPreemptible,
        Self::PreemptionNeeded,
        Self::EvictionCost,
        Self::EvictionVictims,
        Self::NormalRoom,
        Self::FailedBuilds,
        Self::HypervisorVersion,
        Self::FreePciDevices,
        Self::CellPreference,
    ];

    /// Its place in [`HostBatch::columns`].
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }

    /// Its name in plugins' lists, for example `free_ram_mb`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::FreeRamMb => "free_ram_mb",
            Self::FreeVcpus => "free_vcpus",
            Self::FreeDiskMb => "free_disk_mb",
            Self::NumInstances => "num_instances",
            Self::NumIoOps => "num_io_ops",
            Self::GroupMembers => "group_members",
            Self::NumPreemptible => "num_preemptible",
            Self::PreemptionNeeded => "preemption_needed",
            Self::EvictionCost => "eviction_cost",
            Self::EvictionVictims => "eviction_victims",
            Self::NormalRoom => "normal_room",
            Self::FailedBuilds => "failed_builds",
            Self::HypervisorVersion => "hypervisor_version",
            Self::FreePciDevices => "free_pci_devices",
            Self::CellPreference => "cell_preference",
        }
    }

    /// The column with a name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|column| column.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_is_found_by_its_name_and_stands_at_its_index() {
        for (index, column) in Column::ALL.into_iter().enumerate() {
            assert_eq!(column.index(), index);
            assert_eq!(Column::by_name(column.name()), Some(column));
        }
        assert_eq!(Column::by_name("free_ram"), None);
    }
}
