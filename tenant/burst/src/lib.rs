//! A Slurm cluster with preemptible nodes: the pure half of `ebbtide-burst`.
//!
//! - [`slurm`] reads what `squeue --json` and `sinfo --json` say, and lists of hosts.
//! - [`Settings`] are what an operator writes; [`Manager`] is the controller: what Slurm and the region say goes in, what is to be done comes out. How many preemptible
//!   nodes there should be is decided by [`ebbtide_elastic::Controller`].
//! - [`Record`] is what happened, a line each, and the account that follows from it; [`reckon()`] plays the same jobs on the nodes that stay, alone; [`report`] holds both
//!   against each other.
//! - [`age`] tells Slurm how old instances are, and for which jobs they are as good as new ones; [`lanes`] makes job arrays of a planned bag.
//!
//! Times are milliseconds since 1970 unless a name says otherwise, money is millionths of the currency unit. No I/O, no clock, no chance.

pub mod age;
mod error;
pub mod lanes;
mod manager;
mod reckon;
mod record;
pub mod report;
mod settings;
pub mod slurm;

pub use error::BurstError;
pub use manager::{Action, Heard, Instance, Manager, RESTING, Status, World};
pub use reckon::{Asked, reckon};
pub use record::{Event, Fact, JobLife, Kind, Life, LifeEnd, Record, Run};
pub use settings::{AgeSettings, PolicySettings, RegionSettings, Settings, SlurmSettings};
