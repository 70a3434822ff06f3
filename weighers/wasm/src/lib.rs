//! Weighers and cost modules as WebAssembly components, in a sandbox.
//!
//! The contract is `wit/plugin.wit`; `docs/plugins.md` says it in words. To the engine such a plugin is a [`Weigher`](ebbtide_weigher_api::Weigher) or a
//! [`CostModule`](ebbtide_cost_api::CostModule) like those that are compiled in.
//!
//! # What keeps the scheduler safe
//! - **Every call gets a new instance**, made of memory that is copied when it is written to: tens of microseconds. Nothing is left of one call in the
//!   next, so a plugin cannot leak, remember or be poisoned.
//! - **Work and memory of each call are limited** ([`Limits`]). Work is counted in instructions and not in time, so what is too much does not depend on how
//!   busy the machine is.
//! - **What is not given is not there** (`wasi.rs`): no files, network, environment, input. Clock and randomness only if they are [granted](Grants);
//!   otherwise a plugin that asks for the time fails, and one that asks for random numbers always gets the same ones, because hash tables of several
//!   languages cannot do without.
//! - NaN has one form, and no instruction gives different results on different processors: the same input gives the same bits everywhere.

mod bindings;
mod call;
mod cost;
mod error;
mod guest;
mod limits;
mod load;
mod wasi;
mod weigher;

pub use cost::{CostGuest, WasmCostModule};
pub use error::WasmError;
pub use guest::{Clock, Grants, Randomness, Used};
pub use limits::Limits;
pub use load::{Compiled, Kind, Sandbox, Settings};
pub use weigher::{WasmWeigher, WeigherGuest};

/// The contract, for whoever makes a new plugin.
pub const WIT: &str = include_str!("../wit/plugin.wit");
