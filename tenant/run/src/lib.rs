//! A job on preemptible instances, from its start to its end: events in, actions out. No clock, no I/O, no chance.
//!
//! - [`Job`] is the state machine: it says when to start, restore, save, leave and end, and keeps the account.
//! - [`Rules`] say what it goes by; [`Rhythm`] when to save as long as nothing happens: the schedule of `ebbtide-lifetime`, or a fixed time.
//! - [`Record`] is what outlives the process: checkpoints that are complete, lives of instances, costs that were measured.
//! - [`outcome`] says what fixed checkpoints, or none, would have lost on the same instances.
//! - [`metadata`] reads what clouds say about interruptions: our own form, EC2's, GCE's, Azure's.
//!
//! **The promise.** A checkpoint counts once it is complete; the newest complete one is never discarded; a job ends once. With a
//! rhythm, and checkpoints that do not fail, no interruption costs more than one interval of work.

mod compare;
mod error;
mod event;
mod job;
pub mod metadata;
mod record;
mod rhythm;
mod rules;
mod span;

pub use compare::{Outcome, outcome};
pub use error::RunError;
pub use event::{Action, Ending, Event, Why};
pub use job::Job;
pub use record::{Checkpoint, End, Life, Record};
pub use rhythm::Rhythm;
pub use rules::Rules;
pub use span::{Moment, Span};
