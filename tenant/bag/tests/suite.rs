//! The planner of bags: the paper, properties, scenarios, input.

// All of this is tests; helpers too may fail loudly.
#![allow(clippy::unwrap_used, clippy::expect_used)]
// Of the helpers that the modules share.
#![allow(unreachable_pub)]

mod bad_input;
mod common;
mod figures;
mod paper;
mod properties;
mod read;
mod scenarios;
