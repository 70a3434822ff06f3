//! Limits of connections from outside, shared by every listener of this project.
//!
//! - [`ConnectionSlots`] counts connections, in all and of each address. When there are too many,
//!   connections without a call in progress are closed first, those of authenticated callers last.
//! - [`GuardedConnection`] is a connection with deadlines: for its first bytes, its first request,
//!   and the time between requests. A call in progress has no deadline here; its service limits
//!   calls.
//! - [`ConnectionHandle`] is the handle by which a service says that a call begins, ends, or that
//!   the caller is authenticated.
//! - [`Reporter`] counts what was closed or refused, and logs it at a bounded rate.
//! - [`http`] puts these around an HTTP server of axum.
//! - [`pages`] serves metrics and health of the programs beside the scheduler.

mod body;
mod connection_slots;
mod guarded;
pub mod http;
mod limits;
pub mod pages;
mod report;
mod session;

pub use body::CallBody;
pub use connection_slots::ConnectionSlots;
pub use guarded::GuardedConnection;
pub use limits::{ConnectionLimits, Deadlines, Protocol};
pub use report::{CloseReason, Reporter};
pub use session::{CallGuard, ConnectionHandle};
