//! What outsiders and greedy tenants try against a real scheduler: each attack as it was found, and
//! what others notice of it.

#![allow(clippy::unwrap_used, clippy::expect_used)] // All of this file is tests; helpers too may fail loudly.

mod greedy;
mod idle;
mod kit;
