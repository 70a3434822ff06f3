//! The pure decision engine: host table, filters, ranking, victims, explanation.
//!
//! A [`HostTable`] holds hosts and instances with both states of the cloud: the full one, h_f, in which every instance counts,
//! and the normal one, h_n, in which only normal instances do. [`Engine::decide`] makes one pass over it: filters on h_n for
//! a normal request and on h_f for a preemptible one, ranks, chooses victims where nothing else helps, and answers with a
//! [`Decision`](ebbtide_model::Decision) that carries its reasons. It changes nothing: whoever asks writes the decision down
//! and then puts it into the table.
//!
//! No clock, no I/O, no global state; chance comes from a seed. Same table, request, budgets, configuration, time and seed:
//! same decision, bit for bit, in whatever order the instances were put.

mod ask;
mod budgets;
mod candidates;
mod config;
mod decide;
mod eligible;
mod eligible_hosts;
mod engine;
mod error;
mod explain;
mod fast;
mod filters;
mod joint;
pub mod papers;
mod plugins;
mod price;
mod pyfloat;
mod ranking;
mod set_cost;
mod share;
mod state;
mod table;
mod victims;

pub use budgets::Budgets;
pub use config::{EngineConfig, PluginFailure, Policy, WeigherConfig, default_weighers};
pub use eligible_hosts::{EligibleHosts, HostNumber};
pub use engine::Engine;
pub use error::EngineError;
#[cfg(test)]
mod tests;

pub use table::{
    ClassTotals, ClassUsage, HostTable, HostUsage, HostView, Instance, InstanceView, Phase,
};
