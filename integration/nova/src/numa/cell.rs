//! What is free on a host's NUMA cell (`nova/objects/numa.py`, `NUMACell`).

use crate::model::{InstanceNumaCell, NumaCell, NumaTopology};
use std::collections::BTreeSet;

/// The dedicated CPUs of a cell that are not pinned, in the order in which Nova walks them.
pub(super) struct FreeCpus {
    walk: Vec<i64>,
    set: BTreeSet<i64>,
}

impl FreeCpus {
    pub(super) fn len(&self) -> usize {
        self.walk.len()
    }
}

impl NumaCell {
    /// Dedicated CPUs that are not pinned. If few CPUs are removed, Python keeps them in the order
    /// of the dedicated CPUs; otherwise it builds a new table and uses the order of that table.
    pub(super) fn free_pcpus(&self) -> FreeCpus {
        let pinned = &self.pinned_cpus;
        let left = |cpu: &i64| !pinned.contains(cpu);
        let walk: Vec<i64> = if (self.pcpuset.len() >> 2) > pinned.len() {
            self.pcpuset.copied().iter().filter(left).collect()
        } else {
            crate::model::CpuSet::inserted(self.pcpuset.iter().filter(left))
                .iter()
                .collect()
        };
        let set = walk.iter().copied().collect();
        FreeCpus { walk, set }
    }

    /// The free threads of each core, in the order in which Nova takes them. Python walks the
    /// smaller of the two sets, and the free CPUs if both have the same size.
    pub(super) fn free_siblings(&self) -> Vec<Vec<i64>> {
        let free = self.free_pcpus();
        self.siblings
            .iter()
            .map(|core| {
                let both = if free.len() > core.len() {
                    crate::model::CpuSet::inserted(core.iter().filter(|cpu| free.set.contains(cpu)))
                } else {
                    crate::model::CpuSet::inserted(
                        free.walk.iter().copied().filter(|cpu| core.contains(*cpu)),
                    )
                };
                both.iter().collect()
            })
            .collect()
    }

    /// Unused memory in MiB. Negative if the cell is over-committed.
    pub(super) fn avail_memory(&self) -> i64 {
        self.memory.saturating_sub(self.memory_usage)
    }

    /// Whether a core has several threads.
    pub(super) fn has_threads(&self) -> bool {
        self.siblings.iter().any(|core| core.len() > 1)
    }
}

impl NumaTopology {
    /// Whether a core of any cell has several threads.
    #[must_use]
    pub fn has_threads(&self) -> bool {
        self.cells.iter().any(NumaCell::has_threads)
    }
}

impl InstanceNumaCell {
    /// Policy `dedicated` or `mixed`: some CPUs are pinned, and memory is never over-committed.
    pub(super) fn pins(&self) -> bool {
        matches!(self.cpu_policy.as_deref(), Some("dedicated" | "mixed"))
    }

    /// Policy `shared`, `mixed` or none: some CPUs float.
    pub(super) fn floats(&self) -> bool {
        matches!(self.cpu_policy.as_deref(), None | Some("shared" | "mixed"))
    }
}
