//! A real Slurm cluster whose nodes are preemptible instances of a real region: slurmctld, munge
//! and slurmd, scheduler, agents and broker.
//!
//! The machines are the test bed's: for each active instance a slurmd in namespaces of its own,
//! which is killed with everything on it when the instance is gone (`devstack/lib/slurm.sh`). What
//! decides, asks the region and speaks with Slurm is `ebbtide-batch`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::indexing_slicing
)] // These are tests.

mod batch;
mod batch_bid;
mod batch_failures;
mod both;
mod failures;
mod lend;
mod maps;
mod short_jobs;
mod test_bed;
