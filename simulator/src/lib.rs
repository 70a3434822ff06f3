//! Trace replays and their reports.
//!
//! A [`Trace`] is a recorded list of creates and deletes of virtual machines. It is replayed
//! against the engine alone ([`offline`]), or by the `ebbtide` command against a running region.
//! Both fill the same [`ReplayReport`], which is written as JSON and, by the command, as a chart of
//! both
//! states h_f and h_n over time. [`RecordedPlacements`] holds another scheduler's answers to the
//! same trace, for
//! comparison.
//!
//! Nothing here reads a clock: trace time comes from the trace, real time from a closure.

mod error;
mod latency;
pub mod offline;
mod recorded;
mod report;
mod share;
mod trace;
mod vm_lifetimes;

pub use error::SimError;
pub use latency::{Latencies, LatencySummary};
pub use recorded::{Comparison, HostPattern, PlacementDifference, RecordedPlacements};
pub use report::{ClassSample, ReplayReport, Sample, Sampling};
pub use share::PreemptibleShare;
pub use trace::{EventKind, Irregularities, ReadOptions, Trace, TraceEvent, VmSize};
pub use vm_lifetimes::{LifeTotals, VmEnd, VmLifetime};
