//! Weighers, cost modules and filters that are separate services, called over gRPC.
//!
//! The contract is `proto/proto/ebbtide/plugin/v1/plugin.proto`; `docs/plugins/plugins.md`
//! describes it. To the engine such a plugin is a [`Weigher`](ebbtide_weigher_api::Weigher), a
//! [`CostModule`](ebbtide_cost_api::CostModule) or a
//! [`HostFilter`](ebbtide_weigher_api::HostFilter) like those that are compiled in.
//!
//! # What keeps the scheduler safe
//! - **Each call has a deadline** ([`ServiceLimits::deadline`]): it limits how long a service that
//!   does not answer delays a decision.
//! - **Calls are limited in number** ([`ServiceLimits::in_flight`]): the next one fails at once
//!   instead of waiting.
//! - Answers have a maximum size, and their content is checked like that of any other plugin.
//! - The connection is opened when it is needed, and again when it was lost. No call is retried
//!   automatically.
//!
//! The caller that monitors all plugins decides when to stop calling a service that fails
//! repeatedly.

mod call;
mod convert;
mod cost;
mod error;
mod filter;
mod service;
mod thread;
mod weigher;

pub use cost::{CostService, RemoteCostModule};
pub use error::RemoteError;
pub use filter::{FilterService, RemoteFilter};
pub use service::{Service, ServiceLimits, Tls};
pub use weigher::{RemoteWeigher, WeigherService};

/// What the operator lets a plugin know.
pub type PluginSettings = std::collections::BTreeMap<String, String>;

/// A plugin that has described itself.
#[derive(Debug)]
pub enum RemotePlugin {
    /// It says how good hosts are.
    Weigher(RemoteWeigher),
    /// It says what victims cost.
    CostModule(RemoteCostModule),
    /// It says which hosts pass.
    Filter(RemoteFilter),
}
