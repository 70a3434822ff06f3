//! Attacks of outsiders and greedy tenants on a real scheduler, and their effect on others.

#![allow(clippy::unwrap_used, clippy::expect_used)] // All of this file is tests; helpers too may fail loudly.

mod greedy;
mod idle;
mod kit;
