//! The built-in cost modules, one file each, and the list of them ([`registry`]).
//!
//! A cost module says what the loss of one victim costs the provider. The engine chooses the
//! sufficient set of victims with the smallest sum of costs. The contract is in `ebbtide-cost-api`.
//!
//! Invariants: a cost depends on that one candidate only; it is finite, from 0 to
//! [`MAX_COST`](ebbtide_cost_api::MAX_COST), whatever finite numbers the columns hold; modules keep
//! no state.

mod columns;
pub mod options;
pub mod registry;

pub mod fairness;
pub mod lowest_bid;
pub mod newest_first;
pub mod num_instances;
pub mod oldest_first;
pub mod partial_hour;
pub mod priority_class;
pub mod remaining_lifetime;
pub mod revenue;

pub use options::{
    ConfigError, CostModuleOptions, MAX_FAIRNESS_SECONDS, MAX_HORIZON_SECONDS, MAX_PERIOD_SECONDS,
};
pub use registry::{DEFAULT, all, by_name, names};
