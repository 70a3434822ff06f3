//! A job on preemptible instances, from its start to its end: events in, actions out. The crate
//! does no I/O and reads no clock and no random numbers.
//!
//! - [`RunJob`] is the state machine: it decides when to start, restore, save, leave and end, and
//!   keeps the account.
//! - [`Rules`] are its settings. [`CheckpointSchedule`] determines when to save without a notice:
//!   the schedule of `ebbtide-lifetime`, or a fixed interval.
//! - [`RunRecord`] outlives the process: complete checkpoints, lives of instances, measured costs.
//! - [`write_state`], [`read_state`] and [`read_record`] have the form of the file that keeps it.
//! - [`outcome`] computes what fixed checkpoints, or none, would have lost on the same instances.
//! - [`metadata`] reads the interruption notices of clouds: Ebbtide's own form, EC2's, GCE's,
//!   Azure's.
//!
//! **The promise.** A checkpoint counts once it is complete; the newest complete one is never
//! discarded; a job ends once. With a rhythm, and checkpoints that do not fail, no interruption
//! costs more than one interval of work.

mod checkpoint_interval;
mod compare;
mod error;
mod event;
mod job;
pub mod metadata;
mod record;
mod rules;
mod span;
mod state_file;

pub use checkpoint_interval::CheckpointSchedule;
pub use compare::{IntervalResult, outcome};
pub use error::RunError;
pub use event::{CheckpointReason, RunAction, RunEnd, RunEvent};
pub use job::RunJob;
pub use record::{Checkpoint, InstanceWork, RunRecord, WorkEnd};
pub use rules::Rules;
pub use span::{RunTime, Span};
pub use state_file::{STATE_FILE, read_record, read_state, write_state};
