//! A shadow beside nova-scheduler ([ADR 50]).
//!
//! It gets a copy of each request from the broker, decides it as a what-if, and records the
//! decision beside what nova-scheduler claimed. It answers no caller, claims nothing, and writes to
//! the database of `[ebbtide] connection` alone.
//!
//! [ADR 50]: ../../../../../docs/development/adr/0050-a-shadow-reads-copies-of-the-requests.md

mod answers;
mod idle;
#[cfg(test)]
pub(crate) mod kit;
mod observer;
mod report;
mod service;
mod verdict;

#[cfg(test)]
pub(crate) use answers::Answers;
pub(crate) use answers::{HostReports, ObservedRequest};
pub use report::{IdleFlavor, ReasonCount, ShadowReport};
pub use service::ShadowService;

/// The name of a shadow in the ledger, in its queues, and in its questions to Placement.
const NAME: &str = "ebbtide-shadow";
