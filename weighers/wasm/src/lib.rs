//! Weighers, cost modules and filters as WebAssembly components, in a sandbox.
//!
//! The contract is `wit/plugin.wit`; `docs/plugins/plugins.md` describes it. To the engine such a
//! plugin is a [`Weigher`](ebbtide_weigher_api::Weigher), a
//! [`CostModule`](ebbtide_cost_api::CostModule) or a
//! [`HostFilter`](ebbtide_weigher_api::HostFilter) like those that are compiled in.
//!
//! # What keeps the scheduler safe
//! - **Every call gets a new instance**, made of copy-on-write memory: tens of microseconds.
//!   Nothing of one call remains in the next, so a plugin cannot leak memory, keep state or be
//!   poisoned.
//! - **Work and memory of each call are limited** ([`SandboxLimits`]). Work is counted in
//!   instructions and not in time, so the limit does not depend on the load of the machine.
//! - **The sandbox is empty by default** (`wasi.rs`): no files, network, environment, input. Clock
//!   and randomness are available only if they are [granted](Grants). Otherwise a plugin that reads
//!   the time fails, and one that reads random numbers always gets the same ones, because hash
//!   tables of several languages need some.
//! - NaN has one form, and no instruction gives different results on different processors: the same
//!   input gives the same bits everywhere.

mod bindings;
mod call;
mod cost;
mod error;
mod filter;
mod guest;
mod limits;
mod load;
mod wasi;
mod weigher;

pub use cost::{CostGuest, WasmCostModule};
pub use error::WasmError;
pub use filter::{FilterGuest, WasmFilter};
pub use guest::{CallUsage, Clock, Grants, Randomness};
pub use limits::SandboxLimits;
pub use load::{CompiledPlugin, Kind, PluginSettings, Sandbox};
pub use weigher::{WasmWeigher, WeigherGuest};

/// The contract, for authors of plugins.
pub const WIT: &str = include_str!("../wit/plugin.wit");
