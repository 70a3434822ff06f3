//! The command against a region that the test plays: what it asks, what it prints, how it ends.

// All of this is tests; helpers too may fail loudly.
#![allow(clippy::unwrap_used, clippy::expect_used)]
#![allow(clippy::disallowed_methods)] // The fake region starts its server as it likes.
#![allow(unreachable_pub)]

mod arguments;
mod bags;
mod batch;
mod bench;
mod checkpointing;
mod config;
mod conform;
mod deadline;
mod elastic;
mod errors;
mod fake;
mod lifetimes;
mod market;
mod nouns;
mod plugins;
mod replay;
mod run;
mod running;
mod simulate;
mod story;
mod waiting;
mod widths;
