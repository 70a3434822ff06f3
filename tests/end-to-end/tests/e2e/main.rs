//! End to end: real processes, a real broker, real databases.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr
)] // These are tests.

mod at;
mod bad_days;
mod bad_input;
mod command;
mod documents;
mod fences;
mod folders;
mod hostile;
mod killed;
mod kit;
mod life;
mod market;
mod paper;
mod plugins;
mod plugins_live;
mod programs;
mod python;
mod real_guests;
mod run;
mod secure;
mod several;
mod start;
