//! Weighers and cost modules that are services of their own, asked over gRPC.
//!
//! The contract is `proto/proto/ebbtide/plugin/v1/plugin.proto`; `docs/plugins.md` says it in words. To the engine such a plugin is a
//! [`Weigher`](ebbtide_weigher_api::Weigher) or a [`CostModule`](ebbtide_cost_api::CostModule) like those that are compiled in.
//!
//! # What keeps the scheduler safe
//! - **Each call has a deadline** ([`Limits::deadline`]): a service that does not answer costs a decision so much and no more.
//! - **So many calls at a time and no more** ([`Limits::in_flight`]): the next fails at once instead of waiting.
//! - Answers have a highest size, and what they say is checked like that of any other plugin.
//! - The connection is made when it is needed, and again when it was lost. Nothing is asked twice by itself.
//!
//! Leaving alone a service that fails again and again is the business of whoever watches all plugins.

mod call;
mod clock;
mod cost;
mod error;
mod hand_over;
mod service;
mod task;
mod weigher;

pub use clock::milliseconds;
pub use cost::{CostService, RemoteCostModule};
pub use error::RemoteError;
pub use service::{Limits, Service, Tls};
pub use weigher::{RemoteWeigher, WeigherService};

/// What the operator lets a plugin know.
pub type Settings = std::collections::BTreeMap<String, String>;

/// A plugin that has described itself.
#[derive(Debug)]
pub enum RemotePlugin {
    /// It says how good hosts are.
    Weigher(RemoteWeigher),
    /// It says what victims cost.
    CostModule(RemoteCostModule),
}
