//! The scheduler service: the I/O around the region.
//!
//! ```text
//!   gRPC ──┐                             ┌── store (one transaction for each batch)
//!   ticks ─┼─▶ region actor ─▶ Region ───┤
//!   inbox ─┘    (one task)               └── outbox ─▶ bus ─▶ agents
//! ```
//!
//! One task, the [`region_actor`], owns the region. It takes all queued inputs, lets the region
//! handle each, and commits the changes of all of them in one transaction. Only then does it
//! answer, publish the events, and pass the messages to the outbox. If the commit fails, it first
//! reads the region anew from the database.

mod access_warnings;
mod advice;
mod agent_logins;
mod agent_queues;
mod archive;
pub mod args;
mod bills;
mod cloud;
mod console;
mod error;
mod fail_points;
mod gate;
mod grpc;
mod http;
mod inbox;
mod lease;
pub mod logins;
mod metrics;
pub mod nova;
pub mod openstack_api;
mod oslo_log;
mod outbox;
mod plugins;
pub mod region_actor;
mod run;
mod ticker;
mod traces;
mod wire;

/// The configuration is a separate crate, so that `ebbtide-manage config check` judges a file as
/// the service does.
pub use ebbtide_config as config;
pub use ebbtide_config::Config;
pub use error::ServiceError;
use error::{Tasks, fail};
pub use run::{NamedBus, RunningScheduler, init_log, mark_restored, open_bus, start};
