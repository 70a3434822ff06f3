//! What fuzzing runs: one function for each parser of what comes from outside, as plain code.
//!
//! libFuzzer's programs (`fuzz/libfuzzer`) call them with whatever it makes up; a test of the
//! workspace calls them with the seeds (`fuzz/seeds/TARGET`), with what was found once
//! (`fuzz/regressions/TARGET`), and with some thousands of changed seeds, so that they are alive in
//! every CI run without a nightly compiler.
//!
//! A function panics if a promise is broken: what is taken is written as it is read, limits hold,
//! nothing shows a password. Panics of the parser itself are findings anyway.

#![allow(
    clippy::expect_used,
    reason = "a panic is how a finding is told; these functions are run by tests and fuzzers only"
)]

pub mod mutate;
mod secret;
mod targets;

pub use targets::{FuzzTarget, TARGETS};
