//! Batch work on preemptible servers: the pure half of `ebbtide-batch`, but for its elastic
//! partition (`ebbtide_burst`).
//!
//! - [`Work`] is what a tenant hands in: a job, an array, a bag, a workflow. [`Book`] has all work
//!   and what became of it.
//! - [`BatchController`] takes the state of Slurm and the cloud and returns facts and actions. Its
//!   promise about deadlines is in `controller/deadline.rs`.
//! - [`placement`] says which member starts on which node and how many servers of each type there
//!   should be, [`RunningTimes`] how long a member takes in expectation on a server of some age.
//! - [`maps`] runs a bag by primary and backup maps on servers that hibernate.
//! - [`script`] writes the batch script of an attempt. [`replay()`] runs the same members on
//!   on-demand servers, [`servers_cost()`] divides what the pool paid among works, [`report()`]
//!   compares. [`view`] has what the service shows.
//!
//! Times are milliseconds since 1970 unless a name says otherwise. Money is millionths of the
//! currency unit. The crate does no I/O and reads no clock and no random numbers.

mod book;
mod controller;
mod error;
pub mod maps;
pub mod placement;
mod replay;
mod report;
mod running_time;
pub mod script;
mod servers_cost;
mod settings;
pub mod view;
mod work;

pub use book::{
    Attempt, AttemptEnd, BidDecision, Book, BookEntry, Fact, LengthEstimate, Member, OutbidEvent,
    WorkBook, WorkId, WorkState,
};
pub use controller::{
    AttemptResult, BatchAction, BatchController, BatchDecisions, BatchWorld, CheckedWork, Mark,
    PUT_BACK, attempt_of, job_name,
};
pub use error::BatchError;
pub use replay::{Replay, ReplayRules, replay};
pub use report::{OnDemand, WorkReport, report};
pub use running_time::{RunningTimeQuery, RunningTimes};
pub use servers_cost::{ServersCost, servers_cost};
pub use settings::{
    BatchPolicy, BatchSettings, ClusterSettings, MarketSetting, ReuseRule, ServerType, SingleRule,
    TypeSettings,
};
pub use work::{Checkpoint, MOST_MEMBERS, MOST_STAGES, MemberId, Stage, Work};
