//! Which PCI devices a host can give to a request (`nova/pci/stats.py`).
//!
//! Nova knows devices as pools of like ones. [`PciStats::supports`] asks whether all requests of an instance can be had
//! together, [`apply`] takes them from the pools. Each request goes through the filters of [`pools`](self) in Nova's order: spec,
//! NUMA, unrequested PFs, unrequested vDPA, unrequested remote-managed, Placement's providers, live migration.

mod affinity;
mod mapping;
mod select;
mod spec;
mod stats;

pub use mapping::ProviderMapping;
pub use stats::{PciStats, apply};
