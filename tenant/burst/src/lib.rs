//! A Slurm cluster with preemptible nodes: the pure half of the elastic partition of
//! `ebbtide-batch`.
//!
//! - [`slurm`] reads the output of `squeue --json` and `sinfo --json`, and lists of hosts.
//! - [`ElasticSettings`] are the operator's settings. [`Manager`] is the controller: it takes the
//!   state of Slurm and the region and returns actions. [`ebbtide_elastic::Controller`] decides the
//!   number of preemptible nodes.
//! - [`BurstRecord`] contains the events, one line each, and the account computed from them.
//!   [`reckon()`] simulates the same jobs on the on-demand nodes alone; [`report`] compares both.
//! - [`reuse_policy`] reports to Slurm how old instances are, and for which jobs they are as good
//!   as new ones.
//!
//! Times are milliseconds since 1970 unless a name says otherwise. Money is millionths of the
//! currency unit. The crate does no I/O and reads no clock and no random numbers.

mod account;
mod baseline;
mod error;
mod manager;
mod record;
pub mod report;
pub mod reuse_policy;
mod settings;
pub mod slurm;

pub use account::InstanceHistory;
pub use baseline::{JobRequest, reckon};
pub use error::BurstError;
pub use manager::{
    BurstAction, ClusterSnapshot, Decisions, Load, Manager, ManagerOptions, OURS, PoolServer,
    RESTING, Status,
};
pub use record::{BurstEvent, BurstRecord, JobClass, JobLife, JobRun, LifeEnd, RecordEntry};
pub use settings::{
    AgeSettings, CloudChoice, ElasticSettings, NodeGroup, NodeTimes, OpenStackSettings,
    RegionSettings, node_names,
};
