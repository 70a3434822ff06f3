//! The pure decision engine: host table, filters, ranking, victims, explanation.
//!
//! A [`HostTable`] holds hosts and instances with both states of the cloud: the full state h_f, in
//! which every instance counts, and the normal state h_n, in which only normal instances count.
//! [`Engine::decide`] makes one pass over it. It filters on h_n for a normal request and on h_f for
//! a preemptible one, ranks the hosts, chooses victims where no host has free capacity, and returns
//! a [`Decision`](ebbtide_model::Decision) with its reasons. The engine changes nothing: the caller
//! writes the decision to its store and then updates the table.
//!
//! The engine has no clock, no I/O and no global state; randomness comes from a seed. The same
//! table, request, budgets, configuration, time and seed give the same decision, bit for bit, in
//! whatever order the instances were put.

mod budgets;
mod candidates;
mod checked_request;
mod config;
mod decide;
mod eligible;
mod eligible_hosts;
mod engine;
mod error;
mod explain;
mod fast;
mod filters;
mod host_needs;
mod joint;
mod judged;
pub mod papers;
mod plugins;
mod price;
mod ranking;
mod reclaim;
mod set_cost;
mod share;
mod state;
mod table;
mod victim_columns;
mod victims;

pub use budgets::Budgets;
pub use config::{EngineConfig, PluginFailure, RankingPolicy, WeigherConfig, default_weighers};
pub use eligible_hosts::{EligibleDecision, EligibleHosts, EligibleRequest, HostNumber};
pub use engine::Engine;
pub use error::EngineError;
pub use host_needs::{HostNeeds, NeedColumns};
pub use reclaim::{HostEviction, HostReclaim};
#[cfg(test)]
mod tests;

pub use table::{
    ClassUsage, CloudTotals, HostCounts, HostSummary, HostTable, HostUsage, Instance,
    InstancePhase, InstanceView, class_totals, sum_inventories,
};
