//! What decisions read of every host, in columns of 32-bit numbers.
//!
//! The 64-bit columns are the truth; these are derived from them at every change. A host whose
//! number does not fit is held at the end of the range ([`LIMIT`]): whether a request below the
//! limit fits comes out the same, and what is missing is never overestimated.

use super::blocked::Blocked;
use super::{ClassColumns, HostIndex};
use ebbtide_weigher_api::Column;

/// Free amounts are held between minus this and this, so that differences of two do not overflow.
pub(crate) const LIMIT: i32 = 1 << 30;

/// One resource class.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct CompactClass {
    /// Free in h_n.
    pub(crate) normal: Blocked<i32>,
    /// Free in h_f.
    pub(crate) full: Blocked<i32>,
    /// Free once all instances that are leaving are gone.
    pub(crate) future: Blocked<i32>,
    /// The most that a single preemptible instance frees that is not leaving.
    pub(crate) largest: Blocked<i32>,
}

impl CompactClass {
    /// Room for so many host slots.
    pub(super) fn resize(&mut self, slots: usize) {
        self.normal.resize(slots);
        self.full.resize(slots);
        self.future.resize(slots);
        self.largest.resize(slots);
    }

    /// True if every block's range is what its cells say.
    pub(super) fn is_consistent(&self) -> bool {
        let columns = [&self.normal, &self.full, &self.future, &self.largest];
        columns.iter().all(|column| column.is_consistent())
    }

    /// Follows a change of the truth.
    pub(super) fn follow(&mut self, truth: &ClassColumns, host: HostIndex) {
        let at = host.at();
        self.normal.set(at, held(truth.free_normal(host)));
        self.full.set(at, held(truth.free_full(host)));
        self.future.set(at, held(truth.free_future(host)));
    }
}

/// Within ±[`LIMIT`].
fn held(amount: i64) -> i32 {
    let limit = i64::from(LIMIT);
    i32::try_from(amount.clamp(-limit, limit)).unwrap_or(LIMIT)
}

/// The weighers' columns that do not depend on the request, as 32-bit floats. One that is not
/// exactly such a float is NaN here, and counted: while there is any, the column cannot be used.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct WeightColumn {
    pub(crate) values: Blocked<f32>,
    inexact: u32,
}

impl WeightColumn {
    /// Room for so many host slots.
    pub(super) fn resize(&mut self, slots: usize) {
        self.values.resize(slots);
    }

    /// Changes the number of a host.
    pub(super) fn set(&mut self, host: HostIndex, value: f64) {
        let at = host.at();
        // The only place where a number may lose digits, and the next line looks whether it has.
        let short = value as f32;
        let exact = f64::from(short) == value;
        let was_inexact = self.values.get(at).is_nan();
        self.inexact = self.inexact - u32::from(was_inexact) + u32::from(!exact);
        self.values.set(at, if exact { short } else { f32::NAN });
    }

    /// True if every host's number is exact.
    pub(crate) fn is_exact(&self) -> bool {
        self.inexact == 0
    }
}

/// The columns of all weighers.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct WeightColumns {
    pub(crate) ram: WeightColumn,
    pub(crate) vcpus: WeightColumn,
    pub(crate) disk: WeightColumn,
    pub(crate) instances: WeightColumn,
    pub(crate) io_ops: WeightColumn,
    pub(crate) preemptible: WeightColumn,
}

impl WeightColumns {
    /// Room for so many host slots.
    pub(super) fn resize(&mut self, slots: usize) {
        for column in [
            &mut self.ram,
            &mut self.vcpus,
            &mut self.disk,
            &mut self.instances,
            &mut self.io_ops,
            &mut self.preemptible,
        ] {
            column.resize(slots);
        }
    }

    /// The column of a weigher; `None` if it depends on the request.
    pub(crate) fn of(&self, column: Column) -> Option<&WeightColumn> {
        match column {
            Column::FreeRamMb => Some(&self.ram),
            Column::FreeVcpus => Some(&self.vcpus),
            Column::FreeDiskMb => Some(&self.disk),
            Column::NumInstances => Some(&self.instances),
            Column::NumIoOps => Some(&self.io_ops),
            Column::NumPreemptible => Some(&self.preemptible),
            Column::GroupMembers
            | Column::PreemptionNeeded
            | Column::EvictionCost
            | Column::EvictionVictims
            | Column::NormalRoom
            | Column::FailedBuilds
            | Column::HypervisorVersion
            | Column::FreePciDevices
            | Column::CellPreference => None,
        }
    }
}
