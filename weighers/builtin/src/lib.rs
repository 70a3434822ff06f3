//! The built-in weighers, one file each, and the list of them ([`registry`]).
//!
//! A weigher says how good a host is for a request; the engine normalises its numbers to 0…1,
//! multiplies them by the weigher's multiplier and adds them to the host's total. The highest total
//! wins. The contract is in `ebbtide-weigher-api`.
//!
//! # The order of magnitude of the multipliers
//! Nova's weighers here give at most 1 each, in size, with their default multipliers (all of Nova's
//! that are not emergencies together at most 9). Above them lie further layers, each far from the
//! next:
//!
//! - Nova's ordinary weighers, ±1: Nova's defaults.
//! - The cost of an eviction (`eviction_cost`, `partial_hour_sum`, `preemptible_count`), 1,000:
//!   opie's default. A difference of 1 % of the largest cost gives 10 and outweighs the 9.
//! - Whether an instance has to leave (`preemption_needed`), 10,000: more than the three of the
//!   layer below and the 9 together can take away (3,009).
//! - For preemptible requests only: `interruption_risk`, 10,000. A difference of 0.001 outweighs
//!   the 9. It adds nothing to normal requests, to which the layers above apply.
//! - Nova's emergencies (failed builds, forbidden cell), 1,000,000: Nova's defaults. Free capacity
//!   does not repair a broken host.
//!
//! Invariants: weighers keep no state; a weigher reads only columns that it names in `needs()`;
//! what it writes is finite where its columns are.

mod columns;
pub mod options;
pub mod registry;

pub mod build_failure;
pub mod cpu;
pub mod cross_cell_move;
pub mod disk;
pub mod eviction_cost;
pub mod hypervisor_version;
pub mod image_props;
pub mod interruption_risk;
pub mod io_ops;
pub mod metrics;
pub mod num_instances;
pub mod partial_hour_sum;
pub mod pci;
pub mod preemptible_count;
pub mod preemption_needed;
pub mod ram;
pub mod soft_affinity;
pub mod soft_anti_affinity;

pub use options::{ConfigError, WeigherOptions};
pub use registry::{all, by_name, names, nova_default, preemption_default};
