//! The burst controller: its manager, records, settings, Slurm and simulated worlds.

// All of this is tests; helpers too may fail loudly.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod account;
mod common;
mod manager;
mod record;
mod settings;
mod sim;
mod slurm;
mod worlds;
