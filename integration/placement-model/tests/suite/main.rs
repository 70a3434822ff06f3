//! The model held against the real Placement, and what it does when requests meet.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod concurrent_writes;
mod conformance;
mod generator;
