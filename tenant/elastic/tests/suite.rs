//! The elastic partition: the paper, an oracle, properties, traces.

// All of this is tests; helpers too may fail loudly.
#![allow(clippy::unwrap_used, clippy::expect_used)]
// Of the helpers that the modules share.
#![allow(unreachable_pub)]

mod common;
mod controller;
mod demand;
mod oracle;
mod page;
mod paper;
mod properties;
mod recovery;
mod trace;
