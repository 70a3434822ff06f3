//! Nova's versioned objects on the wire: requests in, selections out.
//!
//! What comes is read from [`Value`], which keeps the order of a message's keys: Nova's filters
//! walk extra specs in that order. [`parse`] makes it of a message's text, `Value::from` of a
//! `serde_json` value (whose keys are sorted). What goes out is `serde_json`'s.
//!
//! - [`SelectDestinations`] is the call, [`ScheduleRequest`] the RequestSpec in it, for the model
//!   of `ebbtide-nova`.
//! - [`RpcContext`] says who asks.
//! - [`UpdateInstanceInfo`], [`SyncInstanceInfo`], [`DeleteInstanceInfo`],
//!   [`read_update_aggregates`] and [`read_delete_aggregate`] are the casts that keep a scheduler
//!   up to date.
//! - [`reply`] of [`Selection`]s is the answer, [`ExceptionPayload`] the other one.
//! - [`nova_conf`] reads nova.conf for the Nova service.
//! - [`notification`] has the payloads of `scheduler.select_destinations.start` and `.end`.
//!
//! The crate is pure. Nothing that it prints or returns as an error holds a token, or the URL of a
//! cell's database.

mod aggregate;
mod context;
mod dumps;
mod error;
mod failure;
mod instance;
pub mod notification;
pub mod nova_conf;
mod object;
mod read;
mod request;
mod selection;

pub use aggregate::{read_aggregate, read_delete_aggregate, read_update_aggregates};
pub use context::RpcContext;
pub use ebbtide_nova::python::Value;
pub use error::{ObjectError, ObjectProblem, Result};
pub use failure::ExceptionPayload;
pub use instance::{DeleteInstanceInfo, Instance, SyncInstanceInfo, UpdateInstanceInfo};
pub use request::{
    CellMapping, NetworkRequest, Retry, ScheduleRequest, SelectDestinations, Wire, read_flavor,
    read_network_metadata, read_numa_topology, read_pci_requests,
};
pub use selection::{ALLOCATION_REQUEST_VERSION, NumaLimits, Selection, read_reply, reply};

/// Reads a message's JSON, the order of its keys kept.
///
/// # Errors
/// Text that is no JSON, or nested too deeply.
pub fn parse(text: &str) -> Result<Value> {
    ebbtide_nova::python::json::loads(text).map_err(ObjectError::refused)
}

/// The arguments of a call as `serde_json` has them, for the readers here. Keys are then sorted:
/// where extra specs decide in the order of the message, use [`parse`].
#[must_use]
pub fn arguments(args: &serde_json::Map<String, serde_json::Value>) -> Value {
    let entries = args.iter().map(|(key, value)| (key.clone(), value.into()));
    Value::Dict(entries.collect())
}
