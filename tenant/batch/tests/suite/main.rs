//! Batch work on a small Slurm and a small cloud, with all that goes wrong in them.

#![allow(clippy::unwrap_used)] // A test that cannot go on panics.

mod bids;
mod maps;
mod outages;
mod promises;
mod replay;
mod run;
mod script;
mod settings;
mod sim;
mod work;
