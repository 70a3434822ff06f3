//! The numbers of the table: one column a resource class and use, one column a host property.

use super::instance::InstanceRow;
use super::{HostIndex, InstancePhase, WIDE};
use ebbtide_model::Inventory;

/// Everything about one resource class, host by host.
///
/// Invariant: all columns have one entry for each host slot; entries of free slots are zero. Sums
/// cannot overflow: an amount is below 2^31, and 2^32 instances of that still fit into an `i64`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ClassColumns {
    /// What instances may use in all: (total − reserved) × ratio, rounded down.
    pub(crate) capacity: Vec<i64>,
    /// What normal instances use, in whatever phase, and what preemptible ones retain when they are
    /// evacuated, or have retained.
    pub(crate) normal: Vec<i64>,
    /// What would get free of preemptible instances that are not leaving.
    pub(crate) preemptible: Vec<i64>,
    /// What gets free of preemptible instances that are leaving.
    pub(crate) leaving: Vec<i64>,
    /// The part of `normal` and `preemptible` that is claimed only. For display; no decision reads
    /// it.
    pub(crate) claimed: Vec<i64>,
    /// The inventory's total.
    pub(crate) total: Vec<i64>,
    /// The inventory's reserved amount.
    pub(crate) reserved: Vec<i64>,
    /// The inventory's allocation ratio.
    pub(crate) ratio: Vec<f64>,
}

impl ClassColumns {
    /// Columns of zeros.
    pub(super) fn zeros(slots: usize) -> Self {
        let mut columns = Self::default();
        columns.resize(slots);
        columns
    }

    /// Room for so many host slots.
    pub(super) fn resize(&mut self, slots: usize) {
        for column in [
            &mut self.capacity,
            &mut self.normal,
            &mut self.preemptible,
            &mut self.leaving,
            &mut self.claimed,
            &mut self.total,
            &mut self.reserved,
        ] {
            column.resize(slots, 0);
        }
        self.ratio.resize(slots, 0.0);
    }

    /// What the host has; `None` for nothing.
    pub(super) fn set_inventory(&mut self, host: HostIndex, inventory: Option<&Inventory>) {
        let at = host.at();
        let amount = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        self.capacity[at] = inventory.map_or(0, |i| amount(i.capacity()));
        self.total[at] = inventory.map_or(0, |i| amount(i.total));
        self.reserved[at] = inventory.map_or(0, |i| amount(i.reserved));
        self.ratio[at] = inventory.map_or(0.0, |i| i.allocation_ratio);
    }

    /// Adds what an instance takes and the part of it that it retains, or with negative amounts
    /// takes both back.
    pub(super) fn add(&mut self, row: &InstanceRow, takes: i64, retained: i64) {
        let at = row.host.at();
        match (row.preemptible, row.phase) {
            (_, InstancePhase::Retained) => self.normal[at] += retained,
            (false, _) => self.normal[at] += takes,
            (true, phase) => {
                self.normal[at] += retained;
                let freed = takes - retained;
                if phase == InstancePhase::Leaving {
                    self.leaving[at] += freed;
                } else {
                    self.preemptible[at] += freed;
                }
            }
        }
        if row.phase == InstancePhase::Claimed {
            self.claimed[at] += takes;
        }
    }

    /// Free in the normal state h_n: only normal instances count, and what no eviction frees.
    pub(crate) fn free_normal(&self, host: HostIndex) -> i64 {
        self.capacity[host.at()] - self.normal[host.at()]
    }

    /// Free in the full state h_f: all instances count, leaving ones and claims included.
    pub(crate) fn free_full(&self, host: HostIndex) -> i64 {
        let at = host.at();
        self.capacity[at] - self.normal[at] - self.preemptible[at] - self.leaving[at]
    }

    /// Free once every preemptible instance that is leaving has left.
    pub(crate) fn free_future(&self, host: HostIndex) -> i64 {
        let at = host.at();
        self.capacity[at] - self.normal[at] - self.preemptible[at]
    }
}

impl ClassColumns {
    /// What is used, the host's own reserve included.
    fn used(&self, host: HostIndex) -> i64 {
        self.reserved[host.at()] + self.capacity[host.at()] - self.free_full(host)
    }

    /// total − used, without the allocation ratio, as Nova's `free_ram_mb` and `free_disk_mb`.
    pub(crate) fn unsold(&self, host: HostIndex) -> i64 {
        self.total[host.at()] - self.used(host)
    }

    /// total × ratio − used, in floating point, as Nova's CPUWeigher, with so much more in use.
    pub(crate) fn stretched(&self, host: HostIndex, more: i64) -> f64 {
        self.total[host.at()] as f64 * self.ratio[host.at()] - (self.used(host) + more) as f64
    }
}

/// How many instances of which kind a host has, one column a kind.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct CountColumns {
    /// All instances but those that are only retained.
    pub(crate) instances: Vec<u32>,
    /// Those that are being built or are leaving.
    pub(crate) io_ops: Vec<u32>,
    /// Preemptible ones that are not leaving.
    pub(crate) preemptible: Vec<u32>,
}

impl CountColumns {
    /// Room for so many host slots.
    pub(super) fn resize(&mut self, slots: usize) {
        self.instances.resize(slots, 0);
        self.io_ops.resize(slots, 0);
        self.preemptible.resize(slots, 0);
    }

    /// How many preemptible ones that are not leaving eight neighbouring hosts have.
    pub(crate) fn preemptible_of_eight(&self, eight: usize) -> [u32; WIDE] {
        let start = eight * WIDE;
        match self.preemptible.get(start..start + WIDE) {
            Some(counts) => std::array::from_fn(|lane| counts[lane]),
            None => {
                std::array::from_fn(|lane| self.preemptible.get(start + lane).copied().unwrap_or(0))
            }
        }
    }

    /// Counts an instance, or with `false` no longer.
    pub(super) fn add(&mut self, row: &InstanceRow, present: bool) {
        if row.phase == InstancePhase::Retained {
            return;
        }
        let at = row.host.at();
        let change = |count: &mut u32| {
            *count = if present {
                count.saturating_add(1)
            } else {
                count.saturating_sub(1)
            };
        };
        change(&mut self.instances[at]);
        if matches!(row.phase, InstancePhase::Building | InstancePhase::Leaving) {
            change(&mut self.io_ops[at]);
        }
        if row.is_staying_preemptible() {
            change(&mut self.preemptible[at]);
        }
    }
}
