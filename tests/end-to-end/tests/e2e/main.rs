//! End to end: real processes, a real broker, real databases.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr
)] // These are tests.

mod active_schedulers;
mod backup;
mod bad_input;
mod batch_health;
mod command;
mod documents;
mod failures;
mod fences;
mod folders;
mod hostile;
mod killed;
mod kit;
mod life;
mod maps;
mod market;
mod monitoring;
mod paper;
mod plugins;
mod plugins_live;
mod programs;
mod python;
mod real_guests;
mod reclaim;
mod recorded;
mod removal;
mod run;
mod scheduler_calls;
mod secure;
mod start;
mod traces;
