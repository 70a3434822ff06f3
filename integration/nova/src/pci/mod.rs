//! Which PCI devices a host can give to a request (`nova/pci/stats.py`).
//!
//! Nova knows devices as pools of like ones. [`PciStats::supports`] asks whether all requests of an
//! instance can be had together, [`apply`] takes them from the pools, [`add_device`] gives one
//! back. For each request the pools that cannot serve it are left out in Nova's order: by spec, by
//! NUMA policy, PFs, vDPA and remote-managed devices that it does not name, providers that
//! Placement did not choose, and those of the wrong kind for live migration. What is left is used
//! up in the order of the pools.

mod add;
mod affinity;
mod alias;
mod mapping;
mod select;
mod spec;
mod stats;

pub use add::add_device;
pub(crate) use alias::{NUMA_POLICIES, requests_of_flavor};
pub use mapping::ProviderMapping;
pub use select::{freed, usable};
pub use stats::{PciStats, apply};
