//! The built-in weighers and the list of them ([`registry`]). Those that read one column are rows
//! of
//! a table ([`columns`]); each with logic of its own has a file.
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

pub mod columns;
pub mod options;
pub mod registry;

pub mod image_props;
pub mod interruption_risk;
pub mod metrics;
pub mod partial_hour_sum;
pub mod pci;
pub mod soft_affinity;
pub mod soft_anti_affinity;

pub use options::{ConfigError, MAX_HORIZON_SECONDS, MAX_PERIOD_SECONDS, WeigherOptions};
pub use registry::{all, by_name, names, nova_default, preemption_default};
