//! The weighers that read one column and do nothing else: a table.
//!
//! Each is a [`ColumnWeigher`]. What their texts leave out is the same for all:
//!
//! - Raw number: the host's number in the column, or zero minus it.
//! - Normalised, by the bounds: `FROM_ZERO` gives the number over the largest one, and numbers
//!   below zero (over-committed hosts) count as zero; hosts that are all alike get 1, or 0 if they
//!   have nothing. `UP_TO_ZERO` gives `1 − burden / largest burden`: a host without a burden is
//!   always 1; where no host has any, all get 0. Without bounds the smallest number becomes 0 and
//!   the largest 1; hosts that are all alike get 0.
//! - Multiplier: the key is the name with `_weight_multiplier` behind it; aggregates may set the
//!   same key in their metadata. One of the other sign prefers the other hosts.

use ebbtide_weigher_api::{Bounds, Column, RequestView, Weigher, WeigherForm};

/// A weigher of one column.
#[derive(Debug, Clone, Copy)]
pub struct ColumnWeigher {
    name: &'static str,
    multiplier_key: &'static str,
    form: WeigherForm,
    column: Column,
    bounds: Bounds,
    multiplier: f64,
    multiplier_sign: f64,
}

/// One constant for each row: the texts, the constant, the name, the column with its sign, the
/// bounds, the default multiplier, and the sign that every multiplier gets.
macro_rules! table {
    ($($(#[$text:meta])* $id:ident = $name:literal, $form:ident($column:ident), $bounds:expr,
        $multiplier:literal, $sign:literal;)*) => {
        $(
            $(#[$text])*
            pub const $id: ColumnWeigher = ColumnWeigher {
                name: $name,
                multiplier_key: concat!($name, "_weight_multiplier"),
                form: WeigherForm::$form(Column::$column),
                column: Column::$column,
                bounds: $bounds,
                multiplier: $multiplier,
                multiplier_sign: $sign,
            };
        )*
    };
}

const UNBOUNDED: Bounds = Bounds {
    min: None,
    max: None,
};

table! {
    /// Keeps away from hosts on which builds fail.
    ///
    /// The number is of builds that failed since the last that went well. The multiplier, whether
    /// from the configuration or from an aggregate, is turned round: the worst host loses to all
    /// others whatever it offers. 0 switches the weigher off.
    ///
    /// Source: Nova, `nova/scheduler/weights/compute.py` (`BuildFailureWeigher`, no bounds).
    BUILD_FAILURE = "build_failure", Column(FailedBuilds), UNBOUNDED, 1_000_000.0, -1.0;

    /// Spreads by free virtual CPUs: virtual CPUs × allocation ratio − used ones.
    ///
    /// Source: Nova, `nova/scheduler/weights/cpu.py` (`CPUWeigher`, `minval = 0`); the one weigher
    /// that knows an allocation ratio.
    CPU = "cpu", Column(FreeVcpus), Bounds::FROM_ZERO, 1.0, 1.0;

    /// Keeps moves within the cell that they prefer, where another is allowed at all: 1 in the
    /// preferred cell, -1 in another, 0 for every request that prefers none.
    ///
    /// Source: Nova, `nova/scheduler/weights/cross_cell.py` (`CrossCellWeigher`, no bounds).
    CROSS_CELL_MOVE = "cross_cell_move", Column(CellPreference), UNBOUNDED, 1_000_000.0, 1.0;

    /// Spreads by free local disk, in MiB before the request, no allocation ratio in it.
    ///
    /// Source: Nova, `nova/scheduler/weights/disk.py` (`DiskWeigher`, `minval = 0`).
    DISK = "disk", Column(FreeDiskMb), Bounds::FROM_ZERO, 1.0, 1.0;

    /// Prefers newer hypervisors: the version as a number (8.2.0 is 8002000), 0 if unknown.
    ///
    /// Source: Nova, `nova/scheduler/weights/hypervisor_version.py` (`HypervisorVersionWeigher`, no
    /// bounds).
    HYPERVISOR_VERSION = "hypervisor_version", Column(HypervisorVersion), UNBOUNDED, 1.0, 1.0;

    /// Keeps away from busy hosts: instances that are being built or are leaving.
    ///
    /// They are a burden, hence the negative multiplier. Hosts that are all equally busy all get 1,
    /// that is −1 after the multiplier.
    ///
    /// Source: Nova, `nova/scheduler/weights/io_ops.py` (`IoOpsWeigher`, `minval = 0`).
    IO_OPS = "io_ops", Column(NumIoOps), Bounds::FROM_ZERO, -1.0, 1.0;

    /// Packs (positive) or spreads (negative) by the number of instances, whatever their size,
    /// leaving ones and claims included. Off by default.
    ///
    /// Source: Nova, `nova/scheduler/weights/num_instances.py` (`NumInstancesWeigher`, no bounds).
    NUM_INSTANCES = "num_instances", Column(NumInstances), UNBOUNDED, 0.0, 1.0;

    /// Spreads by free memory, in MiB before the request, no allocation ratio in it.
    ///
    /// Source: Nova, `nova/scheduler/weights/ram.py` (`RAMWeigher`, `minval = 0`).
    RAM = "ram", Column(FreeRamMb), Bounds::FROM_ZERO, 1.0, 1.0;

    /// Avoids preemption while any host has enough free capacity: a host that takes the request as
    /// it is beats one where instances must leave.
    ///
    /// A cloud with capacity everywhere, or nowhere, ranks as without this weigher. It is needed
    /// under the ranking policy `nova` only; `tiered` puts hosts with enough free capacity first by
    /// construction.
    ///
    /// Why 10,000: it must exceed all that the other weighers can take from a host with free
    /// capacity. That is at most 1,000 each for `eviction_cost`, `partial_hour_sum` and
    /// `preemptible_count`, and 9 for Nova's ordinary ones at their defaults: 3,009. It stays below
    /// Nova's 1,000,000 for hosts whose builds fail. Raise it if you raise those. Negative is of
    /// use only for keeping large hosts whole.
    ///
    /// Source: López García et al. 2019, Algorithm 3 (overcommit rank); the scale ends at 0 as in
    /// the authors' prototype opie.
    PREEMPTION_NEEDED = "preemption_needed", Negated(PreemptionNeeded),
        Bounds::UP_TO_ZERO, 10_000.0, 1.0;

    /// Prefers hosts where an eviction costs less: the cost of the cheapest set of victims that
    /// frees enough capacity, in the unit of the configured cost module; 0 if no instance has to
    /// leave.
    ///
    /// Why 1,000: a cost difference of 1 % of the largest cost gives 10, more than Nova's ordinary
    /// weighers at their defaults can give together (9). Smaller differences may lose to free
    /// memory; if the minimum must be exact, use the ranking policy `tiered`. Negative would prefer
    /// the dearest victims: of no use.
    ///
    /// A cost of 0 may still mean victims (an instance that just completed its hour is free);
    /// `preemption_needed` tells them apart.
    ///
    /// Source: López García et al. 2019, section 4.4.2: the rank of a host is the cost of its
    /// cheapest sufficient set. This reading gives the victims of all four of the paper's tables;
    /// `partial_hour_sum` is the other one.
    EVICTION_COST = "eviction_cost", Negated(EvictionCost), Bounds::UP_TO_ZERO, 1_000.0, 1.0;

    /// Prefers hosts with fewer preemptible instances that are not leaving, whether or not any has
    /// to leave. For comparison with opie; not in use by default. Negative gathers normal instances
    /// where preemptible ones are.
    ///
    /// Source: opie (the prototype of López García et al.), `PreemptibleCountWeigher`: `maxval` 0,
    /// multiplier 1,000.
    PREEMPTIBLE_COUNT = "preemptible_count", Negated(NumPreemptible),
        Bounds::UP_TO_ZERO, 1_000.0, 1.0;
}

impl Weigher for ColumnWeigher {
    fn name(&self) -> &str {
        self.name
    }

    fn multiplier_key(&self) -> &str {
        self.multiplier_key
    }

    fn default_multiplier(&self) -> f64 {
        self.multiplier
    }

    fn multiplier_sign(&self) -> f64 {
        self.multiplier_sign
    }

    fn needs(&self) -> &[Column] {
        std::slice::from_ref(&self.column)
    }

    fn bounds(&self) -> Bounds {
        self.bounds
    }

    fn form(&self, _request: &RequestView<'_>) -> WeigherForm {
        self.form
    }
}
